"""Large values, from a tool and from a model's request: kept apart, replayed, carried elsewhere, missed where lost."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from desk import Desk
from reenact.demo.provider import StandIn

_TOOL = """
import hashlib, sys
import reenact

@reenact.tool
def fetch(name):

    return {"name": name, "rows": ["é😀 " + str(number) * 400 for number in range(1500)]}

@reenact.tool
def size(text):
    return len(text)

found = fetch("prices")
print(size("".join(found["rows"])), hashlib.sha256(repr(found).encode()).hexdigest())
"""

_MODEL = """
import base64, sys
from openai import NotFoundError, OpenAI

image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 4000).decode()
asked = [{"type": "text", "text": "What is on it? Delete nothing."}, {"type": "image_url", "image_url": {"url": image}}]
try:
    print(OpenAI().chat.completions.create(model="nobody", messages=[{"role": "user", "content": asked}]))
except NotFoundError as error:
    print(error)
"""


def blobs(desk: Desk) -> list[Path]:
    return sorted(path for path in (desk.folder / ".reenact" / "blobs").rglob("*") if path.is_file())


def recorded(desk: Desk, source: str) -> str:
    did = desk.reenact("run", "--", "python", desk.write("agent.py", source))
    assert did.returncode == 0, did.stderr
    assert "replayable: exact" in did.stderr
    return did.stdout


def run_id(desk: Desk) -> str:
    return str(json.loads(desk.reenact("ls", "--json").stdout)["runs"][0]["id"])


def test_a_large_result_is_kept_apart_and_answered_to_the_byte(desk: Desk) -> None:
    said = recorded(desk, _TOOL)
    assert len(blobs(desk)) >= 2, "the result of one tool, and the argument of the other"
    (trace,) = (desk.folder / ".reenact" / "traces").rglob("*.jsonl")
    assert trace.stat().st_size < 100_000
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, said), again.stderr
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert len(json.dumps(shown)) > 2_000_000, "it is shown whole"


@pytest.mark.slow
def test_an_image_in_a_request_is_kept_apart_and_matched(desk: Desk, provider: StandIn) -> None:
    desk.environ.update(provider.environment)
    said = recorded(desk, _MODEL)
    assert [path.stat().st_size > 1_000_000 for path in blobs(desk)] == [True]
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, said), again.stderr


@pytest.mark.parametrize("harm", ["deleted", pytest.param("damaged", marks=pytest.mark.slow)])
def test_a_lost_value_is_named_and_nothing_is_answered_in_its_place(desk: Desk, harm: str) -> None:
    recorded(desk, _TOOL)
    for path in blobs(desk):
        path.unlink() if harm == "deleted" else path.write_bytes(b"{}")
    said = json.loads(desk.reenact("doctor", "last", "--json").stdout)
    reasons = [reason for reason in said["verdict"]["reasons"] if "blob" in reason["lost"]]
    assert {reason["field"] for reason in reasons} == {"output.value", "input.value"}
    assert all("blobs" in reason["fix"] for reason in reasons)
    assert ("is damaged" in reasons[0]["lost"]) is (harm == "damaged")
    again = desk.reenact("replay", "last")
    assert again.returncode != 0
    assert again.stdout == "", "the program got no value that was not recorded"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["bundle.zip", "bundle"])
def test_a_bundle_replays_elsewhere(desk: Desk, tmp_path: Path, target: str) -> None:
    said = recorded(desk, _TOOL)
    did = desk.reenact("export", "last", "-o", target, "--blobs", "bundle")
    assert did.returncode == 0, did.stderr
    if target == "bundle":
        assert (desk.folder / target / "trace.otlp.jsonl").stat().st_size < 100_000
    shutil.rmtree(desk.folder / ".reenact")
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.move(desk.folder / target, other / target)
    again = desk.reenact("replay", "--trust", str(other / target))
    assert (again.returncode, again.stdout) == (0, said), again.stderr
    taken = desk.reenact("import", str(other / target))
    assert taken.returncode == 0, taken.stderr
    assert len(blobs(desk)) >= 2
    assert desk.reenact("replay", "--trust", "last").stdout == said
    twice = desk.reenact("export", "last", "-o", str(other / target), "--blobs", "bundle")
    assert twice.returncode == (3 if target == "bundle" else 0), "a folder with something in it is left alone"


@pytest.mark.slow
def test_inline_and_by_reference(desk: Desk) -> None:
    said = recorded(desk, _TOOL)
    assert desk.reenact("export", "last", "-o", "inline.jsonl").returncode == 0
    assert desk.reenact("export", "last", "-o", "reference.jsonl", "--blobs", "reference").returncode == 0
    inline = (desk.folder / "inline.jsonl").read_text(encoding="utf-8")
    assert inline.count(f"{1499}" * 400) >= 2, "the result of one tool and the argument of the other, to their last row"
    assert (desk.folder / "reference.jsonl").stat().st_size < 100_000
    by_reference = {"REENACT_BLOBS": str(desk.folder / ".reenact" / "blobs")}
    assert desk.reenact("replay", "--trust", "inline.jsonl").stdout == said
    again = desk.reenact("replay", "--trust", "reference.jsonl", environ={**os.environ, **by_reference})
    assert again.stdout == said, again.stderr


@pytest.mark.slow
def test_what_runs_share_outlives_one_of_them(desk: Desk) -> None:
    said = recorded(desk, _TOOL)
    first = run_id(desk)
    recorded(desk, _TOOL)
    shared = blobs(desk)
    assert desk.reenact("store", "rm", first[:12]).returncode == 0
    swept = desk.reenact("store", "sweep", "--grace", "0")
    assert "0 blobs" in swept.stderr, swept.stderr
    assert blobs(desk) == shared
    assert desk.reenact("replay", "last").stdout == said
    for run in json.loads(desk.reenact("ls", "--json", "--replays").stdout)["runs"]:
        assert desk.reenact("store", "rm", run["id"]).returncode == 0
    kept = desk.reenact("store", "sweep")
    assert "0 blobs" in kept.stderr, "young ones are left alone: somebody may be about to refer to them"
    for path in shared:
        os.utime(path, (time.time() - 7200,) * 2)
    assert f"{len(shared)} blobs" in desk.reenact("store", "sweep", "--dry-run").stderr
    assert blobs(desk) == shared
    assert f"{len(shared)} blobs" in desk.reenact("store", "sweep").stderr
    assert blobs(desk) == []
