"""`--trust`, and the question on a terminal: a yes, for once, to what a stranger's recording would start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from reenact.cli import options
from reenact.find.sources import RunSource
from reenact.pipeline import commands, settings

trust = click.option(
    "--trust", is_flag=True, help="Run what a recording that is not your own names, after it was shown."
)


def agreed(recording: RunSource, command: Sequence[str], app: str | None, *, trusting: bool) -> RunSource:
    """Give a run as it is to be started: where the user has to agree, after what it names was shown.

    Without `--trust` the user is asked where there is a terminal; else nothing is agreed to.
    """
    if command or app or recording.run.own:
        return recording
    if not commands.names_anything(recording):
        return recording
    if trusting:
        show([recording], "it is run, since you said --trust")
        return replace(recording, trusted=True)
    if sys.stdin.isatty() and sys.stderr.isatty():
        show([recording], "nothing of it has run")
        return replace(recording, trusted=click.confirm("Run it?", default=False, err=True))
    return recording


def show(runs: Sequence[RunSource], what: str) -> None:
    """Show on stderr all that these recordings would start."""
    for recording in runs:
        lines = [f"reenact: run {recording.run.id[:12]} of {recording.source} is not known as your own; {what}:"]
        options.show([*lines, *(f"    {line}" for line in commands.command_lines(recording))], err=True)


def tell_settings(recording: RunSource) -> None:
    """Say before a replay which settings differ from the recorded ones, and stay as they are."""
    for note in settings.notes(recording):
        options.say(f"reenact: {note}")
