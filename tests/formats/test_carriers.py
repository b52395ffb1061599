"""Rows, logs and lists of messages: what the formats that are only read make of odd and of broken input."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary.reading import answered, asked
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.values.log import LogRecord, Record
from reenact.values.message import Text, ToolCall
from reenact.values.run import Run
from reenact.values.span import SpanRecord

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"
FORMATS = {member.name: member for member in members("formats", Format)}
OWN = ["bedrock-invocations", "clickhouse", "har", "logfire", "messages", "nock", "phoenix-dataframe", "trajectory"]
OWN.append("vcr-cassette")
INPUTS = [path for name in OWN for path in sorted((GOLDEN / name.replace("-", "_")).glob("*/input.*"))]
TRACE, SPAN = "20fbe07c68e9b62569ca7c0d846c7395", "08d2de1581a113ca"


def read(name: str, *documents: Any) -> list[Record]:
    data = "\n".join(json.dumps(each) for each in documents).encode()
    return list(FORMATS[name].decode(io.BytesIO(data), Path("file")))


def refused_or_read(member: Format, data: bytes) -> InputError | list[Record]:
    try:
        return list(member.decode(io.BytesIO(data), Path("file")))
    except InputError as refusal:
        return refusal


def runs(name: str, *documents: Any) -> list[Run]:
    return build(read(name, *documents))


def golden(case: str) -> list[Run]:
    (path,) = (GOLDEN / case).glob("input.*")
    member = FORMATS[case.partition("/")[0].replace("_", "-")]
    return build(member.decode(io.BytesIO(path.read_bytes()), path))


# ---------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}")
def test_damage_is_refused_with_a_place_or_read_as_less(path: Path) -> None:
    """Cut off, with bytes turned, with pieces doubled: an error of ours or other spans, nothing else, and soon."""
    member = FORMATS[path.parent.parent.name.replace("_", "-")]
    good, chance = path.read_bytes(), random.Random(path.name)
    for _ in range(60):
        bad = bytearray(good)
        start = chance.randrange(len(bad))
        match chance.randrange(4):
            case 0:
                del bad[start:]
            case 1:
                bad[start] = chance.randrange(256)
            case 2:
                end = min(len(bad), start + chance.randrange(1, 60))
                del bad[start:end]
            case _:
                end = min(len(bad), start + chance.randrange(1, 60))
                bad[start:start] = bad[start:end]
        assert 0 <= member.recognises(bytes(bad[: 64 << 10])) <= 1
        found = refused_or_read(member, bytes(bad))
        if isinstance(found, InputError):
            assert found.place.startswith("file")
        else:
            build(found)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}")
def test_each_is_known_by_its_content(path: Path) -> None:
    head = path.read_bytes()[: 64 << 10]
    surest = max(FORMATS.values(), key=lambda member: member.recognises(head))
    assert surest.name == path.parent.parent.name.replace("_", "-")


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("odd", [None, 5, "x", [], [[]], {}, [None], {"data": None}, {"log": {"entries": [5]}}])
def test_what_is_no_record_is_refused_or_nothing(name: str, odd: Any) -> None:
    found = refused_or_read(FORMATS[name], json.dumps(odd).encode())
    if isinstance(found, InputError):
        assert found.place.startswith("file")
    else:
        assert all(isinstance(each, SpanRecord) for each in found)


# --------------------------------------------------------------------------------------------------------------- rows


def test_clickhouse_rows_are_typed_by_their_names_alone() -> None:
    attributes = {
        "gen_ai.usage.input_tokens": "7",
        "gen_ai.request.temperature": "0.5",
        "gen_ai.request.seed": "-3",
        "gen_ai.response.finish_reasons": '["stop"]',
        "gen_ai.input.messages": '[{"role":"user"}]',
        "gen_ai.prompt": "42",
        "gen_ai.request.model": "4",
        "llm.is_streaming": "true",
        "user.id": "007",
        "tool_call.id": "12",
    }
    row = {"Timestamp": "2026-11-22 08:10:00", "TraceId": TRACE, "SpanId": SPAN, "SpanName": "chat"}
    (span,) = read("clickhouse", {**row, "SpanAttributes": attributes, "Duration": "5", "StatusCode": "STATUS_CODE_OK"})
    assert isinstance(span, SpanRecord)
    assert span.attributes == {
        **attributes,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": -3,
        "gen_ai.response.finish_reasons": ["stop"],
        "llm.is_streaming": True,
    }
    assert (span.end_ns - span.start_ns, span.status, span.parent_id) == (5, 1, None)


def test_clickhouse_logs_are_log_events() -> None:
    row = {
        "Timestamp": "2026-11-22 08:10:00.000000200",
        "TraceId": TRACE,
        "SpanId": SPAN,
        "SeverityNumber": 9,
        "Body": '{"content":"hi"}',
        "LogAttributes": {"event.name": "gen_ai.user.message"},
        "ResourceAttributes": {"service.name": "desk"},
    }
    (log,) = read("clickhouse", row)
    assert isinstance(log, LogRecord)
    assert (log.event_name, log.body, log.severity) == ("gen_ai.user.message", {"content": "hi"}, 9)
    assert log.time_ns % 1000 == 200


def test_a_stream_of_logfire_that_ends_in_an_error_is_no_recording() -> None:
    with pytest.raises(InputError, match="quota"):
        read("logfire", {"type": "schema"}, {"type": "error", "message": "quota"})


def test_logfire_gives_pending_spans_under_their_name() -> None:
    (path,) = (GOLDEN / "logfire/rows").glob("input.*")
    found = list(FORMATS["logfire"].decode(io.BytesIO(path.read_bytes()), path))
    kinds = [record.attributes["logfire.span_type"] for record in found if isinstance(record, SpanRecord)]
    assert kinds == ["span", "pending_span", "span"]
    assert isinstance(found[0].attributes["gen_ai.input.messages"], str)


# ------------------------------------------------------------------------------------------------------------ messages


def texts(run: Run) -> list[tuple[list[str], list[str]]]:
    """Each model call: the roles it was asked with, and what it said."""
    found: list[tuple[list[str], list[str]]] = []
    for node in run.nodes:
        if node.kind != "LLM":
            continue
        request, reply = asked(node), answered(node)
        roles = [message.role for message in request.messages] if request else []
        parts = [part for message in (reply.messages if reply else ()) for part in message.parts]
        said = [
            part.text if isinstance(part, Text) else part.name for part in parts if isinstance(part, Text | ToolCall)
        ]
        found.append((roles, said))
    return found


WEATHER = [(["system", "user"], ["weather"]), (["system", "user", "assistant", "tool"], ["It rains."])]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("messages/bare_list", WEATHER),
        ("messages/one_a_line", WEATHER),
        ("messages/sharegpt", [(["user"], ["Hello."])]),
        ("messages/logged_calls", [(["system", "user"], ["weather"])]),
        (
            "trajectory/codex_rollout",
            [
                (["system", "user"], ["shell"]),
                (["system", "user", "assistant", "assistant", "tool"], ["There is a.py."]),
            ],
        ),
        (
            "trajectory/claude_session",
            [(["user"], ["I look.", "Bash"]), (["user", "assistant", "tool"], ["There is a.py."])],
        ),
        ("trajectory/claude_sdk", [([], ["ok"])]),
        ("trajectory/atif", [(["user"], ["weather"]), (["user", "assistant", "tool"], ["It rains."])]),
        ("bedrock_invocations/converse", WEATHER),
    ],
)
def test_a_turn_of_the_model_is_a_call_that_asked_all_before_it(
    case: str, expected: list[tuple[list[str], list[str]]]
) -> None:
    (run,) = golden(case)
    assert [(roles, said) for roles, said in texts(run)] == [
        ([("system" if role == "developer" else role) for role in roles], said) for roles, said in expected
    ]


def test_input_and_output_of_a_batch_meet() -> None:
    (run,) = golden("messages/batch")
    assert [bool(reply) for _, reply in texts(run)] == [True, False]


def test_a_tool_that_no_later_request_repeats_is_a_call_of_its_own() -> None:
    second = golden("trajectory/tau_bench")[-1]
    tools = [node for node in second.nodes if node.kind == "TOOL"]
    assert [(node.call.name, node.outcome.payload.json) for node in tools] == [("weather", "rain")]  # type: ignore[union-attr]


def test_equal_conversations_are_runs_of_their_own() -> None:
    one = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    assert len({run.id for run in runs("messages", one, one, one)}) == 3


def test_a_very_long_transcript_does_not_grow_without_bounds() -> None:
    said = [{"role": role, "content": "x" * 200_000} for _ in range(60) for role in ("user", "assistant")]
    found = read("messages", {"messages": said})
    size = sum(len(str(span.attributes.get("input.value", ""))) for span in found)
    assert size < 400 << 20
    assert "all but the last" in str(found[-2].attributes["reenact.lost"])


def test_bodies_that_bedrock_keeps_elsewhere_are_said() -> None:
    cold = golden("bedrock_invocations/cloudwatch")[-1]
    (node,) = [node for node in cold.nodes if node.kind == "LLM"]
    lost = node.call.attributes["reenact.lost"]
    assert any("s3://logs/in.json.gz" in str(each) for each in lost if each)  # type: ignore[union-attr]
