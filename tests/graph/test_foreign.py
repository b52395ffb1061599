from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from foreign import told
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.values.span import SpanRecord

USER = told.said("user", told.text(told.QUESTION))
YES = {**told.said("assistant", told.text("yes")), "finish_reason": "stop"}
CALLS = {**told.said("assistant", told.called("look", {})), "finish_reason": "tool_call"}


def lost(*spans: SpanRecord) -> dict[str, str]:
    [run] = build(spans)
    reasons = [reason for reason in judge(run).reasons if reason.call != "run"]
    assert all(reason.fix for reason in reasons)
    return {reason.field: reason.lost for reason in reasons}


def test_a_plain_answer_lost_its_bytes_and_unknown_parameters_alone() -> None:
    assert lost(told.chat(1, [USER], [YES])).keys() == {"reply", "parameters"}


def test_tools_that_a_reply_calls_must_have_been_offered() -> None:
    found = lost(told.chat(1, [USER], [CALLS]))
    assert found["tools"] == "the tools that were offered; the reply calls one"
    assert "tool_choice" in found


@pytest.mark.parametrize(("definition", "missing"), [({"parameters": {}}, False), ({"description": "d"}, True)])
def test_schemas_that_are_missing_are_named(definition: dict[str, Any], *, missing: bool) -> None:
    tools = json.dumps([{"type": "function", "name": "look", **definition}])
    assert ("tools" in lost(told.chat(1, [USER], [CALLS], **{"gen_ai.tool.definitions": tools}))) is missing


def test_a_model_that_was_not_asked_for_is_named() -> None:
    assert "model" in lost(told.chat(1, [USER], [YES], model=None))


def test_why_a_reply_ended_is_told_by_the_reply_where_nobody_said() -> None:
    assert "finish_reason" in lost(told.chat(1, [USER], [told.said("assistant", told.text("yes"))]))


def test_a_provider_that_nobody_knows_is_named() -> None:
    assert "api" in lost(told.chat(1, [USER], [YES], provider="acme"))
    assert "api" not in lost(told.chat(1, [USER], [YES], provider="anthropic"))


def test_json_that_ends_in_the_middle_is_named_with_the_limit_that_cut_it() -> None:
    whole = told.chat(1, [USER], [YES])
    messages = json.dumps([USER, USER])
    cut = replace(whole, attributes={**whole.attributes, "gen_ai.input.messages": messages[:-20]})
    [run] = build([cut])
    [reason] = [reason for reason in judge(run).reasons if reason.field == "gen_ai.input.messages"]
    assert "LENGTH_LIMIT" in reason.fix
    [run] = build([replace(whole, attributes={**whole.attributes, "note": messages[:-20]})])
    [reason] = [reason for reason in judge(run).reasons if reason.field == "note"]
    assert reason.lost.endswith(f"after {len(messages) - 20} characters")
    for text in ("{'python': 'repr', 'cut", '["a"] and more', "{not json}", "[1, 2"):
        span = replace(whole, attributes={**whole.attributes, "note": text})
        assert "note" not in lost(span)


def test_dropped_events_are_counted() -> None:
    assert lost(replace(told.chat(1, [USER], [YES]), dropped_events=3))["events"].startswith("3 events")


def test_a_refusal_is_told_by_the_error() -> None:
    found = lost(told.chat(1, [USER], error=("openai.RateLimitError", "Error code: 429 - slow")))
    assert found["reply"].startswith("the reply that made the SDK raise")


def test_the_class_of_an_error_may_be_lost() -> None:
    span = replace(told.tool(1, "look", {}), status=2, status_message="it broke")
    assert "exception" in lost(span)
    assert "exception" not in lost(told.tool(1, "look", {}, told={"exception.type": "OSError"}))


def test_the_dialect_is_said() -> None:
    [run] = build([told.chat(1, [USER], [YES])])
    assert any(note.startswith("spans of other emitters, read as otel-genai") for note in run.notes)
