"""Recording and replaying inside a process that asked for it in code, with no `reenact run` around it."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from reenact.assess.fix import judge_fix
from reenact.compare.judge import ReplayResult, judge_replay
from reenact.compare.scopes import scopes_missed
from reenact.errors import Diverged, InputError, Miss, SideEffectRefused
from reenact.export.backends import backends_from_environment
from reenact.export.limits import EXIT_S, limits_from
from reenact.export.meters import observe
from reenact.export.sender import Sender
from reenact.find.sources import RunSource
from reenact.keep.drain import Drain
from reenact.keep.journal_owner import owning
from reenact.keep.leftovers import leftovers
from reenact.keep.posting import undelivered
from reenact.keep.scratch import Scratch
from reenact.pipeline import recording
from reenact.pipeline.counterpart import counterpart
from reenact.pipeline.joining import InProcess
from reenact.pipeline.recording import Recording, Setup
from reenact.pipeline.replaying import own_store
from reenact.replay import guard
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import Policy
from reenact.report.fix import judged_line
from reenact.report.replay import first_line
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Outbox
from reenact.values.assertion import Placed
from reenact.values.effects import IN_PROCESS
from reenact.values.judgement import FixJudgement
from reenact.values.run import Run
from reenact.values.terminal import tell

_POLL_S = 1.0
_LEISURE = 2.0
"""So many times as long as it worked, the carrier rests: the processor is the program's."""


class _Carrier:
    """Carries this process's journal into the store and to backends, now and then and at the end."""

    def __init__(self, capture: Recording) -> None:
        backends = _backends()
        self._drain = Drain(capture.store, recording=capture.id, backends=backends, report=_say, gentle=True)
        if backends:
            observe(Outbox(capture.store.folder))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reenact-carrier", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        spent = 0.0
        while not self._over.wait(max(_POLL_S, _LEISURE * spent)):
            began = time.thread_time()
            try:
                self._drain.poll()
            except Exception as error:  # noqa: BLE001 - the host is sacred; the journal stays where it is
                _say(f"carrying the journal failed for now: {error}")
            spent = time.thread_time() - began

    def finish(self, within_s: float | None = None, latest: int | None = None) -> tuple[Run, ...]:
        """Carry the rest and give the runs; within so many seconds, where that is given, as many as can be.

        With `latest` no more than so many runs are given.
        """
        end = None if within_s is None else time.monotonic() + within_s
        self._over.set()
        self._drain.hurry(end)
        self._thread.join(within_s)
        if self._thread.is_alive():
            return ()  # in the middle of carrying; what it does not come to is left over
        try:
            left = None if end is None else max(0.0, end - time.monotonic())
            runs = self._drain.finish(within_s=left, latest=latest)
        except Exception as error:  # noqa: BLE001 - the journal stays where it is
            _say(f"the journal was not carried ({error}); `reenact ls` will")
            return ()
        for standing in self._drain.reports:
            if standing.dropped or standing.waiting:
                _say(undelivered(standing))
        return tuple(runs)

    def flush(self, within_s: float) -> bool:
        """Carry what ended, and tell whether all of it is delivered within so many seconds."""
        try:
            return self._drain.flush(within_s)
        except Exception as error:  # noqa: BLE001 - the host is sacred
            _say(f"flushing failed: {error}")
            return False


_carriers: dict[str, _Carrier] = {}


def _backends() -> list[Sender]:
    try:
        return backends_from_environment(os.environ)
    except InputError as error:
        _say(f"exporting is off: {error}")
        return []


def _say(line: str) -> None:
    tell(line)


def begin(setup: Setup) -> Recording:
    """Start to record this process and to carry its journal."""
    capture = recording.start(setup)
    try:
        capture.store.prepare()
        leftovers(capture.store, send=False)  # the carrier sends what waits, and the program need not wait for that
    except Exception as error:  # noqa: BLE001 - recording forgives
        _say(str(error))
    try:
        _carriers[capture.id] = _Carrier(capture)
    except Exception as error:  # noqa: BLE001 - the journal stays where it is
        _say(f"the journal is not carried ({error}); `reenact ls` will")
    atexit.register(_at_exit, capture)
    return capture


def _at_exit(capture: Recording) -> None:
    recording.stop(capture)
    carried(capture, _exit_s(), latest=0)


def carried(capture: Recording, within_s: float | None = None, *, latest: int | None = None) -> tuple[Run, ...]:
    """Carry the rest of a stopped recording, once; within so many seconds, where that is given, as much as can be.

    Gives its runs; with `latest` no more than so many of them.
    """
    carrier = _carriers.pop(capture.id, None)
    return carrier.finish(within_s, latest) if carrier is not None else ()


def flushed(capture: Recording, within_s: float) -> bool:
    """Tell whether every span that ended is in the store and with every backend, within so many seconds."""
    carrier = _carriers.get(capture.id)
    return carrier is not None and carrier.flush(within_s)


def _exit_s() -> float:
    try:
        return limits_from(os.environ).exit_s
    except InputError:
        return EXIT_S


class Outcome:
    """What came of a replay in this process."""

    result: ReplayResult | None = None
    run: Run | None = None
    """The replay's own run."""


@contextmanager
def replaying(source: RunSource, store: Path, policies: Mapping[str, str]) -> Generator[Outcome]:
    """Answer this process's calls from a recording until the block ends; what is thrown to stop the agent ends here.

    `policies` holds values of the fields of `Policy` by their names.
    """
    scratch = Scratch("reenact-replay-")
    ledger_path = scratch.path / "ledger.jsonl"  # on disk, since forked children write to it too
    outcome, ledger = Outcome(), Ledger(ledger_path)
    ledger.note("joined", pid=os.getpid())
    policy = Policy.named(policies)
    ledger.note("guard", world=guard.world(policy))
    recorded, branch = source.altered.run(source.run), source.altered.branch_in(scratch.path)
    place = own_store(DirectoryStore(store)).folder
    within = InProcess((recorded, *source.siblings), recorded, ledger, policy, place, branch=branch, block=True)
    try:
        yield outcome
    except (Miss, SideEffectRefused):
        pass  # in the ledger, which is judged below
    except BaseException as error:
        within.recording.died_of(error)
        raise
    finally:
        with owning(within.recording.store, within.recording.id):
            within.close()
            runs = Drain(within.recording.store, recording=within.recording.id).finish()
        own = outcome.run = counterpart(runs, source)
        entries = read_ledger(ledger_path)
        result = judge_replay(recorded, source.siblings, own, entries, exit_code=None, recorded_exit=None, beside=runs)
        outside = scopes_missed(recorded, source.siblings, own, result.divergences)
        outcome.result = replace(result, levels_refused=IN_PROCESS, outside=outside)
        ledger.close()
        scratch.close()


def judged(source: RunSource, outcome: Outcome, assertions: Sequence[Placed]) -> FixJudgement | None:
    """Judge a replay that is over by assertions; None where it came to nothing."""
    return judge_fix(source.run, outcome.run, outcome.result, assertions) if outcome.result is not None else None


def accuse(outcome: Outcome, judgement: FixJudgement | None = None) -> None:
    """Raise `Diverged` where a replay was not the same; where it was judged, unless nothing is wrong."""
    if judgement is not None:
        if judgement.exit_code:
            raise Diverged(judged_line(judgement))
        return
    result = outcome.result
    if result is not None and result.result != "same":
        raise Diverged(first_line(result), hint=result.of_scopes or "`reenact doctor` says what a recording holds")
