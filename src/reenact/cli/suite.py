"""`reenact replay --all`: every recording of a folder or a store, with progress on a terminal and one summary."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from reenact.cli import options
from reenact.cli.trusting import show
from reenact.errors import CannotJudge, ReenactError, UsageError
from reenact.find.sources import RunSource, find
from reenact.pipeline import commands
from reenact.pipeline.judging import Order
from reenact.pipeline.suite import SKIPPED, Item, SuiteResult, recordings, replay_suite, store_of, worst
from reenact.report.suite import Row, suite, suite_document
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json


def replay_all(
    place: Path, order: Order, store: DirectoryStore, *, jobs: int, as_json: bool, trust: bool = False
) -> int:
    """Replay every recording at `place` and say what each came to. Gives the worst exit code."""
    if order.app:
        raise UsageError("--app names the application for one recording, and --all replays several")
    items = recordings(place)
    if not order.words:
        items = _agreed(items, store_of(place, store), trusting=trust)
    started, progress = time.monotonic(), _Progress(len(items))
    replays = replay_suite(items, order, store_of(place, store), jobs=jobs, report=progress.add)
    progress.over()
    code = worst([each.exit_code for each in replays])
    if all(each.word == SKIPPED for each in replays):
        code = CannotJudge.exit_code  # nothing tried is no good news
    if as_json:
        documents = [_document(each) for each in replays]
        options.document(suite_document(documents, [each.word for each in replays], code))
    else:
        options.show(suite([_row(each) for each in replays], time.monotonic() - started))
    return code


def _agreed(items: list[Item], store: DirectoryStore, *, trusting: bool) -> list[Item]:
    """Show all that strangers' recordings would start, before any of it is, and ask for a yes where there is nobody's.

    Without `--trust` and without a terminal each of them is refused by its own replay.
    """
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not (trusting or asks):
        return items
    strangers: dict[int, RunSource] = {}
    for place, item in enumerate(items):
        with suppress(ReenactError):  # its replay tells it
            recording = find(item.selector, store)
            if not item.problem and not recording.run.own and commands.names_anything(recording):
                strangers[place] = recording
    if not strangers:
        return items
    show([*strangers.values()], "it is run, since you said --trust" if trusting else "nothing of it has run")
    if not trusting and not click.confirm(f"Run these {len(strangers)}?", default=False, err=True):
        return items
    return [
        replace(item, agreed=commands.digest(strangers[place])) if place in strangers else item
        for place, item in enumerate(items)
    ]


def _row(replay: SuiteResult) -> Row:
    line = replay.line.splitlines()[0] if replay.line else ""
    return Row(replay.word, replay.run[:12] or "-", _display_name(replay), line, replay.seconds)


def _display_name(replay: SuiteResult) -> str:
    """Name a run of a store by its name, one of a file by its file."""
    selector = replay.item.selector
    return Path(selector).name if "/" in selector else replay.name


def _document(replay: SuiteResult) -> dict[str, Json]:
    return {
        "recording": replay.item.selector,
        "word": replay.word,
        "exit": replay.exit_code,
        "seconds": replay.seconds,
        "run": replay.run or None,
        "name": replay.name or None,
        **replay.document,
    }


class _Progress:
    """One line on a terminal that is written over; nothing in a pipe."""

    def __init__(self, total: int) -> None:
        self._total, self._replay_count, self._bad = total, 0, 0
        self._is_shown = sys.stderr.isatty()

    def add(self, replay: SuiteResult) -> None:
        """Hear of one replay."""
        self._replay_count += 1
        self._bad += replay.exit_code != 0
        if self._is_shown:
            bad = f", {self._bad} not good" if self._bad else ""
            options.again(f"reenact: {self._replay_count} of {self._total} replayed{bad}")

    def over(self) -> None:
        """Leave the line empty."""
        if self._is_shown:
            options.again("")
