"""`--trust`, and the question on a terminal: a yes, for once, to what a stranger's recording would start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from reenact.cli import options
from reenact.find.sources import Found
from reenact.pipeline import commands, settings

trust = click.option(
    "--trust", is_flag=True, help="Run what a recording that is not your own names, after it was shown."
)


def agreed(found: Found, given: Sequence[str], app: str | None, *, trusting: bool) -> Found:
    """Give a run as it is to be started: where the user has to agree, after what it names was shown.

    Without `--trust` the user is asked where there is a terminal; else nothing is agreed to.
    """
    if given or app or found.run.own:
        return found
    if not commands.names_anything(found):
        return found
    if trusting:
        show([found], "it is run, since you said --trust")
        return replace(found, trusted=True)
    if sys.stdin.isatty() and sys.stderr.isatty():
        show([found], "nothing of it has run")
        return replace(found, trusted=click.confirm("Run it?", default=False, err=True))
    return found


def show(runs: Sequence[Found], what: str) -> None:
    """Show on stderr all that these recordings would start."""
    for found in runs:
        lines = [f"reenact: run {found.run.id[:12]} of {found.source} is not known as your own; {what}:"]
        options.show([*lines, *(f"    {line}" for line in commands.shown(found))], err=True)


def tell_settings(found: Found) -> None:
    """Say before a replay which settings differ from the recorded ones, and stay as they are."""
    for note in settings.notes(found):
        options.say(f"reenact: {note}")
