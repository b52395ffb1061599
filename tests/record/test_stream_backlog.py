from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.record import stream_backlog
from reenact.record.stream_backlog import Unwritten
from reenact.redact.engine import Engine
from reenact.values.call import Chunk

TOKEN = "ghp_" + "x7K2qPz9" * 4 + "Ab12"
_order = count(1).__next__


def piece(said: str | bytes) -> Chunk:
    return Chunk(offset_us=1, order=_order(), data=said.encode() if isinstance(said, str) else said)


def yielded(value: object) -> Chunk:
    return Chunk(offset_us=1, order=_order(), value=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [piece, yielded])
@pytest.mark.parametrize("cut", range(1, len(TOKEN)))
def test_no_half_of_a_secret_is_written(make: type[Chunk], cut: int) -> None:
    waiting, engine = Unwritten(), Engine()
    written = [
        [stream_backlog.bytes_of(each).decode() for each in waiting.settle(make(said), engine)]  # type: ignore[arg-type,call-arg]
        for said in ("Use ", TOKEN[:cut], TOKEN[cut:], " for it.")
    ]
    text = "".join("".join(each) for each in written)
    assert not any(TOKEN[at : at + 8] in text for at in range(len(TOKEN) - 7))
    assert text.startswith("Use ")
    assert text.endswith(" for it.")
    assert sum(map(len, written)) == 4, "every piece is written in the end, in its place"


@given(st.lists(st.text(max_size=20).map(lambda text: f"{text} "), max_size=12))
def test_what_holds_no_secret_is_written_as_it_is_and_none_is_lost(said: list[str]) -> None:
    waiting, engine = Unwritten(), Engine()
    chunks = [piece(each.encode("utf-8", "replace")) for each in (*said, "the end. ")]
    written = [each for chunk in chunks for each in waiting.settle(chunk, engine)]
    assert written == chunks[: len(written)]


def test_a_stream_that_never_settles_is_written_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_backlog, "_MOST", 16)
    waiting, engine = Unwritten(), Engine()
    written = [each for _ in range(64) for each in waiting.settle(piece("abc123"), engine)]
    assert len(written) == 64


def test_objects_that_a_generator_yields_stay_objects() -> None:
    chunks = [yielded({"delta": {"content": each}, "n": 1}) for each in ("Use ", TOKEN[:9], TOKEN[9:], " now")]
    clean = stream_backlog.scrubbed(chunks, Engine())
    assert [set(each.value) for each in clean] == [{"delta", "n"}] * 4  # type: ignore[arg-type]
    said = "".join(each.value["delta"]["content"] for each in clean)  # type: ignore[index,call-overload]
    assert said.startswith("Use REDACTED_github_token_")
    assert said.endswith(" now")


def test_numbers_one_after_the_other_are_no_number() -> None:
    engine, waiting = Engine(), Unwritten()
    chunks = [yielded(int(digits)) for digits in ("4539", "1488", "0343", "6467")]
    assert [each for chunk in chunks for each in waiting.settle(chunk, engine)] == chunks
    assert stream_backlog.scrubbed(chunks, engine) == tuple(chunks)
