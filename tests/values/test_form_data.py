"""A form reads as what a client put into it, and nothing that is no form reads as one."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.values.form_data import fields_or_none

names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
files = st.tuples(st.from_regex(r"[a-z]{1,8}\.wav", fullmatch=True), st.binary(max_size=200))


@given(data=st.dictionaries(names, texts, max_size=4), files=st.dictionaries(names, files, min_size=1, max_size=3))
def test_a_form_of_a_client_reads_as_what_it_holds(data: dict[str, str], files: dict[str, tuple[str, bytes]]) -> None:
    data = {name: text for name, text in data.items() if name not in files}
    request = httpx.Request("POST", "http://x/", data=data, files={n: (*f, "audio/wav") for n, f in files.items()})
    expected = data | {
        name: {"filename": filename, "content_type": "audio/wav", "bytes": len(content)}
        for name, (filename, content) in files.items()
    }
    assert fields_or_none(request.read()) == expected


def test_a_name_that_is_there_twice_is_a_list() -> None:
    request = httpx.Request("POST", "http://x/", files=[("a", (None, "1")), ("a", (None, "2")), ("b[]", (None, "3"))])
    assert fields_or_none(request.read()) == {"a": ["1", "2"], "b[]": ["3"]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"model": "m"}',
        b"--x\r\n",
        b"--x\r\nno head--x--",
        b"--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--\r\n",
    ],
)
def test_what_is_no_form_has_no_fields(data: bytes) -> None:
    assert fields_or_none(data) is None


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    fields_or_none(data)
    fields_or_none(b"--b\r\n" + data + b"--b--")
