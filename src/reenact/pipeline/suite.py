"""A whole suite of recordings replayed: which there are, workers that replay them, and one summary.

Each replay runs its program in a process of its own; a few workers, processes too, start them one after the other. A
suite that is interrupted ends its workers and whatever they started.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reenact.assess.language import spell
from reenact.disk import user_key
from reenact.errors import CannotJudge, InputError
from reenact.find.sources import runs_in
from reenact.keep.catalog import NO_FORK, fork_of, replay_of
from reenact.keep.leftovers import leftovers
from reenact.pipeline.interrupting import stops_as_interrupted
from reenact.pipeline.judging import Order
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object

_PACKED: Final = frozenset({".gz", ".zst"})
_RECORDINGS: Final = frozenset({".jsonl", ".json", ".otlp", ".pb", ".binpb"})
_GRACE_S: Final = 10.0
_LOOK_S: Final = 0.02
_WORST: Final = (0, 125, 1, 2, 3)
"""From the best exit code to the worst: a failure outweighs what cannot be judged, bad input outweighs both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One recording of a suite."""

    selector: str
    """As `reenact replay` takes it."""
    check: str = ""
    """A file of assertions of its own, `NAME.check` beside the recording, or empty."""
    problem: str = ""
    """Why it cannot be replayed, or empty."""
    agreed: str = ""
    """The digest of what the user saw that it would start, and said yes to (`commands.digest`); or empty."""


def recordings(place: Path) -> list[Item]:
    """List the recordings of a store, or of the files in a folder and below, in the order of their names.

    Replays are none. Raises `InputError` where there is no such place, and `CannotJudge` where it holds nothing.
    """
    if not place.is_dir():
        raise InputError(str(place), "is no folder of recordings and no store")
    items = _in_store(store_of(place, DirectoryStore(place))) if _is_store(place) else [*_in_folder(place)]
    if not items:
        expected = ", ".join(sorted(_RECORDINGS))
        why = f"{place} holds no recording, so that nothing was replayed"
        raise CannotJudge(why, hint=f"expected a store, or files ({expected}; .gz, .zst)")
    return items


def _is_store(place: Path) -> bool:
    return (place / "traces").is_dir() or (place / "journal").is_dir()


def store_of(place: Path, otherwise: DirectoryStore) -> DirectoryStore:
    """Give the store that replays of a suite are kept in: the suite's own where it is one."""
    if not _is_store(place):
        return otherwise
    store = DirectoryStore(place)
    store.check_owner()
    return store


def _in_store(store: DirectoryStore) -> list[Item]:
    leftovers(store)
    return [Item(selector=entry.id) for entry in reversed(store.find(NO_FORK, replays=False))]


def _in_folder(place: Path) -> Iterator[Item]:
    for path in sorted(place.rglob("*")):
        bare = path.with_suffix("") if path.suffix in _PACKED else path
        hidden = any(part.startswith(".") for part in path.relative_to(place).parts)
        if bare.suffix not in _RECORDINGS or hidden or not path.is_file():
            continue
        own = bare.with_suffix(".check")
        check = str(own) if own.is_file() else ""
        try:
            runs = runs_in(path)
        except InputError as error:
            yield Item(selector=str(path.absolute()), problem=str(error))
            continue
        around = {unit.around(run) for run in runs}
        chosen = [run for run in runs if replay_of(run) is None and fork_of(run) is None and run.id not in around]
        for run in chosen:
            selector = str(path.absolute()) if len(chosen) == 1 else f"{path.absolute()}#{run.id[:12]}"
            yield Item(selector=selector, check=check)


SKIPPED: Final = "skipped"
"""The word of a recording of which nothing is to be replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One replay of a suite, as its worker told it."""

    item: Item
    word: str
    """The judgement's word or the replay's result; `error` where it could not be replayed, `SKIPPED` by itself."""
    line: str
    exit_code: int
    seconds: float
    run: str = ""
    name: str = ""
    document: dict[str, Json]
    """As `reenact replay --json` gives it, or `{"error": …}`."""


def worst(codes: Sequence[int]) -> int:
    """Give the worst of some exit codes."""
    return max(codes, key=lambda code: _WORST.index(code) if code in _WORST else len(_WORST), default=0)


def replay_suite(
    items: Sequence[Item],
    order: Order,
    store: DirectoryStore,
    *,
    jobs: int,
    report: Callable[[SuiteResult], None],
) -> list[SuiteResult]:
    """Replay every item, so many at once, and give what came of each, in the order of `items`.

    `report` hears of each as it is done, on this thread. Raises `KeyboardInterrupt` after the workers were ended.
    """
    with suppress(InputError):  # each replay says where it is kept, or that it is not
        store.prepare()
    crew = _Crew(min(jobs, len(items)), order, store)
    outcomes: dict[int, SuiteResult] = {}
    with stops_as_interrupted():
        try:
            for place, outcome in crew.work(items):
                outcomes[place] = outcome
                report(outcome)
        finally:
            crew.end()
    return [outcomes[place] for place in sorted(outcomes)]


