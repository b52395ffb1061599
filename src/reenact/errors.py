"""Everything that can go wrong, as one shallow tree.

    ReenactError
    ├── UsageError             exit 2    the command line does not make sense
    ├── InputError             exit 3    a file, store or configuration cannot be read; names the place
    │   ├── AssertionInvalid             an assertion cannot be read; names line, column and what was expected
    │   └── NotYours                     a recording that is not the user's own names what would be started
    ├── CannotJudge            exit 125  nothing in the recording can be replayed
    ├── Diverged               exit 1    the replay left the recording (raised by `with reenact.replay(...)`)
    └── AssertionsFailed       exit 1    an assertion over a run does not hold; an AssertionError too

    ReplayStopped(BaseException)         thrown into the agent: not an Exception, so that neither the agent nor an
    ├── Miss                             SDK's retry loop takes it for a failure of the outside world
    └── SideEffectRefused

Recording forgives: nothing here is ever raised into an agent that is only recorded.
"""

from __future__ import annotations

from typing import ClassVar


class ReenactError(Exception):
    """A failure of ours that the user can do something about. `hint` says what."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(ReenactError):
    """The command line does not make sense."""

    exit_code = 2


class InputError(ReenactError):
    """A file, store or configuration cannot be read.

    `place` is where: a path, `path:line`, `path: byte n`. The message begins with it.
    """

    def __init__(self, place: str, problem: str, *, hint: str = "") -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place}: {problem}", hint=hint)


class UnknownShapeError(InputError):
    """A file is well formed, and of no kind that is known."""


class CannotJudge(ReenactError):
    """Nothing can be said: the recording has no evidence to replay, or its program cannot be started."""

    exit_code = 125


class ServersOwn(CannotJudge):
    """A run is of a server's own process: what it was asked for is in runs of their own."""


class Diverged(ReenactError):
    """A replay left its recording. `first` is the first divergence in one line."""

    exit_code = 1

    def __init__(self, first: str, *, hint: str = "") -> None:
        self.first = first
        super().__init__(first, hint=hint)


class AssertionInvalid(InputError):
    """An assertion cannot be read. `place` is `file:line:column`; the message shows the line and what was expected."""


class NotYours(InputError):
    """A recording that is not proven to be the user's own names what would be started; the message shows it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        place, _, problem = message.partition(": ")
        super().__init__(place, problem, hint=hint)


class AssertionsFailed(ReenactError, AssertionError):
    """Assertions over a run do not hold. `failed` has standing, assertion and evidence of each."""

    exit_code = 1

    def __init__(self, run: str, failed: list[tuple[str, str, str]]) -> None:
        self.run, self.failed = run, failed
        of = f" of run {run[:12]}" if run else ""
        many = "1 assertion does" if len(failed) == 1 else f"{len(failed)} assertions do"
        lines = [f"  {standing}: {assertion}\n    {because}" for standing, assertion, because in failed]
        super().__init__("\n".join([f"{many} not hold{of}", *lines]))


class ReplayStopped(BaseException):
    """Thrown into the agent's code where a replay cannot go on; already written to the ledger."""


class Miss(ReplayStopped):
    """The recording does not answer this call."""


class SideEffectRefused(ReplayStopped):
    """The agent reached for the network or a child process that no recorded call stands for."""
