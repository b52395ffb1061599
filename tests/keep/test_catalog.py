"""What `ls` says of a run."""

from __future__ import annotations

from pathlib import Path

from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.keep.catalog import summary
from reenact.read.open import open_recording

LOGS = Path(__file__).resolve().parent.parent / "golden" / "formats" / "bedrock_invocations"


def test_a_run_of_which_one_instant_is_known_has_no_duration() -> None:
    (run,) = build(joined(open_recording(LOGS / "bodies_as_text" / "input.jsonl").records))
    assert summary(run)["duration_ms"] is None
