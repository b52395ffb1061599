"""Other programs that the agent starts, from their start to their end: recorded, or given back by a stand-in.

Theory of operation. A start is a call. While recording, the program is started as it would be, and what the agent reads
of it, writes to it and learns of its end is heard on the agent's side (`program_talk`); the call is closed when its
exit code is known and its pipes are read to their end or closed. In a replay a stand-in is started in its place
(`program_stand_in`), so that all that stands on a real process and real pipes works as it did. That a child has ended
is a release like any other: it reaches the agent in recorded order.
"""

from __future__ import annotations

import _thread
import os
import stat
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from reenact.boundary import children, program
from reenact.boundary.children import Descent
from reenact.boundary.forgiving import forgive, swallow
from reenact.boundary.program import bytes_of, text_of
from reenact.boundary.program_descriptors import Lent, mode_of, says_there
from reenact.boundary.program_folder import Look
from reenact.boundary.program_stand_in import StandIn
from reenact.boundary.program_talk import ERR, IN, MOST, OUT, Reader, Talk, Writer, opened_over
from reenact.boundary.side_effects import replaced_in_a_replay
from reenact.contracts.doorman import Passage
from reenact.values import alarms, locks, typed
from reenact.values.call import Call, Raised, Returned, Value
from reenact.values.child import CHANGED, INHERITED, LEFT, LOOKED, LOOKS, SERVED, TEMPORARY, UNHEARD, lost
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text

NAMES: Final = (
    "bufsize",
    "executable",
    "stdin",
    "stdout",
    "stderr",
    "preexec_fn",
    "close_fds",
    "shell",
    "cwd",
    "env",
    "universal_newlines",
    "startupinfo",
    "creationflags",
    "restore_signals",
    "start_new_session",
    "pass_fds",
)
"""The parameters of `Popen` that may be given by place, behind the first."""
_CHILD: Final = "_reenact_child"
_ENDINGS: Final = ("preexec_fn", "pass_fds", "close_fds")
_LOOKS: Final = 10_000
_LEAST_PATIENCE_S: Final = 10.0
_WHOSE: Final = frozenset(
    {
        *("bufsize", "stdin", "stdout", "stderr", "preexec_fn", "universal_newlines", "restore_signals"),
        *("start_new_session", "pass_fds", "encoding", "errors", "text", "pipesize", "process_group"),
    }
)
"""What of a start a stand-in takes over; the rest (folder, user, environment) is the program's own."""


