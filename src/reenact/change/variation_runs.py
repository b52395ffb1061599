"""Trying variations: each is a replay of the program in a process of its own, its output kept and its time limited.

Most of a short program's time goes into starting Python and importing libraries. So where it can be, a case runs in a
copy of a Python that has done both (`pipeline.warm_python`); whether that comes to the same is tried first, and what is
to be shown to anybody runs in a process that was started from nothing.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from reenact.assess.check import check
from reenact.assess.evidence import evidence
from reenact.errors import CannotJudge
from reenact.find.sources import RunSource
from reenact.keep.scratch import Scratch
from reenact.pipeline import settings
from reenact.pipeline.parentage import bound_to_us
from reenact.pipeline.replaying import replay
from reenact.pipeline.warm_python import Order, WarmPython
from reenact.replay.policy import Policy
from reenact.seal import launch
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Finding, Placed
from reenact.values.variation import Variation
from reenact.vary.edits import applied
from reenact.vary.harm_evidence import Met

_FIRST_LIMIT_S = 120.0
_MOST_OUTPUT = 2_000_000
"""Bytes of each stream of a case that are looked at."""


class _Ended:
    """Ends whatever runs, and lets nothing begin any more, once somebody says so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over = False
        self._running: set[subprocess.Popen[bytes]] = set()

    @property
    def over(self) -> bool:
        """It was said."""
        return self._over

    def take(self, process: subprocess.Popen[bytes]) -> None:
        """Hear of a program that began."""
        with self._lock:
            self._running.add(process)
        if self._over:
            _kill(process)

    def leave(self, process: subprocess.Popen[bytes]) -> None:
        """Hear that it has ended."""
        with self._lock:
            self._running.discard(process)

    def end(self) -> None:
        """Say so."""
        self._over = True
        with self._lock:
            for process in self._running:
                _kill(process)


@dataclass(slots=True)
class _Place:
    """Where one case at a time runs: a store that is thrown away, and perhaps a Python that is ready."""

    store: DirectoryStore
    ready: WarmPython | None = None
    modules: Sequence[str] = ()
    """What the program that ran here last imported and the ready Python had not."""


