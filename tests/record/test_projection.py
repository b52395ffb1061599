from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import Tracer

import reenact
from held import Held
from reenact.demo.provider import StandIn
from reenact.values.call import Returned

SECRET = "sk-ant-api03-" + "Ab1" * 20


class Application:
    """A program's own OpenTelemetry: a provider, its tracer, and what its exporter got."""

    def __init__(self, sampler: Sampler = ALWAYS_ON, ids: IdGenerator | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, id_generator=ids)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = self.provider.get_tracer("application")

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def outer(item: str) -> str:
    return inner(item)


@reenact.tool
def inner(item: str) -> str:
    with trace.get_tracer("library").start_as_current_span("never seen: there is no global provider here"):
        return f"{item}!"


def test_calls_are_shown_in_the_application_s_trace_below_its_current_span(held: Held) -> None:
    application = Application()

    def work() -> None:
        with application.tracer.start_as_current_span("request"):
            outer("tea")

    did = held.record(work, application=application.provider)
    shown = application.spans
    parents = {name: span.parent.span_id if span.parent else None for name, span in shown.items()}
    ids = {name: span.context.span_id for name, span in shown.items() if span.context}
    assert parents == {"request": None, "outer": ids["request"], "inner": ids["outer"]}
    assert len({span.context.trace_id for span in shown.values() if span.context}) == 1
    for name in ("outer", "inner"):
        attributes = shown[name].attributes or {}
        assert attributes["reenact.projection.of"] == did.call(name).id
        assert attributes["output.value"] == "tea!"
        assert attributes["openinference.span.kind"] == "TOOL"


def test_spans_of_the_application_hang_below_the_calls_that_made_them(held: Held) -> None:
    application = Application()

    @reenact.tool
    def tool() -> None:
        with application.tracer.start_as_current_span("own"):
            pass

    held.record(tool, application=application.provider)
    shown = application.spans
    assert shown["own"].parent is not None
    assert shown["tool"].context is not None
    assert shown["own"].parent.span_id == shown["tool"].context.span_id


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ParentBased(ALWAYS_OFF)], ids=["off", "parent off"])
def test_what_a_sampler_drops_is_recorded_all_the_same(held: Held, sampler: Sampler) -> None:
    application = Application(sampler)
    did = held.record(lambda: outer("tea"), application=application.provider)
    assert application.spans == {}
    assert isinstance(did.call("inner").outcome, Returned)


def test_a_dropped_call_does_not_take_the_application_s_spans_along(held: Held) -> None:
    class DropsOurs(Sampler):
        """Drops by name, as rules in a collector's remote sampler do, else goes by the parent."""

        def should_sample(self, parent_context: object, trace_id: int, name: str, *rest: object, **more: object):  # type: ignore[no-untyped-def, override] # noqa: ANN202
            chosen = ALWAYS_OFF if name == "tool" else ParentBased(ALWAYS_ON)
            return chosen.should_sample(parent_context, trace_id, name, *rest, **more)  # type: ignore[arg-type]

        def get_description(self) -> str:
            return "drops ours"

    application = Application(DropsOurs())

    @reenact.tool
    def tool() -> None:
        with application.tracer.start_as_current_span("own"):
            pass

    def work() -> None:
        with application.tracer.start_as_current_span("request"):
            tool()

    held.record(work, application=application.provider)
    shown = application.spans
    assert shown.keys() == {"request", "own"}
    assert shown["own"].parent is not None


def test_the_application_s_chance_is_its_own(held: Held) -> None:
    application = Application()

    def work() -> list[float]:
        random.seed(1)
        drawn = [random.random()]
        with reenact.run("unit"):
            outer("tea")
        return [*drawn, random.random()]

    random.seed(1)
    alone = [random.random(), random.random()]
    first = held.record(work, application=application.provider)
    second = held.record(work, application=application.provider)
    assert first.value == second.value == alone
    assert first.runs[0].id != second.runs[0].id
    assert not {node.id for node in first.calls} & {node.id for node in second.calls}


def test_an_id_generator_of_the_application_s_own_is_kept(held: Held) -> None:
    class Counts(IdGenerator):
        def __init__(self) -> None:
            self.given = 0

        def generate_span_id(self) -> int:
            self.given += 1
            return self.given

        def generate_trace_id(self) -> int:
            return 7

    application = Application(ids=Counts())
    held.record(lambda: outer("tea"), application=application.provider)
    assert {span.context.span_id for span in application.spans.values() if span.context} == {1, 2}


def test_status_errors_and_secrets_of_what_is_shown(held: Held) -> None:
    application = Application()

    @reenact.tool
    def fails() -> None:
        with suppress(KeyError):
            named()
        raise ValueError(f"no entry with {SECRET}")

    @reenact.tool(name=f"look up {SECRET}")
    def named() -> None:
        raise KeyError(SECRET)

    did = held.record(fails, application=application.provider)
    assert isinstance(did.error, ValueError)
    status = application.spans["fails"].status
    assert not status.is_ok
    assert (status.description or "").startswith("ValueError: no entry with REDACTED_anthropic_key_")
    assert len(application.spans) == 2
    assert SECRET not in "".join(span.to_json() for span in application.spans.values())


def test_a_refused_model_call_is_shown_as_an_error(held: Held) -> None:
    application = Application()
    with StandIn(max_delay_ms=0) as provider:

        def work() -> None:
            with OpenAI(base_url=provider.base_url, api_key="x", max_retries=0) as client:
                client.chat.completions.create(model="stand-in-busy", messages=[{"role": "user", "content": "Hello?"}])

        did = held.record(work, application=application.provider)
    assert did.error is not None
    (span,) = application.spans.values()
    assert (span.status.is_ok, span.status.description) == (False, "HTTP 429")


def test_context_is_given_back_where_a_generator_is_closed_elsewhere(
    held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    application = Application()

    @reenact.tool
    def steps() -> Iterator[int]:
        yield from range(5)

    async def work() -> None:
        generator = steps()
        next(generator)
        await asyncio.get_running_loop().run_in_executor(None, generator.close)  # type: ignore[attr-defined]
        assert not trace.get_current_span().get_span_context().is_valid

    assert held.record(lambda: asyncio.run(work()), application=application.provider).error is None
    assert "detach" not in caplog.text
    assert application.spans.keys() == {"steps"}


def test_a_provider_that_is_set_up_after_us_is_found(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    application = Application()

    def work() -> None:
        inner("before")
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", application.provider)
        outer("after")

    held.record(work)
    assert {"outer", "inner"} <= application.spans.keys()


def test_a_replay_shows_nothing_in_the_application_s_backend(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    application = Application()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", application.provider)
    did = held.record(lambda: outer("tea"))
    before = len(application.spans)
    assert held.replay(did, lambda: outer("tea")).value == did.value
    assert len(application.spans) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "2"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "0"),
    ],
)
def test_settings_of_the_application_s_telemetry_do_not_cut_the_recording(
    held: Held, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    def work() -> None:
        with reenact.run("unit", input="a long input"):
            outer("a long item")

    did = held.record(work)
    (run,) = did.runs
    assert run.root is not None
    assert run.root.span.attributes["input.value"] == '"a long input"'
    assert "reenact.surroundings" in run.root.span.attributes
    assert did.call("inner").span.attributes["output.value"] == "a long item!"
    assert held.replay(did, work).error is None
