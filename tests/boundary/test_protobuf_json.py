"""Messages of protocol buffers become JSON and the same bytes again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary.protobuf_json import decode, encode, message_class

pytest.importorskip("google.protobuf")
from google.protobuf import any_pb2, descriptor_pb2, struct_pb2, wrappers_pb2

KINDS = descriptor_pb2.FileDescriptorProto
SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def bytes_of(message: Any) -> bytes:
    return message.SerializeToString(deterministic=True)


@given(st.dictionaries(st.text(), TREES, max_size=5))
def test_a_tree_comes_again(fields: dict[str, Any]) -> None:
    message = struct_pb2.Struct()
    message.update(fields)
    text = encode(bytes_of(message), struct_pb2.Struct)
    assert decode(text, struct_pb2.Struct) == bytes_of(message)


@given(st.binary())
def test_any_bytes_come_again_whatever_their_class(data: bytes) -> None:
    for kind in (struct_pb2.Struct, any_pb2.Any, descriptor_pb2.FileDescriptorProto, wrappers_pb2.BytesValue, None):
        text = encode(data, kind)
        again = decode(text, kind)
        assert again == data or (text[:1] == b"{" and bytes_of(kind.FromString(data)) == again)


@pytest.mark.parametrize(
    "message",
    [
        wrappers_pb2.FloatValue(value=0.1),
        wrappers_pb2.DoubleValue(value=float("nan")),
        wrappers_pb2.Int64Value(value=-(2**63)),
        wrappers_pb2.UInt64Value(value=2**64 - 1),
        wrappers_pb2.BytesValue(value=bytes(range(256))),
        wrappers_pb2.StringValue(value="{\u2028}\0"),
        KINDS(name="a.proto", dependency=["b", "c"], syntax="proto3"),
    ],
)
def test_what_is_hard_to_spell_comes_again(message: Any) -> None:
    data = bytes_of(message)
    assert decode(encode(data, type(message)), type(message)) == data


def test_fields_that_a_class_does_not_know_are_kept() -> None:
    data = bytes_of(KINDS(name="a.proto")) + b"\xd2\x0f\x03abc"
    assert encode(data, KINDS) == data
    assert decode(data, KINDS) == data


def test_the_class_of_a_message_is_that_of_its_methods() -> None:
    assert message_class(KINDS.FromString) is KINDS
    assert message_class(KINDS(name="a")) is KINDS
    assert message_class(b"plain") is None
    assert message_class(bytes.decode) is None
    assert encode(b"plain", None) == b"plain"
    assert decode(b"plain", None) == b"plain"


def test_names_are_spelled_as_in_the_schema() -> None:
    assert encode(bytes_of(KINDS(message_type=[{"name": "A"}])), KINDS) == b'{"message_type":[{"name":"A"}]}'