class Child:
    """One program that was started."""

    def __init__(self, passage: Passage, call: Call, answer: Mapping[str, Json] | None, owner: object) -> None:
        self.passage, self.call, self.answer, self.owner = passage, call, answer, owner
        self.talk = Talk()
        self.heard: set[str] = set()
        """Streams that the agent reads or writes through pipes of `subprocess`."""
        self.unheard: set[str] = set()
        self.handed: set[str] = set()
        self.files: dict[str, tuple[int, int]] = {}
        self.lent = Lent()
        """Files that the agent opened for a stream: a descriptor of ours, and where the stream begins."""
        self.inherited: set[str] = set()
        self.readers: list[Any] = []
        self.stand_in: StandIn | None = None
        self.pid, self.plain = 0, False
        self.descent = _hung(call.name)
        self.code: int | None = None
        self.is_reported = False
        self.communicating = 0
        """`communicate` is at work, and tells what it read when it is done."""
        self.facts: dict[str, Json] = {}
        self.looks_left = _number(answer.get(LOOKS)) if answer is not None else 0
        self.accused: BaseException | None = None
        self._before: Look | None = None
        self._is_closed = False
        self._lock = locks.rlock()

    @property
    def is_ended_by_signal(self) -> bool:
        """Its stand-in runs until the agent sends what the recorded one was sent."""
        answer = self.answer or {}
        turns = map(as_object, as_list(answer.get("talk")))
        return "signals" in answer or any("signal" in turn for turn in turns)

    @property
    def ends(self) -> bool:
        """The recorded one ended, and the agent learned it."""
        return self.answer is not None and "exit_code" in self.answer

    @property
    def is_open(self) -> bool:
        """Its outcome is not told yet."""
        return not self._is_closed

    def wait(self) -> None:
        """Hold the agent back until the recorded child's end may reach it."""
        if self.code is None:
            self.passage.wait(self.passage.end_order)

    def exited(self, code: int, *, reported: bool = True) -> None:
        """Hear how it ended, as `Popen.returncode` has it. Raises a miss where it was given something else.

        Where it is not `reported` to the agent, `subprocess` tidied up after it, which happens at any time.
        """
        with self._lock:
            if self.code is not None:
                return
            self.code = code
            self.talk.is_left = True
            self.is_reported = reported
            _RUNNING.pop(self.pid, None)
            if reported:
                self.passage.number_end()
            if self.stand_in is not None:
                if self.stand_in.is_short():
                    self.accuse()
                self.stand_in.close()
            try:
                self._see_files()
            except Exception:
                swallow("program_starts.see_files")
            self._take_files()
            if self.lent.take():
                self.unheard.add(_HANDED_ON)
            self.settle()
        if reported:
            self.check()

    def settle(self, _stream: str = "") -> None:
        """Tell the outcome where everything is known."""
        with self._lock:
            if self._is_closed or self.code is None or self.communicating:
                return
            read = all(reader.closed or reader.stream in self.talk.ended for reader in self.readers)
            if read and not any(owner is self for owner, _ in _PIPES.values()):
                self.close()

    def starved(self, stream: str) -> None:
        """Hear that the agent came to the end of a stream: of a recorded one that it did not come to, it is no end."""
        self.settle()
        self.check()
        if stream and self.answer is not None and stream in as_list(self.answer.get("unread")):
            raise self.passage.miss(f"the program reads on where the recording stopped reading its {stream}")

    def check(self) -> None:
        """Raise the miss of a child that was given something else."""
        if self.answer is not None and self.accused is None and self.talk.shut:
            self.compare(self.talk.inputs())
        if self.accused is not None:
            raise self.accused

    def compare(self, pieces: list[bytes]) -> None:
        """Hold what the child was given against the recording, once all of it was given."""
        answer = cast("Mapping[str, Json]", self.answer)
        if "talk" in answer:
            recorded: list[Json] = [turn["in"] for turn in map(as_object, as_list(answer["talk"])) if "in" in turn]
        elif "stdin" in answer and answer.get("stdin_closed") is True:
            recorded = [answer["stdin"]]
        else:
            return
        now = [text_of(b"".join(pieces))] if "talk" not in answer else [text_of(each) for each in pieces]
        if "talk" in answer and len(now) != len(recorded):
            recorded, now = [_joined(recorded)], [text_of(b"".join(pieces))]
        if answer.get("stdin_broken") is True and (recorded == [] or _begins_alike(recorded[0], now[0])):
            return  # how much went before it read no longer is a matter of time
        for a, b in zip(recorded, now, strict=False):
            difference = self.passage.differs("stdin", a, b)
            if difference is not None:
                self.accused = difference
                return

    def accuse(self) -> None:
        """Note that the child was given less than the recording says."""
        self.compare(self.talk.inputs())
        if self.accused is None:
            self.accused = self.passage.miss("it waited for what the recording says that it was given, in vain")

    def look_at(self, cwd: Any) -> None:
        """See what is there before it starts."""
        if self.answer is None:
            words = [as_text(each) for each in as_list(self.call.attributes.get("process.command_args"))]
            self._before = Look(cwd, words)

    def _see_files(self) -> None:
        """Note which files changed while it ran."""
        if self._before is not None:
            own = [(facts.st_dev, facts.st_ino) for fd, _ in self.files.values() for facts in (os.fstat(fd),)]
            names = program.Temporary([as_text(each) for each in as_list(self.call.attributes.get(TEMPORARY))])
            if facts := self._before.changed(own, names):
                self.facts[CHANGED] = facts
            if not self._before.whole:
                self.facts[LOOKED] = "in part"

    def failed(self, error: BaseException) -> None:
        """Hear that it did not start."""
        self._is_closed = True
        for fd, _ in self.files.values():
            os.close(fd)
        self.files.clear()
        self.lent.take()
        self.passage.raised(error)

    def _take_files(self) -> None:
        for stream, (fd, start) in self.files.items():
            try:
                data = _read(fd, start)
            except Exception:
                alarms.pass_on()
                data = None
            if data is None:
                self.unheard.add(stream)
            else:
                self.talk.piece(stream, data)
                self.heard.add(stream)
                self.talk.ended.add(stream)
            with suppress(OSError):
                os.close(fd)
        self.files.clear()

    def close(self) -> None:
        """Tell the outcome, with what is known by now."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            _OPEN.discard(self)
            for pipe, (owner, _) in tuple(_PIPES.items()):
                if owner is self:
                    del _PIPES[pipe]
            for reader in self.readers:
                if reader.stream in self.handed and reader.stream not in self.talk.ended:
                    self.unheard.add(reader.stream)
            for fd, reader in tuple(_HANDED.items()):
                if reader in self.readers:
                    del _HANDED[fd]
            if self.stand_in is not None:
                self.stand_in.close()
            self.passage.annotate(self._attributes())
            self.passage.closed(Returned(payload=Value(json=self._outcome())))

    def _outcome(self) -> dict[str, Json]:
        if self.answer is not None:
            return dict(self.answer)
        outcome: dict[str, Json] = {} if self.code is None else {"exit_code": self.code}
        outcome |= self.talk.outcome(self.heard - self.unheard)
        if unread := sorted(self.heard - {IN} - self.unheard - self.talk.ended):
            outcome["unread"] = [*unread]
        if self.unheard:
            outcome[UNHEARD] = [*sorted(self.unheard)]
        if self.talk.looks:
            outcome[LOOKS] = self.talk.looks
        return outcome | self.facts

    def _attributes(self) -> dict[str, Json]:
        attributes: dict[str, Json] = {}
        if self.code is not None:
            attributes["process.exit.code"] = self.code
        if not self.is_reported:
            attributes[LEFT] = True
        if self.inherited:
            attributes[INHERITED] = [*sorted(self.inherited)]
        return attributes


_OPEN: Final = set[Child]()
"""Children whose outcome is not told yet."""
_RUNNING: Final = dict[int, Child]()
"""Children that run, by process."""
_HANDED: Final = weakref.WeakValueDictionary[int, Reader]()
"""Pipes whose descriptor the agent took, by descriptor."""
_PIPES: Final = dict[tuple[int, int], tuple[Child, str]]()
"""Pipes that the agent made itself and gave to a child, by device and number."""
_inside = threading.local()


_HANDED_ON: Final = "a descriptor that it was handed"
"""How a verdict names it, and whatever is said through it."""


def of(popen: Any) -> Child | None:
    """Give what is known of a process object."""
    return cast("dict[str, Any]", vars(popen)).get(_CHILD)


def of_process(pid: int) -> Child | None:
    """Give the running child with a process id."""
    return _RUNNING.get(pid)


def serves(pid: int, port: int) -> bool:
    """Hear that the agent connects to a program that runs, 0 for a unix socket; tell whether it is a recorded one."""
    child = _RUNNING.get(pid)
    if child is not None:
        child.facts[SERVED] = [*dict.fromkeys((*as_list(child.facts.get(SERVED)), port))]
    return child is not None


def start(original: Callable[..., None], popen: Any, args: Any, options: dict[str, Any]) -> None:
    """Start what `Popen` was asked to. Raises what it raises, or raised when recorded, or a miss."""
    opened = None
    try:
        opened = _opened(args, options)
    except Exception:  # arguments that are none: it will say so
        forgive("program_starts.start")
    if opened is None:
        with children.starting():  # a preexec_fn runs the hooks of os.fork
            original(popen, args, **options)
        return
    child = opened
    try:
        for stream in (OUT, ERR):  # before it starts: it may write at once
            listen_elsewhere(options.get(stream), stream, child)
        for fd in options.get("pass_fds") or ():
            if says_there(fd):
                child.unheard.add(_HANDED_ON)
            elif child.answer is None:
                child.lent.look_at(fd)
        child.look_at(options.get("cwd"))
    except Exception:
        swallow("program_starts.listen_elsewhere")
    if child.answer is None:
        _start_it(original, popen, args, options, child)
    else:
        _stand_in(original, popen, args, options, child)
    vars(popen)[_CHILD] = child
    running(child, popen.pid)
    try:
        _listen(popen, options, child)
    except Exception:
        swallow("program_starts.listen")
        child.unheard.update({OUT, ERR})


def running(child: Child, pid: int, *, plain: bool = False) -> None:
    """Note that a child runs; of a `plain` one nobody but the agent hears the end."""
    child.pid, child.plain = pid, plain
    _RUNNING[pid] = child
    _OPEN.add(child)


def _opened(args: Any, options: Mapping[str, Any]) -> Child | None:
    """Let the call in; None where it goes straight through. Raises the recorded failure, or a miss."""
    shell = bool(options.get("shell"))
    words = program.words_of(args)
    doorman = program.doorman(words if not shell else [])
    if doorman is None:
        return None
    call = program.call(
        args,
        shell=shell,
        cwd=options.get("cwd"),
        env=options.get("env"),
        executable=options.get("executable"),
        pass_fds=tuple(options.get("pass_fds") or ()),
    )
    return opened(doorman, call)


def opened(doorman: Any, call: Call) -> Child:
    """Let a call in and read its answer. Raises the recorded failure, or a miss."""
    passage = doorman.open(call)
    match passage.answer:
        case None:
            return Child(passage, call, None, doorman)
        case Raised(exception=exception):
            error = typed.decode_exception(exception)
            passage.wait(passage.end_order)
            passage.raised(error)
            raise error
        case Returned(payload=Value(json=dict(answer))):
            if why := lost(answer):
                raise passage.miss(why)
            return Child(passage, call, answer, doorman)
        case other:
            raise passage.miss(f"the recording holds no outcome of this child ({type(other).__name__.lower()})")


def _hung(name: str) -> Descent | None:
    """Take a lane for what may be started below a child: in a replay as well, so that lanes keep their numbers."""
    try:
        host = children.host()
        return host.descent(name) if host is not None else None
    except Exception:
        forgive("program_starts.hung")
        return None


def descent_of(child: Child) -> Descent | None:
    """Say where Pythons hang that a program starts: below it."""
    place = getattr(child.passage, "place", None)
    return None if place is None or child.descent is None else child.descent.below(place.span_id)


def _start_it(original: Callable[..., None], popen: Any, args: Any, options: dict[str, Any], child: Child) -> None:
    env = os.environ if options.get("env") is None else options["env"]
    if further := environment_of(child, env):
        options = {**options, "env": {**env, **further}}
    try:
        with children.starting(), replaced_in_a_replay():
            original(popen, args, **options)
    except BaseException as error:
        child.failed(error)
        raise


def environment_of(child: Child, env: Any) -> dict[str, str]:
    """Have Pythons that the program starts hang below it, where they would record themselves anyway."""
    try:
        if not any(mark in env for mark in ("REENACT_RECORD", "REENACT_REPLAY")):
            return {}
        descent = descent_of(child)
        return {} if descent is None else {children.VARIABLE: descent.spelled()}
    except Exception:
        forgive("program_starts.environment")
        return {}


def _stand_in(original: Callable[..., None], popen: Any, args: Any, options: dict[str, Any], child: Child) -> None:
    stand_in = StandIn(child.answer or {}, names_of(child), patience_of(child))
    stand_in_options = {name: value for name, value in options.items() if name in _WHOSE}
    stand_in_options["pass_fds"] = (*(options.get("pass_fds") or ()), *stand_in.fds)
    try:
        with children.starting(), replaced_in_a_replay():
            original(popen, stand_in.words, **stand_in_options)
    except BaseException:
        stand_in.failed()
        raise
    stand_in.started()
    child.stand_in = stand_in
    popen.args = args


def names_of(child: Child) -> list[tuple[str, str]]:
    """Pair the recorded names of temporary files with today's."""
    now = [as_text(each) for each in as_list(child.call.attributes.get(TEMPORARY))]
    recorded = [as_text(each) for each in child.passage.recorded(TEMPORARY)]
    return list(zip(recorded, now, strict=False))


