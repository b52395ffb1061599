"""Streams under a policy that takes payloads whole: wherever the wire cuts them, no word of them is left."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from reenact.redact import policy
from reenact.redact.engine import Engine

TEXT = ("Dear ", "Ada Lo", "velace, your", " order is late")
ARGUMENTS = ('{"ci', 'ty": "Par', 'is", "n": 3}')
WORDS = ("Dear", "Ada", "velace", "order", "Par", "late")


def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    said = {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(said)}\n\n".encode()


def stream() -> bytes:
    events = [event({"content": text}) for text in TEXT]
    calls = [{"index": 0, "id": "call_1", "function": {"name": "find", "arguments": text}} for text in ARGUMENTS]
    events += [event({"tool_calls": [call]}) for call in calls]
    return b"".join([*events, event({}, "stop"), b"data: [DONE]\n\n"])


@pytest.mark.parametrize("how", ["pseudonymise", "mask", "drop"])
def test_no_word_is_left_wherever_a_stream_is_cut(how: str) -> None:
    engine = Engine(policy.parse(f'payloads = "{how}"').plan(), key=b"k" * 32, shared=False)
    whole, drawn = stream(), random.Random(3)
    for _ in range(60):
        cuts = sorted(drawn.sample(range(1, len(whole)), drawn.randint(0, 40)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        clean = engine.pieces(pieces)
        assert len(clean) == len(pieces)
        said = b"".join(clean).decode()
        assert not [word for word in WORDS if word in said], (how, cuts)


def test_what_comes_of_the_pieces_is_what_comes_of_the_whole() -> None:
    engine = Engine(policy.parse('payloads = "pseudonymise"').plan(), key=b"k" * 32, shared=False)
    whole = stream()
    cut = [whole[at : at + 37] for at in range(0, len(whole), 37)]
    said = b"".join(engine.pieces(cut)).decode()
    deltas = [json.loads(line[6:])["choices"][0] for line in said.splitlines() if line.startswith("data: {")]
    content = "".join(each["delta"].get("content", "") for each in deltas)
    assert content == engine.text("".join(TEXT))
    calls = [call for each in deltas for call in each["delta"].get("tool_calls", ())]
    arguments = json.loads("".join(call["function"]["arguments"] for call in calls))
    assert arguments == {"city": engine.text("Paris"), "n": 3}
    assert {(call["id"], call["function"]["name"]) for call in calls} == {("call_1", "find")}
    assert deltas[-1]["finish_reason"] == "stop"
