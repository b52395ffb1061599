"""The environment in which a program records or replays itself, and running a program in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.export.post import Standing
from reenact.pipeline import beside, proving
from reenact.pipeline.beside import Beside
from reenact.pipeline.drain import Drain, leftovers
from reenact.pipeline.family import injected
from reenact.pipeline.owning import owning
from reenact.redact import in_force
from reenact.redact.in_force import Guard
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run

_POLL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What came of running a program with the recorder in it."""

    exit_code: int
    """As a shell would give it: 128 + n for a program that signal n killed."""
    runs: tuple[Run, ...]
    unfinished: int
    reports: tuple[Standing, ...]
    taken_in: tuple[int, int] = (0, 0)
    """Spans and log events that other parts of the program sent, and a collector beside it took in."""


def record(
    argv: Sequence[str],
    store: DirectoryStore,
    identity: Mapping[str, str],
    say: Callable[[str], None],
    policy: str | Path = "",
    *,
    collect: bool = False,
) -> Recorded:
    """Run a program with the recorder in it, carrying its journals into the store and to backends meanwhile.

    `policy` is the file of a redaction policy; one that cannot be read is told, and payloads are not recorded. With
    `collect`, what other parts of the program send over OTLP comes into the store as well. Standard streams, working
    directory and signals are the program's own. Raises `InputError` where it cannot be started.
    """
    store.prepare()
    recording = os.urandom(8).hex()
    guard = in_force.guard(store.folder, os.environ, chosen=policy)
    if guard.problem:
        say(guard.problem)
    collector = beside.begin(store, guard, os.environ, say) if collect else None
    try:
        told = _redaction(guard) | (beside.told(collector, os.environ, say) if collector is not None else {})
        with owning(store, recording), proving.handed_on(recording, say) as proves:
            return _recorded(argv, store, recording, identity, say, {**told, **proves}, collector)
    finally:
        if collector is not None:
            collector.close()


def _recorded(
    argv: Sequence[str],
    store: DirectoryStore,
    recording: str,
    identity: Mapping[str, str],
    say: Callable[[str], None],
    told: Mapping[str, str],
    collector: Beside | None,
) -> Recorded:
    named = {f"REENACT_{name.upper()}": value for name, value in identity.items()}
    environ = injected(
        {"PYTHONHASHSEED": _hash_seed(), **os.environ},
        REENACT_RECORD="1",
        REENACT_RECORDING=recording,
        REENACT_STORE=str(store.folder),
        **told,
        **named,
    )
    backends = backends_from_environment(os.environ)
    drain = Drain(store, recording=recording, backends=backends, report=say)
    try:
        process = subprocess.Popen(list(argv), env=environ)
    except OSError as error:
        raise InputError(argv[0], f"cannot be started: {error.strerror}") from error
    over = threading.Event()
    carrier = threading.Thread(target=_carry, args=(store, drain, over, say), daemon=True)
    carrier.start()
    code = ended(process)
    over.set()
    carrier.join()
    if collector is not None:
        collector.close()  # before the runs are built: what was sent may be a part of them
    runs = drain.finish({process.pid: code})
    return Recorded(
        exit_code=code if code >= 0 else 128 - code,
        runs=tuple(runs),
        unfinished=drain.done.unfinished,
        reports=tuple(drain.reports),
        taken_in=collector.taken_in if collector is not None else (0, 0),
    )


def _redaction(found: Guard) -> dict[str, str]:
    """Give the policy and the key, found before the program starts, so that all its processes have the same."""
    return {"REENACT_SALT": found.salt or os.urandom(16).hex(), **in_force.handed_on(found)}


_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)


def _hash_seed() -> str:
    """Draw the seed by which strings are hashed, and so the order of sets: it is drawn anyway, and cannot be read."""
    return str(int.from_bytes(os.urandom(4)))


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a program, passing on what is sent to us; what a key of the terminal sends it gets by itself.

    A thread other than the main one only waits, since signals are not its own.
    """
    if threading.current_thread() is not threading.main_thread():
        return process.wait()

    def forward(number: int, _frame: object) -> None:
        if number in _OF_TERMINALS and _has_the_terminal():
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (*_PASSED_ON, *_OF_TERMINALS)}
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_the_terminal() -> bool:
    """Tell whether this process and what it started are in the foreground of a terminal."""
    for descriptor in range(3):
        with suppress(OSError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False


def _carry(store: DirectoryStore, drain: Drain, over: threading.Event, say: Callable[[str], None]) -> None:
    try:
        leftovers(store, send=False)  # what others left, as every command does
    except Exception as error:  # noqa: BLE001 - as below
        say(str(error))
    while not over.wait(_POLL_S):
        try:
            drain.poll()
        except Exception as error:  # noqa: BLE001 - the program goes on; what was not carried now is carried at the end
            say(f"carrying the journal failed for now: {error}")


def program(argv: Sequence[str]) -> list[str]:
    """Give the command to run; `python` means the interpreter that has this package.

    Called by its path from an environment that is not activated, `reenact run -- python agent.py` would else find a
    Python that knows neither us nor the agent's libraries. An activated environment (VIRTUAL_ENV) is left its own.
    """
    words = list(argv)
    if words and words[0] in {"python", "python3"} and "VIRTUAL_ENV" not in os.environ:
        found = shutil.which(words[0])
        here = Path(sys.prefix) / "bin"
        if found is None or (sys.prefix != sys.base_prefix and Path(found).parent != here):
            words[0] = sys.executable
    return words
