from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

import reenact
from held import Held
from reenact.boundary import door
from reenact.boundary.wrapping import boundary
from reenact.demo.provider import StandIn
from reenact.errors import Miss
from reenact.values.call import CallKind, FunctionCall, Raised, Returned, Streamed, StreamEnd, Value

pytestmark = pytest.mark.sample(2)

ticket = itertools.count(1)
"""Never gives the same twice: what comes again was not asked again."""


class OutOfStock(Exception):
    """Carries more than its message."""

    def __init__(self, sku: str, left: int) -> None:
        self.sku, self.left = sku, left
        super().__init__(sku, left)


@dataclass
class Receipt:
    number: int
    lines: tuple[str, ...]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


# one tool of every colour


@reenact.tool
def plain(item: str, *more: str, wanted: int = 1, **options: Any) -> Receipt:
    """Order something."""
    return Receipt(next(ticket), (item, *more, str(wanted), *sorted(options)))


@reenact.tool(name="order_later", team="sales")
async def later(item: str) -> Receipt:
    await asyncio.sleep(0)
    return Receipt(next(ticket), (item,))


@reenact.tool
def generated(count: int) -> Iterator[int]:
    for _ in range(count):
        yield next(ticket)


@reenact.tool
async def generated_later(count: int) -> AsyncIterator[int]:
    for _ in range(count):
        await asyncio.sleep(0)
        yield next(ticket)


class Shop:
    """Methods of every kind."""

    def __init__(self, city: str) -> None:
        self.city = city

    @reenact.tool
    def sell(self, item: str) -> str:
        return f"{self.city} {item} {next(ticket)}"

    @reenact.tool
    async def sell_later(self, item: str) -> str:
        return f"{self.city} {item} {next(ticket)}"

    @classmethod
    @reenact.tool
    def inner(cls, item: str) -> str:
        return f"{cls.__name__} {item} {next(ticket)}"

    @reenact.tool
    @classmethod
    def outer(cls, item: str) -> str:
        return f"{cls.__name__} {item} {next(ticket)}"

    @reenact.tool
    @staticmethod
    def static(item: str) -> str:
        return f"{item} {next(ticket)}"


class Calling:
    def __call__(self, item: str) -> str:
        return f"{item} {next(ticket)}"


class CallingLater:
    async def __call__(self, item: str) -> str:
        return f"{item} {next(ticket)}"


async def gathered(generator: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in generator]


