"""The real Collector killed under load, and one that can take no more: nothing is lost, and nothing is read twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.real import PLAIN, Collector, needs_collector, running
from desk import Desk
from reenact.find.sources import runs_in
from reenact.read.open import open_spans
from reenact.values.run import Run
from reenact.values.span import SpanRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_collector]

KILLS = int(os.environ.get("REENACT_TEST_KILLS", "6"))
STEPS = 200 + 50 * KILLS
AGENT = f"""
import time
import reenact

@reenact.tool
def step(number: int) -> str:
    time.sleep(0.015)
    return f"did {{number}} " + "." * 2000

for number in range({STEPS}):
    step(number)
print("done")
"""


def backend(folder: Path) -> Collector:
    """A second Collector, that is never killed: what the first one's queue sends to."""
    return Collector(folder, configs=(PLAIN,))


def spans(archive: Path) -> list[SpanRecord]:
    return [each for each in open_spans(archive) if isinstance(each, SpanRecord)]


def test_a_collector_that_is_killed_loses_nothing_and_doubles_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with running(backend(tmp_path / "backend")) as behind:
        gateway = Collector(tmp_path / "gateway", settings={"BACKEND_ENDPOINT": behind.http})
        with running(gateway):
            desk = Desk(tmp_path, {"REENACT_EXPORT_BATCH_SPANS": "8", "REENACT_EXPORT": f"{gateway.http}/v1/traces"})
            recorder = subprocess.Popen(
                [sys.executable, "-m", "reenact", "run", "--", "python", desk.write("agent.py", AGENT)],
                cwd=tmp_path,
                env={**os.environ, **desk.environ},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            kills = killed_while(gateway, recorder)
            stdout, stderr = recorder.communicate(timeout=60)
            assert (recorder.returncode, stdout) == (0, "done\n"), stderr
            sent = json.loads(desk.reenact("status", "--send", "--within", "60", "--json").stdout)["backends"][0]
            assert sent["exported"] == sent["created"] > STEPS
            assert not sent["waiting"]
            assert not sent["dropped"]
            wanted = {node.id for node in whole(desk).nodes}
            until = time.monotonic() + 60
            while wanted - {each.span_id for each in spans(behind.archive)} and time.monotonic() < until:
                time.sleep(0.3)
    assert kills >= min(KILLS, 3), "it was killed while spans came"
    for archive in (gateway.archive, behind.archive):
        (run,) = runs_in(archive)
        assert Counter(node.id for node in run.nodes) == dict.fromkeys(wanted, 1)
        replayed = desk.reenact("replay", "--trust", str(archive), "--store", "elsewhere", environ=desk.bare())
        assert (replayed.returncode, replayed.stdout) == (0, "done\n"), replayed.stderr
        assert f"same: {STEPS} tool" in replayed.stderr
    doubles = {
        name: len(spans(each.archive)) - len(wanted) for name, each in (("archive", gateway), ("backend", behind))
    }
    figure = f"Collector killed {kills} times: {len(wanted)} spans, 0 lost in archive and backend; twice: {doubles}"
    record_property("figure", figure)


def killed_while(gateway: Collector, recorder: subprocess.Popen[str]) -> int:
    """Kill the Collector again and again, at other moments each time, and say how often."""
    kills = 0
    while recorder.poll() is None and kills < KILLS:
        time.sleep(0.3 + 0.07 * (kills % 5))
        gateway.kill()
        kills += 1
        gateway.start()
    return kills


def whole(desk: Desk) -> Run:
    assert desk.reenact("export", "last", "-o", "ours.jsonl").returncode == 0
    (run,) = runs_in(desk.folder / "ours.jsonl")
    return run


def test_a_full_queue_makes_the_recorder_wait_and_drops_nothing(tmp_path: Path) -> None:
    """The backend is away and the queue is small: 503, and what was not taken goes out when the backend is back."""
    behind = backend(tmp_path / "backend")
    settings = {"BACKEND_ENDPOINT": behind.http, "BACKEND_QUEUE_BYTES": "1048576"}
    with running(Collector(tmp_path / "gateway", settings=settings)) as gateway:
        desk = Desk(tmp_path, {"REENACT_EXPORT_BATCH_SPANS": "8", "REENACT_EXPORT": f"{gateway.http}/v1/traces"})
        agent = AGENT.replace("time.sleep(0.015)", "pass").replace('"." * 2000', '"." * 9000')
        done = desk.reenact("run", "--", "python", desk.write("agent.py", agent))
        assert done.stdout == "done\n", done.stderr
        waiting = json.loads(desk.reenact("status", "--json").stdout)["backends"][0]
        assert waiting["waiting"], "the gateway took no more"
        assert "503" in json.dumps(waiting), waiting
        with running(behind):
            sent = json.loads(desk.reenact("status", "--send", "--within", "60", "--json").stdout)["backends"][0]
            assert sent["exported"] == sent["created"] > STEPS
            assert not sent["dropped"]
            wanted = {node.id for node in whole(desk).nodes}
            until = time.monotonic() + 60
            while wanted - {each.span_id for each in reached(behind)} and time.monotonic() < until:
                time.sleep(0.3)
            assert {each.span_id for each in reached(behind)} == wanted
    (run,) = runs_in(behind.archive)
    assert Counter(node.id for node in run.nodes) == dict.fromkeys(wanted, 1)


def reached(collector: Collector) -> list[SpanRecord]:
    """Give what the backend has, which may be nothing yet."""
    return spans(collector.archive) if any(collector.archive.glob("*")) else []
