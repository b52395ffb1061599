"""The environment in which a program records or replays itself, and running a program in it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.keep import run_proof
from reenact.keep.drain import Drain
from reenact.keep.journal_owner import owning
from reenact.keep.leftovers import leftovers
from reenact.pipeline.hook import injected
from reenact.pipeline.parentage import bound_to_us
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run
from reenact.values.settings import SHELL_VARIABLES, shell_variables

if TYPE_CHECKING:
    from reenact.export.post import Standing
    from reenact.export.sender import Sender
    from reenact.pipeline.side_collector import Beside
    from reenact.redact.in_force import Guard

_POLL_S = 1.0
_TOLD = 20
"""So many runs are told of at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What came of running a program with the recorder in it."""

    exit_code: int
    """As a shell would give it: 128 + n for a program that signal n killed."""
    runs: tuple[Run, ...] = ()
    """The latest of its runs."""
    count: int = 0
    """How many runs there are in all."""
    unfinished: int = 0
    reports: tuple[Standing, ...] = ()
    taken_in: tuple[int, int] = (0, 0)
    """Spans and log events that other parts of the program sent, and a collector beside it took in."""
    lost: str = ""
    """Why what was recorded is not in the store, or not whole; empty where all of it is."""
    loaded: int | None = None
    """How many of its processes loaded the recorder; None where that cannot be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kit:
    """What a program is recorded with."""

    environ: Mapping[str, str]
    drain: Drain
    collector: Beside | None
    full: bool
    """The disk was full at the beginning."""
    loaded: Callable[[], int | None]
    """Counts the processes that have loaded the recorder."""


def record(
    argv: Sequence[str],
    store: DirectoryStore,
    identity: Mapping[str, str],
    say: Callable[[str], None],
    policy: str | Path = "",
    *,
    collect: bool = False,
    strict: bool = False,
) -> Recorded:
    """Run a program with the recorder in it, carrying its journals into the store and to backends meanwhile.

    `policy` is the file of a redaction policy; one that cannot be read is told, and payloads are not recorded. With
    `collect`, what other parts of the program send over OTLP comes into the store as well. Standard streams, inherited
    descriptors, working directory and signals are the program's own. So is the exit code, whatever becomes of the
    store: where it cannot be used the program runs unrecorded, and this is said. With `strict` it is not started then.
    Raises `InputError` where it cannot be started.
    """
    if collect:
        from reenact.keep.collecting import require_extra

        require_extra("reenact run --collect")
    announce = _unfailing(say)
    with ExitStack() as stack:
        try:
            kit = _kit(store, identity, announce, policy, stack, collect=collect, strict=strict)
        except Exception as error:
            if strict:
                raise
            announce(f"{error}\n  the program runs unrecorded")
            return Recorded(exit_code=_shell_code(ended(_started(argv, os.environ))), lost="nothing of it was recorded")
        return _recorded(argv, store, kit, announce)


def _kit(
    store: DirectoryStore,
    identity: Mapping[str, str],
    say: Callable[[str], None],
    policy: str | Path,
    stack: ExitStack,
    *,
    collect: bool,
    strict: bool,
) -> _Kit:
    """Make everything ready that a recording needs. Raises where the store cannot be used."""
    from reenact.redact import in_force  # a replay runs programs as well, and asks for no policy here

    full = False
    try:
        store.prepare()
    except InputError as error:
        full = _may_pass(error)
        if strict or not full:
            raise
        say(f"{error}\n  the program starts all the same, and is recorded as soon as there is room")
    recording = os.urandom(8).hex()
    guard = in_force.guard(store.folder, os.environ, chosen=policy)
    if guard.problem:
        say(guard.problem)
    collector = _collector(store, guard, say) if collect else None
    if collector is not None:
        stack.callback(collector.close)
    variables = _redaction(guard) | (_endpoint(collector, say) if collector is not None else {})
    loaded = stack.enter_context(owning(store, recording))
    proves = stack.enter_context(run_proof.handed_on(recording, say))
    environ = {"PYTHONHASHSEED": _hash_seed(), **os.environ}
    environ = injected(
        environ,
        **{SHELL_VARIABLES: shell_variables(environ)},
        REENACT_RECORD="1",
        REENACT_RECORDING=recording,
        REENACT_STORE=str(store.folder),
        **variables,
        **proves,
        **{f"REENACT_{name.upper()}": value for name, value in identity.items()},
    )
    backends = _backends(say, strict=strict)
    drain = Drain(store, recording=recording, backends=backends, report=say)
    return _Kit(environ=environ, drain=drain, collector=collector, full=full, loaded=loaded)


