"""Spells scripted answers as the OpenAI API does: whole replies, stream events, embeddings, errors."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import string
import struct
import time
from collections.abc import Iterator, Sequence
from random import Random

from reenact.demo.script import Refuses, Says, objects, text_of
from reenact.values.json import Json, compact

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_RESOLVED = "2026-11-01"
_DIMENSIONS = 256


def token(prefix: str, length: int, chance: Random, alphabet: str = _LETTERS) -> str:
    """An identifier of the provider's make: a prefix and `length` random characters."""
    return prefix + "".join(chance.choices(alphabet, k=length))


def pieces(text: str) -> list[str]:
    """Cut a text into token-like pieces: a word with the blanks before it, or a run of punctuation."""
    return re.findall(r"\s*\w+|\s*[^\w\s]+|\s+", text)


def prompt_tokens(body: dict[str, Json]) -> int:
    """Count the tokens of a request, roughly: four a message, the pieces of every text and tool schema, three more."""
    count = 3 + len(pieces(compact(body.get("tools")))) if body.get("tools") else 3
    for message in objects(body.get("messages")):
        calls = compact(message["tool_calls"]) if message.get("tool_calls") else ""
        count += 4 + len(pieces(text_of(message.get("content")))) + len(pieces(calls))
    return count


def completion_tokens(replies: Sequence[Says]) -> int:
    """Count the tokens of the answers, roughly."""
    arguments = [compact(use.arguments) + use.name for reply in replies for use in reply.tools]
    return sum(len(pieces(text)) for text in [*arguments, *(reply.text for reply in replies)])


def usage(body: dict[str, Json], replies: Sequence[Says]) -> dict[str, Json]:
    """The `usage` object of a chat completion."""
    prompt, completion = prompt_tokens(body), completion_tokens(replies)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def completion(body: dict[str, Json], replies: Sequence[Says], chance: Random) -> dict[str, Json]:
    """A whole `chat.completion`, one choice a reply."""
    choices: list[Json] = [
        {
            "index": index,
            "message": _message(reply, chance),
            "logprobs": None,
            "finish_reason": _finish(reply),
        }
        for index, reply in enumerate(replies)
    ]
    rest: dict[str, Json] = {"choices": choices, "usage": usage(body, replies), "service_tier": "default"}
    return _envelope(body, "chat.completion", chance) | rest


def events(body: dict[str, Json], replies: Sequence[Says], chance: Random) -> Iterator[dict[str, Json]]:
    """The `chat.completion.chunk` events of a stream, without the `[DONE]` at its end."""
    options = body.get("stream_options")
    counted = isinstance(options, dict) and options.get("include_usage") is True
    tier: dict[str, Json] = {"service_tier": "default"}
    envelope = _envelope(body, "chat.completion.chunk", chance) | tier
    silent: dict[str, Json] = {"usage": None} if counted else {}
    for index, reply in enumerate(replies):
        for delta, finish in _deltas(reply, chance):
            choice: Json = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            event: dict[str, Json] = {"choices": [choice]}
            yield envelope | event | silent
    if counted:
        last: dict[str, Json] = {"choices": [], "usage": usage(body, replies)}
        yield envelope | last


def embeddings(body: dict[str, Json], chance: Random) -> dict[str, Json]:
    """An embedding reply: texts that share words lie close together, and no two requests agree to the last bit."""
    raw_input = body.get("input")
    inputs = (
        raw_input if isinstance(raw_input, list) and raw_input and not isinstance(raw_input[0], int) else [raw_input]
    )
    texts = [item if isinstance(item, str) else compact(item) for item in inputs]
    size = body.get("dimensions")
    vectors = [_vector(text, size if isinstance(size, int) else _DIMENSIONS, chance) for text in texts]
    packed = body.get("encoding_format") == "base64"
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else [*vector]}
        for index, vector in enumerate(vectors)
    ]
    count = sum(len(pieces(text)) for text in texts)
    tally: dict[str, Json] = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": str(body.get("model")), "usage": tally}


def error(refusal: Refuses) -> bytes:
    """The body of an error reply."""
    if refusal.body is not None:
        return refusal.body
    fields: dict[str, Json] = {
        "message": refusal.message,
        "type": refusal.type,
        "param": refusal.param,
        "code": refusal.code,
    }
    return compact({"error": fields}).encode()


def retry_headers(refusal: Refuses) -> dict[str, str]:
    """The headers that say when to try again; none where the refusal does not say."""
    if refusal.retry_after_ms is None:
        return {}
    seconds = math.ceil(refusal.retry_after_ms / 1000)
    return {"retry-after-ms": str(refusal.retry_after_ms), "Retry-After": str(seconds)}


def _envelope(body: dict[str, Json], kind: str, chance: Random) -> dict[str, Json]:
    return {
        "id": token("chatcmpl-", 29, chance),
        "object": kind,
        "created": int(time.time()),
        "model": f"{body.get('model')}-{_RESOLVED}",
        "system_fingerprint": token("fp_", 10, chance, _HEX),
    }


def _finish(reply: Says) -> str:
    return "tool_calls" if reply.tools else "stop"


def _message(reply: Says, chance: Random) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if reply.tools:
        message["tool_calls"] = [
            {
                "id": token("call_", 24, chance),
                "type": "function",
                "function": {"name": use.name, "arguments": compact(use.arguments)},
            }
            for use in reply.tools
        ]
    return message


def _deltas(reply: Says, chance: Random) -> Iterator[tuple[dict[str, Json], str | None]]:
    yield {"role": "assistant", "content": "" if reply.text else None, "refusal": None}, None
    for piece in pieces(reply.text):
        yield {"content": piece}, None
    for index, use in enumerate(reply.tools):
        yield (
            {
                "tool_calls": [
                    {
                        "index": index,
                        "id": token("call_", 24, chance),
                        "type": "function",
                        "function": {"name": use.name, "arguments": ""},
                    }
                ]
            },
            None,
        )
        for piece in pieces(compact(use.arguments)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, _finish(reply)


def _vector(text: str, size: int, chance: Random) -> list[float]:
    vector = [chance.gauss(0.0, 1e-4) for _ in range(size)]
    for word in re.findall(r"\w+", text.lower()):
        direction = Random(hashlib.blake2b(word.encode()).digest())  # noqa: S311 - a word points one way for ever
        vector = [value + direction.gauss(0.0, 1.0) for value in vector]
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
