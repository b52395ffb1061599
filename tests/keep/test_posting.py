from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import reenact
from desk import Desk
from held import Held
from receivers import ACCEPTED, Receiver, http_receiver, running_grpc_receiver
from reenact.export.backends import backends_from_environment
from reenact.export.sender import Sender
from reenact.keep.drain import Drain
from reenact.keep.leftovers import leftovers
from reenact.keep.posting import send_waiting, with_names
from reenact.keep.status import status_of
from reenact.pipeline import recording
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Outbox
from reenact.values.span import SpanRecord
from reenact.values.status import BackendStatus


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as running:
        yield running


@reenact.tool
def look_up(item: str, times: int = 1) -> str:
    return item * times


def backends(*urls: str) -> list[Sender]:
    return backends_from_environment({"REENACT_EXPORT": ",".join(urls)})


def standing(store: Path) -> list[BackendStatus]:
    found = status_of(DirectoryStore(store), []).backends
    for each in found:
        assert each.created == each.exported + each.waiting + sum(each.dropped.values())
    return list(found)


def attributes_in(receiver: Receiver, name: str) -> dict[str, Any]:
    """The attributes of the only span of this name that arrived, as text."""
    (found,) = (
        span
        for request in receiver.requests
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
        if span.name == name
    )
    return {each.key: each.value for each in found.attributes}


# large values


@pytest.mark.parametrize(("times", "whole"), [(300_000, True), (1_500_000, False)])
def test_a_large_value_leaves_whole_as_far_as_a_request_goes_and_else_as_a_reference(
    held: Held, receiver: Receiver, times: int, *, whole: bool
) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=backends(receiver.url))
    with reenact.run("unit"):
        look_up("éa", times)  # 3 bytes each
    recording.stop(made)
    drain.finish()
    (backend,) = standing(held.store)
    assert (backend.exported, backend.referred, backend.dropped) == (2, 0 if whole else 1, {})
    got = attributes_in(receiver, "look_up")
    if whole:
        assert got["output.value"].string_value == "éa" * times
        assert "reenact.blobs" not in got
    else:
        assert [each.string_value for each in got["reenact.blobs"].array_value.values] == ["output.value"]
        assert json.loads(got["output.value"].string_value)["size"] == 3 * times


def test_a_receiver_of_little_gets_references_and_nothing_is_dropped(held: Held) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed")
    with running_grpc_receiver() as small:  # takes 100,000 bytes
        made = held.start()
        drain = Drain(made.store, recording=made.id, backends=backends(f"grpc://{small.address}"))
        with reenact.run("unit"):
            look_up("a", 1_200_000)
            look_up("b", 10)
            look_up("c", 500_000)  # too small for a blob, too large for this receiver
        recording.stop(made)
        drain.finish()
    (backend,) = standing(held.store)
    assert (backend.exported, backend.referred, backend.dropped) == (3, 1, {"too large": 1})
    assert len([*DirectoryStore(held.store).spans(DirectoryStore(held.store).trace_ids()[0])]) == 4, "the store has it"


# who is to have what


def test_two_projects_of_one_endpoint_are_owed_apart(held: Held, receiver: Receiver) -> None:
    both = backends(receiver.url.replace("//", "//a:1@"), receiver.url.replace("//", "//b:2@"))
    assert [sender.name for sender in with_names(both)] == [receiver.url, f"{receiver.url} (2)"]
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=both)
    look_up("tea")
    recording.stop(made)
    drain.finish()
    assert [(each.name, each.exported) for each in standing(held.store)] == [
        (receiver.url, 2),
        (f"{receiver.url} (2)", 2),
    ]
    assert len(receiver.names) == 4


def test_a_recording_is_for_the_backends_it_was_made_with_whoever_carries_it(held: Held, receiver: Receiver) -> None:
    made = held.start()
    Drain(made.store, recording=made.id, backends=backends(receiver.url))  # and is killed
    look_up("tea")
    recording.stop(made)
    other = held.start()
    look_up("of nobody's concern")
    recording.stop(other)
    Outbox(held.store).failed(1, "as if it had been down", 2**62, tries=1)
    assert len(leftovers(made.store, send=False)) == 2
    (backend,) = standing(held.store)
    assert (backend.created, backend.waiting) == (2, 2)


def test_what_waits_goes_out_with_the_next_command(
    held: Held, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.behave = lambda *_: (503, {}, b"")
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=backends(receiver.url))
    look_up("tea")
    recording.stop(made)
    drain.finish()
    assert [(each.exported, each.waiting) for each in standing(held.store)] == [(0, 2)]
    receiver.behave = lambda *_: ACCEPTED
    receiver.requests.clear()
    leftovers(made.store)
    assert receiver.names == [], "nobody named it"
    monkeypatch.setenv("REENACT_EXPORT", receiver.url)
    assert send_waiting(made.store, print, 5)[0].exported == 2
    leftovers(made.store)
    assert sorted(receiver.names) == sorted(set(receiver.names))
    assert [(each.exported, each.waiting) for each in standing(held.store)] == [(2, 0)]


