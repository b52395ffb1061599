"""What transcripts of coding agents tell beside their messages: compaction, errors, times, who said what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary.reading import answered, asked
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_recording
from reenact.values.call import CallKind, HttpRequest, Raised, Returned, Value
from reenact.values.message import Message, Text
from reenact.values.run import Node, Run
from reenact.values.span import STATUS_ERROR, STATUS_UNSET


def run_of(tmp_path: Path, lines: Iterable[dict[str, Any]]) -> Run:
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (run,) = build(joined(open_recording(path).records))
    return run


def models(run: Run) -> list[Node]:
    return [node for node in run.nodes if node.kind is CallKind.LLM]


def tools(run: Run) -> list[Node]:
    return [node for node in run.nodes if node.kind is CallKind.TOOL]


def results(run: Run) -> dict[str, Any]:
    """What each tool of a run returned, by the id of its call."""
    return {
        node.tool_call_id or "": node.outcome.payload.json
        for node in tools(run)
        if isinstance(node.outcome, Returned) and isinstance(node.outcome.payload, Value)
    }


def requests(run: Run) -> list[list[str]]:
    """The texts of the messages that each model call of a run was asked with."""
    questions = [asked(node) for node in models(run)]
    return [[words(message) for message in question.messages] for question in questions if question is not None]


def words(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


# ------------------------------------------------------------------------------------------------------- Claude Code


def claude(kind: str, number: int, content: Any = None, **fields: Any) -> dict[str, Any]:
    """A line of a session, the second of its number."""
    message = {"message": {"role": kind, "content": content, **fields.pop("message", {})}} if content else {}
    line = {"type": kind, "uuid": f"u{number}", "sessionId": "s-7", "timestamp": f"2026-11-22T08:10:{number:02}Z"}
    return {**line, **message, **fields}


def reply(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", **fields.pop("message", {})}
    return claude("assistant", number, content, message=message, **fields)


BOUNDARY = claude("system", 3, subtype="compact_boundary", parentUuid=None, logicalParentUuid="u2")
SUMMARY = claude("user", 4, "So far: otters were counted.", isCompactSummary=True, parentUuid="u3")


def test_a_session_that_was_compacted_asks_with_its_summary_and_no_more_with_what_it_sums_up(tmp_path: Path) -> None:
    before = [claude("user", 1, "Count the otters"), reply(2, "Nine.")]
    after = [claude("user", 5, "And the seals?"), reply(6, "Two."), claude("user", 7, "Sure?"), reply(8, "Yes.")]
    summed = ["So far: otters were counted.", "And the seals?"]
    for compaction in ([BOUNDARY, SUMMARY], [SUMMARY]):
        run = run_of(tmp_path, [*before, *compaction, *after])
        assert requests(run) == [["Count the otters"], summed, [*summed, "Two.", "Sure?"]]


@pytest.mark.parametrize(
    "metadata",
    [
        {"compactMetadata": {"preservedSegment": {"headUuid": "u2", "tailUuid": "u3", "anchorUuid": "u5"}}},
        {"compact_metadata": {"preserved_segment": {"head_uuid": "u2", "tail_uuid": "u3", "anchor_uuid": "u5"}}},
    ],
    ids=["session", "stream"],
)
def test_messages_that_a_compaction_kept_stand_behind_its_summary(tmp_path: Path, metadata: dict[str, Any]) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "count", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "9"}
    begin = [claude("user", 1, "Count"), reply(2, [use]), claude("user", 3, [answer])]
    boundary = claude("system", 4, subtype="compact_boundary", **metadata)
    summary = claude("user", 5, "So far: otters.", isCompactSummary=True)
    run = run_of(tmp_path, [*begin, boundary, summary, reply(6, "Nine.")])
    assert requests(run) == [["Count"], ["So far: otters.", "", "9"]]
    assert [node.kind for node in run.nodes if not node.call.is_structure] == [
        CallKind.LLM,
        CallKind.TOOL,
        CallKind.LLM,
    ]


def test_a_tool_that_answered_before_a_session_was_compacted_is_a_call(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "count", "input": {"of": "otters"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "9"}
    begin = [claude("user", 0, "Count"), reply(1, [use]), claude("user", 2, [answer])]
    run = run_of(tmp_path, [*begin, BOUNDARY, SUMMARY, reply(5, "Nine.")])
    calls = [(node.kind, node.call.name) for node in run.nodes if not node.call.is_structure]
    assert [name for kind, name in calls if kind is CallKind.TOOL] == ["count"]
    assert [kind for kind, _ in calls] == [CallKind.LLM, CallKind.TOOL, CallKind.LLM]


USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.txt"}}


@pytest.mark.parametrize("last", [False, True], ids=["told on", "last"])
def test_a_tool_whose_result_says_that_it_failed_is_an_error_and_the_model_is_told_so(
    tmp_path: Path, *, last: bool
) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}
    after = [] if last else [reply(9, "There is none.")]
    run = run_of(tmp_path, [claude("user", 1, "Read"), reply(2, [USE]), claude("user", 4, [result]), *after])
    (tool,) = tools(run)
    assert isinstance(tool.outcome, Raised)
    assert tool.outcome.exception.message == "no such file"
    assert (tool.span.status, tool.span.status_message) == (STATUS_ERROR, "no such file")
    for node in models(run)[1:]:
        assert isinstance(node.call.request, HttpRequest)
        body = json.loads(node.call.request.body.data)
        assert body["messages"][-1]["content"] == [result]


@pytest.mark.parametrize("last", [False, True], ids=["told on", "last"])
def test_a_tool_ends_when_its_result_was_written_and_not_when_the_model_replied(tmp_path: Path, *, last: bool) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "otters"}
    after = [] if last else [claude("user", 20, "Go on"), reply(29, "Otters.")]
    run = run_of(tmp_path, [claude("user", 1, "Read"), reply(2, [USE]), claude("user", 4, [result]), *after])
    (tool,) = tools(run)
    assert round((tool.span.end_ns - tool.span.start_ns) / 10**9, 3) == 2


def test_replies_without_an_id_are_as_many_as_their_times_and_tokens(tmp_path: Path) -> None:
    def piece(number: int, text: str, tokens: int, **fields: Any) -> dict[str, Any]:
        message = {"id": None, "usage": {"input_tokens": 9, "output_tokens": tokens}}
        return reply(number, [{"type": "text", "text": text}], message=message, **fields)

    question, first = claude("user", 1, "Count"), piece(2, "One.", 3)
    run = run_of(tmp_path, [question, first, piece(2, "Two.", 3, uuid="u3"), piece(4, "Three.", 5)])
    assert requests(run) == [["Count"], ["Count", "One.Two."]]
    usages = [given.usage.completion for node in models(run) if (given := answered(node)) is not None]
    assert usages == [3, 5]
    for told in ({"requestId": "r1"}, {"timestamp": None, "uuid": "u2"}):
        pieces = [piece(2, "One.", 3, **told), piece(4, "Two.", 3, **told)]
        assert len(models(run_of(tmp_path, [question, *pieces]))) == 1


def test_what_the_program_wrote_in_the_model_s_place_is_no_call_of_a_model(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "otters"}
    synthetic = reply(5, [{"type": "text", "text": "No answer."}], message={"model": "<synthetic>"})
    begin = [claude("user", 1, "Read"), reply(2, [USE]), claude("user", 4, [result]), synthetic]
    run = run_of(tmp_path, begin)
    assert [node.kind for node in run.nodes if not node.call.is_structure] == [CallKind.LLM, CallKind.TOOL]
    run = run_of(tmp_path, [*begin, claude("user", 6, "Again"), reply(7, "Otters.")])
    assert requests(run)[1:] == [["Read", "", "otters", "No answer.", "Again"]]


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        ({"subtype": "error_during_execution", "errors": ["The quota is used up."]}, "The quota is used up."),
        ({"subtype": "success", "is_error": True, "result": "API Error: 529"}, "API Error: 529"),
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({"subtype": "success", "is_error": False, "result": "Nine."}, ""),
    ],
    ids=["errors", "flag", "kind", "success"],
)
def test_a_stream_that_ends_with_an_error_is_a_run_that_failed(
    tmp_path: Path, result: dict[str, Any], failure: str
) -> None:
    usage = {"input_tokens": 9, "output_tokens": 2}
    end = {"type": "result", "session_id": "s-7", "usage": usage, **result}
    run = run_of(tmp_path, [claude("user", 1, "Count"), reply(2, "Nine."), end])
    assert run.root is not None
    assert (run.root.span.status == STATUS_ERROR, run.root.span.status_message) == (bool(failure), failure)
    assert json.loads(str(run.root.span.attributes["claude.result"]))["usage"] == usage
    run = run_of(tmp_path, [claude("user", 1, "Count"), end, claude("user", 3, "Again"), reply(4, "Nine.")])
    assert run.root is not None
    assert run.root.span.status == STATUS_UNSET


# ------------------------------------------------------------------------------------------------------------- Codex


def codex(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-11-22T08:10:{number:02}Z", "type": kind, "payload": payload}


def said(number: int, role: str, text: str) -> dict[str, Any]:
    return codex(number, "response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


META = codex(0, "session_meta", id="s-8", cwd="/home/me/zoo", instructions="Be brief.")


@pytest.mark.parametrize(
    ("compacted", "summed"),
    [
        (
            {
                "message": "nine otters",
                "replacement_history": [
                    said(0, "user", "Count the otters")["payload"],
                    said(0, "assistant", "So far: nine.")["payload"],
                ],
            },
            ["Count the otters", "So far: nine."],
        ),
        ({"message": "So far: nine otters."}, ["So far: nine otters."]),
    ],
    ids=["history", "summary"],
)
def test_a_rollout_that_was_compacted_asks_with_what_took_the_place_of_its_history(
    tmp_path: Path, compacted: dict[str, Any], summed: list[str]
) -> None:
    before = [META, said(1, "user", "Count the otters"), said(2, "assistant", "Nine.")]
    after = [said(4, "user", "And the seals?"), said(5, "assistant", "Two.")]
    run = run_of(tmp_path, [*before, codex(3, "compacted", **compacted), *after])
    assert requests(run) == [["Be brief.", "Count the otters"], ["Be brief.", *summed, "And the seals?"]]


def test_a_tool_that_a_compacted_history_holds_was_called_once(tmp_path: Path) -> None:
    call = codex(2, "response_item", type="function_call", name="count", arguments="{}", call_id="c1")
    answer = codex(3, "response_item", type="function_call_output", call_id="c1", output="9")
    compacted = codex(4, "compacted", message="", replacement_history=[call["payload"], answer["payload"]])
    run = run_of(tmp_path, [META, said(1, "user", "Count"), call, answer, compacted, said(5, "assistant", "Nine.")])
    kinds = [node.kind for node in run.nodes if not node.call.is_structure]
    assert kinds == [CallKind.LLM, CallKind.TOOL, CallKind.LLM]


def codex_tool(number: int, output: Any) -> list[dict[str, Any]]:
    call = codex(number, "response_item", type="function_call", name="shell", arguments="{}", call_id="c1")
    return [call, codex(number + 1, "response_item", type="function_call_output", call_id="c1", output=output)]


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        (json.dumps({"output": "no such file", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}), True),
        (json.dumps({"output": "otters", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}), False),
        ({"content": "no such file", "success": False}, True),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file", True),
        ("Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno such file", True),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\notters", False),
        ("The page says: Exit code: 1\n", False),
    ],
    ids=["metadata", "metadata of success", "success", "text", "text of a session", "text of success", "other text"],
)
@pytest.mark.parametrize("last", [False, True], ids=["told on", "last"])
def test_a_tool_of_codex_that_says_that_it_failed_is_an_error(
    tmp_path: Path, output: Any, *, failed: bool, last: bool
) -> None:
    after = [] if last else [said(4, "assistant", "There are none.")]
    run = run_of(tmp_path, [META, said(1, "user", "List"), *codex_tool(2, output), *after])
    (tool,) = tools(run)
    assert isinstance(tool.outcome, Raised) is failed
    assert tool.span.status == (STATUS_ERROR if failed else STATUS_UNSET)


def event(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex(number, "event_msg", type=kind, **payload)


def test_words_that_stand_in_events_alone_are_said(tmp_path: Path) -> None:
    asks, looks = event(1, "user_message", message="Count the otters"), event(2, "agent_message", message="I look.")
    ends = event(6, "task_complete", last_agent_message="Nine otters.")
    run = run_of(tmp_path, [META, asks, looks, *codex_tool(3, "9"), ends])
    begin = ["Be brief.", "Count the otters"]
    assert requests(run) == [begin, [*begin, "I look.", "", "9"]]
    (said_last,) = [given for node in models(run)[1:] if (given := answered(node)) is not None]
    assert words(said_last.messages[0]) == "Nine otters."


def test_words_of_events_that_items_repeat_are_said_once(tmp_path: Path) -> None:
    items = [said(1, "user", "About the zoo.\nCount the otters"), said(3, "assistant", "Nine otters.")]
    events = [event(1, "user_message", message="Count the otters"), event(2, "agent_message", message="Nine otters.")]
    end = event(4, "task_complete", last_agent_message="Nine otters.")
    run = run_of(tmp_path, [META, events[0], items[0], events[1], items[1], end])
    assert requests(run) == [["Be brief.", "About the zoo.\nCount the otters"]]


def test_a_rollout_whose_last_turn_was_aborted_is_a_run_that_failed(tmp_path: Path) -> None:
    aborted = event(3, "turn_aborted", turn_id="t1", reason="interrupted")
    lines = [META, said(1, "user", "Count"), said(2, "assistant", "I count."), aborted]
    run = run_of(tmp_path, lines)
    assert run.root is not None
    assert (run.root.span.status, run.root.span.status_message) == (STATUS_ERROR, "turn aborted: interrupted")
    run = run_of(tmp_path, [*lines, said(4, "user", "Go on"), said(5, "assistant", "Nine.")])
    assert run.root is not None
    assert run.root.span.status == STATUS_UNSET


def test_an_item_that_failed_is_an_error_and_one_without_an_answer_has_none(tmp_path: Path) -> None:
    items = [
        {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "no pond", "exit_code": 2},
        {"id": "i2", "type": "mcp_tool_call", "tool": "count", "error": {"message": "no sea"}, "status": "failed"},
        {"id": "i3", "type": "web_search", "query": "otters"},
        {"id": "i4", "type": "command_execution", "command": "ls", "aggregated_output": "ann", "exit_code": 0},
        {"id": "i5", "type": "agent_message", "text": "One."},
    ]
    begin = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    run = run_of(tmp_path, [*begin, *({"type": "item.completed", "item": item} for item in items)])
    assert results(run) == {"i4": "ann"}
    outcomes = {node.tool_call_id: node.outcome for node in tools(run)}
    failed = {name: came.exception.message for name, came in outcomes.items() if isinstance(came, Raised)}
    assert failed == {"i1": "no pond", "i2": "no sea"}


# -------------------------------------------------------------------------------------------------------------- ATIF


def atif(*steps: dict[str, Any]) -> dict[str, Any]:
    agent = {"name": "keeper", "version": "1", "model_name": "openai/gpt-4o"}
    listed = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.5", "session_id": "s-9", "agent": agent, "steps": listed}


def step(calls: list[str], told: list[str]) -> dict[str, Any]:
    listed = [{"tool_call_id": each, "function_name": "count", "arguments": {"of": each}} for each in calls]
    observation = {"results": [{"content": each} for each in told]}
    return {"source": "agent", "message": "I count.", "tool_calls": listed, "observation": observation}


@pytest.mark.parametrize(
    ("calls", "told", "answers"),
    [
        (["a"], ["9"], {"a": "9"}),
        (["a", "b"], ["9", "2"], {"a": "9", "b": "2"}),
        (["a", "b"], ["9"], {"a": "9"}),  # nobody says whose it is: the first open one's, as without any id
    ],
    ids=["one", "as many", "fewer"],
)
def test_results_that_name_no_call_are_those_of_the_step_s_calls_in_order(
    tmp_path: Path, calls: list[str], told: list[str], answers: dict[str, str]
) -> None:
    question = {"source": "user", "message": "Count"}
    run = run_of(tmp_path, [atif(question, step(calls, told), step(["c"], ["all"]))])
    assert results(run) == {**answers, "c": "all"}
    assert results(run_of(tmp_path, [atif({"source": "user", "message": "Count"}, step(calls, told))])) == answers
    if len(calls) == len(told):
        (_, last) = models(run)
        question = asked(last)
        assert question is not None
        assert [each.tool_call_id for each in question.messages if each.role == "tool"] == calls


def test_times_that_no_file_says_are_not_known(tmp_path: Path) -> None:
    run = run_of(tmp_path, [atif({"source": "user", "message": "Count"}, step(["a"], ["9"]), step(["b"], ["all"]))])
    assert {(node.span.start_ns, node.span.end_ns) for node in run.nodes} == {(0, 0)}
    assert (run.started_ns, run.ended_ns) == (0, 0)
    timed = {"timestamp": "2026-11-22T08:10:00Z"}
    run = run_of(
        tmp_path, [atif({"source": "user", "message": "Count"}, {**step(["a"], ["9"]), **timed}, step([], []))]
    )
    assert [node.span.end_ns for node in tools(run)] == [0]
    assert run.root is not None
    assert (run.root.span.start_ns > 0, run.root.span.end_ns) == (True, 0)


# ---------------------------------------------------------------------------------------------------------- OpenCode


def test_a_session_of_opencode_has_a_reply_for_each_step_and_tools_with_their_own_times(tmp_path: Path) -> None:
    def tool(call_id: str, **state: Any) -> dict[str, Any]:
        return {"type": "tool", "callID": call_id, "tool": "ls", "state": {"input": {"of": call_id}, **state}}

    def text(said: str) -> dict[str, Any]:
        return {"type": "text", "text": said}

    done = tool("a", status="completed", output="ann", time={"start": 1795335002000, "end": 1795335002250})
    failed = tool("b", status="error", error="no pond", time={"start": 1795335003000, "end": 1795335003100})
    start, end = {"type": "step-start"}, {"type": "step-finish", "reason": "stop", "tokens": {"input": 9, "output": 2}}
    for parts in ([start, done, failed, end, start, text("One."), end], [done, failed, text("One.")]):
        asks = {"info": {"role": "user", "time": {"created": 1795335000000}}, "parts": [text("Count")]}
        says = {"info": {"role": "assistant", "time": {"created": 1795335001000}}, "parts": parts}
        run = run_of(tmp_path, [{"info": {"id": "s"}, "messages": [asks, says]}])
        assert requests(run) == [["Count"], ["Count", "", "ann", "no pond"]]
        assert results(run) == {"a": "ann"}
        assert [(node.span.end_ns - node.span.start_ns) // 10**6 for node in tools(run)] == [250, 100]
        assert [isinstance(node.outcome, Raised) for node in tools(run)] == [False, True]


# ---------------------------------------------------------------------------------------------------------- messages


ASKS = [{"role": "user", "content": "Count"}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "count", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        ([], [CallKind.LLM]),
        ([{"role": "assistant", "content": "Nine."}, {"role": "user", "content": "Bye"}], [CallKind.LLM]),
        (
            [
                {"role": "assistant", "content": None, "tool_calls": CALLS},
                {"role": "tool", "tool_call_id": "c1", "content": "9"},
            ],
            [CallKind.LLM, CallKind.TOOL],
        ),
    ],
    ids=["a question alone", "words of the user", "a tool's answer"],
)
def test_what_stands_behind_the_last_reply_is_no_call_of_a_model(
    tmp_path: Path, after: list[dict[str, Any]], kinds: list[CallKind]
) -> None:
    run = run_of(tmp_path, [{"messages": [*ASKS, *after]}])
    assert [node.kind for node in run.nodes if not node.call.is_structure] == kinds
