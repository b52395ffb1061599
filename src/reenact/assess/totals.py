"""Tokens, money and time, added up; never a number that nobody said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reenact.assess.calls import CallView, Lost
from reenact.assess.truth import glob
from reenact.assess.view import Assessment, View, failing, holding, matches, undecided
from reenact.values.assertion import Calls, Measure, Price, Total
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.message import Usage

_MODELS: Final = frozenset({"llm", "embedding"})
_COSTS: Final = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.cost.total_cost", "operation.cost")
"""OpenInference; OpenLIT and OpenRouter; LiteLLM; Logfire. In US dollars, all of them."""
_COST_PAIRS: Final = (
    ("llm.cost.prompt", "llm.cost.completion"),
    ("gen_ai.usage.input_cost", "gen_ai.usage.output_cost"),
    ("gen_ai.cost.input_cost", "gen_ai.cost.output_cost"),
)
_INPUT: Final = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT: Final = ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_TOTAL: Final = ("llm.token_count.total", "gen_ai.usage.total_tokens", "llm.usage.total_tokens")


def total(assertion: Total, view: View) -> Assessment:
    """Decide whether a measure keeps its bound."""
    if assertion.measure is Measure.DURATION and assertion.calls is None:
        return _run_duration(assertion, view)
    hits = matches(assertion.calls or Calls(), view.calls)
    measured = [each for each in hits.sure if _counts(assertion.measure, each)]
    read = _READERS[assertion.measure]
    figures: list[tuple[CallView, float]] = []
    lost = [(each, why) for each, why in hits.unsure if _counts(assertion.measure, each)]
    for each in measured:
        value = read(each, view)
        if isinstance(value, Lost):
            lost.append((each, value.why))
        else:
            figures.append((each, value))
    amount = sum(value for _, value in figures)
    most = sorted(figures, key=lambda pair: -pair[1])[:1]
    reason = f"{_amount(assertion.measure, amount)} in {len(figures)} call{'s'[: len(figures) != 1]}"
    reason += f", most in {most[0][0].label} ({_amount(assertion.measure, most[0][1])})" if len(figures) > 1 else ""
    witnesses = [each for each, value in figures if value] or [each for each, _ in figures]
    reached = amount > assertion.bound if assertion.upper else amount >= assertion.bound
    if reached:  # no measure goes down again
        return (failing if assertion.upper else holding)(reason, witnesses)
    if lost:
        each, why = lost[0]
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        return undecided(f"{reason}; {each.label}{more}: {why}", [each])
    if why := view.open(assertion.calls or Calls(kind="llm")):
        return undecided(f"{reason} so far; {why}", witnesses)
    return (holding if assertion.upper else failing)(reason, witnesses)


def _run_duration(assertion: Total, view: View) -> Assessment:
    took = (view.run.ended_ns - view.run.started_ns) / 1e9
    reason = f"the run took {_amount(Measure.DURATION, took)}"
    if (took > assertion.bound) if assertion.upper else (took >= assertion.bound):
        return (failing if assertion.upper else holding)(reason)
    if view.stopped:
        return undecided(f"{reason} so far; {view.stopped}")
    return (holding if assertion.upper else failing)(reason)


def _amount(measure: Measure, value: float) -> str:
    if measure is Measure.COST:
        return f"{value:.6f}".rstrip("0").rstrip(".") + " usd"
    return f"{value:.3f} s" if measure is Measure.DURATION else f"{int(value)} {measure.value}"


def _counts(measure: Measure, each: CallView) -> bool:
    """Tell whether a call has such a measure at all."""
    if each.wanted is not None:
        return False
    return measure is Measure.DURATION or each.word in _MODELS


def _tokens(each: CallView, view: View) -> float | Lost:
    del view
    usage, attributes = _usage(each), _attributes(each)
    if usage.total is not None:
        return usage.total
    if (token_count := _first(attributes, _TOTAL)) is not None:
        return token_count
    asked, got = _input(each), _output(each)
    return got if isinstance(got, Lost) else asked if isinstance(asked, Lost) else asked + got


def _input_tokens(each: CallView, view: View) -> float | Lost:
    del view
    return _input(each)


def _output_tokens(each: CallView, view: View) -> float | Lost:
    del view
    return _output(each)


def _usage(each: CallView) -> Usage:
    return each.answered.usage if each.answered is not None else Usage()


def _attributes(each: CallView) -> Mapping[str, Any]:
    """Give what a call's span says, with what its dialect read of a vendor's own names."""
    return {**each.node.call.attributes, **each.node.span.attributes}


def _input(each: CallView) -> float | Lost:
    usage = _usage(each)
    if usage.prompt is not None:
        return usage.prompt
    token_count = _first(_attributes(each), _INPUT)
    return _none(each) if token_count is None else token_count


def _output(each: CallView) -> float | Lost:
    usage = _usage(each)
    if usage.completion is not None:
        return usage.completion
    token_count = _first(_attributes(each), _OUTPUT)
    if token_count is None and each.word == "embedding":
        return 0
    return _none(each) if token_count is None else token_count


def _none(each: CallView) -> float | Lost:
    """A reply that is an error counts nothing; of any other the provider's count is missing."""
    if isinstance(each.status, int) and each.status >= 400:
        return 0
    return Lost("the provider's count of tokens was not recorded (a stream has one where it was asked for)")


