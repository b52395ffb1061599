"""`reenact step RUN`: walk through a run, forward and back, without its code."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click
import orjson

from reenact.cli import options
from reenact.find.sources import find
from reenact.find.stepping import steps
from reenact.graph.verdict import judge
from reenact.replay.call_lookup import call_named
from reenact.report.documents import outcome_document, request_document
from reenact.report.step import conversation, heading, listing, nothing, says, step, step_document
from reenact.values.json import Json, compact
from reenact.values.step import Step

_KEYS: Final[str] = """\
  n, Enter   next step            p   previous step
  g N, N     go to step N         f, l   first, last
  m          the conversation before this step, whole
  a          the conversation after it, whole
  i, o       what went in, what came out, whole
  s          list the steps       /TEXT   next step that says TEXT
  q          leave"""


@click.command("step")
@click.argument("selector", metavar="RUN", default="last")
@options.store_folder
@options.as_json
@click.option("--at", "at", metavar="CALL", help="Only, or on a terminal first, this call: `#7`, `first tool`, its id.")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=200, show_default=True, help="So many; 0 for all.")
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Leave out this many: the pages after the first.")
def step_command(selector: str, folder: Path | None, as_json: bool, at: str | None, limit: int, skip: int) -> None:
    """Walk through RUN: each call with the conversation before and after it, what went in and what came out.

    On a terminal one step at a time, by keys (`h` lists them); in a pipe the steps in pages, numbered. RUN may be a
    recording or a trace of anybody's: no code of the program is needed.
    """
    recording = find(selector, options.store(folder))
    verdict = judge(recording.run, recording.history)
    walked = steps(recording.run)
    start = 1
    if at is not None:
        node = call_named(recording.run, at)
        start = next((each.number for each in walked if each.node.id == node.id), 0)
        if not start:  # structure: the first step below it, or after it
            start = next((each.number for each in walked if each.node.number > node.number), len(walked))
    chosen = walked[start - 1 : start] if at is not None else _page(walked, limit, skip)
    if as_json:
        options.document(step_document(recording.run, verdict, chosen, len(walked)))
        return
    options.show([heading(recording.run, verdict, len(walked))])
    if not walked:
        options.show(nothing(verdict))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _walk(walked, start)
    else:
        for each in chosen:
            options.show(["", *step(each, len(walked))])
        if chosen and at is None and (left := len(walked) - chosen[-1].number):
            options.say(f"reenact: {left} steps more: --skip {chosen[-1].number}, or --limit 0 for all")


def _page(walked: Sequence[Step], limit: int, skip: int) -> Sequence[Step]:
    return walked[skip : skip + limit if limit else None]


def _walk(walked: Sequence[Step], at: int) -> None:
    """Show steps as they are asked for, until the end of input."""
    with contextlib.suppress(ImportError):
        import_module("readline")  # line editing and a history for `input`
    options.show(["", *step(walked[at - 1], len(walked), width=options.width())])
    while True:
        try:
            asked = input(f"[{at}/{len(walked)}] n p g m a i o s / h q > ").strip()
        except (EOFError, KeyboardInterrupt):
            options.show([""])
            return
        if asked in {"q", "quit", "exit"}:
            return
        moved = _moved(walked, at, asked)
        if moved is None:
            options.show(_reply_to_key(walked, walked[at - 1], asked))
            continue
        if moved == at and asked not in {"f", "l"} and asked[:1] not in {"g", "/"} and not asked.isdigit():
            options.show(["this is the last step" if at == len(walked) else "this is the first step"])
            continue
        at = moved
        options.show(["", *step(walked[at - 1], len(walked), width=options.width())])


def _moved(walked: Sequence[Step], at: int, asked: str) -> int | None:
    """Say which step was asked for, or None where something else was."""
    last = len(walked)
    number = asked.removeprefix("g").strip()
    if asked in {"", "n", "next"}:
        return min(at + 1, last)
    if asked in {"p", "b", "back", "prev"}:
        return max(at - 1, 1)
    if asked in {"f", "l"}:
        return 1 if asked == "f" else last
    if number.isascii() and number.isdigit() and len(number) < 10:
        return min(max(int(number), 1), last)
    if asked.startswith("/") and asked[1:]:
        order = [*walked[at:], *walked[:at]]
        return next((each.number for each in order if says(each, asked[1:])), None)
    return None


def _reply_to_key(walked: Sequence[Step], each: Step, asked: str) -> list[str]:
    match asked:
        case "m":
            return conversation(each.before)
        case "a":
            return conversation(each.after)
        case "i":
            return _pretty(request_document(each.node))
        case "o":
            return _pretty(outcome_document(each.node))
        case "s":
            return listing(walked, each.number, width=options.width())
        case _ if asked.startswith("/"):
            return ["no step says that"]
        case _:
            return [*_KEYS.split("\n")]


def _pretty(value: Json) -> list[str]:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().split("\n")
    except TypeError:  # integers over 64 bit, lone surrogates
        return [compact(value)]
