"""What installed libraries draw is kept where it is seen in what the program gives out, and nowhere else."""

from __future__ import annotations

import base64
import itertools
import json
import os
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from reenact.boundary import flows, lanes
from reenact.boundary.tape import Site, Source


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(flows, "_making", lambda _frame: 0)  # these draws are made for no call of an agent's
    lanes.restart()
    flows.forget()
    yield
    flows.forget()
    lanes.restart()


def seen(text: str) -> list[flows.Segment]:
    return flows.note_output(text, lanes.current().reel)


def site(module: str = "library.ids", *, clock: bool = False) -> Site:
    return Site(key=f"{module}:draw x", source=Source(name="x", moment=float if clock else None), of_library=True)


def kept(lane: lanes.Lane) -> list[tuple[int, Any]]:
    return [(number, value) for each in lane.library.kept.values() for number, value in sorted(each.items())]


UUID = uuid.uuid4()
BYTES = os.urandom(16)
ULID = os.urandom(10)
CROCKFORD = (
    base64.b32encode(ULID)
    .decode()
    .translate(str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"))
)
NOW = time.time()
DAY = datetime.fromtimestamp(NOW, UTC)
TOKEN = base64.urlsafe_b64encode(json.dumps({"iss": "me", "iat": int(NOW)}).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (UUID, f'{{"id": "{UUID}"}}'),
        (UUID, f"https://host/{UUID.hex}?x=1"),
        (UUID, f"session-{str(UUID).upper()[:8]}"),
        (UUID, f"…{UUID.hex[-12:]}"),
        (BYTES, f"boundary=----{BYTES.hex()}"),
        (BYTES, f'"key": "tok_{base64.urlsafe_b64encode(BYTES).decode()}"'),
        (BYTES, base64.b64encode(BYTES).decode()),
        (ULID, f"01J9ZQ8R4T{CROCKFORD}"),
        (BYTES[:5], f"66f0a1b2{BYTES[:5].hex()}000001"),
        (int(UUID), f"run-{UUID}"),
        (NOW, f'{{"exp": {int(NOW)}}}'),
        (int(NOW * 1e9), f"at {int(NOW * 1000)}"),
        (NOW, f"assertion=eyJhbGciOiJub25lIn0.{TOKEN}.sig"),
        (UUID, f"INSERT INTO t VALUES(X'{f'some words around the id {UUID} of it'.encode().hex().upper()}');"),
        (DAY, f"Today is {DAY:%A}, {DAY:%B} {DAY.day}, {DAY:%Y}."),
        (DAY.date(), f"{DAY:%Y%m%d}T000000Z"),
        (time.gmtime(NOW), f"{DAY:%Y-%m-%d}"),
    ],
    ids=itertools.count(),  # their values are others in each process of a run
)
def test_a_value_is_seen_however_it_is_spelled(value: Any, text: str) -> None:
    lane = lanes.current()
    flows.hold(lane, 7, site(), value)
    assert [each.lane for each in seen(f"some words before it {text} and behind")] == [lane]
    assert kept(lane) == [(0, value)]
    assert seen(text) == [], "it is told once"


def test_a_text_that_was_put_together_of_chosen_signs_is_seen_and_all_draws_for_it_are_kept() -> None:
    lane, here = lanes.current(), site()
    key = "k3yOfTenAB"
    for number, sign in enumerate(f"{key}Another00"):
        before = flows.last_draw(lane)
        flows.hold(lane, 7, here, bytes([255]))  # one that is out of bounds and thrown again
        flows.hold(lane, 7, here, bytes([number]))
        flows.note_choice(lane, before, sign)
    assert [each.lane for each in seen(f"VALUES('{key}','x')")] == [lane]
    assert kept(lane)[: 2 * len(key) : 2] == [(2 * number, bytes([255])) for number in range(len(key))]
    assert kept(lane)[1 : 2 * len(key) : 2] == [(2 * number + 1, bytes([number])) for number in range(len(key))]


def test_what_is_not_seen_is_not_kept() -> None:
    lane = lanes.current()
    for value in (uuid.uuid4(), os.urandom(32), os.urandom(2), NOW - 86_400 * 40):
        flows.hold(lane, 0, site(), value)
    assert seen(json.dumps({"id": str(UUID), "day": f"{DAY:%Y-%m-%d}", "said": "an order of 12345678"})) == []
    assert lane.library.kept == {}


def test_what_the_same_module_drew_near_it_is_kept_too_and_of_another_nothing() -> None:
    lane, ids = lanes.current(), site()
    flows.hold(lane, 0, site("library.other"), os.urandom(16))
    flows.hold(lane, 0, ids, NOW - 86_400)
    flows.hold(lane, 0, ids, UUID)
    flows.hold(lane, 0, site("library.other"), os.urandom(16))
    seen(f"id {UUID}")
    assert kept(lane) == [(0, NOW - 86_400), (1, UUID)]


def test_numbers_at_a_site_count_what_nobody_saw() -> None:
    lane, here = lanes.current(), site()
    others = [site(f"other{number}") for number in range(3)]
    drawn = [uuid.uuid4() for _ in range(5)]
    for value in drawn[:3]:
        flows.hold(lane, 0, here, value)
    for each in others:
        for _ in range(150):
            flows.hold(lane, 0, each, uuid.uuid4())
    flows.hold(lane, 0, here, drawn[3])
    seen(f"id {drawn[3]}")
    assert kept(lane) == [(3, drawn[3])]


def test_a_clock_that_is_read_all_the_time_is_kept_to_a_bound() -> None:
    lane, here = lanes.current(), site(clock=True)
    for _ in range(1000):
        flows.hold(lane, 0, here, NOW)
    seen(f"at {int(NOW)}")
    assert len(kept(lane)) == 100


@pytest.mark.parametrize("end", ['"more"]}', '"and", "more"], "model": "m"}'])
def test_of_a_conversation_that_goes_on_the_new_part_is_looked_at(end: str) -> None:
    lane, here = lanes.current(), site()
    first = json.dumps({"messages": ["hello there " * 50]})
    flows.hold(lane, 0, here, uuid.uuid4())
    assert seen(first) == []
    flows.hold(lane, 0, here, UUID)
    grown = f"{first[:-2]}, {end}"
    assert seen(grown) == []
    assert seen(grown.replace("more", str(UUID))) != []
    assert kept(lane)[-1] == (1, UUID)


def test_what_was_drawn_where_a_service_was_imported_is_found_by_each_unit() -> None:
    lane = lanes.current()
    flows.hold(lane, 0, site(), UUID)
    for _ in range(2):
        (found,) = flows.note_output(f"session {UUID}", lane.reel.begin_unit("unit"))
        assert [*found.kept.values()] == [{0: UUID}]


def test_what_a_clock_told_a_library_is_taped_unseen_and_not_where_a_call_is_really_made() -> None:
    lane = lanes.current()
    here = Site(key="library:f x", source=Source(name="x", elapses=True, measures=True), of_library=True)
    for number in range(1000):
        flows.hold(lane, 7, here, number)
    with lanes.aside():
        flows.hold(lanes.current(), 7, here, 5)
        assert lanes.current().library.read == {}
    assert lane.library.read == {(7, here): [*range(500)]}
    assert [*lane.reel.read.values()] == [lane]
    assert not flows.are_held()
