"""An agent inside the test: its calls answered from a fixture, or made for real and recorded."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reenact.compare.judge import judge_replay
from reenact.compare.scopes import scopes_missed
from reenact.errors import ReplayStopped
from reenact.find.sources import RunSource
from reenact.graph.build import build
from reenact.keep.journal_reader import Tail, journals
from reenact.pipeline import recording
from reenact.pipeline.joining import InProcess
from reenact.pipeline.recording import Recording, Setup
from reenact.replay import guard
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import Policy
from reenact.stores.directory import DirectoryStore
from reenact.testing.hosts import Hosts, let_through
from reenact.values.effects import IN_PROCESS
from reenact.values.judgement import ReplayResult
from reenact.values.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResult:
    """What came of the block."""

    result: ReplayResult | None
    """None where its calls were made for real."""
    runs: tuple[Run, ...]
    """What it did this time, the run with most calls first."""

    @property
    def run(self) -> Run | None:
        """The run with most calls."""
        return self.runs[0] if self.runs else None


class Answered:
    """Calls of this process answered from `fixture`, until `end`."""

    def __init__(self, fixture: RunSource, policy: Policy, store: DirectoryStore, hosts: Hosts) -> None:
        self._fixture = fixture
        self._folder = tempfile.mkdtemp(prefix="replay-", dir=_prepared(store).folder)
        self._ledger_path = Path(self._folder) / "ledger.jsonl"  # on disk, since forked children write to it too
        self._ledger = Ledger(self._ledger_path)
        self._ledger.note("joined", pid=os.getpid())
        self._ledger.note("guard", world=guard.world(policy, is_open=bool(hosts)))
        self._let_through = let_through(hosts)
        self._let_through.__enter__()
        try:
            runs = (fixture.run, *fixture.siblings)
            self._within = InProcess(runs, fixture.run, self._ledger, policy, store.folder, block=True)
        except BaseException:
            self._let_through.__exit__(None, None, None)
            raise
        hosts.stand_before(self._within.recording)

    @property
    def recording(self) -> Recording:
        """The recording of the replay."""
        return self._within.recording

    def end(self, error: BaseException | None = None) -> BlockResult:
        """Give the process back and judge what it did. `error` is what the block died of."""
        if error is not None and not isinstance(error, ReplayStopped):
            self._within.recording.died_of(error)
        try:
            self._within.close()
        finally:
            self._let_through.__exit__(None, None, None)
        runs = _harvested(self._within.recording)
        own = runs[0] if runs else None
        entries = read_ledger(self._ledger_path)
        self._ledger.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        group = self._fixture
        result = judge_replay(group.run, group.siblings, own, entries, exit_code=None, recorded_exit=None, beside=runs)
        outside = scopes_missed(group.run, group.siblings, own, result.divergences)
        return BlockResult(result=replace(result, levels_refused=IN_PROCESS, outside=outside), runs=runs)


class Recorded:
    """Calls of this process made for real and written down, until `end`."""

    def __init__(self, store: DirectoryStore) -> None:
        self.recording = recording.start(Setup(store=_prepared(store).folder))

    def end(self, error: BaseException | None = None) -> BlockResult:
        """Stop recording, and give what was called."""
        if error is not None:
            self.recording.died_of(error)
        recording.stop(self.recording)
        return BlockResult(result=None, runs=_harvested(self.recording))


_held: list[Callable[[], None]] = []


def hold() -> None:
    """Keep the boundaries cut between one test and the next: nobody is in charge there, and everything passes."""
    if not _held:
        _held.append(recording.keep_cut())


def let_go() -> None:
    """Give the boundaries back: the next test is none of ours."""
    while _held:
        _held.pop()()


def _prepared(store: DirectoryStore) -> DirectoryStore:
    store.prepare()
    return store


def _harvested(session: Recording) -> tuple[Run, ...]:
    """Read the journals of a recording that is over, and do away with them: they belong to a test's throw-away store.

    No store, no index: a test looks at its runs once.
    """
    tails = [Tail(files[0], files) for files in journals(session.store.journals, f"{session.id}-").values()]
    spans = [span for tail in tails for span in tail.whole()]
    for path in (path for tail in tails for path in tail.files):
        with suppress(OSError):
            path.unlink()
    return tuple(sorted(build(spans), key=lambda run: -len(run.nodes)))
