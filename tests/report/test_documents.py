from __future__ import annotations

import json

from made import Made, user
from reenact.compare.align import compare
from reenact.compare.judge import judge_replay
from reenact.graph.verdict import judge
from reenact.report.documents import (
    call_document,
    diff_document,
    doctor_document,
    ls_document,
    replay_document,
    show_document,
)
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned
from reenact.values.run import Run


def sample() -> Run:
    made = Made(1)
    made.llm([user("go")], "ok")
    made.llm([user("go on")], "streamed", stream=True)
    made.tool("read", {"path": "x"}, {"rows": 2})
    made.tool("write", {}, raised=OSError("full"))
    made.tool("late", unfinished=True)
    return made.run()


def test_show_holds_what_is_promised_in_causal_order() -> None:
    run = sample()
    document = show_document(run, {"id": run.id, "verdict": "partial"}, judge(run))
    json.dumps(document)
    assert document["run"]["id"] == run.id
    assert document["run"]["verdict"]["grade"] == "partial"
    assert set(document["run"]["verdict"]["reasons"][0]) == {"call", "field", "lost", "fix"}
    promised = {"id", "parent", "kind", "name", "started", "duration_ms", "request", "outcome", "attributes"}
    assert all(promised <= set(call) for call in document["calls"])
    assert [call["number"] for call in document["calls"]] == [1, 2, 3, 4, 5, 6]
    _, whole, stream, read, write, late = document["calls"]
    assert whole["request"]["body"]["messages"] == [user("go")]
    assert whole["outcome"]["returned"]["body"]["choices"][0]["message"]["content"] == "ok"
    assert stream["outcome"]["streamed"]["body"]["choices"][0]["message"]["content"] == "streamed"
    assert stream["outcome"]["streamed"]["chunks"][0]["data"].startswith("data: ")
    assert read["request"] == {"function": "agent:read", "arguments": {"path": "x"}}
    assert read["outcome"] == {"returned": {"rows": 2}}
    assert write["outcome"]["raised"]["message"] == "full"
    assert late["outcome"] == {"unfinished": True}
    assert read["attributes"]["openinference.span.kind"] == "TOOL"
    assert "input.value" not in read["attributes"]


def test_bytes_that_are_no_text_come_in_base64() -> None:
    made = Made(1)
    request = HttpRequest(shape="unknown", method="POST", url="https://api.example/x", body=Body(b"\xff\x00"))
    outcome = Returned(payload=HttpReply(status=200, headers=(("a", "b"),), body=Body(b"plain")))
    made.add(CallKind.LLM, "odd", request, outcome, more={"blob": b"\x00", "list": (1, b"\x01"), "map": {"k": b"\x02"}})
    call = call_document(made.run().nodes[1])
    assert call["request"]["body"] == {"base64": "/wA="}
    assert call["outcome"]["returned"] == {"status": 200, "headers": [["a", "b"]], "body": "plain"}
    assert call["attributes"]["blob"] == {"$bytes": "AA=="}
    assert call["attributes"]["list"] == [1, {"$bytes": "AQ=="}]
    json.dumps(call)


def test_doctor_holds_the_verdict_and_the_kit() -> None:
    run = sample()
    document = doctor_document(run, judge(run))
    assert document["verdict"]["grade"] == "partial"
    assert {"name", "state", "detail", "fix"} == set(document["kit"][0])


def test_ls_holds_the_summaries() -> None:
    assert ls_document([{"id": "a"}]) == {"runs": [{"id": "a"}]}


def test_diff_names_the_first_divergence_and_sides_that_are_absent() -> None:
    a, b = Made(1), Made(2)
    a.tool("read", {"n": 1, "m": 1}, 1)
    b.tool("read", {"n": 2, "m": 2}, 1)
    b.tool("write", {}, 1)
    document = diff_document(compare(a.run(), b.run()))
    json.dumps(document)
    first, second = document["divergences"]
    assert document["first"] == first
    assert (document["same"], document["same_path"]) == (False, False)
    assert (first["call"], first["field"], first["a"], first["b"]) == ("tool read #2", "arguments.m", 1, 2)
    assert [each["field"] for each in first["more"]] == ["arguments.n"]
    assert (second["a"], second["absent"]) == (None, ["a"])
    assert diff_document(compare(a.run(), a.run()))["first"] is None


def test_replay_holds_what_is_promised() -> None:
    run = sample()
    result = judge_replay(run, (), None, [{"t": "joined"}], exit_code=0, recorded_exit=0)
    document = replay_document(result, recorded=run.id, commits=("a", "b"))
    json.dumps(document)
    promised = {"result", "answered", "live", "misses", "unconsumed", "refused", "ignored", "divergences", "replay"}
    assert promised <= set(document)
    assert document["result"] == "diverged"
