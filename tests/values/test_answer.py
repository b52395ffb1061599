"""What a call answered as one value: its places, and the same answer with another value."""

from __future__ import annotations

import pytest

from reenact.values.answer import body_of, places, spell_place, value_of, with_answer, with_body, without_place
from reenact.values.call import Body, Chunk, HttpReply, Raised, Returned, Streamed, Value
from reenact.values.difference import ABSENT
from reenact.values.json import Json
from reenact.values.typed import encode_exception


def reply(data: bytes, *headers: tuple[str, str]) -> Returned:
    return Returned(payload=HttpReply(status=200, headers=headers, body=Body(data)))


@pytest.mark.parametrize(
    ("outcome", "value"),
    [
        (Returned(payload=Value(json={"a": 1})), {"a": 1}),
        (reply(b'{"a": 1}'), {"a": 1}),
        (reply(b"null"), None),
        (reply(b"<html>"), ABSENT),
        (Streamed(chunks=(Chunk(offset_us=0, order=1, data=b"[1"), Chunk(offset_us=1, order=2, data=b",2]"))), [1, 2]),
        (Streamed(chunks=(Chunk(offset_us=0, order=1, value=3),)), ABSENT),
        (Raised(exception=encode_exception(ValueError("x"))), ABSENT),
    ],
)
def test_the_value_of_an_outcome(outcome: Returned | Streamed | Raised, value: object) -> None:
    assert value_of(outcome) == value


def test_places_come_from_the_outside_in_and_look_into_json_inside_text() -> None:
    found = places({"a": [1, 2], "b": '{"c": null}'})
    assert [spell_place("result", place.path) for place in found] == [
        "result",
        "result.a",
        "result.a[0]",
        "result.a[1]",
        "result.b",
        "result.b.c",
    ]
    assert [place.leaves for place in found] == [3, 2, 1, 1, 1, 1]
    assert found[3].field == "a"


def test_the_fields_of_a_recorded_object_are_places_and_its_tag_is_none() -> None:
    value: Json = {"$dataclass": "m:Order", "fields": {"total": 3}}
    assert [spell_place("result", place.path) for place in places(value)] == ["result", "result.total"]
    assert without_place(value, ("total",)) is ABSENT


@pytest.mark.parametrize(
    ("value", "path", "left"),
    [
        ({"a": 1, "b": 2}, ("a",), {"b": 2}),
        ([1, 2, 3], (1,), [1, 3]),
        ({"a": [{"b": 1, "c": 2}]}, ("a", 0, "b"), {"a": [{"c": 2}]}),
        ('{"a":1,"b":2}', ("a",), '{"b":2}'),
    ],
)
def test_a_place_is_left_out(value: Json, path: tuple[str | int, ...], left: Json) -> None:
    assert without_place(value, path) == left


def test_another_body_has_another_length_and_no_checksum() -> None:
    changed = with_answer(reply(b'{"a": 1}', ("content-length", "8"), ("etag", "x"), ("server", "s")), {"a": None})
    assert changed == reply(b'{"a":null}', ("server", "s"), ("content-length", "10"))


def test_another_body_of_a_stream_comes_where_its_last_piece_came() -> None:
    stream = Streamed(chunks=(Chunk(offset_us=0, order=1, data=b"ab"), Chunk(offset_us=9, order=4, data=b"c")))
    changed = with_body(stream, b"xyz")
    assert body_of(changed) == b"xyz"
    assert isinstance(changed, Streamed)
    assert [(chunk.offset_us, chunk.order) for chunk in changed.chunks] == [(9, 4)]
