"""Coding agents' event logs, which have no spans: each call in them becomes one."""

from __future__ import annotations

from typing import Any

from reenact.boundary.reading import answered, asked
from reenact.graph.build import build
from reenact.values.call import CallKind, FunctionCall, HttpRequest, Raised, Returned, Unfinished, Value
from reenact.values.json import compact, parse
from reenact.values.log import LogRecord
from reenact.values.run import Run
from reenact.values.span import Scope, SpanEvent, SpanRecord

SECOND = 1_000_000_000


def logged(at: int, name: str, scope: str, line: str = "", /, **said: Any) -> LogRecord:
    attributes = {key.replace("__", "."): value for key, value in said.items()}
    return LogRecord(
        time_ns=at * SECOND,
        event_name=name,
        body=line or None,
        attributes={"event.name": name, "session.id": "s-1", **attributes},
        scope=Scope(name=scope),
    )


def claude(at: int, name: str, /, **said: Any) -> LogRecord:
    """An event as Claude Code logs it: its name without a prefix in the attributes, with one in the body."""
    return logged(at, name, "com.anthropic.claude_code.events", f"claude_code.{name}", **said)


def only(*records: LogRecord | SpanRecord) -> Run:
    (run,) = build(records)
    return run


ASKED: dict[str, Any] = {"model": "claude-m", "max_tokens": 64, "messages": [{"role": "user", "content": "List it."}]}
CALLS: list[Any] = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
TOLD: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-m-1", "content": CALLS}


def session() -> list[LogRecord]:
    main = {"query_source": "repl_main_thread"}
    return [
        claude(1, "user_prompt", prompt="List it.", prompt_length="8"),
        claude(2, "api_request_body", body=compact(ASKED), **main),
        claude(2, "api_request_body", body=compact({**ASKED, "max_tokens": 9}), query_source="title"),
        claude(3, "api_response_body", body=compact({**TOLD, "id": "msg_t", "content": []}), query_source="title"),
        claude(3, "api_request", model="claude-h", input_tokens="3", duration_ms="900", query_source="title"),
        claude(4, "api_response_body", body=compact(TOLD), **main),
        claude(4, "api_request", model="claude-m", input_tokens="9", duration_ms="2000", **main),
        claude(5, "tool_decision", tool_name="Bash", decision="accept"),
        claude(6, "tool_result", tool_name="Bash", tool_use_id="toolu_1", success="true", duration_ms="500",
               tool_input=compact({"command": "ls"}), tool_output="a.txt"),
    ]  # fmt: skip


def test_a_log_of_claude_code_with_bodies_is_a_run() -> None:
    run = only(*session())
    models = [node for node in run.nodes if node.kind is CallKind.LLM]
    assert [parse(node.call.request.body.data)["max_tokens"] for node in models  # type: ignore[call-overload,index]
            if isinstance(node.call.request, HttpRequest)] == [64, 9]  # fmt: skip
    assert [reply.id for node in models if (reply := answered(node)) is not None] == ["msg_1", "msg_t"]
    assert next((node.span.start_ns, node.span.end_ns) for node in models) == (2 * SECOND, 4 * SECOND)
    (tool,) = [node for node in run.nodes if node.kind is CallKind.TOOL]
    assert (tool.call.name, tool.call.request) == ("Bash", FunctionCall(function="", arguments={"command": "ls"}))
    assert tool.outcome == Returned(payload=Value(json="a.txt"))
    assert (tool.caused_by, tool.tool_call_id) == (models[0].id, "toolu_1")
    assert run.session == "s-1"
    assert run.root is not None
    assert run.root.call.request == FunctionCall(function="", arguments={"prompt": "List it."})


def test_the_same_log_gives_the_same_ids_and_its_own_spans_change_nothing() -> None:
    run = only(*session())
    again = only(*reversed(session()))
    assert {node.id for node in run.nodes} == {node.id for node in again.nodes}
    told = only(*(node.span for node in run.nodes))
    assert [(node.id, node.kind, node.call.name) for node in told.nodes] == [
        (node.id, node.kind, node.call.name) for node in run.nodes
    ]


