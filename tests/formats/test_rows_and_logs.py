"""What Application Insights, the Gemini CLI and OpenAI's evals write down, where files say less than one thinks."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary.reading import answered, asked
from reenact.errors import InputError
from reenact.formats import app_insights, gemini_cli, openai_evals
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_recording
from reenact.values.call import CallKind, Raised, Returned, Value
from reenact.values.log import LogRecord, Record
from reenact.values.message import Text
from reenact.values.run import Run
from reenact.values.span import STATUS_ERROR, SpanRecord

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"


def decoded(member: Any, data: Any) -> list[Record]:
    text = data if isinstance(data, str) else json.dumps(data)
    return list(member.FORMAT.decode(io.BytesIO(text.encode()), Path("file")))


def golden(member: Any, path: str) -> list[Run]:
    return build(joined(decoded(member, (GOLDEN / path).read_text())))


ROW = {
    "TimeGenerated": "2026-11-20T09:04:05Z",
    "OperationId": "0af7651916cd43dd8448eb211c80319c",
    "Id": "b7ad6b7169203331",
    "ParentId": "",
    "Name": "chat",
    "DurationMs": 2,
    "Success": True,
    "Properties": {},
}


def row(**changed: Any) -> SpanRecord:
    (span,) = decoded(app_insights, ROW | changed)
    assert isinstance(span, SpanRecord)
    return span


@pytest.mark.parametrize(
    ("parent", "ours"),
    [
        ("", None),
        (ROW["OperationId"], None),  # a request at the top names its operation
        ("00f067aa0ba902b7", "00f067aa0ba902b7"),
        (f"|{ROW['OperationId']}.00f067aa0ba902b7.", "00f067aa0ba902b7"),
    ],
)
def test_a_row_hangs_below_the_span_that_it_names(parent: str, ours: str | None) -> None:
    assert row(ParentId=parent).parent_id == ours


@pytest.mark.parametrize("success", [False, "False"], ids=["flag", "text"])
def test_a_row_without_success_is_an_error(success: Any) -> None:
    assert row(Success=success).status == STATUS_ERROR
    assert row().status == 0


@pytest.mark.parametrize(
    ("told", "ns"), [(1.5, 1_500_000), ("2", 2_000_000), (-1, 0), ("1e999", 0), ("soon", 0)], ids=str
)
def test_a_duration_is_one_or_none(told: Any, ns: int) -> None:
    span = row(DurationMs=told)
    assert span.end_ns - span.start_ns == ns


def test_a_text_that_may_have_been_cut_is_told() -> None:
    assert "reenact.lost" not in row(Properties={"said": "x" * 8191}).attributes
    (lost,) = row(Properties=json.dumps({"said": "x" * 8192})).attributes["reenact.lost"]  # type: ignore[misc]
    assert "8,192" in str(lost)


def test_a_query_that_left_out_the_times_is_refused() -> None:
    with pytest.raises(InputError, match="has no time: a query has to keep `TimeGenerated`"):
        decoded(app_insights, {name: value for name, value in ROW.items() if name != "TimeGenerated"})


def test_an_exception_is_an_event_of_its_span() -> None:
    told = {**ROW, "ExceptionType": "TimeoutError", "OuterMessage": "late", "ParentId": ROW["Id"]}
    (event,) = decoded(app_insights, {name: told[name] for name in told if name not in ("DurationMs", "Success", "Id")})
    assert isinstance(event, LogRecord)
    assert (event.span_id, event.event_name, event.attributes["exception.message"]) == (ROW["Id"], "exception", "late")


def test_a_session_gives_each_tool_what_was_sent_back() -> None:
    (run,) = golden(gemini_cli, "gemini_cli/session/input.json")
    tools = [node for node in run.nodes if node.kind is CallKind.TOOL]
    given = {
        node.tool_call_id: node.outcome.payload.json
        for node in tools
        if isinstance(node.outcome, Returned) and isinstance(node.outcome.payload, Value)
    }
    assert given == {"read_file-1": "otters"}
    (failed,) = (node.outcome.exception.message for node in tools if isinstance(node.outcome, Raised))
    assert failed == "no such tool"
    reply = answered(next(node for node in run.nodes if node.kind is CallKind.LLM))
    assert reply is not None
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.total, reply.usage.reasoning) == (700, 28, 728, 8)


@pytest.mark.parametrize("beside", [{}, {"projectHash": "h"}, {"startTime": "2026-11-20T09:04:05Z"}], ids=str)
def test_a_session_is_known_by_a_reply_whatever_else_its_header_names(tmp_path: Path, beside: dict[str, str]) -> None:
    messages = [{"type": "user", "content": [{"text": "Otters?"}]}, {"type": "gemini", "content": "Nine."}]
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"sessionId": "s", "messages": messages, **beside}))
    opened = open_recording(path)
    assert [record.name for record in opened.records if isinstance(record, SpanRecord)] == [
        "ChatCompletion",
        "gemini session",
    ]
    assert opened.formats == ["gemini-cli"]


@pytest.mark.parametrize(
    ("tokens", "completion"),
    [
        ({"input": 10, "output": 3, "thoughts": 4, "total": 17}, 7),
        ({"input": 10, "output": 3, "thoughts": 4, "tool": 5, "total": 22}, 7),
        ({"input": 10, "output": 7, "thoughts": 4, "total": 17}, 7),
        ({"input": 10, "output": 7, "thoughts": 4}, 7),
    ],
    ids=["beside", "tools beside", "within", "no total"],
)
def test_tokens_of_thoughts_are_the_output_s_where_the_total_says_so(tokens: dict[str, int], completion: int) -> None:
    messages = [{"type": "user", "content": "Otters?"}, {"type": "gemini", "content": "Nine.", "tokens": tokens}]
    (run,) = build(joined(decoded(gemini_cli, {"sessionId": "s", "messages": messages})))
    reply = answered(next(node for node in run.nodes if node.kind is CallKind.LLM))
    assert reply is not None
    assert reply.usage.completion == completion


def test_a_message_that_came_again_counts_as_it_came_last() -> None:
    (run,) = golden(gemini_cli, "gemini_cli/lines/input.jsonl")
    assert [node.kind for node in run.nodes if node.kind is not CallKind.CHAIN].count(CallKind.LLM) == 2


def test_a_session_in_which_no_model_spoke_is_refused() -> None:
    header = {"sessionId": "s", "projectHash": "h", "startTime": "2026-11-20T09:04:05Z", "messages": []}
    with pytest.raises(InputError, match="holds no reply of a model"):
        decoded(gemini_cli, header)


def test_each_sample_of_an_eval_is_a_run_and_each_call_asks_by_itself() -> None:
    runs = golden(openai_evals, "openai_evals/log/input.jsonl")
    said: dict[str, list[list[str]]] = {}
    for run in runs:
        for node in run.nodes:
            if node.kind is CallKind.LLM and (question := asked(node)) is not None:
                texts = ["".join(part.text for part in m.parts if isinstance(part, Text)) for m in question.messages]
                said.setdefault(run.name, []).append(texts)
    assert said == {
        "ports.dev.0": [["Answer with one word.", "Which river is Delft on?"]],
        "ports.dev.1": [["Is Faro a port? "], ["Is Faro a port?", "Yes", "Sure?"]],
    }


def test_a_log_of_an_eval_that_asked_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="holds no sample of a model"):
        decoded(openai_evals, {"spec": {"completion_fns": ["dummy"], "eval_name": "e"}})


def test_a_page_of_phoenix_is_known_though_its_first_span_begins_with_a_long_vector(tmp_path: Path) -> None:
    """Its attributes come first, and fill all that is looked at."""
    kinds = ("array", "bool", "bytes", "double", "int", "kvlist", "string")

    def value(**given: object) -> dict[str, object]:
        return {f"{kind}_value": given.get(kind) for kind in kinds}

    vector = value(array={"values": [value(double=number / 7) for number in range(2000)]})
    attributes = [
        {"key": "embedding.embeddings.0.embedding.vector", "value": vector},
        {"key": "openinference.span.kind", "value": value(string="EMBEDDING")},
    ]
    times = {"start_time_unix_nano": 1_700_000_000_000_000_000, "end_time_unix_nano": 1_700_000_001_000_000_000}
    ids = {"trace_id": f"{1:032x}", "span_id": f"{2:016x}", "parent_span_id": None}
    span = {"attributes": attributes, **times, "events": None, "links": None, "name": "embed", **ids}
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"data": [{**span, "status": {"code": 0, "message": None}}], "next_cursor": None}))
    opened = open_recording(path)
    (record,) = opened.records
    assert isinstance(record, SpanRecord)
    assert (opened.formats, record.name) == (["phoenix-json"], "embed")
