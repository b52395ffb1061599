"""Real replies of providers, read from where they are: every one says something, and comes back from its stream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from reenact.boundary.reading import whole
from reenact.boundary.resource import asked_at, shape_at
from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import compact, parse

OURS = ("google.", "ollama.", "aws.", "anthropic.vertex", "anthropic.bedrock")


def exchanges(folder: Path) -> Iterator[tuple[str, str, bytes, bytes]]:
    """Give place, URL, request and reply of every exchange, of VCR's files and of nock's."""
    for path in sorted((folder / "cassettes").rglob("*.yaml")):
        for each in yaml.safe_load(path.read_text(encoding="utf-8")).get("interactions") or ():
            said = each["response"].get("body") or each["response"].get("content")
            yield path.stem, each["request"]["uri"], octets(each["request"]["body"]), octets(said)
    for path in sorted((folder / "cassettes" / "js-bedrock").glob("*.json")):
        for each in json.loads(path.read_text(encoding="utf-8")):
            said = each["response"]
            data = bytes.fromhex(said) if each.get("responseIsBinary") else octets(said)
            yield path.stem, each["scope"] + each["path"], octets(each["body"]), data


def octets(told: Any) -> bytes:
    if isinstance(told, dict) and "string" in told:
        told = told["string"]
    if isinstance(told, bytes):
        return told
    return told.encode() if isinstance(told, str) else compact(told).encode() if told is not None else b""


def told(folder: Path) -> Iterator[tuple[str, Shape, str, Any, bytes]]:
    for name, url, asked, said in exchanges(folder):
        shape = shape_at("POST", url, asked)
        if shape is not None and shape.name.startswith(OURS) and said:
            yield name, shape, url, parse(asked), said


def test_every_real_exchange_says_something(shared_data: Path) -> None:
    count = Counter[str]()
    for name, shape, url, body, said in told(shared_data):
        question = asked_at(url, shape, body)
        assert question.model, name
        assert question.messages or question.inputs, name
        reply = whole(shape, said)
        assert isinstance(reply, dict), name
        answer = shape.read_reply(reply)
        failed = "error" in reply or ("message" in reply and shape.name.startswith("aws."))
        assert failed or answer.vectors or any(each.parts for each in answer.messages), name
        if answer.messages and shape.kind is CallKind.LLM:
            assert failed or answer.usage.prompt is not None or "missing" in name or "empty" in name, name
        if shape.unfold is not None and not failed:
            again = shape.read_reply(shape.fold(shape.framing.events(shape.unfold(reply))))
            assert (again.usage, again.finish_reasons) == (answer.usage, answer.finish_reasons), name
            assert "".join(map(str, again.messages)) == "".join(map(str, answer.messages)), name
        count[shape.name] += 1
    assert count["google.generate_content"] >= 6, count
    assert count["google.stream_generate_content"] >= 4, count
    assert count["ollama.chat"] >= 4, count
    assert count["aws.bedrock.converse"] >= 7, count
    assert count["aws.bedrock.converse_stream"] >= 6, count
    assert count["anthropic.bedrock"] + count["anthropic.bedrock_stream"] >= 6, count
