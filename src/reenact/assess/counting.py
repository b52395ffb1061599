"""Whether calls were made, how often, and what is true of each."""

from __future__ import annotations

from reenact.assess.assertion_text import calls as spelled_calls
from reenact.assess.assertion_text import condition as spelled_condition
from reenact.assess.truth import Unknown, holds
from reenact.assess.view import Assessment, View, failing, holding, matches, none_of, several, undecided, with_values
from reenact.values.assertion import Called, Every


def called(assertion: Called, view: View) -> Assessment:
    """Decide how often calls were made."""
    calls, least, most = assertion.calls, assertion.least, assertion.most
    hits = matches(calls, view.calls)
    count, unsure = len(hits.sure), [each for each, _ in hits.unsure]
    reason = f"called {_times(count)}: {several(hits.sure, calls.where)}" if count else none_of(calls, hits)
    if most is not None and count > most:
        return failing(reason, hits.sure)
    closed = not view.open(calls)
    if closed and count + len(unsure) < least:
        return failing(reason, hits.sure or hits.others)
    if unsure and (count < least or (most is not None and count + len(unsure) > most)):
        each, why = hits.unsure[0]
        return undecided(f"{with_values(each, calls.where)}: {why}", unsure)
    if not closed and (count < least or most is not None):
        return undecided(f"{reason}; {view.open(calls)}", hits.sure)
    return holding(reason, hits.sure)


def every(assertion: Every, view: View) -> Assessment:
    """Decide what is true of each call."""
    calls, has = assertion.calls, assertion.has
    hits = matches(calls, view.calls)
    unknown: Assessment | None = None
    for each in hits.sure:
        for condition in has:
            match holds(condition, each):
                case False:
                    return failing(with_values(each, [condition]), [each])
                case Unknown(why=why):
                    unknown = unknown or undecided(f"{with_values(each, [condition])}: {why}", [each])
                case _:
                    pass
    for each, why in hits.unsure:
        if any(holds(condition, each) is not True for condition in has):
            unknown = unknown or undecided(f"{with_values(each, calls.where)}: {why}", [each])
    if unknown is not None:
        return unknown
    if why := view.open(calls):
        return undecided(f"true of {_times(len(hits.sure), 'call')} so far; {why}", hits.sure)
    if not hits.sure:
        return holding(none_of(calls, hits))
    wanted = " and ".join(map(spelled_condition, has))
    return holding(f"{wanted} in {_times(len(hits.sure), 'call')} of {spelled_calls(calls)}", hits.sure)


def _times(count: int, word: str = "time") -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