def patience_of(child: Child) -> float:
    """Say for how many seconds a stand-in waits for what it was given when recorded."""
    return _LEAST_PATIENCE_S + 2 * (child.passage.took_s or 0.0)


# hearing


def _listen(popen: Any, options: Mapping[str, Any], child: Child) -> None:
    bufsize = options.get("bufsize")
    size = bufsize if isinstance(bufsize, int) else -1
    for stream in (OUT, ERR):
        file = getattr(popen, stream)
        if file is None:
            continue
        stream_file, raw = opened_over(file, Reader, size)
        raw.talk, raw.stream, raw.handed, raw.starved = child.talk, stream, _output_taker(child), child.starved
        setattr(popen, stream, stream_file)
        child.heard.add(stream)
        child.readers.append(raw)
        children.hear_reads()  # the agent may hold `os.read` when it asks for the descriptor
    if popen.stdin is not None:
        popen.stdin, raw = opened_over(popen.stdin, Writer, size)
        raw.talk = child.talk
        child.heard.add(IN)
    elif stat.S_ISSOCK(mode_of(options.get("stdin"))):  # asyncio's
        child.heard.add(IN)


def listen_elsewhere(target: Any, stream: str, child: Child) -> None:
    """See where a stream goes that is no pipe of `subprocess`."""
    if target in (None, subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT):
        if target is None:
            child.inherited.add(stream)
        return
    fd = target if isinstance(target, int) else target.fileno()
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        import fcntl

        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        start = status.st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
        child.files[stream] = (os.dup(fd), start)
    elif fd in (1, 2) or (status.st_dev, status.st_ino) in _standard():
        child.inherited.add(stream)
    elif stat.S_ISFIFO(status.st_mode):
        child.unheard.add(stream)
        _PIPES[status.st_dev, status.st_ino] = (child, stream)
        children.hear_reads()
    elif not stat.S_ISCHR(status.st_mode) or os.isatty(fd):  # a terminal of the agent's own: it reads the other end
        child.unheard.add(stream)


