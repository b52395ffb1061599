from __future__ import annotations

from typing import Any, cast

import pytest

from incidents import incident, long_run
from made import Made, user
from reenact.report.incident.calls import ordered
from reenact.report.incident.document import Document, document
from reenact.report.incident.incident import Second
from reenact.report.incident.pool import Pool, pretty
from reenact.values.call import CallKind
from reenact.values.difference import Divergence, divergence_to_json
from reenact.values.json import compact
from reenact.values.message import Media, Message, Reasoning, Text, ToolCall


def bodies(built: Document) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", built.bodies["bodies"])


def rows(built: Document) -> list[list[Any]]:
    return cast("list[list[Any]]", built.rows["rows"])


def test_rows_come_as_the_tree_is_read_with_what_was_asked_and_answered() -> None:
    made = Made(1)
    one = made.tool("desk a", {"n": 1}, kind=CallKind.AGENT)
    two = made.tool("desk b", {"n": 2}, kind=CallKind.AGENT)
    made.tool("late", {"q": "x"}, "found", parent=one)
    made.llm([user("hi  there\n")], "hello", parent=two)
    made.tool("broken", {}, raised=ValueError("no"), parent=two)
    run = made.run()
    built = document(incident(run))
    assert [(row[3], row[1]) for row in rows(built)] == [
        ("desk a", 0), ("late", 1), ("desk b", 0), ("ChatCompletion", 1), ("broken", 1)
    ]  # fmt: skip
    assert rows(built)[3][6:] == ["hi there", "hello", []]
    assert rows(built)[4][6:] == ["", "ValueError: no", ["failed"]]
    assert [node.id for node, _ in ordered(run)] == [*built.at]
    assert built.tokens[0] > 0


def test_what_many_calls_say_is_kept_once() -> None:
    small, large = (document(incident(long_run(calls, 20))) for calls in (82, 410))
    for built in (small, large):
        said = [body["asked"] for body in bodies(built) if "asked" in body]
        assert sum(len(asked["new"]) for asked in said) == len(said) * 2  # two to begin with, two a turn, less the last
    ratio = len(compact(large.bodies)) / len(compact(small.bodies))
    assert ratio < 410 / 82 * 1.1


def test_texts_that_are_equal_are_one() -> None:
    pool = Pool()
    long = "a long text " * 50
    assert pool.text(long) == pool.text(str(long)) == 0
    assert pool.text("short") == "short"
    assert pool.texts == [long]


def test_a_page_holds_no_more_than_a_browser_can(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1 << 20
    monkeypatch.setattr("reenact.report.incident.pool.MOST", most)
    pool = Pool()
    chunk = "x" * (most // 4)
    for number in range(6):
        pool.text(f"{number}{chunk}")
    assert sum(map(len, pool.texts)) < most + 20_000
    assert pool.cut == {"3": len(chunk) + 1, "4": len(chunk) + 1, "5": len(chunk) + 1}


def test_values_are_shown_as_fields_text_or_json_and_numbers_stay_exact() -> None:
    pool = Pool()
    assert pool.value("text") == {"text": "text"}
    flat = pool.value({"a": "x", "n": 12345678901234567890123, "l": ["p", "q"], "e": [], "f": 1.0, "z": None})
    assert flat == {
        "fields": [
            ["a", "x", "s"],
            ["n", "12345678901234567890123", "j"],
            ["l", ["p", "q"], "l"],
            ["e", "[]", "j"],
            ["f", "1.0", "j"],
            ["z", "null", "j"],
        ]
    }
    assert pool.value({"a": {"b": 1}}) == {"json": '{\n  "a": {\n    "b": 1\n  }\n}'}
    assert pool.value([]) == {"json": "[]"}
    assert "12345678901234567890123" in pretty([12345678901234567890123])


def test_parts_of_messages_and_pictures_by_what_they_are() -> None:
    pool = Pool()
    parts = (
        Text("hi"),
        Reasoning(text="so"),
        Reasoning(encrypted="abc"),
        ToolCall(id="1", name="look", arguments='{"q":"x"}'),
        ToolCall(id="2", name="look", arguments="{broken"),
        Media(modality="image", url="data:image/png;base64,aGVsbG8="),
        Media(modality="image", url="https://example.test/a.png"),
    )
    pool.message(Message(role="user", parts=parts))
    assert cast("dict[str, Any]", pool.messages[0])["parts"] == [
        ["text", "hi"],
        ["reasoning", "so"],
        ["sealed", 3],
        ["call", "1", "look", {"fields": [["q", "x", "s"]]}],
        ["call", "2", "look", {"text": "{broken"}],
        ["media", "image", "image/png", "", "", 5, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"],
        ["media", "image", "", "", "https://example.test/a.png", None, None],
    ]


def test_documents_come_with_their_scores() -> None:
    made = Made(1)
    made.tool("search", {"q": "x"}, [{"id": "a", "score": 0.9, "text": "first"}, "second"], kind=CallKind.RETRIEVER)
    (body,) = bodies(document(incident(made.run())))
    assert body["documents"] == [{"text": "first", "score": 0.9, "id": "a"}, {"text": "second"}]


def test_a_call_that_differs_has_its_sign_and_both_values() -> None:
    made = Made(1)
    node = made.tool("look", {"q": "x"}, "y")
    changed = Divergence(kind="changed", call="look", field="arguments.q", a="x", b="z", structural=True, node_a=node)
    second = Second(run=None, word="diverged", divergences=(divergence_to_json(changed),))
    built = document(incident(made.run(), second=second))
    assert built.rows["signs"] == {"0": "changed"}
    assert built.rows["parting"] == 0
    assert built.bodies["differences"] == {"0": [["changed", "arguments.q", "x", "z"]]}


def test_a_tool_call_and_the_model_call_that_asked_for_it_name_each_other() -> None:
    made = Made(1)
    made.llm([user("go")], tools=[("look", {"q": "x"})])
    made.tool("look", {"q": "x"}, "y")
    model, tool = bodies(document(incident(made.run())))
    assert tool["because"] == 0
    assert [place for _, place in model["led"]] == [1]
