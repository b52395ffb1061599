"""`reenact show RUN`: look at a run."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.cli import options
from reenact.find.sources import find
from reenact.graph.verdict import judge
from reenact.keep.catalog import status, summary
from reenact.report.tree import tree


@click.command("show")
@click.argument("selector", metavar="RUN", default="last")
@options.store_folder
@options.as_json
@click.option("--full", is_flag=True, help="Whole inputs and outputs.")
def show_command(selector: str, folder: Path | None, as_json: bool, full: bool) -> None:
    """Show RUN as a tree: every call in its place, with input, output and timing."""
    found = find(selector, options.store(folder))
    verdict = judge(found.run, found.history)
    if as_json:
        from reenact.report.documents import show_document

        options.document(
            show_document(found.run, summary(found.run, source=found.source, history=found.history), verdict)
        )
        return
    options.show(tree(found.run, verdict, status=status(found.run), full=full, width=options.width()))
