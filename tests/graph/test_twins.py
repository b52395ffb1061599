from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_cases import GOLDEN
from reenact.graph.build import build
from reenact.read.open import open_spans
from reenact.values.call import CallKind, HttpRequest
from reenact.values.json import compact
from reenact.values.run import Node, Run
from reenact.values.span import Scope, SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"
RECORDED = GOLDEN / "twins" / "anthropic"
"""One program's spans, as several emitters wrote them at once: nine calls of a model, of which one was tried three
times, and one count of tokens. `instrumentors`: OpenInference 3.1, OpenLLMetry 0.62, the spans of anthropic 2.12, our
projection and our own record. `openinference`: OpenInference and the SDK. `logfire`: Logfire 5.2, of the SDK's what
Logfire lets through, our own record."""
CALLS = 9
ATTEMPTS = CALLS + 2
OURS, SDK = "reenact", "com.anthropic.sdk.python"
OPENINFERENCE, OPENLLMETRY = "openinference.instrumentation.anthropic", "opentelemetry.instrumentation.anthropic"


def only(spans: Iterable[SpanRecord]) -> Run:
    (run,) = build(spans)
    return run


def emitter(span: SpanRecord) -> str:
    if "reenact.projection.of" in span.attributes:
        return "projection"
    return OURS if "reenact.schema_version" in span.attributes else span.scope.name


def models(run: Run) -> list[Node]:
    """The calls of a model, without the count of tokens."""
    return [node for node in run.nodes if node.kind is CallKind.LLM and "count_tokens" not in node.call.name]


def without(spans: list[SpanRecord], dropped: set[str]) -> list[SpanRecord]:
    """Leave some emitters out, as if they had not been there: what hung below them hangs below what they hung below."""
    parents = {span.span_id: span.parent_id for span in spans if emitter(span) in dropped}

    def above(parent: str | None) -> str | None:
        while parent in parents:
            parent = parents[parent]
        return parent

    return [replace(span, parent_id=above(span.parent_id)) for span in spans if emitter(span) not in dropped]


# recorded traces


@pytest.fixture(scope="module")
def recorded() -> Callable[[str], list[SpanRecord]]:
    return lambda name: list(open_spans(RECORDED / name / "spans.jsonl"))


EMITTERS = (OURS, "projection", OPENINFERENCE, OPENLLMETRY, SDK)
SUBSETS = [set(left) for count in range(1, 6) for left in itertools.combinations(EMITTERS, count)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("present", SUBSETS, ids=lambda present: "+".join(sorted(present)))
def test_each_call_is_one_record_whoever_saw_it(
    recorded: Callable[[str], list[SpanRecord]], present: set[str], record_property: Callable[[str, object], None]
) -> None:
    spans = without(recorded("instrumentors"), set(EMITTERS) - present)
    assert {emitter(span) for span in spans} >= present
    expected = ATTEMPTS if present & {OURS, "projection"} else CALLS
    for seed in range(3):
        random.Random(seed).shuffle(spans)
        assert len(models(only(spans))) == expected
    if present & {OURS, "projection"}:
        assert {"reenact.schema_version" in node.span.attributes for node in models(only(spans))} == {True}
    elif OPENINFERENCE in present:
        assert {node.span.scope.name for node in models(only(spans))} == {OPENINFERENCE}
    record_property(
        "counted", "traces of one program, each call one record, by subset of {ours, projection, OI, OpenLLMetry, SDK}"
    )


def test_structure_is_kept_and_numbered_anew(recorded: Callable[[str], list[SpanRecord]]) -> None:
    run = only(recorded("instrumentors"))
    assert [node.number for node in run.nodes] == list(range(1, len(run.nodes) + 1))
    assert [node.call.name for node in run.nodes if node.call.is_structure] == ["ticket", "desk.py"]
    above = {node.id: node.parent for node in run.nodes}
    assert {above[node.id] for node in models(run)} == {run.nodes[1].id}
    assert run.notes[-1] == "29 spans of other instrumentations folded into the calls they show"


def test_logs_of_logfire_are_no_calls(recorded: Callable[[str], list[SpanRecord]]) -> None:
    spans = recorded("logfire")
    assert len(models(only(spans))) == ATTEMPTS
    assert len(models(only(without(spans, {OURS})))) == CALLS
    assert len(models(only(without(spans, {OURS, SDK})))) == CALLS


def test_openinference_and_the_sdk_s_own_spans_are_one(recorded: Callable[[str], list[SpanRecord]]) -> None:
    run = only(recorded("openinference"))
    assert [node.span.scope.name for node in models(run)] == [OPENINFERENCE] * CALLS


def test_a_backend_that_drops_the_scopes_changes_nothing(recorded: Callable[[str], list[SpanRecord]]) -> None:
    spans = without(recorded("instrumentors"), {OPENLLMETRY})
    assert len(models(only([replace(span, scope=Scope()) for span in spans]))) == ATTEMPTS


# made ones


def body(question: str, model: str = "m-1") -> dict[str, Any]:
    asked = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 1}
    return {"input.value": compact(asked), "gen_ai.request.model": model}