def test_a_log_without_content_says_what_would_keep_it() -> None:
    run = only(
        claude(2, "api_request", model="claude-m", input_tokens="9", output_tokens="4", duration_ms="1000"),
        claude(3, "tool_result", tool_name="Read", success="false", error="no such file", duration_ms="1"),
        claude(4, "api_error", model="claude-m", error="overloaded", status_code="529", duration_ms="10"),
    )
    first, tool, failed = [node for node in run.nodes if node.kind is not CallKind.AGENT]
    assert (first.kind, first.outcome) == (CallKind.LLM, Unfinished())
    assert "OTEL_LOG_RAW_API_BODIES" in compact(first.call.attributes["reenact.lost"])
    assert isinstance(tool.outcome, Raised)
    assert tool.outcome.exception.message == "no such file"
    assert "OTEL_LOG_TOOL_DETAILS" in compact(tool.call.attributes["reenact.lost"])
    assert isinstance(failed.outcome, Raised)


def test_a_request_whose_end_was_never_logged_is_kept() -> None:
    run = only(claude(1, "user_prompt", prompt="x"), claude(2, "api_request_body", body=compact(ASKED)))
    (model,) = [node for node in run.nodes if node.kind is CallKind.LLM]
    request = asked(model)
    assert request is not None
    assert (request.model, model.outcome) == ("claude-m", Unfinished())


def test_a_body_that_was_cut_off_says_so() -> None:
    run = only(
        claude(2, "api_request_body", body=compact(ASKED)[:40], body_truncated="true"),
        claude(3, "api_request", model="claude-m", duration_ms="1000"),
    )
    (model,) = [node for node in run.nodes if node.kind is CallKind.LLM]
    assert isinstance(model.call.request, FunctionCall)
    assert "cut off" in compact(model.call.attributes["reenact.lost"])


def codex(at: int, name: str, /, **said: Any) -> LogRecord:
    return logged(at, f"codex.{name}", "codex_otel.log_only", **{"conversation__id": "c-1", "model": "m-1", **said})


def test_a_log_of_codex_is_requests_by_their_tokens_and_tools_in_full() -> None:
    run = only(
        codex(1, "conversation_starts", reasoning_effort="high"),
        codex(1, "user_prompt", prompt="List it.", prompt_length="8"),
        codex(2, "api_request", duration_ms="500", http__response__status_code="200"),
        codex(3, "sse_event", event__kind="response.output_item.done"),
        codex(4, "sse_event", event__kind="response.completed", input_token_count="9", output_token_count="4"),
        codex(5, "tool_result", tool_name="shell", call_id="call_1", arguments='{"command":["ls"]}', output="a.txt",
              duration_ms="20", success="true"),
        codex(6, "api_request", duration_ms="100"),
    )  # fmt: skip
    kinds = [node.kind for node in run.nodes]
    assert kinds == [CallKind.AGENT, CallKind.LLM, CallKind.TOOL, CallKind.LLM]
    top, model, tool, last = run.nodes
    assert top.call.request == FunctionCall(function="", arguments={"prompt": "List it."})
    assert (model.outcome, last.outcome) == (Unfinished(), Unfinished())
    assert model.span.attributes["input_token_count"] == "9"
    assert "rollout" in compact(model.call.attributes["reenact.lost"])
    assert (tool.call.name, tool.outcome) == ("shell", Returned(payload=Value(json="a.txt")))
    assert tool.call.attributes["gen_ai.tool.call.id"] == "call_1"
    assert run.session == "s-1"


def test_bodies_that_were_logged_beside_spans_are_read_with_them_and_made_into_none() -> None:
    events = tuple(
        SpanEvent(name=name, time_ns=place, attributes={"event.name": name, "body": compact(body)})
        for place, (name, body) in enumerate((("api_request_body", ASKED), ("api_response_body", TOLD)), 1)
    )
    span = SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name="claude_code.llm_request",
        start_ns=1,
        end_ns=9,
        attributes={"span.type": "llm_request", "model": "claude-m"},
        events=events,
        scope=Scope(name="com.anthropic.claude_code.tracing"),
    )
    (model,) = only(span).nodes
    reply = answered(model)
    assert reply is not None
    assert reply.id == "msg_1"
