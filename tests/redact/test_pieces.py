from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.engine import Engine

SECRET = "sk-proj-canary0123456789abcdefghij"


def events(parts: list[str], *, ascii_only: bool = False) -> bytes:
    """Stream texts as a provider does, one event each."""
    deltas = [{"id": "c", "choices": [{"index": 0, "delta": {"content": part}}]} for part in parts]
    return b"".join(b"data: " + json.dumps(delta, ensure_ascii=ascii_only).encode() + b"\n\n" for delta in deltas)


def said(pieces: list[bytes]) -> str:
    """Read the stream as an SDK would."""
    lines = b"".join(pieces).decode().split("\n")
    return "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in lines if line)


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_a_secret_split_over_two_events_is_one_token(at: int) -> None:
    engine = Engine(salt="00" * 16)
    body = events(["the key is ", SECRET[:at], SECRET[at:], " – keep it"])
    clean = engine.pieces([body])
    assert said(clean) == f"the key is {engine.token('openai_key', SECRET)} – keep it"


@given(st.lists(st.integers(0, 600), max_size=12), st.lists(st.integers(1, len(SECRET) - 1), max_size=4))
def test_a_secret_is_found_however_the_stream_is_cut(cuts: list[int], splits: list[int]) -> None:
    engine = Engine(salt="00" * 16)
    edges = [0, *sorted(set(splits)), len(SECRET)]
    body = events(["ümlaut ", *(SECRET[a:b] for a, b in pairwise(edges)), " ende"])
    places = [0, *sorted({cut for cut in cuts if cut < len(body)}), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    clean = engine.pieces(pieces)
    assert len(clean) == len(pieces)
    assert said(clean) == f"ümlaut {engine.token('openai_key', SECRET)} ende"
    assert engine.pieces(clean) == clean


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_pieces_without_a_secret_stay_as_they_are(pieces: list[bytes]) -> None:
    assert Engine(salt="00" * 16).pieces(pieces) == pieces
