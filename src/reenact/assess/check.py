"""Assertions held against a run: each holds, fails, or cannot be decided from what is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from reenact.assess import answers, counting, grounding, order, prose, run_outputs, shapes, totals
from reenact.assess.assertion_text import spelled
from reenact.assess.known_names import KnownNames
from reenact.assess.language import parse
from reenact.assess.view import Assessment, View, undecided, view
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
    entries = placed(assertions)
    prices = [each.assertion for each in entries if isinstance(each.assertion, Price)]
    run_view = view(run, complete=complete, spanned=spanned, prices=prices)
    names = KnownNames((run, *beside)) if entries else None
    return tuple(_finding(each, run_view, judge, names) for each in entries if not isinstance(each.assertion, Price))


def placed(assertions: Iterable[Placed | Assertion | str]) -> list[Placed]:
    """Bring what can be given as an assertion into one form."""
    entries: list[Placed] = []
    for each in assertions:
        match each:
            case str():
                entries += parse(each)
            case Placed():
                entries.append(each)
            case _:
                entries.append(Placed(assertion=each))
    return entries


def _finding(each: Placed, run_view: View, judge: Judge | None, names: KnownNames | None) -> Finding:
    verdict = _assess(each.assertion, run_view, judge)
    if verdict.standing is not Standing.UNDECIDED and names is not None and (why := names.stranger(each.assertion)):
        holds = verdict.standing is Standing.HOLDS
        verdict = undecided(why) if holds else replace(verdict, because=f"{verdict.because}; {why}")
    return Finding(
        assertion=spelled(each.assertion),
        standing=verdict.standing,
        because=verdict.because,
        nodes=verdict.nodes,
        layer="prose" if isinstance(each.assertion, a.Prose) else "structure",
        place=each.place,
    )


def _assess(assertion: Assertion, run_view: View, judge: Judge | None) -> Assessment:  # noqa: C901, PLR0911, PLR0912 - one case a member of the union
    match assertion:
        case a.Called():
            return counting.called(assertion, run_view)
        case a.Every():
            return counting.every(assertion, run_view)
        case a.Before():
            return order.before(assertion, run_view)
        case a.OnlyAfter():
            return order.only_after(assertion, run_view)
        case a.NoneAfter():
            return order.none_after(assertion, run_view)
        case a.PathIs():
            return order.path(assertion, run_view)
        case a.ArgumentsAre():
            return shapes.arguments_are(assertion, run_view)
        case a.ArgumentsFit():
            return shapes.arguments_fit(assertion, run_view)
        case a.Says():
            return answers.says(assertion, run_view)
        case a.Wrote():
            return run_outputs.wrote(assertion, run_view)
        case a.ModelIs():
            return answers.models(assertion, run_view)
        case a.Ends():
            return answers.ends(assertion, run_view)
        case a.Total():
            return totals.total(assertion, run_view)
        case a.Grounded():
            return grounding.grounded(assertion, run_view)
        case a.Prose():
            return prose.decided(assertion, run_view, judge)
        case a.Price():
            return undecided("a price asserts nothing")
        case _:
            assert_never(assertion)
