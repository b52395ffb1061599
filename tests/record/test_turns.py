from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats import journal
from reenact.formats.journal import CONVERSATIONS, TEXT, Reader
from reenact.record.journal import JournalProcessor
from reenact.record.turns import LONG, Turns

SAID = "The quick brown fox, Ünïcode 🦊 and all, said again what it had said. "
HEADS = ["{0}" + SAID * 60, "{1}" + SAID * 40, *(f"{{{n}}}" + "x" * 300 + SAID * 35 for n in range(2, 14))]


def begin(number: int, text: str) -> dict[str, Any]:
    return {
        "t": "start", "trace": "0" * 31 + "1", "span": f"{number:016x}", "parent": None,
        "name": "call", "kind": 1, "ns": number, "attributes": {"a": 1, TEXT: text},
    }  # fmt: skip


def written(folder: Path, texts: list[str]) -> Path:
    writer = JournalProcessor(folder, "0-1", {"service.name": "t"}, "reenact", "1")
    for number, text in enumerate(texts, 1):
        writer.write_turn(begin(number, text), text)
    writer.shutdown()
    return writer.path


def texts_in(data: bytes) -> dict[int, object]:
    reader = Reader("test")
    assert list(reader.feed(data)) == []
    return {int(span.span_id, 16): span.attributes.get(TEXT) for span in reader.unfinished()}


@st.composite
def conversations(draw: st.DrawFn) -> list[str]:
    """Turns of several conversations, in any order; now and then one is shorter, changed early, or begins anew."""
    now = dict(enumerate(HEADS))
    texts: list[str] = []
    for _ in range(draw(st.integers(1, 40))):
        which = draw(st.integers(0, len(HEADS) - 1))
        kind = draw(st.sampled_from(["grows", "grows", "grows", "cut", "changed", "anew", "same"]))
        at = draw(st.integers(300, len(now[which])))
        match kind:
            case "grows":
                now[which] += draw(st.text(max_size=50))
            case "cut":
                now[which] = now[which][:at]
            case "changed":
                now[which] = now[which][:at] + "!" + now[which][at + 1 :]
            case "anew":
                now[which] = HEADS[which]
            case _:
                pass
        texts.append(now[which])
    return texts


@given(conversations())
def test_every_turn_is_read_as_it_was_said(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = written(tmp_path_factory.mktemp("journal"), texts)
    assert texts_in(path.read_bytes()) == dict(enumerate(texts, 1))


def growing(turns: int) -> list[str]:
    texts = [HEADS[0]]
    for number in range(turns - 1):
        texts.append(f"{texts[-1]} and then {number}, " + "of which much is said. " * 20)
    return texts


def test_fifty_turns_are_written_in_a_fraction_of_what_they_are(tmp_path: Path) -> None:
    texts = growing(50)
    assert written(tmp_path, texts).stat().st_size < sum(map(len, texts)) / 7


def test_a_damaged_turn_costs_those_up_to_the_next_whole_one_and_no_other(tmp_path: Path) -> None:
    texts = growing(60)
    data = bytearray(written(tmp_path, texts).read_bytes())
    places = [data.index(f'"span":"{number:016x}"'.encode()) for number in range(1, 61)]
    data[places[20] + 9] ^= 1
    found = texts_in(bytes(data))
    lost = {number for number, text in enumerate(texts, 1) if found.get(number) != text}
    whole = [at + 1 for at, (a, b) in enumerate(pairwise([*places, len(data)])) if b - a > len(HEADS[0])]
    after = next(number for number in whole if number > 21)
    assert lost == set(range(21, after))
    assert all(found.get(number) is None for number in lost)
    assert after - 21 <= 17


def test_the_one_that_is_lost_is_named(tmp_path: Path) -> None:
    data = bytearray(written(tmp_path, growing(3)).read_bytes())
    data[data.index(b'"span":"0000000000000001"') + 9] ^= 1
    reader = Reader("test")
    list(reader.feed(bytes(data)))
    assert [span.attributes.get("reenact.damaged") for span in reader.unfinished()] == [TEXT, TEXT]


def test_after_a_write_that_failed_nothing_refers_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, real = growing(6), os.write
    writer = JournalProcessor(tmp_path, "0-1", {}, "reenact", "1")
    for number, text in enumerate(texts, 1):
        sizes = iter([40])

        def fills_up(fd: int, data: bytes, sizes: Iterator[int] = sizes) -> int:
            for size in sizes:
                return real(fd, data[:size])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", fills_up if number == 3 else real)
        writer.write_turn(begin(number, text), text)
    writer.shutdown()
    assert writer.dropped == 0, "nothing is missing in the end"
    assert texts_in(writer.path.read_bytes()) == dict(enumerate(texts, 1)), "what was torn came with the next"


def test_a_short_or_huge_text_is_written_as_it_is() -> None:
    turns = Turns()
    assert turns.next("x" * (LONG - 1)) is None
    assert turns.next("x" * (5 << 20)) is None


def test_no_more_conversations_are_known_than_a_reader_knows() -> None:
    turns = Turns()
    for head in HEADS[: CONVERSATIONS + 1]:
        turn = turns.next(head)
        assert turn is not None
        turns.wrote(turn)
    again = turns.next(HEADS[0] + "more")
    assert again is not None
    assert (again.of, again.shared) == (0, 0)


def test_a_journal_of_the_second_version_is_read(tmp_path: Path) -> None:
    data = journal.FORMAT.encode(journal.FORMAT.decode(written(tmp_path, growing(3)).open("rb"), tmp_path))
    second = b"RNACTJ2\n" + data[len(journal.MAGIC) :]
    spans = list(Reader("test").feed(second))
    assert [span.attributes[TEXT] for span in spans] == growing(3)
