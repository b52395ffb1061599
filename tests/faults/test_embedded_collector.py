"""The embedded collector killed under load, and on a disk that is full: what it acknowledged is there, once."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import small_disk

pytest.importorskip("h2", reason="the extra `collector` is not installed")

from collect.running import Load, Running, collecting, start
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore

DEATHS = int(os.environ.get("REENACT_TEST_DEATHS", "4"))


def stored(store: Path) -> Counter[bytes]:
    """The spans of a store, each with how often it is there."""
    kept = FrameStore(store)
    found: Counter[bytes] = Counter()
    for trace_id in kept.trace_ids():
        for record in kept.records(trace_id) or ():
            found[bytes.fromhex(record.trace_id + record.span_id)] += 1
    kept.close()
    return found


def acknowledging(load: Load, spans: int) -> None:
    """Wait until so many spans more are acknowledged."""
    before, end = len(load.acknowledged), time.monotonic() + 100
    while len(load.acknowledged) < before + spans and time.monotonic() < end:
        time.sleep(0.005)


def killed_under_load(folder: Path, deaths: int) -> dict[str, int]:
    """Kill a collector so often while clients send, and say what became of what it had acknowledged."""
    rng = random.Random(7)
    running = start(folder, "--idle", "0.3")
    options = ("--idle", "0.3", "--http-port", str(running.http_port))
    load = Load(running.http_port)
    load.start()
    try:
        for _ in range(deaths):
            acknowledging(load, 25)
            time.sleep(rng.uniform(0.03, 0.4))
            running.kill()
            running = start(folder, *options)
    except BaseException:
        load.giving_up.set()
        raise
    finally:
        load.over.set()
        time.sleep(0.1)
        load.finish()
    assert running.end() == 0
    found = stored(folder)
    return {
        "deaths": deaths,
        "acknowledged": len(load.acknowledged),
        "missing": sum(1 for span in load.acknowledged if not found[span]),
        "doubled": sum(1 for count in found.values() if count > 1),
        "retried": load.retried,
        "other": len(load.other),
    }


def seen_to_be_whole(told: dict[str, int], folder: Path) -> None:
    assert told["missing"] == 0
    assert told["doubled"] == 0
    assert told["other"] == 0
    assert told["acknowledged"] > 20 * told["deaths"]
    assert told["retried"] > 0, "some were killed with a request under way"
    store = DirectoryStore(folder)
    traces = store.trace_ids()
    for name in ("index-1.sqlite", "index-1.sqlite-wal", "index-1.sqlite-shm"):
        (folder / "frames" / name).unlink(missing_ok=True)
    assert sorted(DirectoryStore(folder).trace_ids()) == sorted(traces), "the index is made again from the frames"
    assert sum(stored(folder).values()) == len(stored(folder)), "and nothing is doubled by that"


@pytest.mark.slow
def test_killed_under_load(tmp_path: Path) -> None:
    seen_to_be_whole(killed_under_load(tmp_path / "store", DEATHS), tmp_path / "store")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_a_hundred_times(tmp_path: Path) -> None:
    told = killed_under_load(tmp_path / "store", 100)
    sys.stdout.write(f"{told}\n")
    seen_to_be_whole(told, tmp_path / "store")


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk("size=6m") as folder:
        yield folder


def filled(running: Running, load: Load) -> None:
    end = time.monotonic() + 60
    while load.refused < 20 and time.monotonic() < end:
        time.sleep(0.05)
    assert load.refused >= 20, "the disk is full by now"
    assert running.get("/healthz")[0] == 200


def test_a_full_disk(disk: Path) -> None:
    with collecting(disk / "store", "--idle", "3600") as running:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(3 << 20))
        load = Load(running.http_port)
        load.start()
        try:
            filled(running, load)
            status, headers, body = running.post(b"")
            assert status == 200, "an empty request needs no room"
            ballast.unlink()
            before = len(load.acknowledged)
            end = time.monotonic() + 30
            while len(load.acknowledged) <= before + 100 and time.monotonic() < end:
                time.sleep(0.05)
            assert len(load.acknowledged) > before + 100, "it recovers when there is room"
        finally:
            load.over.set()
            time.sleep(0.2)
            load.giving_up.set()
            load.finish()
        del headers, body
        assert not load.other, "nothing but 200 and 503"
        assert any("nothing is acknowledged until it can" in line for line in running.said)
    found = stored(disk / "store")
    assert load.acknowledged <= set(found)
    assert max(found.values()) == 1
