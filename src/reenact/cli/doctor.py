"""`reenact doctor RUN`: how far a recording can be replayed, and what would take it further."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.cli import options
from reenact.find.sources import find
from reenact.graph.verdict import judge
from reenact.report.doctor import doctor
from reenact.report.safe import one_line
from reenact.values.protection import protection


@click.command("doctor")
@click.argument("selector", metavar="RUN", default="last")
@options.store_folder
@options.as_json
def doctor_command(selector: str, folder: Path | None, as_json: bool) -> None:
    """Judge RUN from its trace alone: the verdict, and the replay kit piece by piece."""
    recording = find(selector, options.store(folder))
    verdict = judge(recording.run, recording.history)
    if as_json:
        from reenact.report.documents import doctor_document

        options.document(doctor_document(recording.run, verdict))
        return
    notes = [one_line(f"note: {note}") for note in recording.run.notes]
    options.show([*doctor(verdict, protection(recording.run)), *notes])
