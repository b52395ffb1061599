"""What a recorded call costs by how much of it is new, and what a conversation of fifty turns leaves behind.

    python growing.py bytes ARM

A part of `make bench`; alone, counts the bytes of one arm and prints them as JSON. The peers' bytes are those of the
OTLP protobuf that their exporter would send; ours those of the journal, of the store, and of our own OTLP export.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import conversation
from figures import Figure, table

BEFORE = (0, 16_384, 131_072)
NEW = (256, 8192, 32_768)
CALLS = 60
TURNS = 50
UNIT = 8192
PEERS = ("openinference", "openllmetry")

Child = Callable[..., dict[str, Any]]
Rounds = dict[tuple[int, int, str], list[dict[str, float]]]


def measured(rounds: int, child: Child, serving: Callable[[str], AbstractContextManager[str]]) -> Rounds:
    """Run every arm of every case, round after round."""
    found: Rounds = {}
    with serving("provider") as port:
        for number in range(rounds):
            for before in BEFORE:
                for new in NEW:
                    sys.stderr.write(f"\rround {number + 1} of {rounds}: {before} seen, {new} new      ")
                    for arm in ("reenact", *PEERS):
                        figures = child(
                            "recording.py", arm, f"{before}/{new}", str(CALLS), "grown", BENCH_PROVIDER=port
                        )
                        found.setdefault((before, new, arm), []).append(figures)
    sys.stderr.write("\r" + " " * 60 + "\r")
    return found


def laid_out(found: Rounds) -> tuple[str, list[dict[str, Any]]]:
    """Lay out what a call costs, and what each 8 KB of it adds, new or seen before."""
    rows: list[list[str]] = []
    documents: list[dict[str, Any]] = []
    for before in BEFORE:
        for new in NEW:
            figures = {arm: Figure.of([each["added"] for each in found[before, new, arm]]) for arm in _arms()}
            rows.append([f"{before:,} seen, {new:,} new", *(f"+{figure.shown()}" for figure in figures.values())])
            documents += [
                {"before": before, "new": new, "arm": arm, "added_us": figure.json()} for arm, figure in figures.items()
            ]
    for name, slope in (("8 KB new", _by_new), ("8 KB seen before", _by_before)):
        slopes = {arm: slope(found, arm) for arm in _arms()}
        rows.append([f"each {name} adds", *(f"{each:.1f}" for each in slopes.values())])
        documents += [{"slope": name, "arm": arm, "us": round(each, 3)} for arm, each in slopes.items()]
    return table(["characters; µs a call, median (quartiles)", *_arms()], rows), documents


def _arms() -> tuple[str, ...]:
    return ("reenact", *PEERS)


def _median(found: Rounds, before: int, new: int, arm: str) -> float:
    return Figure.of([each["added"] for each in found[before, new, arm]]).median


def _by_new(found: Rounds, arm: str) -> float:
    """Between the least and the most that is new, nothing seen before."""
    more = _median(found, BEFORE[0], NEW[-1], arm) - _median(found, BEFORE[0], NEW[0], arm)
    return more * UNIT / (NEW[-1] - NEW[0])


def _by_before(found: Rounds, arm: str) -> float:
    """Between the least and the most that was seen before, little new."""
    more = _median(found, BEFORE[-1], NEW[0], arm) - _median(found, BEFORE[0], NEW[0], arm)
    return more * UNIT / (BEFORE[-1] - BEFORE[0])


def bytes_laid_out(child: Child, serving: Callable[[str], AbstractContextManager[str]]) -> tuple[str, dict[str, Any]]:
    """Count what one conversation leaves behind, and lay it out."""
    with serving("provider") as port:
        counted = {arm: child("growing.py", "bytes", arm, BENCH_PROVIDER=port) for arm in _arms()}
    rows = [[f"{arm}: {what}", f"{size:,}"] for arm, sizes in counted.items() for what, size in sizes.items()]
    return table([f"a conversation of {TURNS} turns", "bytes"], rows), counted


def _said(client: Any) -> None:
    for messages in conversation.chat(TURNS):
        client.chat.completions.create(model="bench-1", messages=messages, temperature=0.2)


def _client() -> Any:
    from openai import OpenAI

    return OpenAI(base_url=f"http://127.0.0.1:{os.environ['BENCH_PROVIDER']}/v1", api_key="none", max_retries=0)


def _ours() -> dict[str, int]:
    """Record into a store, with the journal's bytes counted where they are written."""
    import reenact
    from reenact.record.journal import JournalProcessor

    sizes: list[int] = []

    def counting(method: Callable[..., None]) -> Callable[..., None]:
        def counted(self: JournalProcessor, *facts: Any) -> None:
            before = self._size
            method(self, *facts)
            sizes.append(self._size - before if self._size >= before else self._size)  # a further file was begun

        return counted

    for name in ("write", "write_turn"):
        setattr(JournalProcessor, name, counting(getattr(JournalProcessor, name)))
    with tempfile.TemporaryDirectory() as folder:
        recorder = reenact.record(store=Path(folder) / "store")
        _said(_client())
        (run,) = recorder.stop()
        if sum(node.kind == "LLM" for node in run.nodes) != TURNS:
            raise SystemExit("reenact did not record every turn")
        kept = sum(path.stat().st_size for path in (Path(folder) / "store").rglob("*") if path.is_file())
        out = Path(folder) / "run.otlp"
        command = [sys.executable, "-m", "reenact", "export", run.id, "--format", "otlp-proto", "-o", str(out)]
        subprocess.run(command, cwd=folder, check=True, env=os.environ | {"REENACT_STORE": f"{folder}/store"})
        sent = out.read_bytes()
    return {"journal": sum(sizes), "store": kept, "OTLP": len(sent), "OTLP, gzip": len(gzip.compress(sent, 6))}


def _theirs(arm: str) -> dict[str, int]:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Keeping(SpanExporter):
        def __init__(self) -> None:
            self.spans: list[Any] = []

        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            self.spans += spans
            return SpanExportResult.SUCCESS

    unset, keeping = SpanLimits.UNSET, Keeping()
    limits = SpanLimits(max_attributes=unset, max_span_attributes=unset, max_attribute_length=unset)
    provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(keeping))
    if arm == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor
    else:
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    _said(_client())
    sent = b"".join(_requests(keeping.spans, encode_spans))
    return {"OTLP": len(sent), "OTLP, gzip": len(gzip.compress(sent, 6))}


def _requests(spans: Sequence[Any], encode: Callable[[Sequence[Any]], Any]) -> Iterator[bytes]:
    for at in range(0, len(spans), 512):
        yield encode(spans[at : at + 512]).SerializeToString()


if __name__ == "__main__":
    json.dump(_ours() if sys.argv[2] == "reenact" else _theirs(sys.argv[2]), sys.stdout)
