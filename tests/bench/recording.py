"""One arm of the recording benchmark, in a process of its own: an agent that makes chat calls, observed or not.

    python recording.py ARM MESSAGES CALLS MODE

MODE is `history` or `fresh` (`conversation.turns`). BENCH_PROVIDER and BENCH_SINK are ports. Prints one JSON
document. An arm that did not capture what the others capture fails instead of giving a figure.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import conversation

PRIMING, WARMING = 5, 25
"""Calls that load what is loaded late, and calls that settle caches: neither is timed."""

Finish = Callable[[], None]


class _Discarding:
    """A span exporter that keeps the last span and throws the others away: the cheapest that can be."""

    def __init__(self) -> None:
        self.last: Any = None

    def export(self, spans: Sequence[Any]) -> Any:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self.last = spans[-1]
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return timeout_millis > 0


def _bare() -> Finish:
    return lambda: None


def _provider(*, otlp: bool) -> tuple[Any, _Discarding]:
    """Make what the peers' documentation tells users to make, with the limits off that would cut their content."""
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    unset = SpanLimits.UNSET
    limits = SpanLimits(max_attributes=unset, max_span_attributes=unset, max_attribute_length=unset)
    provider, discarding = TracerProvider(span_limits=limits, shutdown_on_exit=False), _Discarding()
    exporter: Any = discarding
    if otlp:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, discarding


def _peer(instrumentor: Any, *, otlp: bool) -> Finish:
    provider, discarding = _provider(otlp=otlp)
    instrumentor.instrument(tracer_provider=provider)

    def finish() -> None:
        provider.shutdown()
        if not otlp:
            spelled = repr(dict(discarding.last.attributes))
            assert _last_words in spelled, "the peer did not capture the last message"

    return finish


def _openinference(*, otlp: bool) -> Finish:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    return _peer(OpenAIInstrumentor(), otlp=otlp)


def _openllmetry(*, otlp: bool) -> Finish:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    return _peer(OpenAIInstrumentor(), otlp=otlp)


def _reenact(store: Path) -> Finish:
    import reenact

    recorder = reenact.record(store=store)

    def finish() -> None:
        runs = recorder.stop()
        assert len(runs) == 1, f"reenact carried {len(runs)} runs"
        calls = [node for node in runs[0].nodes if node.kind == "LLM"]
        assert _last_words in calls[-1].span.attributes["input.value"], "reenact did not capture the last message"

    return finish


def _arm(name: str, store: Path) -> Finish:
    who, _, where = name.partition("+")
    otlp = where == "otlp"
    if otlp:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{os.environ['BENCH_SINK']}"
        os.environ["OTEL_EXPORTER_OTLP_COMPRESSION"] = "gzip"
    match who:
        case "bare":
            return _bare()
        case "reenact":
            return _reenact(store)
        case "openinference":
            return _openinference(otlp=otlp)
        case "openllmetry":
            return _openllmetry(otlp=otlp)
        case _:
            raise SystemExit(f"there is no arm {name!r}")


def _timed(client: Any, turns: list[list[conversation.Message]]) -> list[int]:
    create, clock, model = client.chat.completions.create, time.perf_counter_ns, "bench-1"
    times: list[int] = []
    for messages in turns:
        began = clock()
        create(model=model, messages=messages, temperature=0.2)
        times.append(clock() - began)
    return times


def main(name: str, messages: int, calls: int, mode: str) -> None:
    """Measure one arm."""
    global _last_words  # noqa: PLW0603 - what every arm must have captured at its end
    turns = conversation.turns(messages, PRIMING + WARMING + calls, fresh=mode == "fresh")
    _last_words = json.dumps(turns[-1][-1]["content"])[1:60].replace("\\n", " ").split(" ", 1)[0]
    _last_words = turns[-1][-1]["content"].split("\n", 1)[0][:60]
    with ExitStack() as stack:
        store = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        finish = _arm(name, store)
        from openai import OpenAI

        client = OpenAI(base_url=f"http://127.0.0.1:{os.environ['BENCH_PROVIDER']}/v1", api_key="none", max_retries=0)
        _timed(client, turns[:PRIMING])
        began_cpu, began = time.process_time_ns(), time.perf_counter_ns()
        _timed(client, turns[PRIMING : PRIMING + WARMING])
        times = _timed(client, turns[PRIMING + WARMING :])
        called = time.perf_counter_ns()
        in_calls = time.process_time_ns() - began_cpu
        finish()
        ended = time.perf_counter_ns()
        whole = time.process_time_ns() - began_cpu
        done = WARMING + calls
        figures = {
            "call_us": statistics.median(times) / 1e3,
            "p90_us": statistics.quantiles(times, n=10)[8] / 1e3,
            "mean_us": statistics.fmean(times) / 1e3,
            "cpu_us": in_calls / 1e3 / done,
            "cpu_whole_us": whole / 1e3 / done,
            "wall_whole_us": (ended - began) / 1e3 / done,
            "finish_ms": (ended - called) / 1e6,
        }
        json.dump(figures, sys.stdout)


_last_words = ""

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