class _Crew:
    """Worker processes, each in a session of its own, so that all that one started can be ended with it."""

    def __init__(self, size: int, order: Order, store: DirectoryStore) -> None:
        self._size, self._order, self._store = size, order, store
        self._workers: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._over = False

    def work(self, items: Sequence[Item]) -> Iterator[tuple[int, SuiteResult]]:
        """Give each item to whoever is free, and what came of it as it comes."""
        waiting: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
        sink: queue.SimpleQueue[tuple[int, SuiteResult]] = queue.SimpleQueue()
        for each in enumerate(items):
            waiting.put(each)
        for _ in range(self._size):
            threading.Thread(target=self._feed, args=(waiting, sink), daemon=True).start()
        for _ in items:
            yield sink.get()

    def _feed(
        self, waiting: queue.SimpleQueue[tuple[int, Item]], sink: queue.SimpleQueue[tuple[int, SuiteResult]]
    ) -> None:
        worker: subprocess.Popen[bytes] | None = None
        with suppress(queue.Empty):
            while not self._over:
                place, item = waiting.get_nowait()
                started = time.monotonic()
                answer: dict[str, Json] = {"error": item.problem, "exit": 3}
                if not item.problem:
                    if worker is None or worker.poll() is not None:
                        worker = self._hire()
                    answer = self._ask(worker, item)
                sink.put((place, _item_outcome(item, answer, time.monotonic() - started)))
        if worker is not None and worker.stdin is not None:
            with suppress(OSError):
                worker.stdin.close()

    def _hire(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "reenact.pipeline.suite_worker"]
        with self._lock:
            if self._over:
                raise queue.Empty
            worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            self._workers.append(worker)
        return worker

    def _ask(self, worker: subprocess.Popen[bytes], item: Item) -> dict[str, Json]:
        if worker.stdin is None or worker.stdout is None:
            return {"error": "its worker has no pipes", "exit": 3}
        try:
            worker.stdin.write(compact(_spelled(item, self._order, self._store)).encode() + b"\n")
            worker.stdin.flush()
            reply = parsed_or_none(worker.stdout.readline())
        except OSError as error:
            return {"error": f"its worker cannot be reached: {error.strerror}", "exit": 3}
        if answer := as_object(reply):
            return answer
        with suppress(OSError):
            os.killpg(worker.pid, signal.SIGKILL)  # what it had started; it was not reaped, so the number is its own
        return {"error": "its worker died", "exit": 125}

    def end(self) -> None:
        """End the workers, and where they were interrupted whatever they started."""
        with self._lock:
            self._over = True
        alive = [worker for worker in self._workers if worker.poll() is None]
        for worker in alive:
            with suppress(OSError):
                os.killpg(worker.pid, signal.SIGTERM)
        until = time.monotonic() + _GRACE_S
        for worker in alive:
            while not _has_ended(worker) and time.monotonic() < until:
                time.sleep(_LOOK_S)
            with suppress(OSError):
                os.killpg(worker.pid, signal.SIGKILL)  # who of its session did not hear; its number is still its own
            worker.wait()


def _has_ended(worker: subprocess.Popen[bytes]) -> bool:
    """Tell whether a worker has ended, and leave it to be reaped."""
    return os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _spelled(item: Item, order: Order, store: DirectoryStore) -> dict[str, Json]:
    policy = order.policy
    return {
        "selector": item.selector,
        "check": item.check,
        "agreed": item.agreed,
        "key": user_key.key_message(),  # over a pipe: no program finds it in an environment
        "store": str(store.folder),
        "words": [*order.words],
        "app": order.app,
        "policy": {
            "models": policy.models.value,
            "tools": policy.tools.value,
            "writes": policy.spelled_writes,
            "after": policy.after.value,
            "children": policy.children.value,
            "outcome": policy.outcome.value,
        },
        "hosts": [*policy.hosts],
        "tools live": [*policy.live_tools],
        "stubs": [*policy.stubs],
        "lifespan": policy.lifespan,
        "live may differ": order.live_may_differ,
        "history": order.history_max,
        "assertions": [[spell(each.assertion), each.place] for each in order.assertions],
    }


def _item_outcome(item: Item, answer: dict[str, Json], seconds: float) -> SuiteResult:
    error = answer.get("error")
    code = answer.get("exit")
    return SuiteResult(
        item=item,
        word="error" if error else str(answer.get("word")),
        line=str(error or answer.get("line")),
        exit_code=code if isinstance(code, int) else 3,
        seconds=round(seconds, 3),
        run=str(answer.get("run") or ""),
        name=str(answer.get("name") or ""),
        document={"error": error} if error else as_object(answer.get("document")),
    )
