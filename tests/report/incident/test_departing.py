from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

from incidents import incident
from made import Made, user
from reenact.report.incident.departing import departing
from reenact.report.incident.incident import Second
from reenact.values.difference import ABSENT, Divergence, divergence_to_json
from reenact.values.run import Run


def recorded() -> tuple[Run, str, str]:
    made = Made(1)
    model = made.llm([user("go")], "going")
    tool = made.tool("look", {"who": None, "q": "order"}, ["a"])
    return made.run(), model, tool


def shown(run: Run, second: Second) -> str:
    made = departing(incident(run, second=second), {node.id: place for place, node in enumerate(run.nodes)})
    assert made is not None
    return made


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def diverged(*said: dict[str, Any], **more: Any) -> Second:
    whole = ({"structural": True, "kind": "changed", "a": None, "b": None, **each} for each in said)
    return Second(
        run=None, word="diverged", divergences=tuple(divergence_to_json(Divergence(**e)) for e in whole), **more
    )


def test_where_nothing_differs_nothing_is_shown() -> None:
    run, _, _ = recorded()
    assert departing(incident(run), {}) is None
    assert departing(incident(run, second=Second(run=run, word="same")), {}) is None


def test_a_call_that_is_not_made_stands_beside_what_was_done_instead() -> None:
    run, _, tool = recorded()
    made = Made(2)
    made.llm([user("go")], "I will not.")
    second = diverged({"kind": "missing", "call": "tool look #3", "field": "call", "b": ABSENT, "node_a": tool})
    said = words(shown(run, replace(second, run=made.run(), status="ok")))
    assert "tool look #3 is not made." in said
    assert "q order" in said
    assert "This call is not made. Its last call is llm ChatCompletion #2. Then it ended without an error." in said
    assert "It said last I will not." in said


def test_arguments_that_differ_are_marked_and_no_others() -> None:
    run, _, tool = recorded()
    made = Made(2)
    made.tool("look", {"who": "u-1", "q": "order"}, unfinished=True, more={"reenact.replay.missed": tool})
    second = diverged(
        {"call": "tool look #3", "field": "arguments.who", "b": "u-1", "node_a": tool}, stopped=True, not_reached=2
    )
    markup = shown(run, replace(second, run=made.run()))
    assert re.findall(r"<(del|ins)>(.*?)</", markup) == [("del", "null"), ("ins", "u-1")]
    assert "The replay was stopped here" in markup
    assert "2 lie behind this place" in markup


def test_a_changed_text_is_compared_word_by_word_with_the_other_fields_below() -> None:
    run, model, _ = recorded()
    field: dict[str, Any] = {"call": "llm ChatCompletion #2", "node_a": model}
    second = diverged(
        {**field, "field": "body.messages[0].content", "a": "go <b>now</b>", "b": "go later", "structural": False}
    )
    more = Divergence(kind="changed", structural=True, **field, a="x", b=ABSENT, field="body.seed")
    markup = shown(run, replace(second, more={model: (divergence_to_json(more),)}))
    assert "Only wording" in markup
    assert "<del>&lt;b&gt;now&lt;/b&gt;</del>" in markup
    assert "<ins>later</ins>" in markup
    assert "body.seed" in markup
    assert "not there" in markup


def test_what_follows_is_listed_and_counted() -> None:
    run, _, tool = recorded()
    one: dict[str, Any] = {"kind": "missing", "call": "tool look #3", "field": "call", "b": ABSENT, "node_a": tool}
    markup = shown(run, diverged(*[one] * 80))
    assert "79 further differences, which may follow from the first; the first 50 are listed" in words(markup)
    assert markup.count("<li>") == 50
    assert 'href="#call-2"' in markup
