"""The stand-in: a harmless process in the place of another program, in a replay.

It says what the recording says that the program said, in turn with what the agent gives it. It closes the streams
whose end the agent saw meanwhile, waits for the signals that the agent sent, and ends as the program ended. Where the
agent did not learn that it ended, it closes what the recorded one closed, and stays. So `Popen`, `asyncio` and
selectors work on a real process. It is this Python with nothing of ours and no site in it; it opens nothing, and ends
when who started it is gone.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from reenact.boundary.program import bytes_of
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object

_FDS: Final = {"stdout": 1, "stderr": 2}
_HIGH: Final = 100
"""Our descriptors in a stand-in are not below this number: the agent may have chosen low ones for its own."""
_KILL: Final = 9
READY, SHORT = b"r", b"s"
"""What a stand-in reports: it listens to signals; it was given less than the recording says, and waits no longer."""

_CODE: Final = """
import os, sys, marshal, select, _signal as signal
told, parent, report = map(int, sys.argv[1:4])
with open(told, "rb") as file:
    steps, reads, code, stays = marshal.load(file)
arrived, seen, gone, ended, stdin = [], 0, set(), set(), reads
poll = select.poll()
poll.register(parent, 0)
if stdin:
    poll.register(0, select.POLLIN)

def report_it(word):
    try:
        os.write(report, word)
    except OSError:  # who started it is gone
        os._exit(0)

def note(number, _):
    arrived.append(number)

def look(until, patience):
    global seen, stdin
    left = patience * 1000
    while not until():
        before = len(arrived), seen
        found = dict(poll.poll(min(left, 50)))
        if parent in found:
            os._exit(0)
        if 0 in found:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            seen += len(data)
            if not data:
                stdin = False
                poll.unregister(0)
        elif (len(arrived), seen) == before:
            left -= 50
        if left <= 0:
            report_it(b"s")
            os._exit(0)

signal.signal(signal.SIGINT, signal.SIG_DFL)
for what, value, _ in steps:
    if what == "signal" and value not in (9, 19):
        signal.signal(value, note)
report_it(b"r")
count, waited, last = 0, {}, 0
for what, value, patience in steps:
    if what == "in":
        count += value
        look(lambda: seen >= count or not stdin, patience)
    elif what == "shut":
        look(lambda: not stdin, patience)
    elif what == "end":  # both may go to one pipe
        alike = [fd for fd in (1, 2) if fd not in ended and value not in ended and os.path.sameopenfile(fd, value)]
        for fd in alike:
            os.close(fd)
        ended.update(alike)
    elif what == "signal":
        waited[value] = waited.get(value, 0) + 1
        last = value
        look(lambda: arrived.count(value) >= waited[value], patience)
    elif value not in gone | ended:
        data = memoryview(patience)
        try:
            while data:
                data = data[os.write(value, data):]
        except OSError:
            gone.add(value)
if stays:
    look(lambda: False, 1e9)