def _standard() -> set[tuple[int, int]]:
    file_ids = set[tuple[int, int]]()
    for fd in (1, 2):
        with suppress(OSError):
            of_it = os.fstat(fd)
            file_ids.add((of_it.st_dev, of_it.st_ino))
    return file_ids


def _output_taker(child: Child) -> Callable[[int, Reader], None]:
    child_reference = weakref.ref(child)

    def hand_over(fd: int, reader: Reader) -> None:
        if (live_child := child_reference()) is not None and live_child.is_open:
            live_child.handed.add(reader.stream)
            _HANDED[fd] = reader
            children.hear_reads()

    return hand_over


def was_read(fd: int, data: bytes) -> None:
    """Hear what `os.read` gave."""
    reader = _HANDED.get(fd)
    if reader is not None:
        reader.got(data)
    elif _PIPES:
        status = os.fstat(fd)
        destination = _PIPES.get((status.st_dev, status.st_ino))
        if destination is not None:
            child, stream = destination
            if data:
                child.talk.piece(stream, data)
            else:
                del _PIPES[status.st_dev, status.st_ino]
                child.talk.end(stream)
                child.unheard.discard(stream)
                child.heard.add(stream)
                child.settle()


def _read(fd: int, start: int) -> bytes | None:
    """Read what a child wrote to a file; None where it cannot be read."""
    import fcntl

    end = os.fstat(fd).st_size
    if end - start > MOST:
        return b"\0" * (MOST + 1)  # too much, which the talk says
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY:
        return os.pread(fd, max(0, end - start), start)
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            again = os.open(f"{folder}/{fd}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(again, max(0, end - start), start)
            finally:
                os.close(again)
    return None


# the agent's looks


def looking() -> bool:
    """Tell whether `subprocess` itself is looking, on behalf of a look of the agent's that was counted."""
    return getattr(_inside, "now", False)


class inside:  # noqa: N801 - reads as a function does
    """Surround a look of the agent's: those beneath it are `subprocess`'s own."""

    def __enter__(self) -> None:
        self._before, _inside.now = looking(), True

    def __exit__(self, *_: object) -> None:
        _inside.now = self._before


def found_running(child: Child) -> None:
    """Count a look of the agent's that found a child running."""
    if child.code is None and child.talk.looks < _LOOKS:
        child.talk.looks += 1


def is_to_run(child: Child) -> bool:
    """Tell, in a replay, whether the agent is to find a child running once more."""
    if child.answer is None or child.code is not None or child.looks_left <= 0 or child.is_ended_by_signal:
        return False
    child.looks_left -= 1
    return True


def signalled(child: Child, number: int) -> None:
    """Hear that the agent is about to send a signal."""
    if number and child.code is None:
        if child.stand_in is not None:
            child.stand_in.ready()
        child.talk.signalled(int(number))


sleep: Final = time.sleep
"""Waits for a time that the agent gave: it is waited for in a replay, too."""


def exit_later(child: Child, loop: Any, go_on: Callable[[], object], code: int) -> None:
    """Let an event loop learn in recorded order that a child has ended."""

    def turn() -> None:
        try:
            child.exited(code)
        finally:  # the ledger knows of a miss
            go_on()

    def wait() -> None:
        child.wait()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(turn)

    _thread.start_new_thread(wait, ())  # none of `threading`'s, which would be a lane


def communicated(child: Child, popen: Any, before: Mapping[str, int]) -> dict[str, int]:
    """Hear what `communicate` read by itself: the pieces beyond `before`, by stream."""
    counts: dict[str, int] = {}
    pieces_by_file = cast("dict[Any, list[bytes]]", getattr(popen, "_fileobj2output", {}))
    for stream in (OUT, ERR):
        pieces = pieces_by_file.get(getattr(popen, stream), [])
        for piece in pieces[before.get(stream, 0) :]:
            if piece:
                child.talk.piece(stream, piece)
            else:
                child.talk.end(stream)
        counts[stream] = len(pieces)
    return counts


# the end of a recording


def close_all(owner: object) -> None:
    """Tell the outcomes of children that the agent left; the recording ends."""
    for child in tuple(_OPEN):
        if child.owner is owner:
            try:
                child.close()
            except Exception:
                swallow("program_starts.close")


def _forked() -> None:
    """Leave the children to the process that started them."""
    _OPEN.clear()
    _RUNNING.clear()
    _PIPES.clear()


os.register_at_fork(after_in_child=_forked)
children.when_stopped(close_all)


def _begins_alike(a: Json, b: Json) -> bool:
    one, other = bytes_of(a), bytes_of(b)
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def _joined(pieces: list[Json]) -> Json:
    return text_of(b"".join(bytes_of(piece) for piece in pieces))


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
