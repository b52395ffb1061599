"""Spans that come in go on to backends, each with a queue of its own, whoever is killed or down meanwhile."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

from collect.running import collecting, request, start
from receivers import Receiver, http_receiver
from reenact.stores.outbox import Outbox


def received(receiver: Receiver) -> list[bytes]:
    return [
        span.trace_id + span.span_id
        for message in receiver.requests
        for group in message.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def settled(store: Path, spans: int, within: float = 45) -> list[tuple[int, int, int]]:
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = [(each.created, each.exported, each.waiting) for each in Outbox(store).accounts()]
        if found and all(created >= spans and not waiting for created, _, waiting in found):
            return found
        time.sleep(0.1)
    return [(each.created, each.exported, each.waiting) for each in Outbox(store).accounts()]


def test_each_backend_has_every_span_once(tmp_path: Path) -> None:
    rng, sent = random.Random(2), set[bytes]()
    with http_receiver() as one, http_receiver() as two:
        with collecting(tmp_path / "s", "--idle", "0.2", "--forward", one.url, "--forward", two.url) as running:
            for _ in range(20):
                body, ids = request(rng)
                assert running.post(body)[0] == 200
                sent |= ids
            assert settled(tmp_path / "s", 400) == [(400, 400, 0)] * 2
        for receiver in (one, two):
            assert sorted(received(receiver)) == sorted(sent)


@pytest.mark.slow
def test_what_a_dead_collector_owed_goes_out_with_the_next(tmp_path: Path) -> None:
    rng, sent = random.Random(3), set[bytes]()
    with http_receiver() as down:
        down.behave = lambda _self, _request: (503, {}, b"")
        options = ("--idle", "0.2", "--forward", down.url)
        for _ in range(3):
            running = start(tmp_path / "s", *options)
            for _ in range(10):
                body, ids = request(rng)
                assert running.post(body)[0] == 200
                sent |= ids
            time.sleep(rng.uniform(0, 0.8))
            running.kill()
        down.requests.clear()
        down.behave = lambda _self, _request: (200, {"content-type": "application/x-protobuf"}, b"")
        with collecting(tmp_path / "s", *options):
            found = settled(tmp_path / "s", 600)
        assert found == [(600, 600, 0)]
        assert set(received(down)) >= sent
        assert len(received(down)) == len(sent)
