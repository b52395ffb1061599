from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import InputError
from reenact.foreign.tables import columns, rows

cells = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=20)


def written(names: list[str], table: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, *table])
    return text.getvalue().encode()


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=4))
def test_rows_of_csv_come_back_with_the_line_they_begin_on(table: list[tuple[str, str]]) -> None:
    data = written(["id", "input"], [list(row) for row in table])
    read = list(rows(io.BytesIO(data), "file"))
    assert [row for _, row in read] == [{"id": first, "input": second} for first, second in table]
    assert read[0][0] == 2
    assert columns(data) == {"id", "input"}


def test_json_and_its_lines_are_read_as_such() -> None:
    assert list(rows(io.BytesIO(b'\xef\xbb\xbf{"a": 1}\n{"a": 2}'), "file")) == [(1, {"a": 1}), (2, {"a": 2})]
    assert list(rows(io.BytesIO(b""), "file")) == []
    assert columns(b'{"a,b": 1}\n') == frozenset()
    assert columns(b"one line, without an end") == frozenset()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a,b\n1\n", "1 cells where the header names 2"),
        (b'a,b\n1,"2', "unexpected end of data"),
        (b"a,b\n1,\xff\n", "not CSV"),
    ],
)
def test_a_table_that_is_damaged_is_told_with_its_line(data: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as refusal:
        list(rows(io.BytesIO(data), "file"))
    assert refusal.value.place.startswith("file:")


def test_a_stream_that_cannot_be_looked_into_is_read_as_well() -> None:
    class Slow(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._read: Callable[[int], bytes] = io.BytesIO(data).read

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            return self._read(min(size, 3) if size > 0 else 3)

    assert list(rows(Slow(b"a,b\n1,2\n"), "file")) == [(2, {"a": "1", "b": "2"})]  # type: ignore[arg-type]
