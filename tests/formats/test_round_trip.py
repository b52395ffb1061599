"""A recording of ours, carried by each format that is written, is the same run when it is read back."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from golden_cases import GOLDEN, plain
from reenact.boundary.reading import answered, asked
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import UsageError
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.pipeline.transfer import write
from reenact.read.open import open_spans
from reenact.values.call import CallKind
from reenact.values.run import Run

WRITTEN = {each.name: each for each in members("formats", Format) if each.encode is not None and each.name != "journal"}
RECORDED = GOLDEN / "assertions" / "cleanup" / "incident.jsonl"
LOST = {"jaeger": {"times", "arrays"}, "phoenix-json": {"times", "resource"}}
"""What the verdict says of a carrier; the others lose nothing of ours."""


_TOLD = frozenset({"reenact.lost", "reenact.dialect"})
"""What is said of the reading, not of the run."""


def canonical(run: Run) -> list[Any]:
    """All that a run means: its calls, what was said in them, what came of them, and how they hang together."""
    return [
        (
            *(node.id, node.parent, node.number, node.lane, node.start_order, node.head_order, node.end_order),
            *(node.orphan, node.kind, node.call.name, plain(node.call.request), plain(node.outcome)),
            *(plain(asked(node)), plain(answered(node))),
            {name: value for name, value in plain(node.call.attributes).items() if name not in _TOLD},
        )
        for node in run.nodes
    ]


def carried(runs: list[Run], member: Format) -> list[Run]:
    assert member.encode is not None
    data = member.encode([node.span for run in runs for node in run.nodes])
    return build(member.decode(io.BytesIO(data), Path("file")))


def recorded() -> dict[str, list[Run]]:
    twins = {path.parent.name: build(open_spans(path)) for path in sorted((GOLDEN / "twins").rglob("spans.jsonl"))}
    return {"cleanup": build(open_spans(RECORDED)), **twins}


@pytest.mark.parametrize("member", WRITTEN.values(), ids=WRITTEN)
def test_a_recording_is_the_same_run_after_every_carrier(member: Format) -> None:
    for name, runs in recorded().items():
        again = carried(runs, member)
        assert [canonical(run) for run in again] == [canonical(run) for run in runs], name
        assert [run.id for run in again] == [run.id for run in runs]
        if member.name != "phoenix-json":  # which keeps no resource
            assert [run.recording for run in again] == [run.recording for run in runs]


@pytest.mark.parametrize("member", WRITTEN.values(), ids=WRITTEN)
def test_the_verdict_says_what_the_carrier_lost(member: Format) -> None:
    (run,) = build(open_spans(RECORDED))
    (again,) = carried([run], member)
    before = {(reason.field, reason.lost) for reason in judge(run).reasons}
    new = [reason for reason in judge(again).reasons if (reason.field, reason.lost) not in before]
    assert {reason.field for reason in new} == LOST.get(member.name, set())
    assert all(reason.fix for reason in new)


@pytest.mark.parametrize("member", WRITTEN.values(), ids=WRITTEN)
def test_a_second_trip_changes_nothing_more(member: Format) -> None:
    (run,) = build(open_spans(RECORDED))
    (once,) = carried([run], member)
    (twice,) = carried([once], member)
    assert [node.span for node in twice.nodes] == [node.span for node in once.nodes]


@pytest.mark.parametrize("member", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_a_written_file_is_told_by_its_content(member: Format, packing: str, tmp_path: Path) -> None:
    (run,) = build(open_spans(RECORDED))
    path = tmp_path / f"carried{member.suffix}{packing}"
    write([node.span for node in run.nodes], path, member.name)
    if packing == ".gz":
        assert gzip.decompress(path.read_bytes())
    (again,) = build(open_spans(path))
    assert canonical(again) == canonical(run)


def test_a_format_that_is_only_read_says_so(tmp_path: Path) -> None:
    for member in members("formats", Format):
        if member.encode is None:
            with pytest.raises(UsageError, match=f"{member.name} is only read, not written") as refusal:
                write([], tmp_path / "x", member.name)
            assert "otlp-json" in refusal.value.hint
            assert not (tmp_path / "x").exists()


def test_what_a_carrier_keeps_is_every_kind_of_call() -> None:
    kinds = {node.kind for runs in recorded().values() for run in runs for node in run.nodes}
    assert kinds >= {CallKind.LLM, CallKind.TOOL, CallKind.AGENT}
