from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from openinference.instrumentation import suppress_tracing, using_metadata, using_session, using_tags, using_user
from opentelemetry.sdk.trace import TracerProvider

import reenact
from held import Did, Held
from reenact.boundary.forgiving import swallow
from reenact.errors import Miss
from reenact.graph.verdict import judge
from reenact.pipeline import recording
from reenact.values.run import FAILURES, Run

IDENTITY = ("session.id", "user.id", "reenact.tenant")


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


@reenact.chain
def research(item: str) -> str:
    return look_up(item)


def identities(run: Run) -> set[tuple[object, ...]]:
    return {tuple(node.span.attributes.get(name) for name in IDENTITY) for node in run.nodes}


def named(did: Did) -> dict[str, Run]:
    return {run.name: run for run in did.runs}


def test_a_unit_of_work_is_a_trace_of_its_own_with_its_input(held: Held) -> None:
    def work() -> list[str | None]:
        with reenact.run("first", input={"question": "tea?"}) as one:
            research("tea")
        with reenact.run("second") as two:
            research("milk")
        return [one, two]

    did = held.record(work)
    assert [run.id for run in did.runs] == did.value
    assert [run.name for run in did.runs] == ["first", "second"]
    assert len({run.recording for run in did.runs}) == 1
    first = did.runs[0]
    assert [node.call.name for node in first.nodes] == ["first", "research", "look_up"]
    assert first.root is not None
    assert first.root.span.attributes["input.value"] == '{"question":"tea?"}'
    assert [node.parent for node in first.nodes] == [None, first.root.id, first.nodes[1].id]


def test_a_script_s_own_root_is_made_only_where_a_call_is_outside_of_every_unit(held: Held) -> None:
    def inside() -> None:
        with reenact.run("unit"):
            look_up("tea")

    assert [run.name for run in held.record(inside).runs] == ["unit"]
    assert held.record(lambda: None).runs == ()
    outside = held.record(lambda: (look_up("tea"), inside(), look_up("milk")))
    assert sorted(len(run.nodes) for run in outside.runs) == [2, 3]


def test_a_call_on_a_stray_thread_is_the_only_open_unit_s(held: Held) -> None:
    ready, asked = threading.Event(), threading.Event()

    def listen() -> None:
        ready.set()
        asked.wait(60)
        look_up("tea")

    def work() -> None:
        thread = threading.Thread(target=listen)  # started outside of the unit, as a worker for a queue is
        thread.start()
        ready.wait(60)
        with reenact.run("unit"):
            asked.set()
            thread.join()

    assert [(run.name, len(run.nodes)) for run in held.record(work).runs] == [("unit", 2)]


def test_units_at_the_same_time_keep_their_calls_apart(held: Held) -> None:
    async def unit(name: str) -> None:
        with reenact.run(name, user=f"{name}'s user"):
            for _ in range(3):
                await asyncio.sleep(0)
                research(name)

    async def work() -> None:
        await asyncio.gather(*(unit(f"unit {number}") for number in range(4)))

    did = held.record(lambda: asyncio.run(work()))
    assert len(did.runs) == 4
    for run in did.runs:
        assert len(run.nodes) == 7
        assert identities(run) == {(None, f"{run.name}'s user", None)}


def test_user_session_and_tenant_are_on_every_span(held: Held) -> None:
    def work() -> None:
        research("outside")
        with reenact.run("inside", user="u-1"):
            research("inside")

    did = named(held.record(work, user="u-0", session="s-0", tenant="acme"))
    (outside,) = [run for name, run in did.items() if name != "inside"]
    assert identities(outside) == {("s-0", "u-0", "acme")}
    assert identities(did["inside"]) == {("s-0", "u-1", "acme")}
    assert (did["inside"].session, did["inside"].user, did["inside"].tenant) == ("s-0", "u-1", "acme")


def test_user_session_and_tenant_of_the_environment(held: Held) -> None:
    environ = {"REENACT_USER": "u-2", "REENACT_SESSION": "s-2", "REENACT_TENANT": "acme"}
    (run,) = held.record(lambda: research("tea"), environ).runs
    assert identities(run) == {("s-2", "u-2", "acme")}


def test_openinference_s_own_ways_to_say_so(held: Held) -> None:
    def work() -> None:
        with using_session("s-3"), using_user("u-3"), using_metadata({"plan": "pro"}), using_tags(["a", "b"]):
            with reenact.run("unit"):
                research("tea")
            research("outside")

    runs = named(held.record(work))
    for node in runs["unit"].nodes:
        assert node.span.attributes["session.id"] == "s-3"
        assert node.span.attributes["user.id"] == "u-3"
        assert json.loads(str(node.span.attributes["metadata"])) == {"plan": "pro"}
        assert node.span.attributes["tag.tags"] == ["a", "b"]
    (outside,) = [run for name, run in runs.items() if name != "unit"]
    assert {node.span.attributes.get("session.id") for node in outside.nodes[1:]} == {"s-3"}


def test_suppressed_calls_pass_by_and_are_counted(held: Held) -> None:
    def work() -> str:
        look_up("seen")
        with suppress_tracing():
            return look_up("hidden")

    did = held.record(work)
    assert did.value == "hidden is there"
    assert len(did.calls) == 1
    assert did.runs[0].root is not None
    assert did.runs[0].root.span.attributes["reenact.suppressed"] == 1
    assert "reenact.suppressed" not in (held.record(lambda: look_up("x")).runs[0].root or did.calls[0]).span.attributes