def _cost(each: CallView, view: View) -> float | Lost:
    attributes = each.node.span.attributes
    recorded_cost = _told_cost(attributes)
    if recorded_cost or (recorded_cost == 0 and _tokens(each, view) == 0):
        return recorded_cost
    if isinstance(each.status, int) and each.status >= 400:
        return 0
    model = (each.answered.model if each.answered else None) or (each.asked.model if each.asked else None)
    if model is None:
        model_name = attributes.get("llm.model_name") or attributes.get("gen_ai.request.model")
        model = model_name if isinstance(model_name, str) else None
    price = _price(model, each, view.prices)
    if price is None and recorded_cost == 0:
        return Lost("the trace says it cost 0, which emitters write where they know no price, and no price was given")
    if price is None:
        hint = f"price of {model or 'MODEL'} is … in, … out usd per million tokens"
        return Lost(f"the trace says no cost of it and no price was given for {model or 'its model'} (`{hint}`)")
    asked, got = _input(each), _output(each)
    if isinstance(asked, Lost) or isinstance(got, Lost):
        return asked if isinstance(asked, Lost) else got
    usage = _usage(each)
    cached = 0 if price.cached is None else min(asked, usage.cache_read or 0)
    cache_write = min(asked - cached, usage.cache_write or 0)
    if cache_write and price.written is None:
        return Lost(
            f"{cache_write} tokens were written to the cache, and the price of {model} says not at what (`written`)"
        )
    fresh = asked - cached - cache_write
    spent = fresh * price.input + cached * (price.cached or 0) + cache_write * (price.written or 0) + got * price.output
    return spent / 1e6


def _price(model: str | None, each: CallView, prices: tuple[Price, ...]) -> Price | None:
    """Find the first price whose name fits the model that answered, or else the one that was asked."""
    asked = each.asked.model if each.asked else None
    for name in (model, asked):
        for price in prices:
            if name is not None and glob(price.model, name):
                return price
    return None


def _told_cost(attributes: Mapping[str, Any]) -> float | None:
    if (total_cost := _first(attributes, _COSTS)) is not None:
        return total_cost
    for pair in _COST_PAIRS:
        sides = [_figure(attributes.get(name)) for name in pair]
        if all(side is not None for side in sides):
            return sum(side for side in sides if side is not None)
    text = attributes.get("langfuse.observation.cost_details")
    details: Json = parsed_or_none(text) if isinstance(text, str) else None
    return _figure(as_object(details).get("total"))


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    return next((value for name in names if (value := _figure(attributes.get(name))) is not None), None)


def _figure(value: object) -> float | None:
    """Read a number; backends that keep every attribute as text are read as well."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and 0 <= value < float("inf") else None


def _duration(each: CallView, view: View) -> float | Lost:
    del view
    span = each.node.span
    return (span.end_ns - span.start_ns) / 1e9 if span.end_ns else Lost("its end was not recorded")


_READERS: Final[dict[Measure, Callable[[CallView, View], float | Lost]]] = {
    Measure.TOKENS: _tokens,
    Measure.INPUT_TOKENS: _input_tokens,
    Measure.OUTPUT_TOKENS: _output_tokens,
    Measure.COST: _cost,
    Measure.DURATION: _duration,
}
