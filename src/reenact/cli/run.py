"""`reenact run -- CMD`: record a program with no change to it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reenact.cli import options
from reenact.graph.verdict import facts, judge
from reenact.pipeline.injection import program, record
from reenact.pipeline.posting import undelivered
from reenact.report.doctor import said
from reenact.values.run import Grade, Run


@click.command("run", context_settings={"allow_interspersed_args": False})
@options.store_folder
@click.option("--user", help="Who it is for; on every span as user.id.")
@click.option("--session", help="Which conversation it belongs to; on every span as session.id.")
@click.option("--tenant", help="Which customer it belongs to; on every span as reenact.tenant.")
@click.option("--policy", metavar="FILE", default="", help="The redaction policy: a TOML file (docs/policies.md).")
@click.option("--collect", is_flag=True, help="Take in what other instrumentations and languages in it send over OTLP.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing at the end.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run_command(  # noqa: PLR0913, PLR0917 - each is an option by its name
    folder: Path | None,
    user: str | None,
    session: str | None,
    tenant: str | None,
    policy: str,
    collect: bool,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Record COMMAND, any Python program, with no change to its code.

    Its standard streams and its exit code are its own; what we say goes to stderr, at the end. Spans go to the local
    store, and to every backend that OTEL_EXPORTER_OTLP_ENDPOINT or REENACT_EXPORT names.
    """
    identity = {name: value for name, value in (("user", user), ("session", session), ("tenant", tenant)) if value}
    store = options.store(folder, whoevers=True)  # the program runs all the same
    result = record(
        program(command), store, identity, lambda line: options.say(f"reenact: {line}"), policy, collect=collect
    )
    if not quiet and not result.refused:
        for line in (*_closing(result.runs, result.unfinished), *_taken_in(*result.taken_in)):
            options.say(line)
    for report in result.reports:
        if report.dropped or report.waiting:
            options.say(f"reenact: {undelivered(report)}")
    sys.exit(result.exit_code)


def _taken_in(spans: int, log_events: int) -> list[str]:
    if not spans and not log_events:
        return []
    return [f"reenact: {spans} spans and {log_events} log events of others were collected; `reenact ls` lists them"]


def _closing(runs: tuple[Run, ...], unfinished: int) -> list[str]:
    if not runs:
        return [
            "reenact: nothing was recorded: no model call over httpx or httpx2 and no declared function was seen",
            "reenact: a program that is not Python, or `python -I`, -E or -S, never loads the recorder",
        ]
    lines: list[str] = []
    for run in runs[:20]:
        verdict = judge(run)
        counts = ", ".join(f"{number} {kind}" for kind, number in facts(run.nodes).items())
        lines.append(f"reenact: recorded {run.name} as {run.id[:12]} ({counts}); replayable: {said(verdict)}")
        if verdict.grade is not Grade.EXACT:
            lines += [f"reenact:   {reason.call}: {reason.field}: {reason.lost}" for reason in verdict.reasons[:3]]
    if len(runs) > 20:
        lines.append(f"reenact: … and {len(runs) - 20} runs more; `reenact ls` lists them")
    if unfinished:
        lines.append(f"reenact: {unfinished} spans were still open when the program ended; they are kept as incomplete")
    selector = "last" if len(runs) == 1 else max(runs, key=lambda run: run.started_ns).id[:12]
    lines.append(f"reenact: next: reenact show {selector}   reenact replay {selector}")
    return lines