def _may_pass(error: InputError) -> bool:
    """Tell whether a store that cannot be used now may be usable later: its disk is full."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in {errno.ENOSPC, errno.EDQUOT}


def _backends(say: Callable[[str], None], *, strict: bool) -> Sequence[Sender]:
    try:
        return backends_from_environment(os.environ)
    except InputError as error:
        if strict:
            raise
        say(f"exporting is off: {error}")
        return ()


def _unfailing(say: Callable[[str], None]) -> Callable[[str], None]:
    """Give what says a line where it can be said: a closed standard error is no reason for a program to end."""

    def announce(line: str) -> None:
        with suppress(Exception):
            say(line)

    return announce


def _recorded(argv: Sequence[str], store: DirectoryStore, kit: _Kit, say: Callable[[str], None]) -> Recorded:
    process = _started(argv, kit.environ)
    over = threading.Event()
    carrier = threading.Thread(target=_carry, args=(store, kit.drain, over, say), daemon=True)
    carrier.start()
    signals: list[int] = []
    code = ended(process, signals)
    runs, lost = _finished(process.pid, code, signals, store, kit, (over, carrier))
    return Recorded(
        exit_code=_shell_code(code),
        runs=tuple(runs),
        count=max(len(runs), len(kit.drain.done.runs)),
        unfinished=kit.drain.done.unfinished,
        reports=tuple(kit.drain.reports),
        taken_in=kit.collector.taken_in if kit.collector is not None else (0, 0),
        lost=lost,
        loaded=kit.loaded(),
    )


def _collector(store: DirectoryStore, guard: Guard, say: Callable[[str], None]) -> Beside | None:
    from reenact.pipeline.side_collector import begin

    return begin(store, guard, os.environ, say)


def _endpoint(collector: Beside, say: Callable[[str], None]) -> dict[str, str]:
    from reenact.pipeline.side_collector import child_variables

    return child_variables(collector, os.environ, say)


def _finished(
    pid: int,
    code: int,
    signals: Sequence[int],
    store: DirectoryStore,
    kit: _Kit,
    carrying: tuple[threading.Event, threading.Thread],
) -> tuple[Sequence[Run], str]:
    """Carry the rest after a program's end; give its runs, and what was lost. Never raises: the exit code is owed."""
    over, carrier = carrying
    try:
        over.set()
        carrier.join()
        if kit.collector is not None:
            kit.collector.close()  # before the runs are built: what was sent may be a part of them
        if not store.journals.is_dir():
            return (), f"{store.journals} is gone, and with it what was recorded there"
        runs = kit.drain.finish({pid: code}, stopped_by=-code if code < 0 else next(iter(signals), 0), latest=_TOLD)
    except KeyboardInterrupt:
        return (), "interrupted before all of it was carried into the store; `reenact recover` carries the rest"
    except Exception as error:  # noqa: BLE001 - the program did what it did
        return (), f"not all of it is in the store yet: {error}"
    if not runs and kit.full:
        return runs, "the disk was full"
    dropped = sum(journal.dropped for journal in kit.drain.done.journals)
    return runs, f"{dropped} records could not be written" if dropped else ""


def _started(argv: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a program that has every descriptor which was handed to us. Raises `InputError`."""
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(environ),
            close_fds=False,
            preexec_fn=bound_to_us(),  # noqa: PLW1509 - it does two system calls
        )
    except OSError as error:
        raise InputError(argv[0], f"cannot be started: {error.strerror}") from error


def _shell_code(code: int) -> int:
    """Spell an exit code as a shell does."""
    return code if code >= 0 else 128 - code


def _redaction(guard: Guard) -> dict[str, str]:
    """Give the policy and the key, found before the program starts, so that all its processes have the same."""
    from reenact.redact import in_force

    return {"REENACT_SALT": guard.salt or os.urandom(16).hex(), **in_force.handed_on(guard)}


_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)


def _hash_seed() -> str:
    """Draw the seed by which strings are hashed, and so the order of sets: it is drawn anyway, and cannot be read."""
    return str(int.from_bytes(os.urandom(4)))


def ended(process: subprocess.Popen[bytes], signals: list[int] | None = None) -> int:
    """Wait for a program, passing on what is sent to us; what a key of the terminal sends it gets by itself.

    `signals` gets the numbers of the signals that came, in order.
    A thread other than the main one only waits, since signals are not its own.
    """
    if threading.current_thread() is not threading.main_thread():
        return process.wait()

    def forward(number: int, _frame: object) -> None:
        if signals is not None:
            signals.append(number)
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
        interpreter = shutil.which(words[0])
        here = Path(sys.prefix) / "bin"
        if interpreter is None or (sys.prefix != sys.base_prefix and Path(interpreter).parent != here):
            words[0] = sys.executable
    return words