def awaited(value: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await value

    return asyncio.run(main())


called = reenact.tool(Calling())
called_later = reenact.tool(CallingLater())
bound = reenact.tool(functools.partial(plain.__wrapped__, "bound"))  # type: ignore[attr-defined]
bound_later = reenact.tool(functools.partial(later.__wrapped__, "bound"))  # type: ignore[attr-defined]

COLOURS: dict[str, Callable[[], Any]] = {
    "plain": lambda: plain("tea", "milk", wanted=2, hot=True),
    "coroutine": lambda: awaited(later("tea")),
    "generator": lambda: list(generated(3)),
    "async generator": lambda: asyncio.run(gathered(generated_later(3))),
    "method": lambda: Shop("Bonn").sell("tea"),
    "async method": lambda: awaited(Shop("Bonn").sell_later("tea")),
    "class method": lambda: (Shop.inner("tea"), Shop("Bonn").inner("tea")),
    "decorated class method": lambda: (Shop.outer("tea"), Shop("Bonn").outer("tea")),
    "static method": lambda: (Shop.static("tea"), Shop("Bonn").static("tea")),
    "instance": lambda: called("tea"),
    "async instance": lambda: awaited(called_later("tea")),
    "partial": lambda: bound("milk"),
    "async partial": lambda: awaited(bound_later()),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("work", COLOURS.values(), ids=COLOURS)
def test_every_colour_is_answered_from_its_recording(held: Held, work: Callable[[], Any]) -> None:
    did = held.record(work)
    assert did.error is None
    again = held.replay(did, work)
    assert again.error is None
    assert again.value == did.value
    assert type(again.value) is type(did.value)
    assert again.result is not None
    assert (again.result.result, again.result.live) == ("same", 0)
    assert sum(again.result.answered.values()) == len(did.calls)


@pytest.mark.parametrize("work", COLOURS.values(), ids=COLOURS)
def test_without_a_recording_every_colour_runs_as_ever(work: Callable[[], Any]) -> None:
    assert door.doorman() is None
    assert work() != work()


def test_a_call_is_written_down_with_its_names_defaults_and_result(held: Held) -> None:
    did = held.record(lambda: plain("tea", "milk", hot=True))
    node = did.call("plain")
    assert node.kind is CallKind.TOOL
    assert node.call.request == FunctionCall(
        function=f"{__name__}:plain",
        arguments={"item": "tea", "more": {"$tuple": ["milk"]}, "wanted": 1, "options": {"hot": True}},
    )
    assert node.span.attributes["tool.description"] == "Order something."
    match node.outcome:
        case Returned(payload=Value(json=dict(value))):
            assert value["$dataclass"] == f"{__name__}:Receipt"
        case other:
            pytest.fail(f"{other}")


def test_arguments_of_the_decorator_name_the_call_and_describe_it(held: Held) -> None:
    node = held.record(COLOURS["coroutine"]).call("order_later")
    assert node.call.attributes["metadata"] == {"team": "sales"}


def test_the_owner_of_a_method_is_no_argument(held: Held) -> None:
    node = held.record(COLOURS["method"]).call("sell")
    assert node.call.request == FunctionCall(function=f"{__name__}:Shop.sell", arguments={"item": "tea"})


@pytest.mark.parametrize("kind", ["tool", "retriever", "llm", "agent", "chain"])
def test_the_kinds(held: Held, kind: str) -> None:
    @getattr(reenact, kind)
    def work(number: int) -> int:
        return number + next(ticket)

    did = held.record(lambda: work(1))
    assert did.call("work").kind == kind.upper()
    again = held.replay(did, lambda: work(1)).value
    assert (again == did.value) == (kind in {"tool", "retriever", "llm"}), "structure runs again"


# what the host sees of a decorated function


def uncoloured(item: int) -> int:
    return item


async def coroutine(item: int) -> int:
    return item


def generator(item: int) -> Iterator[int]:
    yield item


async def async_generator(item: int) -> AsyncIterator[int]:
    yield item


ORIGINALS = [uncoloured, coroutine, generator, async_generator]


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda fn: fn.__name__)
def test_a_decorated_function_looks_like_the_original(original: Any) -> None:
    decorated = reenact.tool(original)
    for told in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert told(decorated) == told(original)
    assert inspect.isfunction(decorated)
    assert decorated.__wrapped__ is original
    assert inspect.signature(decorated) == inspect.signature(original)
    assert typing.get_type_hints(decorated) == typing.get_type_hints(original)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(decorated, name) == getattr(original, name)


def test_arguments_that_do_not_fit_are_the_function_s_to_refuse(held: Held) -> None:
    def misfit() -> Any:
        return generated_without_arguments("too", "many")

    @reenact.tool
    def generated_without_arguments() -> None: ...

    did = held.record(misfit)
    assert isinstance(did.error, TypeError)
    again = held.replay(did, misfit)
    assert isinstance(again.error, TypeError)
    assert str(again.error) == str(did.error)


def test_a_decorator_below_ours_may_hand_in_arguments_and_nothing_goes_live(held: Held) -> None:
    def with_database(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn("database", *args, **kwargs)

        return wrapper

    @reenact.tool
    @with_database
    def find(database: str, item: str) -> str:
        return f"{database} {item} {next(ticket)}"

    did = held.record(lambda: find("tea"))
    assert held.replay(did, lambda: find("tea")).value == did.value


# exceptions


def test_an_exception_comes_again_with_class_arguments_and_attributes(held: Held) -> None:
    @reenact.tool
    def reserve(sku: str) -> None:
        raise OutOfStock(sku, next(ticket))

    did = held.record(lambda: reserve("KETTLE"))
    again = held.replay(did, lambda: reserve("KETTLE"))
    assert isinstance(did.error, OutOfStock)
    assert type(again.error) is OutOfStock
    assert (again.error.args, vars(again.error)["left"]) == (did.error.args, did.error.left)
    assert str(again.error) == str(did.error)
    assert isinstance(did.call("reserve").outcome, Raised)


@pytest.mark.parametrize("colour", ["coroutine", "generator", "async generator"])
def test_an_exception_comes_again_in_every_colour(held: Held, colour: str) -> None:
    @reenact.tool
    async def one() -> None:
        raise OutOfStock("KETTLE", next(ticket))

    @reenact.tool
    def several() -> Iterator[int]:
        yield next(ticket)
        raise OutOfStock("KETTLE", next(ticket))

    @reenact.tool
    async def several_later() -> AsyncIterator[int]:
        yield next(ticket)
        raise OutOfStock("KETTLE", next(ticket))

    seen: list[int] = []

    async def read_later() -> None:
        async for item in several_later():
            seen.append(item)  # noqa: PERF401 - what was read before the failure counts

    def work() -> None:
        seen.clear()
        if colour == "coroutine":
            awaited(one())
        elif colour == "generator":
            seen.extend(several())
        else:
            asyncio.run(read_later())

    did = held.record(work)
    first = list(seen)
    again = held.replay(did, work)
    assert isinstance(did.error, OutOfStock)
    assert type(again.error) is OutOfStock
    assert again.error.args == did.error.args
    if colour == "async generator":
        assert seen == first


# generators, step by step


def conversation() -> Generator[str, str, str]:
    """Answers what is sent, survives one kind of error, and says goodbye."""
    heard = yield "hello"
    while heard != "bye":
        try:
            heard = yield f"you said {heard}"
        except ValueError as error:
            heard = f"error {error}"
    return "farewell"


async def conversation_later() -> Any:
    heard = yield "hello"
    while heard != "bye":
        try:
            heard = yield f"you said {heard}"
        except ValueError as error:
            heard = f"error {error}"


def talked(make: Callable[[], Any]) -> list[Any]:
    talk = make()
    said = [next(talk), talk.send("one"), talk.throw(ValueError("first")), talk.throw(ValueError("second"))]
    said.append(talk.send("two"))
    with pytest.raises(StopIteration) as stopped:
        talk.send("bye")
    return [*said, stopped.value.value]


async def talked_later(make: Callable[[], Any]) -> list[Any]:
    talk = make()
    said = [
        await anext(talk),
        await talk.asend("one"),
        await talk.athrow(ValueError("first")),
        await talk.athrow(ValueError("second")),
        await talk.asend("two"),
    ]
    with pytest.raises(StopAsyncIteration):
        await talk.asend("bye")
    return said


def test_send_and_throw_reach_the_body_whether_recorded_or_not(held: Held) -> None:
    decorated = reenact.tool(conversation)
    plainly = talked(conversation)
    assert talked(decorated) == plainly
    did = held.record(lambda: talked(decorated))
    assert did.value == plainly
    again = held.replay(did, lambda: talked(decorated))
    assert again.value == plainly


def test_send_and_throw_reach_the_body_of_an_async_generator(held: Held) -> None:
    decorated = reenact.tool(conversation_later)
    plainly = asyncio.run(talked_later(conversation_later))
    assert asyncio.run(talked_later(decorated)) == plainly
    did = held.record(lambda: asyncio.run(talked_later(decorated)))
    assert did.value == plainly
    assert held.replay(did, lambda: asyncio.run(talked_later(decorated))).value == plainly


def test_an_error_thrown_in_that_comes_through_is_the_very_same(held: Held) -> None:
    @contextlib.contextmanager
    @reenact.tool
    def session() -> Iterator[int]:
        yield next(ticket)

    def work() -> int:
        with pytest.raises(OutOfStock), session() as number:
            raise OutOfStock("KETTLE", 1)
        return number

    did = held.record(work)
    again = held.replay(did, work)
    assert (again.error, again.value) == (None, did.value)


@pytest.mark.parametrize("recorded", [False, True], ids=["alone", "recorded"])
def test_closing_runs_the_body_s_own_end(held: Held, *, recorded: bool) -> None:
    ends: list[str] = []

    @reenact.tool
    def numbers() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            ends.append("sync")

    @reenact.tool
    async def numbers_later() -> AsyncIterator[int]:
        try:
            for number in itertools.count():
                yield number
        finally:
            ends.append("async")

    async def read() -> None:
        generator = numbers_later()
        async for number in generator:
            if number == 2:
                break
        await generator.aclose()  # type: ignore[attr-defined]
        assert ends == ["sync", "async"]

    def work() -> None:
        generator = numbers()
        assert [next(generator), next(generator)] == [0, 1]
        generator.close()  # type: ignore[attr-defined]
        assert ends == ["sync"]
        asyncio.run(read())

    if not recorded:
        work()
        return
    did = held.record(work)
    assert did.error is None
    assert [node.outcome.end for node in did.calls if isinstance(node.outcome, Streamed)] == [StreamEnd.ABANDONED] * 2
    ends.clear()


def test_a_generator_that_was_left_is_left_again_and_reading_on_is_a_miss(held: Held) -> None:
    def some(count: int) -> list[int]:
        return list(itertools.islice(generated(10), count))

    did = held.record(lambda: some(3))
    assert held.replay(did, lambda: some(3)).value == did.value
    again = held.replay(did, lambda: some(4))
    assert isinstance(again.error, Miss)
    assert "reads on" in str(again.error)


def test_nothing_of_a_generator_s_steps_stays_behind_in_its_reader(held: Held) -> None:
    @reenact.chain
    def outer() -> Iterator[str]:
        yield plain("inside").lines[0]
        yield "done"

    def work() -> None:
        steps = outer()
        next(steps)
        plain("beside")
        list(steps)

    did = held.record(work)
    inside, beside = [node for node in did.calls if node.call.name == "plain"]
    assert (inside.parent, beside.parent) == (did.call("outer").id, did.runs[0].root.id if did.runs[0].root else "")


def test_a_function_recorded_as_another_colour_is_a_miss_and_does_not_run(held: Held) -> None:
    ran: list[int] = []

    def as_function() -> list[int]:
        return [next(ticket)]

    def as_generator() -> Iterator[int]:
        ran.append(1)
        yield 1

    async def as_async_generator() -> AsyncIterator[int]:
        ran.append(1)
        yield 1

    one = boundary(CallKind.TOOL, as_function, name="same")
    did = held.record(one)
    again = held.replay(did, lambda: list(boundary(CallKind.TOOL, as_generator, name="same")()))
    assert isinstance(again.error, Miss)
    later = boundary(CallKind.TOOL, as_async_generator, name="same")
    again = held.replay(did, lambda: asyncio.run(gathered(later())))
    assert isinstance(again.error, Miss)
    assert ran == []


# nesting


@reenact.tool
def outer_tool(item: str) -> str:
    return " and ".join(inner_tool(f"{item} {number}") for number in range(2))


@reenact.tool
def inner_tool(item: str) -> str:
    return f"{item}: {next(ticket)}"


def test_an_answered_tool_answers_for_what_it_called(held: Held) -> None:
    did = held.record(lambda: (outer_tool("tea"), inner_tool("tea 0")))
    outer = did.call("outer_tool")
    assert [node.parent == outer.id for node in did.calls if node.call.name == "inner_tool"] == [True, True, False]
    again = held.replay(did, lambda: (outer_tool("tea"), inner_tool("tea 0")))
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.answered) == ("same", {"tool": 2})


def test_a_tool_that_used_a_pool_inside_holds_up_nobody(held: Held) -> None:
    @reenact.tool
    def fan_out() -> list[str]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(inner_tool, ["a", "b", "c"]))

    def work() -> tuple[list[str], str]:
        return fan_out(), inner_tool("after")

    did = held.record(work)
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert again.result.released_out_of_order == []


