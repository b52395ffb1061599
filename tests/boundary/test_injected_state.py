"""What an application put into its framework's context is state: it is seen, written down and put back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from reenact.boundary import offers
from reenact.boundary.aftermath import Unspelled, put_back, spelled
from reenact.boundary.function import Function
from reenact.boundary.wrapping import _plain
from reenact.values.call import CallKind
from reenact.values.discovered_tools import AFTER, CHANGED

NOTHING = {"tools": [{"type": "function", "name": "tool", "parameters": {"type": "object"}}]}


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    offers.listen(lambda _: None)
    offers.hear(json.dumps({"model": "m", "messages": [], **NOTHING}).encode())
    yield
    offers.listen(None)


class Desk:
    """What an application hands in: a method of it writes down what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.numbers: dict[str, int] = {}

    def note(self, text: str) -> None:
        self.done.append(text)
        self.numbers[text] = len(self.done)


class Data:
    """As an agent's state of strands."""

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self._data[key] = value

    def delete(self, key: str) -> None:
        del self._data[key]


class Items(Data):
    """As a store of langgraph's in memory."""

    def put(self, space: tuple[str, ...], key: str, value: Any) -> None:
        self._data.setdefault(space, {})[key] = SimpleNamespace(value=value)


class Workflow:
    """As a store of a workflow of llama-index, which keeps objects of the workflow's own beside the application's."""

    state_type = dict[str, Any]

    def __init__(self, held: dict[str, Any]) -> None:
        self._memory_storage = SimpleNamespace(_record=SimpleNamespace(data=held))

    @property
    def data(self) -> dict[str, Any]:
        return self._memory_storage._record.data


def of(package: str, **held: Any) -> Any:
    """Make a context as a framework's."""
    made = type("Context", (), {"__module__": f"{package}.contexts"})()
    vars(made).update(held)
    return made


def tool_of_deps(context: Any) -> None:
    context.deps.note("Delft")


def tool_of_strands(context: Any) -> None:
    context.agent.state.set("seen", ["Delft"])
    context.agent.state.delete("old")


def tool_of_adk(context: Any) -> None:
    context._state._value["seen"] = context._state._delta["seen"] = "Delft"
    context._event_actions.escalate = True


def tool_of_a_store(context: Any) -> None:
    context.store.put(("a", "b"), "seen", {"city": "Delft"})


def tool_of_a_workflow(context: Any) -> None:
    context.store.data["seen"] = ["Delft"]
    del context.store.data["old"]


def tool_of_configuration(context: Any) -> None:
    context.config["configurable"]["desk"].note("Delft")
    context.config["callbacks"].append(1)


def configuration() -> Any:
    return of("langchain", config={"callbacks": [], "configurable": {"desk": Desk(), "__own": [object()]}})


def deps() -> Any:
    return of("pydantic_ai", deps=Desk())


def strands() -> Any:
    state = Data()
    state.set("old", 1)
    return of("strands", agent=SimpleNamespace(state=state))


def adk() -> Any:
    return of("google", _state=SimpleNamespace(_value={}, _delta={}), _event_actions=SimpleNamespace(escalate=None))


def store() -> Any:
    return of("langchain", store=Items())


def workflow() -> Any:
    return of("workflows", store=Workflow({"old": 1, "memory": pytest.MonkeyPatch()}))


CASES: dict[str, tuple[Callable[[Any], None], Callable[[], Any], Callable[[Any], Any]]] = {
    "dependencies": (tool_of_deps, deps, lambda it: it.deps.done),
    "strands": (tool_of_strands, strands, lambda it: it.agent.state._data),
    "adk": (tool_of_adk, adk, lambda it: (it._state._value, it._state._delta, it._event_actions.escalate)),
    "configuration": (tool_of_configuration, configuration, lambda it: it.config["configurable"]["desk"].done),
    "workflow": (tool_of_a_workflow, workflow, lambda it: {**it.store.data, "memory": None}),
    "store": (tool_of_a_store, store, lambda it: it.store._data[("a", "b")]["seen"].value),
}


def looked(tool: Callable[[Any], None], context: Any) -> Any:
    known = Function(CallKind.TOOL, tool, "tool", {}, lambda _: True)
    arguments = known.bound((context,), {})
    return known.state(arguments, known.holding(arguments))


