"""`reenact run -- CMD`: record a program with no change to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import InputError
from reenact.graph.history import history
from reenact.graph.verdict import facts, judge
from reenact.keep.catalog import kept_in
from reenact.keep.posting import undelivered
from reenact.pipeline.injection import Recorded, program, record
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Grade, Run, Verdict
from reenact.values.semconv import SETTING, Semconv

_REASONS = 3
"""So many reasons of a verdict are told at the end of a recording."""


@click.command("run", context_settings={"allow_interspersed_args": False})
@options.store_folder
@click.option("--user", help="Who it is for; on every span as user.id.")
@click.option("--session", help="Which conversation it belongs to; on every span as session.id.")
@click.option("--tenant", help="Which customer it belongs to; on every span as reenact.tenant.")
@click.option("--policy", metavar="FILE", default="", help="The redaction policy: a TOML file (docs/policies.md).")
@click.option(
    "--semconv",
    type=click.Choice([each.value for each in Semconv]),
    help=f"The names in which backends are shown it. Default: {SETTING}.",
)
@click.option("--collect", is_flag=True, help="Take in what other instrumentations and languages in it send over OTLP.")
@click.option("--strict", is_flag=True, help="Exit 3 where the run is not recorded whole; without a store, before it.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing at the end.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run_command(  # noqa: PLR0913, PLR0917 - each is an option by its name
    folder: Path | None,
    user: str | None,
    session: str | None,
    tenant: str | None,
    policy: str,
    semconv: str | None,
    collect: bool,
    strict: bool,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Record COMMAND, any Python program, with no change to its code.

    Its standard streams and its exit code are its own; what we say goes to stderr, at the end. So they are where the
    store cannot be used: it is said, and COMMAND runs unrecorded, unless --strict is given. Spans go to the local
    store, and to every backend that OTEL_EXPORTER_OTLP_ENDPOINT or REENACT_EXPORT names.
    """
    identity = {name: value for name, value in (("user", user), ("session", session), ("tenant", tenant)) if value}
    if semconv:
        os.environ[SETTING] = semconv  # for the program, whose process sends as well
    store = options.store(folder, whoevers=True)  # the program runs all the same
    result = record(
        program(command),
        store,
        identity,
        lambda line: options.say(f"reenact: {line}"),
        policy,
        collect=collect,
        strict=strict,
    )
    try:
        _tell(command, result, store, quiet=quiet)
    except Exception:  # noqa: BLE001 - a closed standard error, for one: the exit code is the program's all the same
        options.hush()
    if strict and (result.lost or not result.runs):
        with suppress(Exception):
            options.say(f"reenact: --strict: the run is not recorded whole; the program ended with {result.exit_code}")
        sys.exit(InputError.exit_code)
    sys.exit(result.exit_code)


def _tell(command: Sequence[str], result: Recorded, store: DirectoryStore, *, quiet: bool) -> None:
    if result.lost:
        options.say(f"reenact: the recording is incomplete: {result.lost}")
    if not quiet:
        nothing = not result.runs and bool(result.lost)
        for line in (*(() if nothing else _closing(command, result, store)), *_taken_in(*result.taken_in)):
            options.say(line)
    for report in result.reports:
        if report.dropped or report.waiting:
            options.say(f"reenact: {undelivered(report)}")


def _taken_in(spans: int, log_events: int) -> list[str]:
    if not spans and not log_events:
        return []
    return [f"reenact: {spans} spans and {log_events} log events of others were collected; `reenact ls` lists them"]


def _closing(command: Sequence[str], result: Recorded, store: DirectoryStore) -> list[str]:
    runs = result.runs
    if not runs:
        from reenact.report.missing_run import unrecorded  # for the few runs that leave nothing

        return [f"reenact: nothing was recorded: {unrecorded(command, result.loaded, result.exit_code)}"]
    from reenact.report.doctor import verdict_words  # for runs alone, as the sentence above is for none

    lines: list[str] = []
    if result.count > len(runs):
        lines.append(f"reenact: recorded {result.count} runs; `reenact ls` lists them; the last of them:")
    earlier_lines = set[str]()
    for run in runs:
        verdict = judge(run, history(run, kept_in(store)))
        counts = ", ".join(f"{number} {kind}" for kind, number in facts(run.nodes).items())
        lines.append(f"reenact: recorded {run.name} as {run.id[:12]} ({counts}); replayable: {verdict_words(verdict)}")
        if verdict.grade is not Grade.EXACT:
            lines += _reasons(run, verdict, earlier_lines)
    if result.unfinished:
        lines.append(
            f"reenact: {result.unfinished} spans were still open when the program ended; they are kept as incomplete"
        )
    selector = "last" if len(runs) == 1 else max(runs, key=lambda run: run.started_ns).id[:12]
    lines.append(f"reenact: next: reenact show {selector}   reenact replay {selector}")
    return lines


def _reasons(run: Run, verdict: Verdict, earlier_lines: set[str]) -> list[str]:
    """Give the first three reasons of a verdict; none of `earlier_lines`, which a run before it has."""
    from reenact.report.doctor import grouped, listed

    groups = [(f"{listed(calls)}: {reason.field}: {reason.lost}") for reason, calls in grouped(verdict.reasons)]
    new = [line for line in groups if line not in earlier_lines]
    earlier_lines.update(groups)
    lines = [f"reenact:   {line}" for line in new[:_REASONS]]
    if not new:
        lines.append("reenact:   for the reasons named above")
    elif (more := len(new) - _REASONS) > 0:
        lines.append(f"reenact:   and {more} more: reenact doctor {run.id[:12]}")
    return lines
