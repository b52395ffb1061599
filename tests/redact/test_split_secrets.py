from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.engine import Engine

SECRET = "sk-proj-canary0123456789abcdefghij"
OTHER = "ghp_" + "aB3dE5gH7j" * 3 + "aB3dE5"
MAIL = "jane.doe@corp-example.org"


def engine() -> Engine:
    return Engine(salt="00" * 16, key=b"the store's own key", shared=False)


def sse(values: list[Any], *, event: bool = False) -> bytes:
    named = (f"event: {value.get('type')}\n" if event else "" for value in values)
    return b"".join(
        (name + "data: " + json.dumps(value, ensure_ascii=False) + "\n\n").encode()
        for name, value in zip(named, values, strict=True)
    )


def chat(parts: list[str]) -> bytes:
    return sse([{"id": "c", "choices": [{"index": 0, "delta": {"content": part}}]} for part in parts])


def chat_arguments(parts: list[str]) -> bytes:
    calls = [{"index": 0, "function": {"arguments": part}} for part in parts]
    return sse([{"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls])


def reasoning(parts: list[str]) -> bytes:
    return sse([{"choices": [{"index": 0, "delta": {"reasoning_content": part}}]} for part in parts])


def responses(parts: list[str]) -> bytes:
    kind = "response.output_text.delta"
    return sse([{"type": kind, "output_index": 0, "content_index": 0, "delta": part} for part in parts], event=True)


def messages(parts: list[str]) -> bytes:
    deltas = [{"type": "text_delta", "text": part} for part in parts]
    return sse([{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas], event=True)


def messages_input(parts: list[str]) -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return sse([{"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas], event=True)


def gemini(parts: list[str]) -> bytes:
    return sse([{"candidates": [{"content": {"parts": [{"text": part}], "role": "model"}}]} for part in parts])


def ndjson(parts: list[str]) -> bytes:
    lines = [{"model": "m", "message": {"role": "assistant", "content": part}, "done": False} for part in parts]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def in_a_row(parts: list[str]) -> bytes:
    """Values that a generator yields, as JSON, with nothing between."""
    return b"".join(json.dumps({"say": {"what": part}}).encode() for part in parts)


def plain_events(parts: list[str]) -> bytes:
    return b"".join(f"data: {part}\n\n".encode() for part in parts)


def plain(parts: list[str]) -> bytes:
    return "".join(parts).encode()


SHAPES: list[Callable[[list[str]], bytes]] = [
    *(chat, chat_arguments, reasoning, responses, messages, messages_input, gemini),
    *(ndjson, in_a_row, plain_events, plain),
]


def strings(value: Any) -> list[str]:
    """Give what is said in a value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        said = ("content", "arguments", "reasoning_content", "delta", "text", "partial_json", "what")
        return [
            text for name, item in value.items() if not isinstance(item, str) or name in said for text in strings(item)
        ]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []


def said(body: bytes) -> str:
    """Read a stream as an SDK would."""
    found: list[str] = []
    decoder = json.JSONDecoder()
    for line in body.decode().split("\n"):
        text = line.removeprefix("data: ")
        if text.startswith("{"):
            while text:
                value, end = decoder.raw_decode(text)
                found += strings(value)
                text = text[end:]
        elif not line.startswith("event:"):
            found.append(text)
    return "".join(found)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize(("name", "secret"), [("openai_key", SECRET), ("e_mail", MAIL), ("github_token", OTHER)])
def test_a_secret_split_over_two_events_at_any_point_is_one_token(
    shape: Callable[[list[str]], bytes], name: str, secret: str
) -> None:
    for at in range(1, len(secret)):
        made = engine()
        clean = made.pieces([shape(["the key is ", secret[:at], secret[at:], " – keep it"])])
        assert said(b"".join(clean)) == f"the key is {made.token(name, secret)} – keep it"
        assert made.pieces(clean) == clean


@given(
    shape=st.sampled_from(SHAPES),
    cuts=st.lists(st.integers(0, 900), max_size=12),
    splits=st.lists(st.integers(1, len(SECRET) - 1), max_size=4),
)
def test_a_secret_is_found_however_the_stream_is_cut(
    shape: Callable[[list[str]], bytes], cuts: list[int], splits: list[int]
) -> None:
    made = engine()
    edges = [0, *sorted(set(splits)), len(SECRET)]
    body = shape(["ümlaut ", *(SECRET[a:b] for a, b in pairwise(edges)), " ende"])
    places = [0, *sorted({cut for cut in cuts if cut < len(body)}), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    clean = made.pieces(pieces)
    assert len(clean) == len(pieces)
    assert said(b"".join(clean)) == f"ümlaut {made.token('openai_key', SECRET)} ende"
    assert made.pieces(clean) == clean


@given(order=st.lists(st.booleans(), min_size=1, max_size=40))
def test_two_texts_that_take_turns_are_two_texts(order: list[bool]) -> None:
    """Neither hides the other's secret, and none is made of both."""
    texts, values = [f"a {SECRET} b", f"c {OTHER} d"], list[Any]()
    for which in [*order, *[True] * 30, *[False] * 30]:
        part, texts[which] = texts[which][:3], texts[which][3:]
        values.append({"choices": [{"index": int(which), "delta": {"content": part}}]})
    made = engine()
    clean = b"".join(made.pieces([sse(values)]))
    found = ["", ""]
    for line in clean.decode().split("\n\n")[:-1]:
        (choice,) = json.loads(line.removeprefix("data: "))["choices"]
        found[choice["index"]] += choice["delta"]["content"]
    assert found == [f"a {made.token('openai_key', SECRET)} b", f"c {made.token('github_token', OTHER)} d"]


def test_what_two_texts_would_only_be_together_is_no_secret() -> None:
    parts = [(0, SECRET[:20]), (1, SECRET[20:]), (0, " and no more"), (1, " of that")]
    body = sse([{"choices": [{"index": index, "delta": {"content": part}}]} for index, part in parts])
    assert engine().pieces([body]) == [body]


@pytest.mark.parametrize("escaped", ["\\u0067hp_", "gh\\u0070_", "ghp\\u005f"])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_stream_cut_inside_an_escape(escaped: str, at: int) -> None:
    body = f'data: {{"choices":[{{"index":0,"delta":{{"content":"{escaped}{OTHER[4:]}"}}}}]}}\n\n'.encode()
    middle = body.index(escaped.encode()) + at
    made = engine()
    clean = made.pieces([body[:middle], body[middle:]])
    assert said(b"".join(clean)) == made.token("github_token", OTHER)


@pytest.mark.parametrize("key", ["signature", "encrypted_content", "obfuscation"])
def test_opaque_fields_of_a_stream_stay_as_they_are(key: str) -> None:
    body = sse([{"type": "signature_delta", "index": 0, "delta": {key: part}} for part in (OTHER, SECRET, "x" + MAIL)])
    assert engine().pieces([body]) == [body]


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_pieces_without_a_secret_stay_as_they_are(pieces: list[bytes]) -> None:
    assert engine().pieces(pieces) == pieces


@pytest.mark.parametrize("place", [0, 40, 10_000])
def test_a_byte_that_is_no_text_lets_no_secret_through(place: int) -> None:
    body = chat(["the key is ", SECRET, " – keep it"])
    broken = body[:place] + b"\xff" + body[place:]
    clean = b"".join(engine().pieces([broken[:70], broken[70:]]))
    assert SECRET.encode() not in clean
    assert clean.count(b"\xff") == 1


def test_an_array_that_comes_in_pieces_is_one_document() -> None:
    body = json.dumps([{"text": f"to {MAIL}"}, {"password": "monday"}], indent=1).encode()
    made = engine()
    clean = made.pieces([body[:25], body[25:60], body[60:]])
    assert json.loads(b"".join(clean)) == [
        {"text": f"to {made.token('e_mail', MAIL)}"},
        {"password": made.token("keyed_value", "monday")},
    ]
