"""The spans that every client sends: the same ones each time, with all that a client can say."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

BEGIN = 1_790_000_000_000_000_000
TEXTS = ("", "plain", "ä€😀\u0000\u2028", '{"a": [1, "two"]}', "line\nline\ttab", "x" * 20_000)


def named(key: str, kind: str, value: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


def stream(count: int = 60, seed: int = 7) -> dict[str, Any]:
    """Make `count` spans of a few traces.

    JavaScript has one kind of number: integers stay below 2^53 here, and no fraction is whole.
    """
    chance = random.Random(seed)
    spans: list[dict[str, Any]] = []
    for number in range(count):
        first = number % 6 == 0
        trace_id = chance.randbytes(16).hex() if first else spans[-1]["traceId"]
        spans.append(
            {
                "traceId": trace_id,
                "spanId": chance.randbytes(8).hex(),
                "parentId": "" if first else spans[-1]["spanId"],
                "name": f"span {number}",
                "kind": 1 + number % 5,
                "start": str(BEGIN + number * 1_000_003),
                "end": str(BEGIN + number * 1_000_003 + chance.randrange(1, 10**9)),
                "status": number % 3,
                "message": "it did not go well" if number % 3 == 2 else "",
                "attributes": attributes(chance),
                "events": [
                    {
                        "name": f"event {each}",
                        "time": str(BEGIN + number * 1_000_003 + each),
                        "attributes": [named("exception.message", "string", chance.choice(TEXTS[1:4]))],
                    }
                    for each in range(number % 3)
                ],
                "links": [
                    {"traceId": each["traceId"], "spanId": each["spanId"], "attributes": [named("why", "string", "so")]}
                    for each in spans[:: max(1, number // 2)][: number % 2]
                ],
            }
        )
    resource = [named("service.name", "string", "client"), named("service.instance", "int", 4)]
    return {"resource": resource, "scope": {"name": "by hand", "version": "1.2"}, "spans": spans}


def attributes(chance: random.Random) -> list[dict[str, Any]]:
    return [
        named("openinference.span.kind", "string", chance.choice(("LLM", "TOOL", "CHAIN"))),
        named("input.value", "string", chance.choice(TEXTS)),
        named("llm.token_count.prompt", "int", chance.randrange(2**53)),
        named("negative", "int", -chance.randrange(2**53)),
        named("temperature", "double", chance.random() * 10 ** chance.randrange(-300, 9)),
        named("flag", "bool", chance.random() < 0.5),
        named("words", "strings", ["a", "", "ü"]),
        named("numbers", "ints", [0, -1, chance.randrange(2**53)]),
        named("fractions", "doubles", [0.5, -chance.random()]),
    ]


def write(path: Path, count: int = 60) -> Path:
    """Write the stream to a file that the clients read."""
    path.write_text(json.dumps(stream(count)))
    return path
