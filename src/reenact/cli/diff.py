"""`reenact diff A B`: where two runs part."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reenact.cli import options
from reenact.compare.align import compare
from reenact.errors import CannotJudge
from reenact.find.sources import find
from reenact.values import unit


@click.command("diff")
@click.argument("a")
@click.argument("b")
@options.store_folder
@options.as_json
@click.option("--path-only", is_flag=True, help="Judge the path alone: a changed wording is no difference.")
def diff_command(a: str, b: str, folder: Path | None, as_json: bool, path_only: bool) -> None:
    """Compare runs A and B, aligned on what was asked: the first divergence, then the rest.

    Exit code 1 if they differ, 125 if there is nothing to compare.
    """
    store = options.store(folder)
    left, right = find(a, store), find(b, store)
    comparison = compare(left.run, right.run)
    if as_json:
        from reenact.report.documents import diff_document

        options.document(diff_document(comparison))
    else:
        from reenact.report.diff import diff

        options.show(diff(comparison))
    if comparison.same and not (comparison.calls_a or comparison.calls_b or unit.inbound(left.run)):
        raise CannotJudge("neither run holds a call: nothing was compared", hint="reenact show A says what it is")
    sys.exit(0 if (comparison.same_path if path_only else comparison.same) else 1)
