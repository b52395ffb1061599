"""Recording and replaying inside a process that asked for it in code, with no `reenact run` around it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reenact.assess.fix import judge_fix
from reenact.compare.judge import ReplayResult, judge_replay
from reenact.errors import Diverged, InputError, Miss, SideEffectRefused
from reenact.export.backends import backends_from_environment
from reenact.export.sender import Sender
from reenact.pipeline import recording
from reenact.pipeline.counterpart import counterpart
from reenact.pipeline.drain import Drain, leftovers
from reenact.pipeline.joining import InProcess
from reenact.pipeline.owning import owning
from reenact.pipeline.recording import Recording, Setup
from reenact.pipeline.sources import Found
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import Policy
from reenact.report.fix import judged_line
from reenact.report.replay import first_line
from reenact.values.assertion import Placed
from reenact.values.judgement import FixJudgement
from reenact.values.run import Run

_POLL_S = 1.0


class _Carrier:
    """Carries this process's journal into the store and to backends, now and then and at the end."""

    def __init__(self, made: Recording) -> None:
        self._drain = Drain(made.store, recording=made.id, backends=_backends(), report=_say)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reenact-carrier", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._over.wait(_POLL_S):
            try:
                self._drain.poll()
            except Exception as error:  # noqa: BLE001 - the host is sacred; the journal stays where it is
                _say(f"carrying the journal failed for now: {error}")

    def finish(self) -> tuple[Run, ...]:
        """Carry the rest and give the runs."""
        self._over.set()
        self._thread.join()
        try:
            return tuple(self._drain.finish())
        except Exception as error:  # noqa: BLE001 - the journal stays where it is
            _say(f"the journal was not carried ({error}); `reenact ls` will")
            return ()


_carriers: dict[str, _Carrier] = {}


def _backends() -> list[Sender]:
    try:
        return backends_from_environment(os.environ)
    except InputError as error:
        _say(f"exporting is off: {error}")
        return []


def _say(line: str) -> None:
    sys.stderr.write(f"reenact: {line}\n")


def begin(setup: Setup) -> Recording:
    """Start to record this process and to carry its journal."""
    made = recording.start(setup)
    try:
        made.store.prepare()
        leftovers(made.store)
    except Exception as error:  # noqa: BLE001 - recording forgives
        _say(str(error))
    _carriers[made.id] = _Carrier(made)
    atexit.register(_at_exit, made)
    return made


def _at_exit(made: Recording) -> None:
    recording.stop(made)
    carried(made)


def carried(made: Recording) -> tuple[Run, ...]:
    """Carry the rest of a stopped recording, once."""
    carrier = _carriers.pop(made.id, None)
    return carrier.finish() if carrier is not None else ()


class Outcome:
    """What came of a replay in this process."""

    result: ReplayResult | None = None
    run: Run | None = None
    """The replay's own run."""


@contextmanager
def replaying(found: Found, store: Path, policies: Mapping[str, str]) -> Generator[Outcome]:
    """Answer this process's calls from a recording until the block ends; what is thrown to stop the agent ends here.

    `policies` holds values of the fields of `Policy` by their names.
    """
    scratch = tempfile.mkdtemp(prefix="reenact-")
    kept = Path(scratch) / "ledger.jsonl"  # on disk, since forked children write to it too
    outcome, ledger = Outcome(), Ledger(kept)
    ledger.note("joined", pid=os.getpid())
    ledger.note("guard", enforced=False, how="audit hook only")
    policy = Policy.named(policies)
    recorded, branch = found.altered.run(found.run), found.altered.branch_in(Path(scratch))
    within = InProcess((recorded, *found.siblings), recorded, ledger, policy, store, branch=branch)
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
        own = outcome.run = counterpart(runs, found)
        outcome.result = judge_replay(
            recorded, found.siblings, own, read_ledger(kept), exit_code=None, recorded_exit=None
        )
        ledger.close()
        shutil.rmtree(scratch, ignore_errors=True)


def judged(found: Found, outcome: Outcome, assertions: Sequence[Placed]) -> FixJudgement | None:
    """Judge a replay that is over by assertions; None where it came to nothing."""
    return judge_fix(found.run, outcome.run, outcome.result, assertions) if outcome.result is not None else None


def accuse(outcome: Outcome, judgement: FixJudgement | None = None) -> None:
    """Raise `Diverged` where a replay was not the same; where it was judged, unless nothing is wrong."""
    if judgement is not None:
        if judgement.exit_code:
            raise Diverged(judged_line(judgement))
        return
    result = outcome.result
    if result is not None and result.result != "same":
        raise Diverged(first_line(result), hint="`reenact doctor` says what a recording holds")