def test_a_result_that_cannot_be_rebuilt_is_a_miss_that_says_so(held: Held) -> None:
    @reenact.tool
    def connection() -> object:
        return object()

    did = held.record(connection)
    assert did.error is None
    again = held.replay(did, connection)
    assert isinstance(again.error, Miss)
    assert "builtins.object cannot be rebuilt" in str(again.error)
    assert again.result is not None
    assert again.result.result == "failed"


def test_an_argument_without_a_spelling_does_not_disturb_the_call(held: Held) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    @reenact.tool
    def take(odd: object) -> str:
        return type(odd).__name__

    assert held.record(lambda: take(Odd())).value == "Odd"


# model calls made by hand


@reenact.llm
def by_hand(prompt: str) -> str:
    return f"{prompt}: {next(ticket)}"


@reenact.llm
def through_the_sdk(prompt: str, base_url: str) -> str:
    with OpenAI(base_url=base_url, api_key="stand-in") as client:
        reply = client.chat.completions.create(
            model="stand-in-everything", messages=[{"role": "user", "content": prompt}]
        )
    return f"{next(ticket)} {reply.choices[0].message.content}"


def test_a_model_function_without_evidence_inside_answers_itself(held: Held) -> None:
    did = held.record(lambda: by_hand("hello"))
    assert held.replay(did, lambda: by_hand("hello")).value == did.value


