"""The tools that requests offer, in whichever spelling, and that looking costs nothing where nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from reenact.boundary import offers
from reenact.values.json import Json

CHAT = [{"type": "function", "function": {"name": "fetch", "parameters": {"tools": {"type": "string"}}}}]
MESSAGES = [{"role": "user", "content": 'say "tools": [] and ],"model":"x"'}, {"role": "user", "content": []}]


@pytest.fixture
def heard() -> Iterator[list[frozenset[str]]]:
    names: list[frozenset[str]] = []
    offers.listen(names.append)
    yield names
    offers.listen(None)


def body(*, separators: tuple[str, str] = (",", ":"), **fields: Any) -> bytes:
    return json.dumps(fields, separators=separators).encode()


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (CHAT, {"fetch"}),
        ([{"type": "function", "name": "fetch", "parameters": {}}, {"type": "web_search"}], {"fetch"}),
        ([{"name": "fetch", "input_schema": {}}, {"name": "store", "input_schema": {}}], {"fetch", "store"}),
        ([{"type": "custom", "custom": {"name": "fetch"}}], {"fetch"}),
        ([{"functionDeclarations": [{"name": "fetch"}]}], {"fetch"}),
        ([1, None, {"name": 3}], set()),
        ({"name": "fetch"}, set()),
    ],
)
def test_names_are_read_in_every_spelling(tools: Json, names: set[str]) -> None:
    assert offers.tool_names({"tools": tools}) == names


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(
    "fields",
    [
        {"messages": MESSAGES, "model": "m", "tools": CHAT},
        {"model": "m", "tools": CHAT, "messages": MESSAGES},
        {"max_tokens": 9, "messages": MESSAGES, "model": "m", "stream": True, "tools": CHAT, "user": "u"},
        {"tools": CHAT, "input": MESSAGES, "model": "m"},
        {"messages": [], "model": "m", "functions": [{"name": "fetch"}], "tools": []},
    ],
)
def test_tools_are_heard_wherever_they_stand_in_the_request(
    heard: list[frozenset[str]], fields: dict[str, Any], separators: tuple[str, str]
) -> None:
    for _ in range(3):
        offers.hear(body(separators=separators, **fields))
    assert heard == [frozenset({"fetch"})] * 3


def test_a_request_without_tools_is_not_told_between_two_that_have_some(heard: list[frozenset[str]]) -> None:
    other = [{"name": "store", "input_schema": {}}]
    for _ in range(2):
        offers.hear(body(messages=MESSAGES, model="m"))
        offers.hear(body(messages=MESSAGES, model="m", tools=CHAT))
        offers.hear(body(messages=MESSAGES, model="m"))
        offers.hear(body(messages=MESSAGES, model="m", tools=other))
        offers.hear(body(tools=CHAT, messages=MESSAGES, model="m"))
    assert heard == [frozenset({"fetch"}), frozenset({"store"}), frozenset({"fetch"})] * 2


def test_a_long_conversation_offers_when_it_does(heard: list[frozenset[str]]) -> None:
    said = "It was said at length, and then again. " * 300
    turns = [{"role": "user", "content": said}]
    for number in range(6):
        turns.append({"role": "user", "content": f"{number} {said[: 700 * number]}"})
        offers.hear(body(messages=turns, model="m"))
    assert heard == []
    offers.hear(body(messages=turns, tools=CHAT, model="m"))
    offers.hear(body(messages=turns, model="m"))
    assert heard == [frozenset({"fetch"})]


@pytest.mark.parametrize("cut", range(9))
def test_a_key_that_began_in_what_was_the_same_is_heard(heard: list[frozenset[str]], cut: int) -> None:
    said = '{"messages":[{"role":"user","content":"' + "at length " * 300 + '"}],'
    offers.hear((said + '"tools"'[:cut] + "nothing").encode())
    offers.hear(f'{said}"tools":[{{"name":"fetch"}}]}}'.encode())
    assert heard == [frozenset({"fetch"})]


def test_the_same_tools_are_not_parsed_again(heard: list[frozenset[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    offers.hear(body(messages=[], model="m", tools=CHAT))
    monkeypatch.setattr(offers, "parsed_or_none", lambda _: pytest.fail("parsed again"))
    offers.hear(body(messages=MESSAGES, model="m", tools=CHAT))
    assert heard == [frozenset({"fetch"})] * 2


def test_nonsense_and_a_failing_listener_reach_nobody() -> None:
    def fails(_: frozenset[str]) -> None:
        raise RuntimeError

    offers.listen(fails)
    try:
        for each in (b"", b'{"tools":', b'{"tools":[{"name":"x"}]}', b"\xff"):
            offers.hear(each)
    finally:
        offers.listen(None)
