"""`reenact incident RUN`: one page that shows what happened to somebody who has none of our tools."""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import UsageError
from reenact.find.sources import RunSource, find
from reenact.keep.assertion_sources import asserted
from reenact.pipeline.incident import Wanted, incident_document, of_replay, of_runs, other_run, write
from reenact.pipeline.judging import Judged, Order, replay_and_judge
from reenact.replay.policy import Policy
from reenact.report.safe import lines
from reenact.stores.directory import DirectoryStore


@click.command("incident", cls=options.WithProgram)
@click.argument("selector", metavar="RUN", default="last")
@click.argument("words", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@click.option("--replay", "other", metavar="RUN2", help="Hold RUN against this run; `last`: its newest replay.")
@click.option(
    "--check", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Assertions, one a line."
)
@click.option("--assert", "texts", multiple=True, metavar="TEXT", help="One assertion, as in a file.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("incident.html"),
    show_default=True,
    help="The page.",
)
@click.option("--title", default="", help="What happened, in your own words; else it is made from the run.")
@click.option("--no-trace", is_flag=True, help="Leave the recording itself out of the page.")
@options.store_folder
@options.as_json
def incident_command(
    selector: str,
    words: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    output: Path,
    no_trace: bool,
    **asked: str | tuple[Path | str, ...] | None,
) -> None:
    """Write RUN as one HTML page: what was asked, every call, where a replay leaves it, what was redacted.

    The page needs no tool, no server and no network, and nothing in it leaves it. With COMMAND, RUN is replayed now,
    offline, with that program, and the page shows where it leaves the recording.
    """
    store = options.store(folder)
    other, title = asked["other"], asked["title"]
    if other and words:
        raise UsageError("give --replay RUN2 or a COMMAND to replay with, not both")
    files, texts = asked["files"], asked["texts"]
    wanted = Wanted(
        assertions=asserted([*(files or ()), *(texts or ())]),
        title=str(title or ""),
        trace=not no_trace,
        written=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    recording = find(selector, store)
    if words:
        order = Order(words=words, policy=Policy(), assertions=wanted.assertions)
        incident = of_replay(_replayed(recording, order, store, as_json=as_json), wanted)
    else:
        incident = of_runs(recording, other_run(recording, str(other), store) if other else None, wanted)
    size = write(incident, output)
    if as_json:
        options.document({**incident_document(incident), "page": str(output), "bytes": size})
        return
    fix = [f"  {incident.fix.word}: {incident.fix.why}"] if incident.fix is not None else []
    page = f"  {output}, {size // 1024 + 1:,} KB: open it in any browser"
    options.show(lines([str(incident_document(incident)["headline"]), *fix, page]))


def _replayed(recording: RunSource, order: Order, store: DirectoryStore, *, as_json: bool) -> Judged:
    """Replay; what the program prints goes to stderr where stdout is for the document."""
    with tempfile.TemporaryFile() as captured:
        judgement = replay_and_judge(recording, order, store, stdout=captured if as_json else None)
        captured.seek(0)
        sys.stderr.flush()
        shutil.copyfileobj(captured, sys.stderr.buffer)
        sys.stderr.buffer.flush()
    return judgement
