"""Whether calls were made, how often, and what is true of each."""

from __future__ import annotations

from reenact.assess.assertion_text import calls as spelled_calls
from reenact.assess.assertion_text import condition as spelled_condition
from reenact.assess.truth import Unknown, holds
from reenact.assess.view import Told, View, failing, holding, matches, none_of, several, undecided, with_values
from reenact.values.assertion import Called, Every


def called(assertion: Called, seen: View) -> Told:
    """Decide how often calls were made."""
    calls, least, most = assertion.calls, assertion.least, assertion.most
    found = matches(calls, seen.calls)
    count, unsure = len(found.sure), [each for each, _ in found.unsure]
    said = f"called {_times(count)}: {several(found.sure, calls.where)}" if count else none_of(calls, found)
    if most is not None and count > most:
        return failing(said, found.sure)
    closed = not seen.open(calls)
    if closed and count + len(unsure) < least:
        return failing(said, found.sure or found.others)
    if unsure and (count < least or (most is not None and count + len(unsure) > most)):
        each, why = found.unsure[0]
        return undecided(f"{with_values(each, calls.where)}: {why}", unsure)
    if not closed and (count < least or most is not None):
        return undecided(f"{said}; {seen.open(calls)}", found.sure)
    return holding(said, found.sure)


def every(assertion: Every, seen: View) -> Told:
    """Decide what is true of each call."""
    calls, has = assertion.calls, assertion.has
    found = matches(calls, seen.calls)
    unknown: Told | None = None
    for each in found.sure:
        for condition in has:
            match holds(condition, each):
                case False:
                    return failing(with_values(each, [condition]), [each])
                case Unknown(why=why):
                    unknown = unknown or undecided(f"{with_values(each, [condition])}: {why}", [each])
                case _:
                    pass
    for each, why in found.unsure:
        if any(holds(condition, each) is not True for condition in has):
            unknown = unknown or undecided(f"{with_values(each, calls.where)}: {why}", [each])
    if unknown is not None:
        return unknown
    if why := seen.open(calls):
        return undecided(f"true of {_times(len(found.sure), 'call')} so far; {why}", found.sure)
    if not found.sure:
        return holding(none_of(calls, found))
    wanted = " and ".join(map(spelled_condition, has))
    return holding(f"{wanted} in {_times(len(found.sure), 'call')} of {spelled_calls(calls)}", found.sure)


def _times(count: int, word: str = "time") -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
