"""A trace that is read, written down again and read from that is the same trace, in every format that is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from reenact.boundary.reading import answered
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import FunctionCall, Returned, Value
from reenact.values.json import canonical
from reenact.values.run import Run, spans_of

FORMATS = [each for each in members("formats", Format) if each.encode is not None]
FOLDERS = {
    "agentevals-tempo-batches": "*",
    "agentevals-adk-jaeger": "*",
    "claude-code-sessions": "full-session-five.jsonl",
    "openinference-replay": "*",
    "rosetta": "*",
    "traceloop-openllmetry-replay": "tl-weaviate*",
    "agent-prism": "test_data_1.json",
}


def counted(runs: list[Run]) -> list[tuple[object, ...]]:
    """Count calls by kind, tokens, and what each tool came to."""
    told: list[tuple[object, ...]] = []
    for run in runs:
        replies = [reply for node in run.nodes if (reply := answered(node)) is not None]
        tools = [
            (node.call.name, canonical(node.outcome.payload.json))
            for node in run.nodes
            if isinstance(node.call.request, FunctionCall)
            and isinstance(node.outcome, Returned)
            and isinstance(node.outcome.payload, Value)
        ]
        tokens = (
            sum(reply.usage.prompt or 0 for reply in replies),
            sum(reply.usage.completion or 0 for reply in replies),
        )
        told.append((run.id, sorted(Counter(node.kind.value for node in run.nodes).items()), tokens, sorted(tools)))
    return sorted(told, key=lambda each: str(each[0]))


def handed_on(written: Format, paths: Iterable[Path], folder: Path) -> int:
    """Write each file down again, and read both; count those that hold runs."""
    assert written.encode is not None
    files = 0
    for path in paths:
        try:
            runs = build(joined(open_spans(path)))
        except InputError:
            continue
        spans = spans_of(runs)
        assert len({(span.trace_id, span.span_id) for span in spans}) == len(spans), path.name
        again = folder / f"{path.name}{written.suffix}"
        again.write_bytes(written.encode(spans))
        assert counted(build(joined(open_spans(again)))) == counted(runs), path.name
        files += 1
    return files


@pytest.mark.sample(9)
@pytest.mark.parametrize("written", FORMATS, ids=lambda each: each.name)
def test_what_is_handed_on_reads_as_it_was(written: Format, shared_data: Path, tmp_path: Path) -> None:
    paths = [path for folder, each in FOLDERS.items() for path in sorted((shared_data / "traces" / folder).glob(each))]
    assert handed_on(written, paths, tmp_path) > 20


@pytest.mark.slow
@pytest.mark.parametrize("written", FORMATS, ids=lambda each: each.name)
def test_every_trace_that_is_handed_on_reads_as_it_was(written: Format, shared_data: Path, tmp_path: Path) -> None:
    paths = sorted(path for path in (shared_data / "traces").rglob("*") if path.is_file())
    assert handed_on(written, paths, tmp_path) > 100
