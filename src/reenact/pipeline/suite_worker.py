"""A worker of a suite: reads orders from its standard input, one JSON object a line, and answers each with one.

Where whoever gives the orders is gone, as when it was killed, the worker ends what it is about, and itself.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from reenact.assess.language import parse
from reenact.disk import user_key
from reenact.errors import ReenactError, ServersOwn
from reenact.find.sources import find
from reenact.keep.assertion_sources import asserted
from reenact.pipeline import commands
from reenact.pipeline.judging import Judged, Order, replay_and_judge
from reenact.pipeline.parentage import hung_up
from reenact.pipeline.suite import SKIPPED
from reenact.replay.policy import Policy
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Placed
from reenact.values.json import Json, compact
from reenact.values.json import parse as parse_json
from reenact.values.lenient import as_count, as_list, as_object, as_text

_GRACE_S: Final = 1.0
_TAIL: Final = 2000
"""So many bytes of what a program wrote last on its standard error are passed on."""


def main() -> None:
    """Work until there is nothing more to do, or SIGTERM comes: then what is under way is cleaned up."""
    signal.signal(signal.SIGTERM, _end)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever else speaks here is no answer
    orders = os.fdopen(os.dup(0), "rb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # what a program reads is no order
    at_work = threading.Event()
    threading.Thread(target=_watch, args=(orders.fileno(), at_work), daemon=True).start()
    for line in orders:
        at_work.set()
        answers.write(compact(_answer(as_object(parse_json(line)))).encode() + b"\n")
        at_work.clear()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # there is nothing left to clean up


def _watch(orders: int, at_work: threading.Event) -> None:
    """End all that was started here when nobody is left who waits for it: this process leads a session of its own."""
    hung_up(orders)
    if not at_work.is_set() or os.getpgrp() != os.getpid():
        return
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _answer(request: dict[str, Json]) -> dict[str, Json]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            judged = _replayed(request, out, err)
        except ServersOwn as error:
            line = f"{SKIPPED}: {error.message}; what it was asked for is replayed by itself"
            return {"word": SKIPPED, "line": line, "exit": 0, "run": as_text(request.get("selector"))}
        except ReenactError as error:
            return {"error": str(error), "exit": error.exit_code}
        answer: dict[str, Json] = {
            "word": judged.word,
            "line": judged.line,
            "exit": judged.exit_code,
            "run": judged.found.run.id,
            "name": judged.found.run.name,
            "document": judged.document() | ({"stderr": _tail(err)} if judged.exit_code else {}),
        }
        return answer


def _replayed(request: dict[str, Json], out: IO[bytes], err: IO[bytes]) -> Judged:
    store = DirectoryStore(Path(as_text(request.get("store"))))
    app = request.get("app")
    policy = Policy.named(
        {name: as_text(value) for name, value in as_object(request.get("policy")).items()},
        [as_text(each) for each in as_list(request.get("hosts"))],
        [as_text(each) for each in as_list(request.get("tools live"))],
        [as_text(each) for each in as_list(request.get("stubs"))],
        lifespan=request.get("lifespan") is not False,
    )
    order = Order(
        words=tuple(as_text(word) for word in as_list(request.get("words"))),
        app=app if isinstance(app, str) else None,
        policy=policy,
        assertions=_assertions(request),
        live_may_differ=request.get("live may differ") is True,
        history_max=as_count(request.get("history")),
    )
    user_key.hear(as_text(request.get("key")))
    recording = find(as_text(request.get("selector")), store)
    if (agreed := as_text(request.get("agreed"))) and commands.digest(recording) == agreed:
        recording = replace(recording, trusted=True)
    if policy.keep:  # of several runs, each in a folder of its own
        order = replace(order, policy=replace(policy, keep=str(Path(policy.keep, recording.run.id))))
    return replay_and_judge(recording, order, store, stdout=out, stderr=err)


def _assertions(request: dict[str, Json]) -> tuple[Placed, ...]:
    assertions: list[Placed] = []
    for each in as_list(request.get("assertions")):
        match each:
            case [str(text), str(place)]:
                assertions += [Placed(assertion=read.assertion, place=place) for read in parse(text)]
            case _:
                continue
    if own := as_text(request.get("check")):
        assertions += asserted([Path(own)])
    return tuple(assertions)


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL))
    return stream.read().decode("utf-8", "replace")


if __name__ == "__main__":
    main()