def test_a_model_function_around_a_provider_runs_again_on_the_inner_answer(held: Held) -> None:
    with StandIn(max_delay_ms=0) as provider:
        url = provider.base_url

        def work() -> tuple[str, str]:
            return through_the_sdk("Name an animal.", url), by_hand("after")

        did = held.record(work)
    again = held.replay(did, work)
    assert again.error is None
    (number, said), (number_again, said_again) = did.value[0].split(" ", 1), again.value[0].split(" ", 1)
    assert (said_again, again.value[1]) == (said, did.value[1])
    assert number_again != number, "the function ran again"
    assert again.result is not None
    assert (again.result.result, again.result.released_out_of_order) == ("same", [])


# cancellation


@reenact.tool
async def slow(name: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"{name} {next(ticket)}"


def test_a_lost_race_stays_lost(held: Held) -> None:
    async def race() -> tuple[str, list[bool]]:
        tasks = [asyncio.create_task(slow("tortoise", 5)), asyncio.create_task(slow("hare", 0.01))]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.wait(pending)
        return done.pop().result(), [task.cancelled() for task in tasks]

    did = held.record(lambda: asyncio.run(race()))
    again = held.replay(did, lambda: asyncio.run(race()))
    assert did.value[0].startswith("hare")
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"


def test_a_timeout_of_the_agent_s_comes_again(held: Held) -> None:
    async def impatient() -> str:
        try:
            async with asyncio.timeout(0.05):
                return await slow("tortoise", 5)
        except TimeoutError:
            return await slow("hare", 0)

    did = held.record(lambda: asyncio.run(impatient()))
    again = held.replay(did, lambda: asyncio.run(impatient()))
    assert (again.value, again.error) == (did.value, None)


def test_a_found_method_without_self_is_cut_only_once_it_was_offered(held: Held) -> None:
    offered: set[str] = set()

    class Desk:
        @staticmethod
        def look(item: str) -> str:
            return item.upper()

        @classmethod
        def find(cls, item: str) -> str:
            return item.title()

    for name in ("look", "find"):
        cut = boundary(CallKind.TOOL, vars(Desk)[name], name=name, offered=offered.__contains__)
        setattr(Desk, name, cut)

    def work() -> list[str]:
        before = [Desk.look("pen"), Desk.find("pen")]
        offered.update({"look", "find"})
        return [*before, Desk.look("cup"), Desk.find("cup")]

    did = held.record(work)
    requests = [node.call.request for node in did.calls]
    assert [request.arguments for request in requests if isinstance(request, FunctionCall)] == [{"item": "cup"}] * 2
