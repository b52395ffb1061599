"""`reenact fuzz RUN [-- CMD]`: look for bugs around a run, in worlds that are a little different."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from reenact.change.fuzzing import Progress, Settings, fuzz
from reenact.cli import options, trusting
from reenact.errors import UsageError
from reenact.find.sources import find
from reenact.keep.assertion_sources import asserted
from reenact.pipeline.commands import command
from reenact.pipeline.injection import program
from reenact.pipeline.replaying import check_judgeable
from reenact.replay.policy import After, Children
from reenact.report.fuzz import fuzz_document, fuzz_lines
from reenact.values import unit
from reenact.values.fuzz_outcome import Fuzzed
from reenact.values.variation import Group

_CASES = 100
_MOST_JOBS = 8


@click.command("fuzz", cls=options.WithProgram)
@click.argument("selector", metavar="RUN", default="last")
@click.argument("words", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@options.store_folder
@options.as_json
@trusting.trust
@click.option("--check", "files", multiple=True, type=click.Path(path_type=Path), help="A file of assertions to hold.")
@click.option("--assert", "texts", multiple=True, metavar="TEXT", help="An assertion to hold.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same list of cases.")
@click.option(
    "--cases", type=click.IntRange(min=0), help=f"So many cases. Default: {_CASES}, or what --seconds allows."
)
@click.option("--case", type=click.IntRange(min=1), help="Of the list that the seed gives only this case, as it is.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after so many seconds and one case.")
@click.option("--only", metavar="GROUPS", help=f"Of {','.join(each.value for each in Group)}: those, with commas.")
@click.option("--keys", "keys_only", is_flag=True, help="Vary nothing but ignored fields; the same as --only keys.")
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="So many at once. Default: the number of processors, 8 at most."
)
@click.option("--limit", "limit_s", type=click.FloatRange(min=0, min_open=True), help="Seconds that one run may take.")
@click.option(
    "--after",
    type=click.Choice([After.STOP.value, After.NEAREST.value]),
    default=After.NEAREST.value,
    show_default=True,
    help="After a request that nobody recorded: stop, or go on with the nearest recorded answer, which is no evidence.",
)
@options.writes
@options.allow_host
@click.option("--children", type=click.Choice([each.value for each in Children]), default="answer", show_default=True)
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="Deliver a recorded request to this application.")
def fuzz_command(
    selector: str, words: tuple[str, ...], folder: Path | None, as_json: bool, app: str | None, **how: Any
) -> None:
    """Look for bugs around RUN: run the program again, offline, with answers that are each a little different.

    Tools answer nothing, too much, an error, somebody else's id; documents are missing or contradict; models refuse or
    break off; parallel calls come in another order. A crash, an assertion that no longer holds, a failure that nobody
    noticed, a hang, and a tool called with what was put in are told with the smallest case that shows them. Each is a
    run in the store, and is replayed by its id.

    Exit code 0: nothing found. 1: something found. 125: the program cannot be run against RUN, nothing was tried, or
    the search was stopped (SIGINT, SIGTERM) before it found anything. What was found when it was stopped is told.
    """
    store = options.store(folder)
    recording = find(selector, store)
    check_judgeable(recording, words)
    if app and (words or unit.inbound(recording.run) is None):
        raise UsageError("--app names the application for the recorded request of a service")
    recording = trusting.agreed(recording, words, app, trusting=how["trust"])
    argv, cwd = command(recording, words, app)
    trusting.tell_settings(recording)
    settings = Settings(
        seed=how["seed"],
        cases=how["cases"] if how["cases"] is not None or how["seconds"] is not None else _CASES,
        seconds=how["seconds"],
        case=how["case"],
        groups=frozenset({Group.KEYS}) if how["keys_only"] else _groups(how["only"]),
        jobs=how["jobs"] or min(_MOST_JOBS, os.cpu_count() or 1),
        limit_s=how["limit_s"],
        after=After(how["after"]),
        writes=how["writes"],
        hosts=how["hosts"],
        children=Children(how["children"]),
        named="" if recording.run.source == "store" else selector,
        command=words,
    )
    assertions = asserted([*how["files"], *how["texts"]])
    report = fuzz(recording, program(argv) if words else argv, cwd, store, assertions, settings, _progress())
    if sys.stderr.isatty():
        options.again("")
    if as_json:
        options.document(fuzz_document(report))
    else:
        options.show(fuzz_lines(report))
    sys.exit(_exit_code(report))


def _exit_code(report: Fuzzed) -> int:
    """Say 1 where something was found; 125 where nothing was tried, or only a part before it was stopped."""
    if report.found:
        return 1
    return 125 if report.nothing_tried or report.stopped else 0


def _groups(only: str | None) -> frozenset[Group]:
    if only is None:
        return frozenset(Group)
    names = [name.strip() for name in only.split(",") if name.strip()]
    group_names = {each.value for each in Group}
    if unknown := [name for name in names if name not in group_names]:
        raise UsageError(f"--only: there is no group {unknown[0]!r}", hint=f"one of {', '.join(sorted(group_names))}")
    return frozenset(Group(name) for name in names) or frozenset(Group)


def _progress() -> Progress:
    """Say on a terminal how far it is, on one line that is written over; nothing in a pipe."""
    if not sys.stderr.isatty():
        return lambda _cases, _of, _discoveries: None

    def tell(case_count: int, of: int | None, count: int) -> None:
        share = f"{case_count} of {of}" if of is not None else str(case_count)
        options.again(f"reenact: {share} cases, {count} found")

    return tell
