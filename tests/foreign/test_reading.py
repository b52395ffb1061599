"""Every real trace is read, and every call that says nothing is explained by what its span holds."""

from __future__ import annotations

from pathlib import Path

from foreign import reading
from reenact.errors import ReenactError
from reenact.graph.build import interpret
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import CallKind, HttpRequest


def readable(folder: Path) -> list[tuple[Path, reading.Table]]:
    """Every file that holds spans; what holds none is refused, and no test of this one."""
    found: list[tuple[Path, reading.Table]] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            found.append((path, reading.read(path)))
        except ReenactError:
            continue
    return found


def test_no_call_is_silent_though_its_span_speaks(shared_data: Path) -> None:
    tables = readable(shared_data / "traces")
    assert {path.name: table.unread for path, table in tables if table.unread} == {}
    assert sum(table.kinds["LLM"] for _, table in tables) > 500
    assert sum(table.messages for _, table in tables) > 1000
    assert sum(table.results for _, table in tables) > 50


def test_every_call_without_messages_says_what_would_keep_them(shared_data: Path) -> None:
    silent = 0
    for folder in ("otel-genai-replay", "traceloop-openllmetry-replay", "any-agent", "agentevals-tempo-batches"):
        for path in sorted((shared_data / "traces" / folder).iterdir()):
            for span in joined(open_spans(path)):
                call, _ = interpret(span)
                if call.kind in (CallKind.LLM, CallKind.EMBEDDING) and not isinstance(call.request, HttpRequest):
                    lost = call.attributes.get("reenact.lost")
                    assert isinstance(lost, list), (path.name, span.name)
                    assert lost, (path.name, span.name)
                    silent += 1
    assert silent > 50
