"""What other vendors' masks hid is told in the verdict, with the setting that hid it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.values.run import Reason
from reenact.values.span import Scope, SpanRecord


def reasons(attributes: dict[str, Any], scope: str) -> list[Reason]:
    """Judge a run of one model call, as an emitter wrote it down."""
    span = SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name="chat gpt",
        start_ns=1_790_000_000_000_000_000,
        end_ns=1_790_000_001_000_000_000,
        attributes=attributes,
        scope=Scope(name=scope),
    )
    (run,) = build([span])
    return [each for each in judge(run).reasons if "hidden by the emitter" in each.lost or "collector" in each.lost]


ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "[Scrubbed due to 'password']"}]}
LOGFIRE = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.system": "openai",
    "request_data": json.dumps(ASKED),
    "response_data": json.dumps({"message": {"role": "assistant", "content": "[Scrubbed due to 'auth']"}}),
    "logfire.scrubbed": json.dumps(
        [{"path": ["attributes", "request_data", "messages", 0, "content"], "matched_substring": "password"}]
    ),
}


def test_what_logfire_scrubbed_is_lost_at_the_emitter() -> None:
    (told,) = reasons(LOGFIRE, "logfire")
    assert told.lost == "2 values hidden by the emitter ([Scrubbed due to 'password'], [Scrubbed due to 'auth'])"
    assert "scrubbing=False" in told.fix


@pytest.mark.parametrize("mask", ["<fully masked due to failed mask function>", "***MASKED***", "***"])
def test_what_a_mask_of_langfuse_hid_is_lost_at_the_emitter(mask: str) -> None:
    held = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.model.name": "gpt-4o",
        "langfuse.observation.input": mask,
        "langfuse.observation.output": mask,
    }
    (told,) = reasons(held, "langfuse-sdk")
    assert told.lost == f"2 values hidden by the emitter ({mask})"
    assert "Langfuse(mask=" in told.fix


def test_what_a_collector_took_away_is_named() -> None:
    held = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "redaction.redacted.keys": "gen_ai.prompt"}
    (told,) = reasons(held, "some.emitter")
    assert told.lost == "gen_ai.prompt: masked or removed by a collector on the way"


def test_what_users_write_is_no_mask() -> None:
    text = "***important***: the report says 'redacted' twice\n***"
    held = {**LOGFIRE, "request_data": json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})}
    held["response_data"] = json.dumps({"message": {"role": "assistant", "content": "ok"}})
    assert reasons(held, "logfire") == []