def test_a_fault_of_the_recorder_s_own_lowers_the_verdict_of_the_run_that_it_fell_into(held: Held) -> None:
    def work(fault: Callable[[], None]) -> str:
        result = look_up("x")
        fault()
        return result

    def failed(*, structure: bool) -> None:
        try:
            int("our own")
        except ValueError:
            swallow("test_runs", structure=structure)

    for fault, count in (
        (lambda: None, 0),
        (lambda: failed(structure=False), 1),
        (lambda: failed(structure=True), 0),
    ):
        (run,) = held.record(partial(work, fault)).runs
        assert run.root is not None
        assert run.root.span.attributes.get(FAILURES, 0) == count
        reasons = [reason.lost for reason in judge(run).reasons if reason.field == "records"]
        assert reasons == ["what reenact failed to write down, 1 times, by a fault of its own"] * count


def test_a_tool_that_leaves_another_working_folder_behind_makes_a_recording_partial(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()

    @reenact.tool
    def enter(folder: str) -> str:
        os.chdir(folder)
        return folder

    for folder, count in ((".", 0), ("below", 1)):
        (run,) = held.record(partial(enter, folder)).runs
        reasons = [reason.lost for reason in judge(run).reasons if reason.field == "state"]
        left = f"the working folder that it left behind ({tmp_path / 'below'}); an answer changes none"
        assert reasons == [left] * count


def test_in_a_replay_nothing_leads_past_the_recording(held: Held) -> None:
    ran: list[str] = []

    @reenact.tool
    def order(item: str) -> None:
        ran.append(item)

    def work() -> None:
        look_up("seen")
        with suppress_tracing():
            order("tea")

    did = held.record(work)
    again = held.replay(did, work)
    assert ran == ["tea"]
    assert isinstance(again.error, Miss)


def test_a_unit_that_fails_says_what_it_died_of_and_raises_it(held: Held) -> None:
    def work() -> None:
        with reenact.run("unit"):
            raise ZeroDivisionError("by nought")

    did = held.record(work)
    assert isinstance(did.error, ZeroDivisionError)
    root = did.runs[0].root
    assert root is not None
    assert root.span.attributes["exception.type"] == "ZeroDivisionError"
    assert (root.span.status, root.span.status_message) == (2, "ZeroDivisionError: by nought")
    assert [event.name for event in root.span.events] == ["exception"]


def test_a_recording_may_stop_inside_of_a_unit(held: Held, caplog: pytest.LogCaptureFixture) -> None:
    made = held.start()
    with reenact.run("unit"):
        look_up("tea")
        runs = held.finish(made)
    assert [(run.name, len(run.nodes)) for run in runs] == [("unit", 2)]
    assert caplog.records == []


def test_without_a_recording_a_unit_is_nothing() -> None:
    assert recording.current() is None
    with reenact.run("unit") as opened:
        assert opened is None


def test_what_is_counted_is_counted_for_each_run(held: Held) -> None:
    secret = "ghp_" + "a1B2" * 9

    def work() -> None:
        with reenact.run("first"):
            look_up(secret)
        with reenact.run("second"):
            look_up("tea")

    runs = named(held.record(work))
    counts = {name: run.root.span.attributes["reenact.redaction.count"] for name, run in runs.items() if run.root}
    assert counts["first"] >= 1  # type: ignore[operator]
    assert counts["second"] == 0


# inside a trace of the application's


def test_a_run_hangs_below_the_application_s_current_span(held: Held) -> None:
    tracer = TracerProvider().get_tracer("application")

    def work() -> tuple[int, int]:
        with tracer.start_as_current_span("request") as span, reenact.run("unit"):
            look_up("tea")
        context = span.get_span_context()
        return context.trace_id, context.span_id

    did = held.record(work)
    trace_id, span_id = did.value
    (run,) = did.runs
    assert run.id == format(trace_id, "032x")
    assert run.root is not None
    assert run.root.span.parent_id == format(span_id, "016x")
    assert not any(node.orphan for node in run.nodes)


def test_further_runs_in_one_trace_of_the_application_s_are_traces_of_their_own(held: Held) -> None:
    tracer = TracerProvider().get_tracer("application")

    def work() -> int:
        with tracer.start_as_current_span("batch") as span:
            for number in range(3):
                with reenact.run(f"unit {number}", user=f"u-{number}"):
                    look_up("tea")
        return span.get_span_context().span_id

    did = held.record(work)
    assert len({run.id for run in did.runs}) == 3
    for run in did.runs:
        assert len(run.nodes) == 2
        assert identities(run) == {(None, f"u-{run.name[-1]}", None)}
    linked = [run.root.span.links for run in did.runs if run.root]
    assert [[link.span_id for link in links] for links in linked] == [[], *([format(did.value, "016x")],) * 2]


def test_units_at_the_same_time_in_one_trace_of_the_application_s(held: Held) -> None:
    tracer = TracerProvider().get_tracer("application")

    async def unit(number: int) -> None:
        with reenact.run(f"unit {number}", user=f"u-{number}"):
            await asyncio.sleep(0.001)
            look_up("tea")

    async def work() -> None:
        with tracer.start_as_current_span("batch"):
            await asyncio.gather(*(unit(number) for number in range(3)))

    did = held.record(lambda: asyncio.run(work()))
    assert [identities(run) for run in did.runs] == [{(None, f"u-{number}", None)} for number in range(3)]
