"""Whether a test passes: the same run as recorded, or an assertion that now holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reenact.assess.check import check
from reenact.assess.fix import judge_fix
from reenact.assess.language import parse
from reenact.disk.private import read_regular
from reenact.testing.verdicts import About, divergence_lines, failure_text, finding_lines
from reenact.values.assertion import Assertion, Placed, Standing
from reenact.values.difference import one_line
from reenact.values.judgement import FixJudgement, ReplayResult, Word
from reenact.values.lenient import as_text
from reenact.values.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a test came to."""

    word: str
    """`same`, `diverged`, `failed`, `unjudged`; with assertions a `judgement.Word`, without a replay `fails`."""
    passes: bool
    message: str = ""
    """Why it fails."""
    first: str = ""
    """The first divergence in one line; empty where there is none."""


def placed(sources: Sequence[Any]) -> tuple[Placed, ...]:
    """Read assertions: texts in the language, paths of files of it, or what `reenact.assertions` makes."""
    assertions: list[Placed] = []
    for each in sources:
        if isinstance(each, Path):
            assertions += parse(read_regular(each).decode(), source=str(each))
        elif isinstance(each, str):
            assertions += parse(each)
        elif isinstance(each, Placed):
            assertions.append(each)
        else:
            assertion: Assertion = each
            assertions.append(Placed(assertion=assertion))
    return tuple(assertions)


def same(result: ReplayResult, about: About) -> Judged:
    """Judge a replay that is to be what was recorded."""
    first = _first(result)
    if result.result == "same":
        return Judged(word="same", passes=True)
    return Judged(
        word=result.result, passes=False, message=failure_text([*divergence_lines(result)], about), first=first
    )


def holds(
    recorded: Run, replayed: Run | None, result: ReplayResult, assertions: Sequence[Placed], about: About
) -> Judged:
    """Judge a replay by assertions: it passes where they hold now and nothing else changed first."""
    verdict = judge_fix(recorded, replayed, result, assertions)
    word = verdict.word.value
    if verdict.exit_code == 0:
        return Judged(word=word, passes=True, first=_first(result))
    return Judged(
        word=word, passes=False, message=failure_text(_why(verdict, result), about, anew=False), first=_first(result)
    )


def live(run: Run | None, assertions: Sequence[Placed], about: About) -> Judged:
    """Judge a run that was made for real."""
    if run is None:
        lines = ["unjudged: nothing was called, so there is nothing that assertions could be about"]
        return Judged(word="unjudged", passes=False, message=failure_text(lines, about, again=False))
    findings = check(run, assertions)
    if all(each.standing is Standing.HOLDS for each in findings if each.layer == "structure"):
        return Judged(word="holds", passes=True)
    lines = ["fails: the run that was made just now", *finding_lines(findings)]
    return Judged(word="fails", passes=False, message=failure_text(lines, about, again=False))


def after(judged: Judged, error: BaseException) -> Judged:
    """Say that a test which left its recording died of something else afterwards, as a consequence most likely."""
    problem = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return replace(judged, message=f"{judged.message}\n  then      {problem}")


def _why(judgement: FixJudgement, result: ReplayResult) -> list[str]:
    findings = list(finding_lines(judgement.replay))
    left = [f"  {line}" for line in divergence_lines(result)] if result.divergences else []
    why = judgement.why.replace(f" ({_first(result)})", "").replace(f" ({_first(result, 'replay')})", "")  # told below
    match judgement.word:
        case Word.REPRODUCED:
            return ["reproduced: the code still does what was recorded", *findings]
        case Word.BROKEN:
            return [f"broken: {why}", *findings, *left]
        case other:
            return [f"{other.value}: {why}", *left, *findings]


def _first(result: ReplayResult, now: str = "now") -> str:
    return one_line(result.divergences[0], b=now) if result.divergences else as_text(result.why)