@dataclass(slots=True)
class _Watch:
    """Runs one program, keeps what it prints, and ends it when its time is over."""

    folder: Path
    limit_s: float
    place: _Place | None = None
    ended: _Ended = field(default_factory=_Ended)
    out_of_time: bool = False
    seconds: float = 0.0
    printed: dict[str, str] = field(default_factory=dict[str, str])

    def start(self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        """Run it; gives its exit code. Raises `CannotJudge` where it cannot be started."""
        streams = (self.folder / "stdout", self.folder / "stderr")
        for path in streams:
            path.touch()
        began = time.monotonic()
        code = self._run(argv, cwd, environ, streams)
        self.seconds = time.monotonic() - began
        for path in streams:
            with path.open("rb") as stream:
                self.printed[path.name] = stream.read(_MOST_OUTPUT).decode("utf-8", "replace")
        return code

    def _run(self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: tuple[Path, Path]) -> int:
        if self.ended.over:
            raise CannotJudge("it was stopped")
        place, world = self.place, launch.ordered_by(argv)
        words = argv if world is None else world["argv"]
        if place is not None and place.ready is not None and _fits(words):
            try:
                with streams[0].open("wb") as out, streams[1].open("wb") as err:
                    files = (out.fileno(), err.fileno())
                    ending = place.ready.run(Order(words, cwd, environ, files, world, leads_session=True), self.limit_s)
            except (OSError, ValueError):
                place.ready.close()
                place.ready = None
                if self.ended.over:
                    raise CannotJudge("it was stopped") from None
                for path in streams:
                    path.write_bytes(b"")
            else:
                self.out_of_time, place.modules = ending.is_over_time, ending.modules
                return ending.code
        return self._from_nothing(argv, cwd, environ, streams)

    def _from_nothing(
        self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: tuple[Path, Path]
    ) -> int:
        with streams[0].open("wb") as out, streams[1].open("wb") as err:
            try:
                process = subprocess.Popen(
                    [*argv],
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=bound_to_us(),  # noqa: PLW1509 - it does two system calls
                )
            except OSError as error:
                hint = "give the program after `--`"
                raise CannotJudge(f"cannot start {argv[0]!r}: {error.strerror}", hint=hint) from error
            self.ended.take(process)
            try:
                return process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                self.out_of_time = True
                return _killed(process)
            except BaseException:
                _killed(process)
                raise
            finally:
                self.ended.leave(process)


def _fits(argv: Sequence[str]) -> bool:
    """Tell whether a program can be run in a copy: Python on a script or module, on a system that forks."""
    if not sys.platform.startswith("linux") or len(argv) < 2 or not Path(argv[0]).name.startswith("python"):
        return False
    return len(argv) > 2 if argv[1] == "-m" else not argv[1].startswith("-") and Path(argv[1]).is_file()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and whatever it started: it leads a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _killed(process: subprocess.Popen[bytes]) -> int:
    _kill(process)
    return process.wait()


class Bench:
    """Runs one program against variations of one recording, several at a time."""

    def __init__(
        self,
        recording: RunSource,
        argv: Sequence[str],
        cwd: Path,
        assertions: Sequence[Placed],
        policy: Policy,
        jobs: int,
    ) -> None:
        """Make the places where cases run; use it as a context manager, which takes them away again."""
        self.found, self.jobs = recording, jobs
        self._argv, self._cwd, self._assertions, self._policy = tuple(argv), cwd, tuple(assertions), policy
        self.limit_s = _FIRST_LIMIT_S
        self._ran: list[None] = []
        self.ready = False
        """Cases run in copies of a Python that is ready."""
        self._scratch = Scratch("reenact-fuzz-")
        self._folder = self._scratch.path
        self._places = [_Place(DirectoryStore(self._folder / f"store-{number}")) for number in range(jobs)]
        self._free: queue.SimpleQueue[_Place] = queue.SimpleQueue()
        for place in self._places:
            self._free.put(place)
        self.pool = ThreadPoolExecutor(jobs)
        self._stop_switch = _Ended()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        for place in self._places:
            if place.ready is not None:
                place.ready.close()
        self._scratch.close()

    def stop(self) -> None:
        """End every case that is under way; none begins any more."""
        self._stop_switch.end()
        for place in self._places:
            if place.ready is not None:
                place.ready.end()

    @property
    def runs(self) -> int:
        """How often the program ran."""
        return len(self._ran)

    def get_ready(self, before: Met) -> None:
        """Start Pythons that are ready, unless the program comes to something else in them than `before`."""
        environ = {**os.environ, **settings.set_always(self.found)}
        if not _fits(self._argv):
            return
        first = self._places[0]
        try:
            first.ready = WarmPython(self._argv[0], environ)
            first.ready.learn(())
            self._run((), first.store, first)
            for place in self._places:
                place.ready = place.ready or WarmPython(self._argv[0], environ)
                place.ready.learn(first.modules)
        except OSError:
            self._forget()
            return
        self.ready = True
        if not all(_same(self._run((), place.store, place), before) for place in self._places[:1]):
            self._forget()

    def _forget(self) -> None:
        self.ready = False
        for place in self._places:
            if place.ready is not None:
                place.ready.close()
            place.ready = None

    def run(self, variations: Sequence[Variation]) -> Met:
        """Run the program against the recording with these variations, as fast as it goes."""
        place = self._free.get()
        try:
            return self._run(variations, place.store, place)
        finally:
            self._free.put(place)

    def show(self, variations: Sequence[Variation], keep: Callable[[DirectoryStore, Met], None] | None = None) -> Met:
        """Run it in a process that is started from nothing; `keep` may take from the scratch store what it left."""
        place = self._free.get()
        try:
            met = self._run(variations, place.store)
            if keep is not None:
                keep(place.store, met)
            return met
        finally:
            self._free.put(place)

    def _run(
        self,
        variations: Sequence[Variation],
        store: DirectoryStore,
        place: _Place | None = None,
    ) -> Met:
        self._ran.append(None)  # several threads do
        changed = applied(self.found.run, variations)
        argv = next((each.argv for each in variations if each.argv is not None), None)
        words = self._argv if argv is None else (self._argv[0], *argv[1:])
        with _folder(self._folder) as folder:
            watch = _Watch(folder, self.limit_s, place, self._stop_switch)
            recording = replace(self.found, run=changed)
            outcome = replay(recording, words, self._cwd, self._policy, store, start=watch.start, varied=True)
        evident: tuple[Finding, ...] = ()
        findings: tuple[Finding, ...] = ()
        if outcome.run is not None and self._assertions:
            proven = evidence(changed, outcome.run, outcome.result)
            evident = check(proven.run, self._assertions, complete=proven.complete)
            findings = check(outcome.run, self._assertions, complete=not watch.out_of_time)
        return Met(
            result=outcome.result,
            run=outcome.run,
            exit_code=outcome.exit_code,
            out_of_time=watch.out_of_time,
            seconds=watch.seconds,
            stdout=watch.printed.get("stdout", ""),
            stderr=watch.printed.get("stderr", ""),
            evident=evident,
            findings=findings,
        )


@contextmanager
def _folder(within: Path) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(dir=within))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _same(one: Met, other: Met) -> bool:
    """Tell whether two runs of the program came to the same."""
    return (one.result.result, one.exit_code, one.stdout, one.stderr, one.result.divergences) == (
        other.result.result,
        other.exit_code,
        other.stdout,
        other.stderr,
        other.result.divergences,
    )
