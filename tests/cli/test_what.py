"""`reenact what` tells a file's format and what it holds, or what it is nearest to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk
from foreign import told
from reenact.formats import otlp_json

GOLDEN = Path(__file__).resolve().parents[1] / "golden/formats"
OBSERVATION = {"traceId": "1", "startTime": "2026-01-01", "type": "GENERATION", "name": "ask"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_it_names_the_format_the_runs_and_the_dialects(desk: Desk) -> None:
    (path,) = (GOLDEN / "langfuse/screen").glob("input.*")
    kind = json.loads(desk.reenact("what", str(path), "--json").stdout)
    assert kind["format"] == "langfuse"
    assert (kind["runs"] >= 1, kind["calls"] >= 1, kind["problem"], kind["nearest"]) == (True, True, None, None)
    assert set(kind["dialects"]) == {"langfuse"}
    assert kind["formats"] == ["langfuse"]
    said = desk.reenact("what", str(path)).stdout
    assert said.startswith(f"{path}: langfuse; {kind['runs']} run")


def test_calls_are_counted_and_not_spans(desk: Desk) -> None:
    (path,) = (GOLDEN / "codex_exec/failures").glob("input.*")
    assert f"{path}: codex-exec; 1 run, 6 calls; " in desk.reenact("what", str(path)).stdout  # and a root above them


def test_a_file_that_nobody_reads_is_told_by_the_format_that_it_is_nearest_to(desk: Desk) -> None:
    desk.write("export.json", json.dumps(OBSERVATION))
    done = desk.reenact("what", "export.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[0].endswith(
        "it is JSON with `traceId`, `startTime`, `type`, `name`; nearest is langfuse: it has `traceId`, `type`, "
        "`startTime`, and lacks `parentObservationId`"
    )
    assert desk.reenact("show", "export.json").stderr.splitlines()[0] == done.stderr.splitlines()[0]
    document = desk.reenact("what", "export.json", "--json")
    assert document.returncode == 3
    near = json.loads(document.stdout)["nearest"]
    assert (near["format"], near["lacks"][0].partition("|")[0]) == ("langfuse", "parentObservationId")


def test_what_is_near_to_nothing_is_told_by_its_keys(desk: Desk) -> None:
    desk.write("other.json", json.dumps({"method": "generate", "response": []}))
    done = desk.reenact("what", "other.json")
    assert done.stderr.splitlines()[0].endswith("it is JSON with `method`, `response`")


def test_a_line_that_is_none_of_otlp_is_told_with_its_place(desk: Desk) -> None:
    first = otlp_json.encode([told.chat(1, [])]).decode().splitlines()[0]
    desk.write("mixed.jsonl", f"{first}\n{json.dumps({'other': 1})}\n")
    assert "mixed.jsonl:2: expected OTLP/JSON with `resourceSpans`" in desk.reenact("what", "mixed.jsonl").stderr


def test_of_a_folder_it_names_every_format(desk: Desk) -> None:
    (desk.folder / "folder").mkdir()
    for name in ("langfuse/screen", "vcr_cassette/vcrpy"):
        (source,) = (GOLDEN / name).glob("input.*")
        desk.write(f"folder/{source.parent.parent.name}{source.suffix}", source.read_text())
    kind = json.loads(desk.reenact("what", "folder", "--json").stdout)
    assert (kind["format"], kind["formats"]) == (None, ["langfuse", "vcr-cassette"])