def ours(
    number: int, start: int, end: int, *, parent: int | None = None, question: str = "q", **more: Any
) -> SpanRecord:
    """A call of a model as we record it."""
    said: dict[str, Any] = {
        "reenact.schema_version": "1",
        "reenact.boundary": "http",
        "reenact.shape": "anthropic.messages",
        "openinference.span.kind": "LLM",
        "http.request.method": "POST",
        "url.full": "https://api.anthropic.com/v1/messages",
        "reenact.outcome": "returned",
        "http.response.status_code": 200,
        "output.value": "{}",
        **body(question),
        **more,
    }
    return made(number, start, end, parent, OURS, said)


def theirs(
    number: int, start: int, end: int, *, parent: int | None = None, scope: str = SDK, **more: Any
) -> SpanRecord:
    """A call of a model as another emitter shows it."""
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.provider.name": "anthropic"}
    return made(number, start, end, parent, scope, {**said, **more})


def made(number: int, start: int, end: int, parent: int | None, scope: str, said: dict[str, Any]) -> SpanRecord:
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=f"span {number}",
        start_ns=start,
        end_ns=end,
        attributes={name.replace("__", "."): value for name, value in said.items() if value is not None},
        scope=Scope(name=scope),
    )


def asked(question: str) -> str:
    return compact([{"role": "user", "parts": [{"type": "text", "content": question}]}])


def left(*spans: SpanRecord) -> list[tuple[int, int]]:
    """Give what is left, each with what it hangs below."""
    return [(int(node.id, 16), int(node.parent or "0", 16)) for node in only(spans).nodes]


def test_one_below_the_other_is_the_inner_one() -> None:
    assert left(theirs(1, 0, 90), ours(2, 10, 80, parent=1)) == [(2, 0)]


def test_one_beside_the_other_is_one() -> None:
    root = made(9, 0, 100, None, "app", {})
    assert left(root, theirs(1, 5, 90, parent=9), ours(2, 10, 80, parent=9)) == [(9, 0), (2, 9)]


def test_ours_stays_also_where_it_is_the_outer_one() -> None:
    assert left(ours(1, 0, 90), theirs(2, 10, 80, parent=1)) == [(1, 0)]


def test_what_ran_inside_hangs_below_the_one_that_stays() -> None:
    inside = made(3, 20, 30, 1, "app", {})
    before = made(4, 5, 8, 1, "app", {})
    assert left(theirs(1, 0, 90), before, ours(2, 10, 80, parent=1), inside) == [(4, 0), (2, 0), (3, 2)]


def test_one_after_the_other_are_two() -> None:
    assert left(theirs(1, 0, 90), ours(2, 91, 95)) == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ({}, 1),
        ({"gen_ai.request.model": "m-1-2026-11-20"}, 1),
        ({"gen_ai.request.model": "anthropic/m-1"}, 1),
        ({"gen_ai.request.model": "other"}, 2),
        ({"gen_ai.response.id": "msg_1"}, 1),
        ({"gen_ai.response.id": "msg_2"}, 2),
        ({"gen_ai.input.messages": asked('Where is "parcel" 4711\n in Köln?')}, 1),
        ({"gen_ai.input.messages": asked("Where is parcel 4712?")}, 2),
        ({"gen_ai.prompt.0.content": 'Where is "parcel" 4711\n in Köln?'}, 1),
        ({"gen_ai.operation.name": "embeddings"}, 2),
        ({"gen_ai.operation.name": "invoke_agent"}, 2),
        ({"gen_ai.operation.name": None}, 1),
    ],
    ids=str,
)
def test_twins_do_not_contradict_each_other(what: dict[str, Any], count: int) -> None:
    root = made(9, 0, 100, None, "app", {})
    reply = compact({"id": "msg_1", "model": "m-1", "content": []})
    own = ours(2, 10, 80, parent=9, question='Where is "parcel" 4711\n in Köln?', **{"output.value": reply})
    assert len(left(root, theirs(1, 5, 90, parent=9, **what), own)) == 1 + count


def test_an_emitter_that_cut_what_it_wrote_is_a_twin_where_it_stands_above() -> None:
    cut = theirs(1, 0, 90, **{"gen_ai.input.messages": asked("Where is")})
    assert left(cut, ours(2, 10, 80, parent=1, question="Where is parcel 4711?")) == [(2, 0)]


def test_equal_calls_at_once_stay_as_many_as_they_were() -> None:
    root = made(99, 0, 1000, None, "app", {})
    foreign = [theirs(number, number, 500, parent=99) for number in range(1, 41)]
    own = [ours(100 + number, 50 + number, 400 + number, parent=99) for number in range(1, 41)]
    assert len(left(root, *foreign, *own)) == 41
    assert len(left(root, *foreign, *own[:-1])) == 41, "one of theirs, of which we saw nothing, stays"


def test_attempts_are_records_of_their_own_and_none_hangs_below_another() -> None:
    refused = {"http.response.status_code": 529}
    own = [ours(2, 10, 20, parent=1, **refused), ours(3, 30, 40, parent=1, **refused), ours(4, 50, 60, parent=1)]
    assert left(theirs(1, 0, 90), *own) == [(2, 0), (3, 0), (4, 0)]


