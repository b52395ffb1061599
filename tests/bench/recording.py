"""One arm of the recording benchmark, in a process of its own: an agent that makes chat calls, observed and not.

    python recording.py ARM MESSAGES CALLS MODE

The same call goes through an observed client and through one that the observer cannot reach, in turn (ABBA);
neighbours are compared, so that neither the layout of a process nor a machine's changing speed counts. MODE is
`history` or `fresh` (`conversation.turns`), or `grown` (`conversation.grown`), with BEFORE/NEW characters for MESSAGES.
BENCH_PROVIDER and BENCH_SINK are ports. Prints one JSON document. An arm that did not capture what the others capture
fails instead of giving a figure.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import conversation

WARMING = 30
"""Calls that are not timed: they load what is loaded late, and settle caches."""

Finish = Callable[[str], int]
"""Ends the observation, all of it carried, sees that it holds this text of the last message, and counts the calls."""


class _Discarding:
    """A span exporter that counts spans, keeps the last and throws the others away: none is cheaper."""

    def __init__(self) -> None:
        self.last: Any = None
        self.count = 0

    def export(self, spans: Sequence[Any]) -> Any:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self.last, self.count = spans[-1], self.count + len(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return timeout_millis > 0


def _peer(instrumentor: Any, *, otlp: bool) -> Finish:
    """Set a peer up as its documentation says, with the SDK's limits off that would cut what it captures."""
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
    instrumentor.instrument(tracer_provider=provider)

    def finish(said: str) -> int:
        provider.shutdown()
        if otlp:
            return -1
        if said not in repr(dict(discarding.last.attributes)):
            raise SystemExit("the peer did not capture the last message")
        return discarding.count

    return finish


def _openinference(store: Path, *, otlp: bool) -> Finish:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    del store
    return _peer(OpenAIInstrumentor(), otlp=otlp)


def _openllmetry(store: Path, *, otlp: bool) -> Finish:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    del store
    return _peer(OpenAIInstrumentor(), otlp=otlp)


def _reenact(store: Path, *, otlp: bool) -> Finish:
    """Record as users do: journal on disk, default redaction, the carrier's thread; `otlp` is in the environment."""
    import reenact

    del otlp
    recorder = reenact.record(store=store)

    def finish(said: str) -> int:
        (run,) = recorder.stop()
        calls = [node for node in run.nodes if node.kind == "LLM"]
        if said not in str(calls[-1].span.attributes["input.value"]):
            raise SystemExit("reenact did not capture the last message")
        return len(calls)

    return finish


ARMS = {"reenact": _reenact, "openinference": _openinference, "openllmetry": _openllmetry}


def _begin(arm: str, store: Path) -> Finish:
    who, _, backend = arm.partition("+")
    if backend == "otlp":
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{os.environ['BENCH_SINK']}"
        os.environ["OTEL_EXPORTER_OTLP_COMPRESSION"] = "gzip"  # the same for all
    return ARMS[who](store, otlp=backend == "otlp")


def _client() -> Any:
    from openai import OpenAI

    return OpenAI(base_url=f"http://127.0.0.1:{os.environ['BENCH_PROVIDER']}/v1", api_key="none", max_retries=0)


def _out_of_reach() -> Any:
    """Make a client that what is patched later does not change: its own methods stand before those of its classes."""
    client = _client()
    transport = client._client._transport
    owned = ((transport, "handle_request"), (client._client, "send"), (client, "request"))
    for owner, name in (*owned, (client.chat.completions, "create")):
        setattr(owner, name, getattr(owner, name))
    return client


def _timed(client: Any, messages: list[conversation.Message]) -> int:
    began = time.perf_counter_ns()
    client.chat.completions.create(model="bench-1", messages=messages, temperature=0.2)
    return time.perf_counter_ns() - began


def _processor_time(client: Any, turns: list[list[conversation.Message]]) -> int:
    """Give the processor time of all threads while these calls are made, one after another."""
    began = time.process_time_ns()
    for turn in turns:
        _timed(client, turn)
    return time.process_time_ns() - began


def _turns(messages: str, calls: int, mode: str) -> list[list[conversation.Message]]:
    if mode == "grown":
        before, _, new = messages.partition("/")
        return conversation.grown(int(before), int(new), calls)
    return conversation.turns(int(messages), calls, fresh=mode == "fresh")


def measure(arm: str, messages: str, calls: int, mode: str, store: Path) -> dict[str, float]:
    """Make the calls and give microseconds for each."""
    bare = _out_of_reach()
    finish = _begin(arm, store)
    observed = _client()
    turns = _turns(messages, WARMING + 2 * calls, mode)
    warm, paired, block = turns[:WARMING], turns[WARMING : WARMING + calls], turns[WARMING + calls :]
    for turn in warm:
        _timed(observed, turn)
        _timed(bare, turn)
    pairs: list[tuple[int, int]] = []
    for number, turn in enumerate(paired):
        if number % 2:
            took = _timed(observed, turn)
            pairs.append((took, _timed(bare, turn)))
        else:
            took = _timed(bare, turn)
            pairs.append((_timed(observed, turn), took))
    cpu = _processor_time(observed, block) - _processor_time(bare, block)
    began = time.process_time_ns()
    count = finish(turns[-1][-1]["content"].split("\n", 1)[0][:60])
    export = (time.process_time_ns() - began) * len(block) / len(turns)
    if count not in (-1, len(turns)):
        raise SystemExit(f"{arm} saw {count} calls of {len(turns)}")
    return {
        "bare": statistics.median(theirs for _, theirs in pairs) / 1e3,
        "added": statistics.median(ours - theirs for ours, theirs in pairs) / 1e3,
        "cpu": cpu / 1e3 / calls,
        "cpu_all": (cpu + export) / 1e3 / calls,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], Path(folder))
    json.dump(figures, sys.stdout)
