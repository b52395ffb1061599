"""In what order calls were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reenact.assess.assertion_text import calls as spelled_calls
from reenact.assess.calls import CallView, answered_before
from reenact.assess.refusals import refused
from reenact.assess.truth import Truth, Unknown, all_of, any_of, is_meant
from reenact.assess.view import (
    Assessment,
    Matches,
    View,
    failing,
    holding,
    matches,
    none_of,
    several,
    undecided,
    with_values,
)
from reenact.values.assertion import Before, Calls, NoneAfter, OnlyAfter, PathIs, PathMode

_PATH = frozenset({"tool", "retriever"})


def before(assertion: Before, view: View) -> Assessment:
    """Decide whether one was answered before the other was first made."""
    firsts, thens = matches(assertion.first, view.calls), matches(assertion.then, view.calls)
    for hits, calls in ((firsts, assertion.first), (thens, assertion.then)):
        if not hits.sure and not hits.unsure:
            reason = none_of(calls, hits)
            return undecided(f"{reason}; {view.open(calls)}", hits.others) if view.open(calls) else failing(reason)
    if view.stopped and not thens.sure:
        return undecided(f"{none_of(assertion.then, thens)} for sure; {view.stopped}")
    maybe_first, maybe_then = [each for each, _ in firsts.unsure], [each for each, _ in thens.unsure]
    outcomes = {
        _precedes([*firsts.sure, *some_first], sorted([*thens.sure, *some_then], key=_number))
        for some_first in ([], maybe_first)
        for some_then in ([], maybe_then, *([each] for each in maybe_then))
    }
    if len(outcomes) > 1:
        each, why = (*firsts.unsure, *thens.unsure)[0]
        return undecided(f"{each.label}: {why}", [each])
    first, then = (firsts.sure or maybe_first)[0], (thens.sure or maybe_then)[0]
    if outcomes == {True}:
        ahead = next(each for each in (*firsts.sure, *maybe_first) if answered_before(each, then))
        return holding(f"{ahead.label} was answered before {then.label} was made", [ahead, then])
    if gap := view.gap(assertion.first):
        return undecided(f"{then.label} was made first, as far as is known; {gap}", [then, first])
    return failing(_not_before(first, then), [then, first])


def _number(each: CallView) -> tuple[int, int]:
    return each.node.number, each.place


def _precedes(firsts: Sequence[CallView], thens: Sequence[CallView]) -> bool:
    return bool(thens) and any(answered_before(each, thens[0]) for each in firsts)


def _not_before(first: CallView, then: CallView) -> str:
    if _number(first) < _number(then):
        return f"{first.label} was not answered yet when {then.label} was made"
    return f"{then.label} was made before {first.label}"


def only_after(assertion: OnlyAfter, view: View) -> Assessment:
    """Decide whether something was answered before each of some calls."""
    hits, after = matches(assertion.calls, view.calls), matches(assertion.after, view.calls)
    unknown: Assessment | None = None
    for each, doubt in [*((each, "") for each in hits.sure), *hits.unsure]:
        if any(answered_before(earlier, each) for earlier in after.sure):
            continue
        maybe = next((why for earlier, why in after.unsure if answered_before(earlier, each)), "")
        if why := doubt or maybe or view.gap(assertion.after):
            unknown = unknown or undecided(f"{each.label}: {why}", [each])
            continue
        late = f"; {after.sure[0].label} came later" if after.sure else f"; {none_of(assertion.after, after)}"
        call_text = with_values(each, assertion.calls.where)
        return failing(f"{call_text} was made without {spelled_calls(assertion.after)} before it{late}", [each])
    if unknown is not None:
        return unknown
    if why := view.open(assertion.calls):
        return undecided(f"so in {len(hits.sure)} calls so far; {why}", hits.sure)
    if not hits.sure:
        return holding(none_of(assertion.calls, hits))
    first = next(each for each in after.sure if answered_before(each, hits.sure[0]))
    return holding(f"{first.label} was answered before {several(hits.sure)}", [first, *hits.sure])


def none_after(assertion: NoneAfter, view: View) -> Assessment:
    """Decide whether a call was made after a refusal, or after another call."""
    ends = _refusals(view.calls) if assertion.after is None else matches(assertion.after, view.calls)
    hits = matches(assertion.calls, view.calls)
    word = "refusal" if assertion.after is None else spelled_calls(assertion.after)
    for late in hits.sure:
        if (end := _earlier(late, ends.sure)) is not None:
            return failing(f"{late.label} was made after {_ending(end, assertion)}", [end, late])
    for late, doubt in [*((each, "") for each in hits.sure), *hits.unsure]:
        pool = [(each, doubt) for each in ends.sure] + [*ends.unsure]
        maybe = next(((end, why) for end, why in pool if answered_before(end, late)), None)
        if maybe is not None:
            end, why = maybe
            return undecided(f"{late.label} was made after {end.label}: {why}", [end, late])
    if why := view.open(assertion.calls) or view.gap(assertion.after):
        return undecided(f"none so far; {why}")
    if not ends.sure:
        return holding(f"there was no {word}" if assertion.after is None else none_of(assertion.after, ends))
    return holding(f"nothing of it after {_ending(ends.sure[0], assertion)}", [ends.sure[0]])


def _refusals(calls: Iterable[CallView]) -> Matches:
    """Find the model calls that were refused, and those of which it is not known."""
    sure: list[CallView] = []
    unsure: list[tuple[CallView, str]] = []
    for each in calls:
        if each.word != "llm":
            continue
        match refused(each):
            case True:
                sure.append(each)
            case None:
                unsure.append((each, "what the model answered was not recorded"))
            case _:
                pass
    return Matches(sure=tuple(sure), unsure=tuple(unsure))


def _earlier(late: CallView, ends: Iterable[CallView]) -> CallView | None:
    return next((end for end in ends if answered_before(end, late)), None)


def _ending(end: CallView, assertion: NoneAfter) -> str:
    return f"the refusal in {end.label}" if assertion.after is None else with_values(end, assertion.after.where)


def path(assertion: PathIs, view: View) -> Assessment:
    """Decide which calls make the path of a run."""
    steps = assertion.steps
    kinds = _PATH | {step.kind for step in steps if step.kind}
    walked = [each for each in view.calls if each.word in kinds]
    truth = _walked(assertion, walked, stopped=bool(view.stopped))
    if doubtful := [each for each in walked if each.doubt]:
        less = [each for each in walked if not each.doubt]
        if truth is False and _walked(assertion, less, stopped=bool(view.stopped)) is not False:
            truth = Unknown(f"{doubtful[0].label}: {doubtful[0].doubt}")
    route = _path_text(walked)
    match truth:
        case True if not view.gap():
            return holding(route, walked)
        case False if not view.gap():
            return failing(f"{route}; {_missed(assertion, walked)}", walked)
        case Unknown(why=why):
            return undecided(f"{route}; {why}", walked)
        case _:
            return undecided(f"{route}; {view.gap()}", walked)


def _walked(assertion: PathIs, walked: Sequence[CallView], *, stopped: bool) -> Truth:
    steps, ended = assertion.steps, Unknown("the run was stopped before its end")
    match assertion.mode:
        case PathMode.IS:
            if len(walked) > len(steps) or (len(walked) < len(steps) and not stopped):
                return False
            truth = _pairwise(steps, walked)
            return ended if stopped and truth is not False else truth
        case PathMode.STARTS:
            if len(walked) < len(steps):
                return ended if stopped and _pairwise(steps, walked) is not False else False
            return _pairwise(steps, walked)
        case PathMode.ENDS:
            if stopped:
                return ended
            return len(walked) >= len(steps) and _pairwise(steps, walked[len(walked) - len(steps) :])
        case PathMode.CONTAINS:
            truth = _within(steps, walked)
            return ended if stopped and truth is False else truth


def _pairwise(steps: Sequence[Calls], walked: Sequence[CallView]) -> Truth:
    return all_of(is_meant(step, each) for step, each in zip(steps, walked, strict=False))


def _within(steps: Sequence[Calls], walked: Sequence[CallView]) -> Truth:
    """Find the steps in this order: surely, else perhaps, where only some of the calls may be meant."""
    for sure in (True, False):
        left = iter(walked)
        if all(
            any(is_meant(step, each) is True or (not sure and is_meant(step, each)) for each in left) for step in steps
        ):
            return True if sure else any_of(_doubts(steps, walked))
    return False


def _doubts(steps: Sequence[Calls], walked: Sequence[CallView]) -> Iterable[Truth]:
    return (truth for step in steps for each in walked if isinstance(truth := is_meant(step, each), Unknown))


def _missed(assertion: PathIs, walked: Sequence[CallView]) -> str:
    steps = assertion.steps
    if assertion.mode is PathMode.CONTAINS:
        left = iter(walked)
        missing_step = next(
            (step for step in steps if not any(is_meant(step, each) is True for each in left)), steps[-1]
        )
        return f"{spelled_calls(missing_step)} does not come where it is expected"
    at = max(0, len(walked) - len(steps)) if assertion.mode is PathMode.ENDS else 0
    for number, step in enumerate(steps):
        if at + number >= len(walked):
            return f"{spelled_calls(step)} was expected as number {number + 1}, and nothing came"
        each = walked[at + number]
        if is_meant(step, each) is not True:
            return f"{spelled_calls(step)} was expected as number {number + 1}, {with_values(each, step.where)} came"
    return f"{walked[len(steps)].label} came where nothing was expected"


def _path_text(walked: Sequence[CallView]) -> str:
    names = [each.name if each.word in _PATH else each.word for each in walked]
    more = f", … ({len(names)} calls)" if len(names) > 12 else ""
    return f"the path is {', '.join(names[:12])}{more}" if names else "the path is empty"
