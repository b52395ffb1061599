from __future__ import annotations

import io
import random
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import InputError
from reenact.formats import journal
from reenact.formats.journal import FORMAT, MAGIC, Reader, end_frame, frame, start_frame
from reenact.values.span import Resource, SpanRecord
from strategies import RAGGED_TEXT

ROOT = SpanRecord(
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="00000000000000aa",
    parent_id=None,
    name="run",
    start_ns=1,
    end_ns=1000,
    attributes={"reenact.run.root": True},
    resource=Resource(attributes={"service.name": "test"}),
)


def call(number: int) -> SpanRecord:
    return replace(
        ROOT,
        span_id=f"{number:016x}",
        parent_id=ROOT.span_id,
        name=f"call {number}",
        start_ns=number,
        end_ns=number + 1,
        attributes={"input.value": f'{{"t":"{number}"}}' * number},
    )


def frames(count: int = 5) -> list[bytes]:
    """What a process writes: its root begins, calls begin and end, one streams, the root ends."""
    made = [MAGIC + frame(journal.header(dict(ROOT.resource.attributes), "reenact", "1")), frame(start_frame(ROOT))]
    for number in range(1, count + 1):
        made.append(frame(start_frame(call(number))))
        made.append(frame({"t": "chunk", "span": f"{number:016x}", "chunk": [number, number, f"piece {number}"]}))
        made.append(frame(end_frame(call(number))))
    return [*made, frame(end_frame(ROOT))]


def read(data: bytes) -> tuple[list[SpanRecord], list[SpanRecord], Reader]:
    """Give the spans that ended, those that did not, and the reader."""
    reader = Reader("test")
    ended = list(reader.feed(data))
    return ended, list(reader.unfinished()), reader


def test_a_whole_journal_gives_every_span() -> None:
    ended, unfinished, reader = read(b"".join(frames()))
    assert [span.name for span in ended] == [*(f"call {number}" for number in range(1, 6)), "run"]
    assert (unfinished, reader.torn(), reader.damaged) == ([], 0, 0)
    assert all(span.resource.attributes == {"service.name": "test"} for span in ended)


def test_at_every_byte_at_which_a_process_may_be_killed_what_was_written_is_read() -> None:
    """A tear inside a frame loses this frame alone, and the root and its open calls are there, marked."""
    pieces = frames(3)
    whole = b"".join(pieces)
    ends = [len(b"".join(pieces[: number + 1])) for number in range(len(pieces))]
    for cut in range(len(whole) + 1):
        complete = sum(end <= cut for end in ends)
        ended, unfinished, _ = read(whole[:cut])
        closed = [piece for piece in pieces[:complete] if b'"t":"end"' in piece]
        opened = [piece for piece in pieces[:complete] if b'"t":"start"' in piece]
        assert len(ended) == len(closed)
        assert len(ended) + len(unfinished) == len(opened)
        if opened:
            assert ROOT.span_id in {span.span_id for span in (*ended, *unfinished)}
        assert all(span.attributes["reenact.incomplete"] is True for span in unfinished)


def test_pieces_of_a_stream_that_was_cut_off_are_kept() -> None:
    _, unfinished, _ = read(b"".join(frames(2)[:4]))
    streamed = unfinished[1]
    assert streamed.attributes["reenact.outcome"] == "streamed"
    assert streamed.attributes["reenact.stream.end"] == "unfinished"
    assert streamed.attributes["reenact.stream.chunks"] == '[[1,1,"piece 1"]]'


def test_a_journal_that_grows_is_read_as_it_grows() -> None:
    whole = b"".join(frames(4))
    chance = random.Random(5)
    reader, ended, at = Reader("test"), [], 0
    while at < len(whole):
        size = chance.randrange(1, 90)
        ended += reader.feed(whole[at : at + size])
        at += size
    assert ended == read(whole)[0]
    assert (reader.torn(), reader.damaged) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_byte_costs_the_span_it_hit_and_no_other(seed: int) -> None:
    pieces = frames(8)
    chance = random.Random(seed)
    hit = chance.randrange(2, len(pieces) - 1)
    whole = bytearray(b"".join(pieces))
    place = len(b"".join(pieces[:hit])) + chance.randrange(len(pieces[hit]))
    whole[place] ^= 1 << chance.randrange(8)
    ended, unfinished, reader = read(bytes(whole))
    missing = {span.span_id for span in read(b"".join(pieces))[0]} - {span.span_id for span in ended}
    assert reader.damaged == 1
    assert len(missing) <= 1
    assert {span.span_id for span in unfinished} <= missing
    assert ended[-1].name == "run"


def test_a_damaged_piece_is_passed_over_while_the_journal_grows() -> None:
    pieces = frames(6)
    damaged = bytearray(pieces[4])
    damaged[0] ^= 0x20  # a length that reaches far behind the end
    reader, ended = Reader("test"), []
    for piece in [*pieces[:4], bytes(damaged), *pieces[5:]]:
        ended += reader.feed(piece)
    assert [span.name for span in ended] == [*(f"call {number}" for number in range(2, 7)), "run"]
    assert [span.name for span in reader.unfinished()] == ["call 1"]


def test_a_frame_that_is_none_of_ours_is_named_with_its_place() -> None:
    payload = b'{"t":"start"}'
    whole = MAGIC + struct.pack(">II", len(payload), zlib.adler32(payload)) + payload
    with pytest.raises(InputError, match=r"^test: a frame is none of a journal's"):
        read(whole)


def test_what_is_no_journal_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match=r"^some/file: this is not a reenact journal"):
        list(FORMAT.decode(io.BytesIO(b"RNACTJ9\nand more"), Path("some/file")))


def test_a_journal_of_the_first_version_is_read_with_its_own_checksum() -> None:
    pieces = frames(2)
    payloads = [piece[8:] for piece in (pieces[0][len(MAGIC) :], *pieces[1:])]
    first = [struct.pack(">II", len(payload), zlib.crc32(payload)) + payload for payload in payloads]
    assert read(b"".join([b"RNACTJ1\n", *first]))[0] == read(b"".join(pieces))[0]
    assert FORMAT.recognises(b"RNACTJ1\n") == FORMAT.recognises(b"RNACTJ3\n") > 0.9
    mixed = b"".join([b"RNACTJ1\n", pieces[0][len(MAGIC) :], *pieces[1:]])
    assert read(mixed)[0] == read(b"".join(pieces))[0], "with another it is one whose magic is damaged"


def test_frames_of_a_later_version_are_passed_over() -> None:
    pieces = frames(1)
    later = b"".join([*pieces[:2], frame({"t": "later", "span": "1"}), *pieces[2:]])
    assert read(later)[0] == read(b"".join(pieces))[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | RAGGED_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(RAGGED_TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(name=RAGGED_TEXT, attributes=st.dictionaries(RAGGED_TEXT, VALUES | st.binary(max_size=9), max_size=4))
def test_any_value_that_an_agent_may_hold_is_written_and_read(name: str, attributes: dict[str, Any]) -> None:
    """Lone surrogates (file names that are no UTF-8) and integers of any size included."""
    span = replace(ROOT, name=name, attributes=attributes)
    (again,) = list(FORMAT.decode(io.BytesIO(FORMAT.encode([span])), Path("test")))
    assert again.name == name
    assert again.attributes.keys() == attributes.keys()