@pytest.mark.parametrize("last", range(6))
def test_wherever_carrying_is_killed_every_span_is_owed_once(
    held: Held, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    monkeypatch.setattr("reenact.keep.journal_reader._PIECE", 3000)
    made = held.start()
    Outbox(held.store).register(made.id, [receiver.url])
    with reenact.run("unit"):
        for number in range(20):
            look_up(str(number))
    recording.stop(made)
    put, calls = DirectoryStore.put, iter(range(1000))

    def killed(store: DirectoryStore, spans: Sequence[SpanRecord], *, proofs: bool = False) -> Any:
        number = next(calls)
        if number == last and last % 2:
            raise KeyboardInterrupt
        parcels = put(store, spans, proofs=proofs)
        if number == last:
            raise KeyboardInterrupt
        return parcels

    monkeypatch.setattr(DirectoryStore, "put", killed)
    with pytest.raises(KeyboardInterrupt):
        leftovers(made.store, send=False)
    (backend,) = standing(held.store)
    assert backend.created == backend.waiting == 21
    monkeypatch.setattr(DirectoryStore, "put", put)
    monkeypatch.setenv("REENACT_EXPORT", receiver.url)
    (run,) = leftovers(made.store, send=False)
    assert len(run.nodes) == 21
    send_waiting(made.store, print, 5)
    assert len(receiver.names) == 21
    (backend,) = standing(held.store)
    assert (backend.created, backend.exported, backend.in_journals) == (21, 21, 0)


def test_a_damaged_outbox_does_not_keep_spans_from_the_store(held: Held, receiver: Receiver) -> None:
    told: list[str] = []
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=backends(receiver.url), report=told.append)
    damaged = held.store / "damaged"
    damaged.write_bytes(b"this is no database, " * 100)
    damaged.replace(held.store / "outbox" / "outbox.sqlite")  # whole at once: a thread is about that opens it
    look_up("tea")
    recording.stop(made)
    (run,) = drain.finish()
    assert len(run.nodes) == 2
    assert any("not on their way to any backend" in line for line in told)


# in a process that records itself

_PROGRAM = """
import json, sys
import reenact
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))

@reenact.tool
def look_up(item):
    return item

made = reenact.record()
look_up("tea")
flushed = [made.force_flush(5)]
look_up("milk")
open("down", "w").close()
flushed.append(made.force_flush(0.5))
told = {}
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            for point in metric.data.data_points:
                value = getattr(point, "value", None)
                why = point.attributes.get("error.type") or point.attributes.get("reenact.reason") or ""
                key = f"{metric.name} {why}".strip()
                told[key] = point.count if value is None else value
print(json.dumps({"flushed": flushed, "told": told}))
"""


def test_flushing_tells_the_truth_and_metrics_say_the_same(tmp_path: Path, receiver: Receiver) -> None:
    desk = Desk(tmp_path)
    receiver.behave = lambda *_: (503, {}, b"") if (tmp_path / "down").exists() else ACCEPTED
    did = desk.run(
        [sys.executable, desk.write("agent.py", _PROGRAM)],
        {**os.environ, "REENACT_EXPORT": receiver.url},
    )
    assert did.returncode == 0, did.stderr
    said = json.loads(did.stdout)
    assert said["flushed"] == [True, False]
    told = said["told"]
    assert told["otel.sdk.exporter.span.exported"] == 1
    assert told["otel.sdk.exporter.span.inflight"] == 0
    assert told["otel.sdk.exporter.operation.duration"] == 1
    assert (told["reenact.outbox.created"], told["reenact.outbox.exported"]) == (2, 1)
    assert told["reenact.outbox.waiting"] == 1
    assert "waiting, to be sent next time" in did.stderr


# a backend that asked to be left alone


def test_a_backend_that_asked_to_be_left_alone_is_left_alone_by_the_next_process(
    held: Held, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.behave = lambda *_: (503, {"Retry-After": "3600"}, b"")
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=backends(receiver.url))
    look_up("tea")
    recording.stop(made)
    drain.finish()
    assert len(receiver.requests) == 1
    receiver.behave = lambda *_: ACCEPTED
    monkeypatch.setenv("REENACT_EXPORT", receiver.url)
    send_waiting(DirectoryStore(held.store), sys.stderr.write, within_s=1.0)  # as `reenact status --flush` does
    environ = {**os.environ, "REENACT_STORE": str(held.store)}
    for words in (["ls"], ["run", "-q", "--", sys.executable, "-c", "import reenact; reenact.tool(abs)(1)"]):
        done = subprocess.run([sys.executable, "-m", "reenact", *words], env=environ, check=False, capture_output=True)
        assert done.returncode == 0
    assert len(receiver.requests) == 1, "nobody sends to it, asked to try at once or not"
    (backend,) = standing(held.store)
    assert backend.waiting == backend.created > 2
    (account,) = Outbox(held.store).accounts()
    Outbox(held.store).asked(account.number, 0)
    send_waiting(DirectoryStore(held.store), sys.stderr.write, within_s=5.0)
    assert standing(held.store)[0].waiting == 0


def test_an_outbox_of_before_knows_of_nobody_who_asked(held: Held, receiver: Receiver) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=backends(receiver.url))
    look_up("tea")
    recording.stop(made)
    drain.finish()
    (account,) = Outbox(held.store).accounts()
    assert Outbox(held.store).asked_until(account.number) == 0