def test_a_frame_around_several_calls_is_none_of_them() -> None:
    own = [ours(number, number * 10, number * 10 + 5, parent=1) for number in (2, 3)]
    assert left(theirs(1, 0, 90), *own) == [(1, 0), (2, 1), (3, 1)]


def test_a_call_that_a_tool_made_inside_a_call_is_another() -> None:
    tool = made(2, 10, 80, 1, "app", {"openinference.span.kind": "TOOL"})
    assert left(theirs(1, 0, 90), tool, ours(3, 20, 70, parent=2)) == [(1, 0), (2, 1), (3, 2)]


def test_the_agents_own_function_is_kept_around_the_call_it_makes() -> None:
    said = {"reenact.schema_version": "1", "reenact.boundary": "function", "reenact.function": "agent:think"}
    own = made(1, 0, 90, None, OURS, {**said, "openinference.span.kind": "LLM", "input.value": "{}"})
    assert left(own, theirs(2, 10, 80, parent=1)) == [(1, 0), (2, 1)]


def test_one_emitter_s_calls_inside_each_other_are_its_own_affair() -> None:
    assert left(theirs(1, 0, 90), theirs(2, 10, 80, parent=1)) == [(1, 0), (2, 1)]


def test_three_emitters_are_one_record() -> None:
    frame = theirs(1, 0, 99, scope="framework")
    assert left(frame, theirs(2, 10, 80, parent=1), ours(3, 20, 70, parent=2)) == [(3, 0)]


def test_without_ours_the_one_with_bodies_stays() -> None:
    said = {"openinference.span.kind": "LLM", "llm.system": "anthropic", "output.value": "{}", **body("q")}
    assert left(made(1, 0, 90, None, OPENINFERENCE, said), theirs(2, 10, 80, parent=1)) == [(1, 0)]
    run = only([made(1, 0, 90, None, OPENINFERENCE, said), theirs(2, 10, 80, parent=1)])
    assert isinstance(run.nodes[0].call.request, HttpRequest)


def tool(number: int, start: int, end: int, scope: str, name: str, arguments: str, **more: Any) -> SpanRecord:
    said: dict[str, Any] = {"openinference.span.kind": "TOOL", "tool.name": name, "input.value": arguments}
    if scope == OURS:
        said |= {"reenact.schema_version": "1", "reenact.boundary": "function", "reenact.function": f"agent:{name}"}
        said |= {"reenact.outcome": "returned", "output.value": "1", "output.mime_type": "application/json"}
    span = made(number, start, end, None, scope, {**said, **more})
    return replace(span, name=name)


def test_tools_are_recognised_by_name_and_told_apart_by_arguments() -> None:
    own = [tool(1, 10, 50, OURS, "fetch", '{"item":"tea"}'), tool(2, 11, 51, OURS, "fetch", '{"item":"ink"}')]
    foreign = [tool(3, 5, 55, "app", "fetch", '{"item":"ink"}'), tool(4, 6, 56, "app", "fetch", '{"item":"tea"}')]
    assert left(*own, *foreign) == [(1, 0), (2, 0)]
    assert len(left(*own, tool(3, 5, 55, "app", "weigh", '{"item":"ink"}'))) == 3


def test_a_trace_of_one_emitter_is_left_alone() -> None:
    spans = [theirs(number, 0, 100, parent=number - 1 or None) for number in range(1, 30)]
    assert len(left(*spans)) == 29


@pytest.mark.slow
def test_thousands_of_calls_at_once_are_quick() -> None:
    spans = [theirs(number, number, 10**9) for number in range(1, 1501)]
    spans += [ours(10_000 + number, number, 10**9) for number in range(1, 1501)]
    assert len(left(*spans)) == 1500


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ours", "sdk", "other", "app"]),
            st.none() | st.integers(1, 12),
            st.integers(0, 20),
            st.integers(0, 20),
        ),
        max_size=12,
    )
)
def test_whatever_the_trace_nothing_of_one_emitter_alone_is_lost(
    drawn: list[tuple[str, int | None, int, int]],
) -> None:
    spans: list[SpanRecord] = []
    for number, (who, parent, start, took) in enumerate(drawn, 1):
        if who == "ours":
            spans.append(ours(number, start, start + took, parent=parent))
        elif who == "app":
            spans.append(made(number, start, start + took, parent, "app", {}))
        else:
            spans.append(theirs(number, start, start + took, parent=parent, scope=who))
    for run in build(spans):
        places = {node.id: node.number for node in run.nodes}
        assert [*places.values()] == list(range(1, len(places) + 1))
        assert all(node.parent is None or places[node.parent] < node.number for node in run.nodes)
        kept = {int(node.id, 16) for node in run.nodes}
        counts = {who: sum(each[0] == who for each in drawn) for who in ("ours", "sdk", "other", "app")}
        assert {number for number, each in enumerate(drawn, 1) if each[0] in ("ours", "app")} <= kept
        assert len(kept) >= counts["app"] + max(counts["ours"], counts["sdk"], counts["other"])
