"""A replay and what it says of the code: run it, hold assertions against it, say it as a document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Final

from reenact.errors import UsageError
from reenact.find.sources import RunSource
from reenact.pipeline.commands import command
from reenact.pipeline.injection import program
from reenact.pipeline.replaying import Replayed, check_judgeable, printing, replay
from reenact.replay.policy import Policy
from reenact.report.replay import first_line, replayed
from reenact.stores.directory import DirectoryStore
from reenact.values.call import CallKind
from reenact.values.json import Json

if TYPE_CHECKING:  # what asserts is imported where something is asserted
    from reenact.values.assertion import Placed
    from reenact.values.judgement import FixJudgement

_EXIT_CODES: Final = {"same": 0, "diverged": 1, "failed": 125, "unjudged": 125}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be replayed, how, and what is asserted of it."""

    words: tuple[str, ...] = ()
    """The program and its arguments; empty for the recorded entry point."""
    app: str | None = None
    policy: Policy
    assertions: tuple[Placed, ...] = ()
    history_max: int | None = None
    """So many earlier units are delivered before a unit at most; None for what is so by default."""
    live_may_differ: bool = False
    """A replay that first differs in what came back live ends with exit code 0; it is still told as diverged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A replay that is over."""

    found: RunSource
    outcome: Replayed
    order: Order
    judgement: FixJudgement | None = None
    """None where nothing was asserted."""

    @property
    def word(self) -> str:
        """The judgement's word, or the result of the replay where nothing was asserted."""
        return self.judgement.word.value if self.judgement is not None else self.outcome.result.result

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0, 1 or 125."""
        if self.judgement is not None:
            return self.judgement.exit_code
        result = self.outcome.result
        if self.order.live_may_differ and result.divergences and result.divergences[0].get("live"):
            return 0
        return _EXIT_CODES[result.result]

    @property
    def line(self) -> str:
        """What it came to, in one line."""
        if self.judgement is None:
            return first_line(self.outcome.result)
        from reenact.report.fix import judged_line

        return judged_line(self.judgement)

    def document(self) -> dict[str, Json]:
        """Make the document of `reenact replay --json`."""
        from reenact.report.documents import replay_document

        fields = replay_document(
            self.outcome.result,
            recorded=self.found.run.id,
            commits=self._commits,
            uncommitted=self.outcome.uncommitted,
        )
        fields |= {"appended": self.outcome.appended, "after": self.order.policy.after.value}
        if self.judgement is not None:
            from reenact.report.fix import judgement_document

            fields["check"] = judgement_document(self.judgement, after=self.order.policy.after)
        return fields

    def lines(self) -> list[str]:
        """Say it for a person: the word first."""
        changes = self.outcome.uncommitted
        lines = replayed(self.outcome.result, recorded=self.found.run.id, commits=self._commits, uncommitted=changes)
        if self.outcome.appended:
            lines.append(f"  {self.outcome.appended} calls that went live were added to the recording")
        if self.judgement is None:
            return lines
        from reenact.report.fix import judged

        return [*judged(self.judgement, after=self.order.policy.after), *(f"  {line}" for line in lines)]

    @property
    def _commits(self) -> tuple[str | None, str | None]:
        return self.outcome.recorded_commit, self.outcome.current_commit


def replay_and_judge(
    recording: RunSource,
    order: Order,
    store: DirectoryStore,
    *,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> Judged:
    """Replay a recording in a process of its own and judge it.

    The program's streams are this process's own, but for those given. Raises `CannotJudge` where nothing in the
    recording could answer a call, or the program cannot be started.
    """
    if order.history_max is not None:
        recording = replace(recording, most=order.history_max)
    reasons = check_judgeable(recording, program(order.words))
    _check_named(recording, order.policy)
    argv, cwd = command(recording, program(order.words), order.app)
    outcome = replay(recording, argv, cwd, order.policy, store, start=printing(stdout, stderr))
    lacks: list[dict[str, Json]] = [{"call": each.call, "field": each.field, "lost": each.lost} for each in reasons]
    outcome = replace(outcome, result=replace(outcome.result, lacks=lacks))
    judgement = None
    if order.assertions:
        from reenact.assess.fix import judge_fix

        judgement = judge_fix(recording.run, outcome.run, outcome.result, order.assertions)
    return Judged(found=recording, outcome=outcome, order=order, judgement=judgement)


def _check_named(recording: RunSource, policy: Policy) -> None:
    """Raise `UsageError` where a tool is named to run that was not recorded: its name may hold a typo."""
    if not policy.live_tools:
        return
    nodes = [node for run in (recording.run, *recording.siblings) for node in run.nodes]
    tools = sorted({node.call.name for node in nodes if node.kind is CallKind.TOOL})
    if unknown := [name for name in policy.live_tools if name not in tools]:
        hint = f"its tools are {', '.join(tools)}" if tools else "it has none"
        raise UsageError(f"--tool-live: no call of a tool {unknown[0]!r} was recorded", hint=hint)
