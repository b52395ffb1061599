"""Judging a fix: a recording, its replay on the changed code, and assertions; what the replay says of the change.

The rules, with their reasons, are in `docs/judging-a-fix.md`. In short: only what the code did with the recorded
answers to the same questions is evidence; a failure that stood at a call is decided where the replay went past the
place of that call; and what changed before that place is something else, unless it is what a model was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reenact.assess.certain_divergences import END, Parting
from reenact.assess.check import check, placed
from reenact.assess.evidence import came_to_its_end, evidence, is_complete
from reenact.values.assertion import (
    ArgumentsAre,
    ArgumentsFit,
    Assertion,
    Called,
    Every,
    Finding,
    ModelIs,
    NoneAfter,
    OnlyAfter,
    Placed,
    Price,
    Prose,
    Standing,
)
from reenact.values.call import CallKind
from reenact.values.difference import one_line
from reenact.values.judgement import Basis, FixJudgement, ReplayResult, Word
from reenact.values.run import Node, Run

_NOTHING: Final = "the program made none of the recorded calls"


def judge_fix(
    recorded: Run, replayed: Run | None, result: ReplayResult, assertions: Iterable[Placed | Assertion | str]
) -> FixJudgement:
    """Judge a replay of `recorded` by assertions over it.

    `replayed` is the replay's own run and `result` what the replay came to. Never raises for what a run holds; for a
    text that is no assertion `errors.AssertionInvalid`.
    """
    entries = placed(assertions)
    beside = () if replayed is None else (replayed,)
    before = check(recorded, entries, complete=is_complete(recorded), beside=beside)
    of_code = result.result == "unjudged" and bool(result.other_code)
    if replayed is None or (result.result == "unjudged" and not of_code):
        return _unjudged(result.why or f"{_NOTHING}{_exit(result)}", before)
    effective_result = replace(result, result="same", why="") if of_code else result
    judging = _Judging(recorded, replayed, effective_result, entries, before)
    if judging.met_nothing:
        return _unjudged(f"{_NOTHING}{judging.ending}", before)
    judged = judging.judged()
    if result.other_code and not judging.decided_before_other_code:
        return replace(_unjudged(result.of_other_code, before), first=judged.first)
    return judged


def _exit(result: ReplayResult) -> str:
    code = result.exit_code
    return "" if code is None or code == (result.recorded_exit or 0) else f"; it ended with exit code {code}"


def _unjudged(why: str, before: tuple[Finding, ...]) -> FixJudgement:
    open_ = tuple(replace(each, standing=Standing.UNDECIDED, because=why, nodes=()) for each in before)
    return FixJudgement(word=Word.UNJUDGED, why=f"{why}.", recorded=before, replay=open_, bases=(None,) * len(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """One assertion on both runs."""

    recorded: Finding
    replay: Finding
    basis: Basis | None
    place: int | None
    """Where in the recording its failure stood: the number of the first witness that the replay did not make."""
    fails_for_good: bool = False
    """Where it fails in the replay, no later call can mend that."""

    @property
    def failed(self) -> bool:
        return self.recorded.standing is Standing.FAILS

    @property
    def fails(self) -> bool:
        return self.replay.standing is Standing.FAILS

    @property
    def is_open(self) -> bool:
        return self.replay.standing is Standing.UNDECIDED


class _Judging:
    """One judgement under way."""

    def __init__(
        self, recorded: Run, replayed: Run, result: ReplayResult, entries: Sequence[Placed], before: tuple[Finding, ...]
    ) -> None:
        self._recorded_run, self._replay_run, self._result = recorded, replayed, result
        self._evidence = evidence(recorded, replayed, result)
        self._parting = Parting(recorded, replayed, self._evidence, result)
        self._first = self._parting.first
        self._prose_only = self._parting.prose_only
        self._has_ended = came_to_its_end(recorded, replayed, result)
        self._witnesses = frozenset(at for each in before if each.standing is Standing.FAILS for at in each.nodes)
        self._decided = self._all(entries, before)

    @property
    def decided_before_other_code(self) -> bool:
        """Tell whether an assertion fails by calls alone that came before anything was answered whose code differs.

        What the program did with other answers of such a call nobody knows; what it had done by then it has done.
        """
        until = min((self._parting.place_named(str(each.get("id"))) for each in self._result.other_code), default=END)
        places = {node.id: self._parting.place_of(node) for node in self._replay_run.nodes}
        return any(
            each.fails and each.fails_for_good and all(places.get(node, END) < until for node in each.replay.nodes)
            for each in self._decided
        )

    @property
    def met_nothing(self) -> bool:
        """The program made no recorded call, and not because it left the recording at the first one."""
        result = self._result
        if self._evidence.met or result.misses or result.refused or result.live:
            return False
        return not self._is_at_the_beginning()

    def _is_at_the_beginning(self) -> bool:
        """Tell a program that ended well where its first call was to be, which is what failed on the recording."""
        if self._evidence.ended_by or self._result.exit_code not in (None, 0, self._result.recorded_exit):
            return False
        first = self._parting.owed[0].number if self._parting.owed else None
        return any(each.failed and each.place == first for each in self._decided)

    @property
    def ending(self) -> str:
        """How the program ended, where that is worth saying."""
        if self._evidence.ended_by:
            return f"; it died of {self._evidence.ended_by}"
        return _exit(self._result) if self._evidence.complete else ""

    # the assertions, one by one

    def _all(self, entries: Sequence[Placed], before: tuple[Finding, ...]) -> list[_Decided]:
        counted = [each.assertion for each in entries if not isinstance(each.assertion, Price)]
        tools = [node.call.name for node in self._parting.owed if node.kind is CallKind.TOOL]
        beside = (self._recorded_run,)
        findings = check(self._evidence.run, entries, complete=self._evidence.complete, spanned=tools, beside=beside)
        whole = findings
        if self._result.beyond:
            whole = check(self._replay_run, entries, complete=self._has_ended, spanned=tools, beside=beside)
        return [self._one(*each) for each in zip(counted, before, findings, whole, strict=True)]

    def _one(self, assertion: Assertion, before: Finding, finding: Finding, whole: Finding) -> _Decided:
        place = self._place_of_failure(before)
        basis: Basis | None = Basis.LIVE if self._evidence.live else Basis.RECORDED
        if finding.standing is Standing.UNDECIDED and not isinstance(assertion, Prose):
            reason = self._avoidance(assertion, before, place)
            if reason:
                finding = replace(finding, standing=Standing.HOLDS, because=reason, nodes=())
            elif whole.standing is not Standing.UNDECIDED and self._only_words_before(before, whole, place):
                finding, basis = whole, Basis.NEAREST
            elif whole.standing is not Standing.UNDECIDED and self._parting.only_writes_before(END):
                finding, basis = whole, Basis.WRITES
            else:
                basis = None
        if not _is_of_calls(assertion) and self._parting.stale and basis in {Basis.RECORDED, Basis.WRITES}:
            finding, basis = replace(finding, standing=Standing.UNDECIDED, because=self._parting.stale, nodes=()), None
        for_good = _is_of_calls(assertion) and not (isinstance(assertion, Called) and assertion.least)
        return _Decided(recorded=before, replay=finding, basis=basis, place=place, fails_for_good=for_good)

    def _place_of_failure(self, before: Finding) -> int | None:
        if before.standing is not Standing.FAILS:
            return None
        return min((node.number for node in self._unmade(before)), default=None)

    def _unmade(self, before: Finding) -> list[Node]:
        """Give the calls by which an assertion failed on the recording and that the replay did not make."""
        return [node for node in self._parting.owed if node.id in before.nodes and node.id not in self._evidence.met]

    def _avoidance(self, assertion: Assertion, before: Finding, place: int | None) -> str:
        """Say how a failure that stood at calls was left behind; empty where it was not, or nobody can know.

        Where everything before was the same, the program would have made the call there, as it did when recorded.
        """
        if place is None or not _is_of_calls(assertion) or self._parting.before(place, self._witnesses):
            return ""
        unmade = self._unmade(before)
        if not all(self._parting.left_behind(node) for node in unmade):
            return ""
        how = "went on without it"
        if self._first is not None and self._parting.made_otherwise(unmade[0]):
            how = f"made it otherwise: {one_line(self._first)}"
        return f"everything before {unmade[0].label} was the same, and the replay {how}"

    def _only_words_before(self, before: Finding, whole: Finding, place: int | None) -> bool:
        """Tell whether nothing but wording differs up to the place of a failure, of what decides, or to the end."""
        if before.standing is Standing.FAILS and place is not None:
            return self._parting.only_words_before(place)
        decisive = [self._parting.place_of(node) for node in self._replay_run.nodes if node.id in whole.nodes]
        return self._parting.only_words_before(max(decisive, default=END))

    # the word

    def judged(self) -> FixJudgement:
        """Find the word."""
        counted = [each for each in self._decided if each.recorded.layer != "prose"]
        newly = [each for each in counted if each.fails and not each.failed]
        failed = [each for each in counted if each.failed]
        if newly:
            one = newly[0]
            verb = "held on" if one.recorded.standing is Standing.HOLDS else "was not decided by"
            why = f"{_quoted(one)} {verb} the recording and fails now: {one.replay.because}"
            return self._ruling(Word.BROKEN, why, newly)
        if still := [each for each in failed if each.fails]:
            more = f" ({len(still)} of {len(failed)} that failed)" if len(failed) > len(still) else ""
            note = f"{self._but()}" if self._result.result != "same" else ""
            return self._ruling(Word.REPRODUCED, f"{_quoted(still[0])} fails as recorded{more}: "
                              f"{still[0].replay.because}{note}", still)  # fmt: skip
        return self._of_failed(failed) if failed else self._of_a_good_run(counted)

    def _of_failed(self, failed: list[_Decided]) -> FixJudgement:
        open_ = [each for each in failed if each.is_open]
        if open_ and self._evidence.ended_by:
            why = f"the program died of {self._evidence.ended_by}, which the recorded one did not; {_undecided(open_)}"
            return self._ruling(Word.BROKEN, why, failed)
        for each in failed:
            until = each.place if each.place is not None else (END if each.is_open else 0)
            if (other := self._parting.something_else(until, self._witnesses)) is not None:
                why = f"something else changed first: {one_line(other)}"
                return self._ruling(Word.BROKEN, f"{why}; {_undecided(open_)}" if open_ else why, failed)
        if open_:
            why = f"{self._end_of_evidence()} before {_quoted(open_[0])} could be decided"
            if self._parting.stale and open_[0].replay.because == self._parting.stale:
                why = f"{_quoted(open_[0])} cannot be decided: {self._parting.stale}"
            return self._ruling(Word.UNJUDGED, why, failed)
        text = "; ".join(f"{_quoted(each)} failed on the recording and holds: {each.replay.because}" for each in failed)
        lost = [each for each in self._decided if each.recorded.standing is Standing.HOLDS and each.is_open]
        more = f"; {len(lost)} that held on the recording could not be decided" if lost else ""
        return self._ruling(Word.FIXED, f"{text}{self.ending}{more}", failed)

    def _of_a_good_run(self, counted: list[_Decided]) -> FixJudgement:
        if self._result.result == "same":
            return self._ruling(Word.SAME, "nothing failed on the recording, and this is the same run", [])
        if self._has_ended and self._prose_only and self._result.divergences and not self._parting.is_of_live:
            basis = [each for each in counted if each.basis is Basis.NEAREST] or self._as_nearest()
            return self._ruling(Word.SAME, f"{self._but()[2:]}; nothing failed on the recording", basis)
        if self._evidence.ended_by:
            death = f"the program died of {self._evidence.ended_by}, which the recorded one did not"
            return self._ruling(Word.BROKEN, death, [])
        if self._is_whole and all(each.replay.standing is Standing.HOLDS for each in counted):
            return self._ruling(Word.HOLDS, f"nothing failed on the recording, and every assertion holds{self._but()}",
                              counted)  # fmt: skip
        if (other := self._parting.something_else(END + 1, ())) is not None:
            return self._ruling(Word.BROKEN, f"something changed: {one_line(other)}; {_undecided(counted)}", counted)
        return self._ruling(Word.UNJUDGED, f"{self._end_of_evidence()} before {_quoted(counted[0])} could be decided"
                          if counted else self._end_of_evidence(), counted)  # fmt: skip

    @property
    def _is_whole(self) -> bool:
        """The program came to its end, and nothing else differs on the way but what a database was told to write."""
        return self._evidence.complete or (self._has_ended and self._parting.only_writes_before(END))

    def _as_nearest(self) -> list[_Decided]:
        return [replace(each, basis=Basis.NEAREST) for each in self._decided[:1]] if self._result.beyond else []

    def _but(self) -> str:
        if self._same_structure:
            return f"; same structure, prose differs: {one_line(self._first)}" if self._first else ""
        return f"; the run differs first at {one_line(self._first)}" if self._first else ""

    def _end_of_evidence(self) -> str:
        if self._result.result == "failed":
            return f"the recording cannot answer what it holds ({self._result.why})"
        if self._first is None:
            return "the recording ends"
        which = " in its wording" if self._prose_only else ""
        return f"the replay left the recording{which} ({one_line(self._first)}){self._stop()}"

    def _stop(self) -> str:
        """Say where a replay stopped that had gone on past its first divergence."""
        misses = self._result.misses
        if not any(each.get("onward") for each in misses):
            return ""
        last = next((each for each in misses if each.get("onward") is None), None)
        divergences = [each for each in self._result.divergences if last and each.get("call") == last.get("call")]
        return f", went on, and stopped at {one_line(divergences[-1])}" if divergences else ""

    @property
    def _same_structure(self) -> bool:
        return self._result.result == "same" or (self._has_ended and self._prose_only)

    def _ruling(self, word: Word, why: str, by: Sequence[_Decided]) -> FixJudgement:
        bases = {each.basis for each in by}
        basis = next((each for each in (Basis.NEAREST, Basis.WRITES, Basis.LIVE) if each in bases), Basis.RECORDED)
        if basis is Basis.NEAREST and word in {Word.FIXED, Word.REPRODUCED, Word.BROKEN}:
            why += self._but() if "prose differs" not in why and self._same_structure else ""
        return FixJudgement(
            word=word,
            why=f"{why}.",
            recorded=tuple(each.recorded for each in self._decided),
            replay=tuple(each.replay for each in self._decided),
            first=self._first,
            same_structure=self._same_structure,
            basis=basis,
            bases=tuple(each.basis for each in self._decided),
        )


def _is_of_calls(assertion: Assertion) -> bool:
    """Tell an assertion that fails by a call being made, so that it cannot where that call is not made."""
    match assertion:
        case Called(most=most):
            return most is not None
        case OnlyAfter() | NoneAfter() | ArgumentsAre() | ArgumentsFit() | Every():
            return True
        case ModelIs(answered=answered):
            return not answered
        case _:
            return False


def _quoted(decided: _Decided) -> str:
    return f"`{decided.recorded.assertion}`"


def _undecided(open_: Sequence[_Decided]) -> str:
    return f"{_quoted(open_[0])} could not be decided" if open_ else "no assertion was decided"