if code < 0:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (9, 19):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    select.poll().poll(5000)
os._exit(code)
"""


class StandIn:
    """One stand-in that is about to start, and what it needs of this process."""

    def __init__(self, answer: Mapping[str, Json], names: Sequence[tuple[str, str]], patience_s: float) -> None:
        """Make ready. `names` are recorded names of temporary files with today's."""
        script = _script(answer, names, patience_s)
        self._script_fd = _high(_memory_file(marshal.dumps(script)))
        read, write = os.pipe()
        self._parent, self._alive = _high(read), write
        read, write = os.pipe()
        self._report, self._reports = read, _high(write)
        self._ready = False

    @property
    def words(self) -> list[str]:
        """The command line."""
        fds = [str(fd) for fd in self.fds]
        return [sys.executable, "-I", "-S", "-X", "utf8", "-c", _CODE, *fds]

    @property
    def fds(self) -> tuple[int, ...]:
        """The descriptors that the process must inherit."""
        return self._script_fd, self._parent, self._reports

    def inheritable(self) -> None:
        """Let every child inherit the descriptors, where they cannot be handed on one by one."""
        for fd in self.fds:
            os.set_inheritable(fd, True)

    def started(self) -> None:
        """Close what is the process's alone."""
        for fd in self.fds:
            os.close(fd)

    def failed(self) -> None:
        """Close everything: it did not start."""
        self.started()
        os.close(self._alive)
        os.close(self._report)

    def ready(self) -> None:
        """Wait until it listens to signals; 10 seconds at most."""
        import select

        poll = select.poll()
        poll.register(self._report, select.POLLIN)
        if not self._ready and poll.poll(10_000):
            self._ready = True

    def is_short(self) -> bool:
        """Tell, when it has ended, whether it was given less than the recording says."""
        os.set_blocking(self._report, False)
        try:
            return SHORT in os.read(self._report, 100)
        except OSError:
            return False

    def close(self) -> None:
        """Let it go: one that still runs ends."""
        for fd in (self._alive, self._report):
            with suppress(OSError):
                os.close(fd)
        self._alive = self._report = -1


def _memory_file(data: bytes) -> int:
    """Give a descriptor of a nameless file that holds `data`."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("reenact")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _high(fd: int) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(fd)
    return high


def _script(
    answer: Mapping[str, Json], names: Sequence[tuple[str, str]], patience_s: float
) -> tuple[list[tuple[str, int, Any]], bool, int, bool]:
    """Give the steps of a stand-in, whether it reads its standard input, how it ends, and whether it stays."""
    steps = _turns(answer, names, patience_s)
    broken = answer.get("stdin_broken") is True  # it ends while the agent writes
    if "stdin" in answer:
        count = _number(answer.get("stdin_bytes"))
        steps.append(("in", min(count, 1) if broken else count, patience_s))
    steps += [("out", fd, _renamed(bytes_of(answer[name]), names)) for name, fd in _FDS.items() if name in answer]
    steps += _ends(as_list(answer.get("ended")), steps)
    if answer.get("stdin_closed") is True and not broken:
        steps.append(("shut", 0, patience_s))
    steps += [("signal", _number(number), patience_s) for number in as_list(answer.get("signals"))]
    code, stays = _number(answer.get("exit_code")), "exit_code" not in answer
    if stays:
        steps += _ends([name for name in _FDS if name not in as_list(answer.get("unread"))], steps)
    elif code != -_KILL:  # it was dead when it was killed
        steps = [step for step in steps if step[:2] != ("signal", _KILL)]
    return steps, "stdin" in answer or "talk" in answer, code, stays


def _turns(
    answer: Mapping[str, Json], names: Sequence[tuple[str, str]], patience_s: float
) -> list[tuple[str, int, Any]]:
    steps: list[tuple[str, int, Any]] = []
    for turn in map(as_object, as_list(answer.get("talk"))):
        for what, value in turn.items():
            if what == "in":
                steps.append(("in", _number(turn.get("bytes")), patience_s))
            elif what == "signal":
                steps.append(("signal", _number(value), patience_s))
            elif what == "shut":
                steps.append(("shut", 0, patience_s))
            elif what == "end":
                steps += _ends([value], steps)
            elif what in _FDS:
                steps.append(("out", _FDS[what], _renamed(bytes_of(value), names)))
    return steps


def _ends(names: Sequence[Json], steps: Sequence[tuple[str, int, Any]]) -> list[tuple[str, int, Any]]:
    """Give the steps that close streams, of those that are open yet."""
    fds = [fd for name, fd in _FDS.items() if name in names]
    return [("end", fd, 0) for fd in fds if ("end", fd, 0) not in steps]


def _renamed(data: bytes, names: Sequence[tuple[str, str]]) -> bytes:
    for recorded, now in names:
        data = data.replace(os.fsencode(recorded), os.fsencode(now))
    return data


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
