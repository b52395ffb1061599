"""What the redaction processor adds to a span, beside a bare batch processor in one run.

    python tests/bench/redacting.py [--spans N] [--rounds N]

A span has 100 attributes and 8 KB of text, which is the project's own prose and code. `fresh` texts are of that span
alone; of `said before` all but one attribute were in the span before, as in the turns of a conversation. What is timed
is what the program waits for: a span begun, filled and ended. Arms take turns, span by span, so that a loaded machine
loads all. It measures and never judges.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import reenact

ATTRIBUTES, BYTES = 100, 8192
ROOT = Path(__file__).resolve().parents[2]


class Discards(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.SUCCESS


def batch(exporter: SpanExporter) -> SpanProcessor:
    return BatchSpanProcessor(exporter, max_queue_size=1 << 16, schedule_delay_millis=50)


ARMS: dict[str, Callable[[], SpanProcessor]] = {
    "bare": lambda: batch(Discards()),
    "processor": lambda: reenact.RedactionSpanProcessor(batch(Discards())),
    "exporter": lambda: batch(reenact.RedactingSpanExporter(Discards())),
}


def prose() -> str:
    files = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "src").rglob("*.py"))]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def fresh(text: str) -> Iterator[dict[str, object]]:
    """Give the attributes of one span after another, none of whose texts was there before."""
    size, number = BYTES // ATTRIBUTES, 0
    while True:
        facts: dict[str, object] = {}
        for index in range(ATTRIBUTES):
            at = number * size % (len(text) - size)
            piece = f"{number} {text[at : at + size]}"
            number += 1
            key = f"llm.input_messages.{index // 4}.message.{('role', 'content', 'name', 'tool_call_id')[index % 4]}"
            facts[key] = json.dumps({"note": piece}) if index % 10 == 9 else piece
        yield facts


def said_before(text: str) -> Iterator[dict[str, object]]:
    """Give the same with one new attribute a span."""
    news = fresh(text)
    facts = next(news)
    while True:
        new = next(news)
        key = next(iter(new))
        facts = {**facts, key: new[key]}
        yield facts


def measured(kind: Callable[[str], Iterator[dict[str, object]]], text: str, spans: int) -> dict[str, float]:
    """Time every arm, span by span in turn; the median in µs."""
    tracers = {}
    providers = []
    for name, made in ARMS.items():
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(made())
        providers.append(provider)
        tracers[name] = provider.get_tracer("bench")
    times: dict[str, list[float]] = {name: [] for name in ARMS}
    texts = {name: kind(text) for name in ARMS}
    for number in range(spans):
        for name in sorted(ARMS, key=lambda name: hash((number, name))):
            facts = next(texts[name])
            began = time.perf_counter()
            span = tracers[name].start_span("chat", attributes=facts)  # type: ignore[arg-type]
            span.end()
            times[name].append(time.perf_counter() - began)
    for provider in providers:
        provider.shutdown()
    return {name: statistics.median(each[spans // 10 :]) * 1e6 for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    text = prose()
    out = sys.stdout.write
    out(
        f"{ATTRIBUTES} attributes, {BYTES // 1024} KB a span; µs that the program waits for, median of {asked.rounds}\n"
    )
    for kind in (fresh, said_before):
        rounds = [measured(kind, text, asked.spans) for _ in range(asked.rounds)]
        bare = statistics.median(each["bare"] for each in rounds)
        for name in ARMS:
            took = statistics.median(each[name] for each in rounds)
            ratio = statistics.median(each[name] / each["bare"] for each in rounds)
            rate = f"  {BYTES / (took - bare):6.0f} MB/s" if name == "processor" else ""
            out(f"{kind.__name__.replace('_', ' '):12} {name:10} {took:8.0f} µs  × {ratio:4.1f}{rate}\n")


if __name__ == "__main__":
    main()
