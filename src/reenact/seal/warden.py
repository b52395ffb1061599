"""The process that answers what no filter of system calls can judge, for a program in a cell (seccomp_unotify(2)).

Theory of operation. A call that is asked about waits. It is answered by its result, by an error, or by "go on" (the
kernel does it then). *Go on* is said only where another wall stands behind it (Landlock, for what opens or removes a
file), or where all that was judged lies in registers: memory may be changed by another thread between the look and the
act. Everything else the warden does itself, on a descriptor of its own: it opens the place, looks where that lies, and
acts there (`facts`, `sockets`). It is bound by the same rules of Landlock on files as the program.

Files of `/dev/shm` are files in the cell: semaphores and shared memory work among the program's own processes. Other
processes than those that descend from the program are not changed; where the kernel does not keep them apart, they are
not signalled either.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

from reenact.seal import calls, facts, landlock
from reenact.seal.denials import Denials
from reenact.seal.question import HERE, GoOn, Question
from reenact.seal.sockets import Sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from reenact.seal.bounds import Bounds
    from reenact.seal.question import Answer

_EPERM: Final = 1
_CREAT: Final = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_PROCESS_OF_PRIORITY, _PROCESS_OF_IO_PRIORITY = 0, 1
_FOLLOWED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Warden:
    """The warden of one cell."""

    def __init__(self, bounds: Bounds, listener: int, child: int, ledger: str = "") -> None:
        """`listener` is the descriptor of the filter, `child` the process that is the program.

        What is denied is said in the `ledger`, a path.
        """
        self._bounds, self._listener, self._child = bounds, listener, child
        self._denials = Denials(bounds, ledger)
        self._status: int | None = None
        self._names = names = calls.numbers()
        table = {**self._own_answers(), **facts.answers(bounds, {name: number for number, name in names.items()})}
        table |= Sockets(bounds, self._denials).answers()
        self._answers: Mapping[int, Answer] = {number: table[name] for number, name in names.items() if name in table}
        self._waits = next(number for number, name in names.items() if name == "connect")

    def wait(self) -> int:
        """Answer until the program is over; give its status, as `waitpid` does."""
        awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        for number in (signal.SIGINT, signal.SIGQUIT):  # what a terminal sends, it sends to the program as well
            signal.signal(number, signal.SIG_IGN)
        for number in _FOLLOWED:
            signal.signal(number, self._pass_on)
        events = select.poll()
        events.register(self._listener, select.POLLIN)
        events.register(awake, select.POLLIN)
        self._reap()  # it may be over before anything was listened to
        while self._status is None:
            for ready, what in events.poll():
                if ready == awake:
                    with suppress(BlockingIOError):
                        os.read(awake, 4096)
                    self._reap()
                elif what & select.POLLIN:
                    self._hear()
                else:  # nobody lives in the cell any more
                    events.unregister(self._listener)
        os.close(self._listener)
        return self._status

    def _pass_on(self, number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._child, number)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ending := os.waitpid(-1, os.WNOHANG))[0]:
                if ending[0] == self._child:
                    self._status = ending[1]

    def _hear(self) -> None:
        with suppress(OSError):  # who asked has gone meanwhile
            question = Question(self._listener)
            answer = self._answers.get(question.number, self._refused)
            if question.number == self._waits:  # for who accepts it, who may have to ask before
                import _thread

                _thread.start_new_thread(self._answer, (question, answer))
            else:
                self._answer(question, answer)

    def _answer(self, question: Question, answer: Answer) -> None:
        """Answer it, and say what was refused: a `PermissionError` of ours names the file."""

        def judged(asked: Question) -> int:
            try:
                return answer(asked)
            except PermissionError as error:
                if isinstance(error.filename, str):
                    self._denials.note_file(asked, HERE, os.fsencode(error.filename), "change %s")
                raise

        question.answer(judged)

    def _own_answers(self) -> dict[str, Answer]:
        signals = dict.fromkeys(calls.SIGNALS, self._signalled) | {"pidfd_send_signal": self._signalled_by_descriptor}
        priorities = {"setpriority": _PROCESS_OF_PRIORITY, "ioprio_set": _PROCESS_OF_IO_PRIORITY}
        return {
            **signals,
            **{name: self._placed(which) for name, which in priorities.items()},
            **dict.fromkeys((*calls.OF_ONESELF, "prlimit64"), self._judge_change),
            "open": lambda question: self._open_in_memory(question, 0, question.integer(1), 2),
            "creat": lambda question: self._open_in_memory(question, 0, _CREAT, 1),
            "openat": lambda question: self._open_in_memory(question, 1, question.integer(2), 3),
            "link": lambda question: self._linked(question, 0, 1),
            "linkat": lambda question: self._linked(question, 1, 3),
            "unlink": lambda question: self._unlinked(question, 0),
            "unlinkat": lambda question: self._unlinked(question, 1),
            **{name: self._left_to_landlock(*places) for name, places in calls.OF_FOLDERS.items()},
        }

    def _left_to_landlock(self, *paths: int) -> Answer:
        """Let Landlock judge a call that changes folders: the arguments `paths` name what it changes."""

        def answer(question: Question) -> int:
            for path in paths:
                self._note_path(question, path, "make, move or remove %s", follow=False)
            raise GoOn

        return answer

    def _note_path(self, question: Question, path: int, act: str, *, follow: bool) -> None:
        """Say what Landlock will refuse. A call `…at` has the descriptor that a path begins at before the path."""
        begins = path > 0 and self._names[question.number].endswith(("at", "at2"))
        with suppress(OSError):  # the kernel will say that there is no such path
            base = question.integer(path - 1) if begins else HERE
            self._denials.note_file(question, base, question.text(path), act, follow=follow)

    # shared memory

    def _open_in_memory(self, question: Question, path: int, flags: int, mode: int) -> int:
        """Open a file of `/dev/shm` to be written; whatever else is opened so, Landlock judges."""
        empties = flags & os.O_TRUNC and flags & os.O_ACCMODE == os.O_RDONLY
        if empties and self._bounds.abi < landlock.TRUNCATES:
            raise OSError(_EPERM, os.strerror(_EPERM))
        there = self._bounds.in_memory(question.text(path))
        if not there:
            self._note_path(question, path, "open %s to be written", follow=True)
            raise GoOn
        handle = os.open(there, flags | os.O_CLOEXEC | os.O_NOFOLLOW, question.arguments[mode] & 0o700)
        try:
            return question.give(handle, flags)
        finally:
            os.close(handle)

    def _linked(self, question: Question, old: int, new: int) -> int:
        old_path, new_path = (self._bounds.in_memory(question.text(place)) for place in (old, new))
        if not old_path or not new_path:
            self._note_path(question, new, "make %s", follow=False)
            raise GoOn
        os.link(old_path, new_path, follow_symlinks=False)
        return 0

    def _unlinked(self, question: Question, path: int) -> int:
        there = self._bounds.in_memory(question.text(path))
        if not there:
            self._note_path(question, path, "remove %s", follow=False)
            raise GoOn
        os.unlink(there)
        return 0

    def _refused(self, question: Question) -> int:
        self._denials.note(question, f"make the system call {self._names.get(question.number, question.number)}")
        raise OSError(_EPERM, os.strerror(_EPERM))

    # processes

    def _judge_change(self, question: Question, place: int = 0) -> int:
        return self._judge_pid(question, question.integer(place))

    def _placed(self, process: int) -> Callable[[Question], int]:
        """Judge calls whose first argument says what the second is the number of: `process`, a group or a user."""
        return lambda question: self._judge_pid(question, question.integer(1) if question.integer(0) == process else 0)

    def _signalled(self, question: Question) -> int:
        asked = question.integer(0)
        if asked == 0:
            asked = os.getpgid(question.pid)
        return self._judge_pid(question, abs(asked) if asked != -1 else 0)  # a group is ours where its first process is

    def _signalled_by_descriptor(self, question: Question) -> int:
        fields = _proc_fields(f"/proc/{question.pid}/fdinfo/{question.integer(0)}")
        return self._judge_pid(question, int(fields.get("Pid", 0)))

    def _judge_pid(self, question: Question, pid: int) -> int:
        """Let a call change a process, or the one of a thread, where it descends from this one."""
        while pid > 1:
            pid = int(_proc_fields(f"/proc/{pid}/status")["PPid"])
            if pid == os.getpid():
                raise GoOn
        self._denials.note(question, "change a process of others")
        raise OSError(_EPERM, os.strerror(_EPERM))


def _proc_fields(path: str) -> Mapping[str, str]:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return dict(line.split(":\t", 1) for line in stream if ":\t" in line)


def _wake(*_: object) -> None:
    """Let the descriptor that signals wake do its work."""
