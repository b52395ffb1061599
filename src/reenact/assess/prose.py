"""Layer two: what a judge thinks of the wording, or a measure of the text says. Never structure."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Final

from reenact.assess.answers import final_answer
from reenact.assess.calls import Lost
from reenact.assess.truth import TOKEN
from reenact.assess.view import Assessment, View, failing, holding, undecided
from reenact.values.assertion import Asks, Judge, Opinion, Prose
from reenact.values.difference import Absent, short_json

ENOUGH: Final = 0.8
"""The score from which on a measure holds, where the assertion names none."""
_HALF: Final = 0.5
_WORD: Final = re.compile(r"\w+")
_SPACES: Final = re.compile(r"\s+")


def similarity(expected: str, answer: str) -> float:
    """Measure how much two texts share: twice the characters they have in common, in order, by their lengths.

    Case and white space do not count. Ratcliff and Obershelp's measure, as `difflib` of the standard library has it.
    """
    return SequenceMatcher(None, _folded(expected), _folded(answer), autojunk=False).ratio()


def overlap(expected: str, answer: str) -> float:
    """Measure which share of the expected text's different words the answer has."""
    wanted = set(_WORD.findall(expected.casefold()))
    return len(wanted & set(_WORD.findall(answer.casefold()))) / len(wanted) if wanted else 1.0


MEASURES: Final[dict[str, Callable[[str, str], float]]] = {"similarity": similarity, "overlap": overlap}
"""Deterministic measures of text; they ask nobody."""


def _folded(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()


def needs_judge(assertion: Prose) -> bool:
    """Tell whether somebody must be asked."""
    return measure_of(assertion) is None


def measure_of(assertion: Prose) -> str | None:
    """Name the measure that decides, or None where a judge does."""
    if assertion.judge in MEASURES:
        return assertion.judge
    return "similarity" if assertion.asks is Asks.LIKE and not assertion.judge else None


def decided(assertion: Prose, view: View, judge: Judge | None) -> Assessment:
    """Say what a judge or a measure says of the answer."""
    answer = final_answer(view)
    if view.stopped:
        return undecided(view.stopped, answer.calls)
    if isinstance(answer.value, Lost):
        return undecided(f"{answer.of}: {answer.value.why}", answer.calls)
    if isinstance(answer.value, Absent):
        return failing(f"{answer.of}: {answer.why}, so there is no wording to judge", answer.calls)
    text = str(answer.value)
    name = measure_of(assertion)
    if name is not None:
        score = round(MEASURES[name](assertion.text, text), 4)
        opinion = Opinion(score=score, by=name, reason=f"the answer is {short_json(text)}")
    elif judge is None:
        return undecided("no judge was given (`--judge`)", answer.calls)
    else:
        opinion = judge(assertion, text)
    redacted = f"; redaction replaced a part of the answer by {token[0]}" if (token := TOKEN.search(text)) else ""
    because = f"{_opinion_text(opinion)}{redacted}"
    holds = _holds(assertion, opinion, measured=name is not None)
    if holds is None:
        return undecided(because, answer.calls)
    return (holding if holds else failing)(because, answer.calls)


def _holds(assertion: Prose, opinion: Opinion, *, measured: bool) -> bool | None:
    if assertion.least is not None:
        return None if opinion.score is None else opinion.score >= assertion.least
    if opinion.holds is not None or opinion.score is None:
        return opinion.holds
    return opinion.score >= (ENOUGH if measured else _HALF)


def _opinion_text(opinion: Opinion) -> str:
    verdict = {True: "yes", False: "no", None: ""}[opinion.holds]
    score = "" if opinion.score is None else f"{opinion.score:g}"
    words = ", ".join(each for each in (verdict, score) if each) or "nothing"
    return f"{opinion.by or 'the judge'} says {words}{f': {opinion.reason}' if opinion.reason else ''}"