@pytest.mark.parametrize("framework", CASES)
def test_what_a_tool_left_in_a_context_is_put_back(framework: str) -> None:
    tool, made, told = CASES[framework]
    context, other = made(), made()
    before = looked(tool, context)
    tool(context)
    change = json.loads(json.dumps(spelled(before, looked(tool, context))))
    now = looked(tool, other)
    put_back(change, {place: now.roots[at] for place, at in now.places().items()})
    assert told(other) == told(context)


def tool_of_a_library(context: Any) -> None:
    context.basket.update({"seen": object()})


def test_what_is_behind_an_object_that_nobody_knows_is_seen_and_cannot_be_put_back() -> None:
    context = of("strands", basket=Data())
    before = looked(tool_of_a_library, context)
    context.basket.set("seen", object())
    after = looked(tool_of_a_library, context)
    assert before.changed(after)
    with pytest.raises(Unspelled):
        spelled(before, after)


def tool_that_gives(context: Any) -> None:
    context.write_event_to_stream("Delft")


def test_what_a_tool_gives_its_framework_meanwhile_is_named() -> None:
    known = Function(CallKind.TOOL, tool_that_gives, "tool", {}, lambda _: True)
    said: dict[str, Any] = {}
    passage: Any = SimpleNamespace(annotate=said.update)
    watch = known.watch(passage, (of("workflows", write_event_to_stream=print),), {})
    watch.begin()
    with watch.end():
        pass
    assert json.loads(said[CHANGED]) == ["what it gives its framework by write_event_to_stream"]
    assert AFTER not in said
    said.clear()
    watch = known.watch(passage, ("no context",), {})
    watch.begin()
    with watch.end():
        pass
    assert CHANGED not in said, "a name that the agent's own code may have, too"


def test_a_list_or_dictionary_to_which_another_call_adds_meanwhile_is_put_back_whole_at_each_end() -> None:
    known = [Function(CallKind.TOOL, tool_of_deps, "tool", {}, lambda _: True) for _ in range(2)]
    said: list[dict[str, Any]] = [{}, {}]
    context, other = deps(), deps()
    first, second = (
        each.watch(SimpleNamespace(annotate=told.update), (context,), {})  # type: ignore[arg-type]
        for each, told in zip(known, said, strict=True)
    )
    first.begin()
    context.deps.note("a")
    second.begin()
    context.deps.note("b")
    for each in (second, first):
        with each.end():
            pass
    for told, then in ((said[1], ["a", "b"]), (said[0], ["a", "b"])):
        now = looked(tool_of_deps, other)
        put_back(json.loads(told[AFTER]), {place: now.roots[at] for place, at in now.places().items()})
        assert other.deps.done == [*other.deps.numbers] == then


def test_the_call_that_ends_last_is_looked_at_last() -> None:
    known = Function(CallKind.TOOL, tool_of_deps, "tool", {}, lambda _: True)
    context, other, said = deps(), deps(), dict[str, list[Any]]()

    def call(name: str, meanwhile: Callable[[], object]) -> Any:
        """Have `tool_of_deps` called; `meanwhile` runs when it has returned, and its end is not told yet."""
        facts: dict[str, Any] = {}
        passage = SimpleNamespace(
            answer=None,
            end_order=None,
            ready=lambda: None,
            crossing=nullcontext,
            annotate=facts.update,
            wait=lambda _: meanwhile(),
            closed=lambda _: said.setdefault("ends", []).append((name, json.loads(facts[AFTER]))),
        )
        inner = SimpleNamespace(
            open=lambda *_: passage, lane=known.lane, watch=known.watch, fn=tool_of_deps, offered=None
        )
        return _plain(lambda given: given.deps.note(name), inner)(context)  # type: ignore[arg-type]

    call("first", lambda: call("second", lambda: None))
    assert [name for name, _ in said["ends"]] == ["second", "first"]
    for _, change in said["ends"]:
        now = looked(tool_of_deps, other)
        put_back(change, {place: now.roots[at] for place, at in now.places().items()})
    assert other.deps.done == [*other.deps.numbers] == context.deps.done == ["first", "second"]
