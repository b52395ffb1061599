from __future__ import annotations

import json
from typing import Any

from foreign import told
from reenact.boundary.reading import asked
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.values.span import SpanRecord

DEFINED: Any = [{"type": "function", "name": "look", "description": "d", "parameters": {"type": "object"}}]
AGENT = told.span(1, "agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.tool.definitions": json.dumps(DEFINED)})
QUESTION = [told.said("user", told.text(told.QUESTION))]


def offered(*spans: SpanRecord) -> list[list[Any]]:
    [run] = build(spans)
    return [[*question.tools] for node in run.nodes if (question := asked(node)) is not None]


def test_a_model_call_is_shown_with_the_tools_of_the_agent_above() -> None:
    below = told.chat(2, QUESTION, [], parent=AGENT.span_id)
    [[tool]] = offered(AGENT, below)
    assert tool["function"]["name"] == "look"
    [run] = build([AGENT, below])
    reasons = {reason.field: reason for reason in judge(run).reasons}
    assert "those of the agent above are shown" in reasons["tools"].lost


def test_its_own_tools_stand() -> None:
    own = json.dumps([{"type": "function", "name": "own", "parameters": {}}])
    [[tool]] = offered(AGENT, told.chat(2, QUESTION, [], parent=AGENT.span_id, **{"gen_ai.tool.definitions": own}))
    assert tool["function"]["name"] == "own"


def test_a_call_elsewhere_has_none() -> None:
    assert offered(AGENT, told.chat(2, QUESTION, [])) == [[]]
