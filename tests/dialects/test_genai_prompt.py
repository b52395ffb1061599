"""Spans of the GenAI conventions that keep their messages in one attribute of old, beside newer ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.boundary.reading import asked
from reenact.graph.build import build
from reenact.values.message import Text
from reenact.values.span import Scope, SpanRecord


@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"gen_ai.request.temperature": 1.0},
        {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "find"}])},
        {"gen_ai.input.messages": "[]"},
    ],
    ids=lambda beside: next(iter(beside), "nothing"),
)
def test_a_prompt_is_what_was_asked_whatever_stands_beside_it(beside: dict[str, Any]) -> None:
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.prompt": "Where?", **beside}
    span = SpanRecord(
        trace_id="a" * 32,
        span_id="b" * 16,
        parent_id=None,
        name="chat m",
        start_ns=1,
        end_ns=2,
        attributes=said,
        scope=Scope(name="some.emitter"),
    )
    (run,) = build([span])
    (node,) = run.nodes
    request = asked(node)
    assert request is not None
    assert [message.parts for message in request.messages] == [(Text(text="Where?"),)]
