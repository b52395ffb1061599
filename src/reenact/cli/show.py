"""`reenact show RUN`: look at a run."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.cli import options
from reenact.find.sources import find
from reenact.graph.verdict import judge
from reenact.keep.catalog import status, summary


@click.command("show")
@click.argument("selector", metavar="RUN", default="last")
@options.store_folder
@options.as_json
@click.option("--full", is_flag=True, help="Whole inputs and outputs.")
def show_command(selector: str, folder: Path | None, as_json: bool, full: bool) -> None:
    """Show RUN as a tree: every call in its place, with input, output and timing."""
    recording = find(selector, options.store(folder))
    verdict = judge(recording.run, recording.history)
    if as_json:
        from reenact.report.documents import show_document

        options.document(
            show_document(
                recording.run, summary(recording.run, source=recording.source, history=recording.history), verdict
            )
        )
        return
    from reenact.report.tree import tree

    options.show(tree(recording.run, verdict, status=status(recording.run), full=full, width=options.width()))
