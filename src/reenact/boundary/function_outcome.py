"""Handing the outcome of a function's call to the agent: what it did, or what was recorded of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from reenact.boundary.cancelled import until_cancelled, until_interrupted, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.boundary.function import Watch
from reenact.contracts.doorman import Passage
from reenact.values import alarms, typed
from reenact.values.call import Outcome, Raised, Returned, Rewritten, Value
from reenact.values.classes import without_reprs
from reenact.values.json import Json


def fail(passage: Passage, error: BaseException, watch: Watch) -> None:
    """Tell that the body raised; a tool that ran again in a replay fails when it failed."""
    try:
        if isinstance(error, Exception):
            passage.wait(passage.end_order)
    finally:
        _raised(passage, error, watch)


async def fail_async(passage: Passage, error: BaseException, watch: Watch) -> None:
    """Tell the same without blocking the event loop."""
    try:
        if isinstance(error, Exception):
            await passage.wait_async(passage.end_order)
    finally:
        _raised(passage, error, watch)


def _raised(passage: Passage, error: BaseException, watch: Watch) -> None:
    try:
        with watch.end():
            passage.raised(error)
    except Exception:
        forgive("handing.raised")


_TURNS: Final[dict[int, tuple[asyncio.AbstractEventLoop, object]]] = {}
"""Loops, each with what stands for the turn that it is in, by identity."""


def turn() -> object:
    """Give what stands for the turn that the running loop is in, another object for each; None where none runs."""
    try:
        loop = asyncio.get_running_loop()
        known = _TURNS.get(id(loop))
        if known is None or known[0] is not loop:
            loop.call_soon(_TURNS.pop, id(loop), None)
            known = _TURNS[id(loop)] = loop, object()
    except Exception:  # no loop of asyncio's
        alarms.pass_on()
        return None
    return known[1]


async def until_released(passage: Passage, answer: Outcome | Rewritten) -> None:
    """Wait until the outcome of a call may be handed over; what the agent gave up is given up again."""
    try:
        await passage.wait_async(passage.end_order)
        if isinstance(answer, Raised) and was_cancelled(answer):
            await until_cancelled(passage)
    except asyncio.CancelledError as error:
        passage.raised(error)
        raise


def tell(passage: Passage, result: Any, watch: Watch) -> Any:
    """Tell what the body returned, and give it on."""
    try:
        with watch.end(result):
            passage.closed(Returned(payload=Value(json=typed.encode(result))))
    except Exception:
        forgive("handing.tell")
    return result


def give(passage: Passage, fn: Callable[..., Any], stateful: Any = None) -> Any:
    """Make the recorded outcome into what the agent gets: the object `stateful` where that says the same."""
    match passage.answer:
        case Returned(payload=Value(json=json, text=text)) as answer:
            if stateful is not None and _is_recorded(stateful, json):
                passage.closed(answer)
                return stateful
            value = hydrate(passage, json)
            if text is not None:
                from reenact.boundary.return_types import by_annotation

                value = by_annotation(fn, value, text)
            passage.closed(answer)
            return value
        case Raised(exception=exception):
            error = typed.decode_exception(exception)
            until_interrupted(passage, error)
            passage.raised(error)
            raise error
        case other:
            raise passage.miss(f"the recording holds no result for this call ({type(other).__name__.lower()})")


def _is_recorded(value: Any, json: Json) -> bool:
    """Tell whether an object of the state is what was recorded; of what no JSON can hold, its class alone is."""
    spelling = typed.encode(value)
    return spelling == json or without_reprs(spelling) == without_reprs(json)


def hydrate(passage: Passage, json: Json) -> Any:
    """Make a value of its recorded JSON. Raises a miss where that cannot be done."""
    try:
        return typed.decode(json)
    except typed.Unhydratable as error:
        raise passage.miss(f"its recorded result cannot be rebuilt: {error.message}") from error
