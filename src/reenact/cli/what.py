"""`reenact what`: what a file is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import InputError
from reenact.find.file_report import kind_of
from reenact.report.file_kind import file_kind_document, file_kind_lines


@click.command("what")
@options.as_json
@click.argument("file", type=click.Path(path_type=Path))
def what_command(file: Path, as_json: bool) -> None:
    """Say what a trace FILE is: its format and what it holds, or the known format that it is nearest to.

    Exits with 3 where no format reads it.
    """
    kind = kind_of(file)
    if as_json:
        options.document(file_kind_document(kind))
        if kind.problem:
            sys.exit(InputError.exit_code)
    elif kind.problem:
        raise InputError(kind.place, kind.problem)
    else:
        options.show(file_kind_lines(kind))
