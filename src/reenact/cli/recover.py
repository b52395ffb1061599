"""`reenact recover`: make spans of what dead processes left in their journals, and say what was found."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.cli import options
from reenact.graph.verdict import facts, judge
from reenact.keep.journal_reader import Salvaged
from reenact.keep.recovering import Recovered, recover
from reenact.report.doctor import verdict_words
from reenact.values.json import Json
from reenact.values.run import Run


@click.command("recover")
@options.store_folder
@options.as_json
def recover_command(folder: Path | None, as_json: bool) -> None:
    """Carry what dead processes left in their journals into the store, and say what was found.

    Calls that had ended are as they were; the others are incomplete, with what is known: the request, the pieces of a
    stream so far. Every run has its root. Every command that reads the store does this first, and so does the next
    start of a recording; this one tells.
    """
    recovery = recover(options.store(folder))
    if as_json:
        options.document(_document(recovery))
        return
    options.show(_lines(recovery))


def _lines(recovery: Recovered) -> list[str]:
    lines = [_line(each) for each in recovery.journals]
    if not lines:
        lines = ["nothing to recover: no process left a journal behind"]
    if recovery.made:
        lines.append(f"{recovery.made} spans whose own record was destroyed are made of what is known")
    lines += [f"kept as {path}: it is damaged; what could be read was read" for path in recovery.damaged]
    for run in recovery.runs:
        counts = ", ".join(f"{number} {kind}" for kind, number in facts(run.nodes).items()) or "no calls"
        lines.append(f"run {run.id[:12]} · {run.name} · {counts}; replayable: {verdict_words(judge(run))}")
    if recovery.living:
        lines.append(f"{recovery.living} journals are still written, or are somebody's to carry")
    return lines


def _line(entry: Salvaged) -> str:
    line = f"journal {entry.name} of process {entry.pid}: {entry.finished} finished, {entry.unfinished} unfinished"
    for number, what in (
        (entry.torn, "bytes torn off at its end"),
        (entry.damaged, "damaged places"),
        (entry.dropped, "records that could not be written"),
    ):
        if number:
            line += f", {number} {what}"
    return line


def _document(recovery: Recovered) -> Json:
    journals: list[Json] = [
        {
            "name": each.name,
            "recording": each.recording,
            "pid": each.pid,
            "finished": each.finished,
            "unfinished": each.unfinished,
            "torn_bytes": each.torn,
            "damaged": each.damaged,
            "dropped": each.dropped,
        }
        for each in recovery.journals
    ]
    return {
        "journals": journals,
        "living": recovery.living,
        "finished": sum(each.finished for each in recovery.journals),
        "unfinished": sum(each.unfinished for each in recovery.journals),
        "dropped": sum(each.dropped for each in recovery.journals),
        "made": recovery.made,
        "set_aside": [*recovery.damaged],
        "runs": [_run(run) for run in recovery.runs],
    }


def _run(run: Run) -> Json:
    calls: dict[str, Json] = dict(facts(run.nodes).items())
    root = run.root
    return {
        "id": run.id,
        "name": run.name,
        "calls": calls,
        "incomplete": root is None or bool(root.span.attributes.get("reenact.incomplete")),
        "verdict": judge(run).grade.value,
    }
