"""Assertions held against a run: each holds, fails, or cannot be decided from what is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from reenact.assess import answers, counting, grounding, order, prose, run_outputs, shapes, totals
from reenact.assess.assertion_text import spelled
from reenact.assess.known_names import Known
from reenact.assess.language import parse
from reenact.assess.view import Told, View, undecided, view
from reenact.values import assertion as a
from reenact.values.assertion import Assertion, Finding, Judge, Placed, Price, Standing
from reenact.values.run import Run


def check(
    run: Run,
    assertions: Iterable[Placed | Assertion | str],
    *,
    complete: bool = True,
    spanned: Iterable[str] = (),
    judge: Judge | None = None,
    beside: Iterable[Run] = (),
) -> tuple[Finding, ...]:
    """Hold assertions against a run; findings come in their order, none for a price.

    `complete=False` says that the run was stopped before its end, as where a replay left its recording: what has not
    happened yet is then undecided. `spanned` names tools that have a span whenever they run, as the recording of a
    replay shows. `beside` are other runs of the same program: a name that neither they nor this one know is taken for
    a typo, and what would hold of it is undecided. `judge` is asked about prose; without one that is undecided, but
    for measures that need none. A text is read by `language.parse`, which raises `errors.AssertionInvalid`.
    """
    given = placed(assertions)
    prices = [each.assertion for each in given if isinstance(each.assertion, Price)]
    seen = view(run, complete=complete, spanned=spanned, prices=prices)
    known = Known((run, *beside)) if given else None
    return tuple(_finding(each, seen, judge, known) for each in given if not isinstance(each.assertion, Price))


def placed(assertions: Iterable[Placed | Assertion | str]) -> list[Placed]:
    """Bring what can be given as an assertion into one form."""
    found: list[Placed] = []
    for each in assertions:
        match each:
            case str():
                found += parse(each)
            case Placed():
                found.append(each)
            case _:
                found.append(Placed(assertion=each))
    return found


def _finding(each: Placed, seen: View, judge: Judge | None, known: Known | None) -> Finding:
    told = _told(each.assertion, seen, judge)
    if told.standing is not Standing.UNDECIDED and known is not None and (why := known.stranger(each.assertion)):
        holds = told.standing is Standing.HOLDS
        told = undecided(why) if holds else replace(told, because=f"{told.because}; {why}")
    return Finding(
        assertion=spelled(each.assertion),
        standing=told.standing,
        because=told.because,
        nodes=told.nodes,
        layer="prose" if isinstance(each.assertion, a.Prose) else "structure",
        place=each.place,
    )


def _told(assertion: Assertion, seen: View, judge: Judge | None) -> Told:  # noqa: C901, PLR0911, PLR0912 - one case a member of the union
    match assertion:
        case a.Called():
            return counting.called(assertion, seen)
        case a.Every():
            return counting.every(assertion, seen)
        case a.Before():
            return order.before(assertion, seen)
        case a.OnlyAfter():
            return order.only_after(assertion, seen)
        case a.NoneAfter():
            return order.none_after(assertion, seen)
        case a.PathIs():
            return order.path(assertion, seen)
        case a.ArgumentsAre():
            return shapes.arguments_are(assertion, seen)
        case a.ArgumentsFit():
            return shapes.arguments_fit(assertion, seen)
        case a.Says():
            return answers.says(assertion, seen)
        case a.Wrote():
            return run_outputs.wrote(assertion, seen)
        case a.ModelIs():
            return answers.models(assertion, seen)
        case a.Ends():
            return answers.ends(assertion, seen)
        case a.Total():
            return totals.total(assertion, seen)
        case a.Grounded():
            return grounding.grounded(assertion, seen)
        case a.Prose():
            return prose.decided(assertion, seen, judge)
        case a.Price():
            return undecided("a price asserts nothing")
        case _:
            assert_never(assertion)
