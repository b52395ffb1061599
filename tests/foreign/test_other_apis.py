"""A foreign trace of a provider whose API it does not name answers whichever API the program asks, in its words."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from foreign import told
from foreign.replaying import replayed
from reenact.contracts.shape import Shape
from reenact.discover import members
from reenact.values.message import Text, ToolCall

SHAPES = {shape.name: shape for shape in members("shapes", Shape)}
AGENT = """
import base64
import sys
import requests

url, body = sys.argv[1:]
reply = requests.post(url, data=body, timeout=30)
print("REPLY", base64.b64encode(reply.content).decode(), reply.headers["content-type"])
"""
GEMINI: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": told.QUESTION}]}],
    "generationConfig": {"temperature": 0.5},
}
CONVERSE: dict[str, Any] = {
    "messages": [{"role": "user", "content": [{"text": told.QUESTION}]}],
    "inferenceConfig": {"temperature": 0.5},
}
COHERE: dict[str, Any] = {
    "model": "small",
    "messages": [{"role": "user", "content": told.QUESTION}],
    "temperature": 0.5,
}
HOST = "http://provider.invalid"
CASES = [
    ("gcp.gemini", f"{HOST}/v1beta/models/small:generateContent", GEMINI, "google.generate_content"),
    (
        "gcp.gemini",
        f"{HOST}/v1beta/models/small:streamGenerateContent?alt=sse",
        GEMINI,
        "google.stream_generate_content",
    ),
    ("aws.bedrock", f"{HOST}/model/small/converse", CONVERSE, "aws.bedrock.converse"),
    ("aws.bedrock", f"{HOST}/model/small/converse-stream", CONVERSE, "aws.bedrock.converse_stream"),
    ("cohere", f"{HOST}/v2/chat", COHERE, "cohere.chat"),
]


def traced(folder: Path, provider: str) -> Path:
    answer = told.said("assistant", told.text("Let me see."), told.called("look", {"at": "sky"}))
    asked = [told.said("user", told.text(told.QUESTION))]
    temperature: dict[str, Any] = {"gen_ai.request.temperature": 0.5}
    spans = [told.chat(1, asked, [{**answer, "finish_reason": "tool_call"}], provider=provider, **temperature)]
    (folder / "agent.py").write_text(AGENT)
    return told.written(folder, *spans)


@pytest.mark.parametrize(("provider", "url", "body", "name"), CASES, ids=[case[3] for case in CASES])
def test_the_reply_comes_in_the_words_of_the_api_that_is_asked(
    provider: str, url: str, body: dict[str, Any], name: str, tmp_path: Path
) -> None:
    result, said = replayed(traced(tmp_path, provider), tmp_path, "agent.py", url, json.dumps(body))
    assert result["result"] == "same", said
    [line] = [line for line in said.splitlines() if line.startswith("REPLY ")]
    _, spelled, kind = line.split(" ", 2)
    shape, data = SHAPES[name], base64.b64decode(spelled)
    streams = shape.is_stream(body)
    reply = shape.fold(shape.framing.events(data)) if streams else json.loads(data)
    assert not streams or kind == shape.framing.media_type
    answered = shape.read_reply(reply)
    [message] = answered.messages
    assert [part.text for part in message.parts if isinstance(part, Text)] == ["Let me see."]
    [call] = [part for part in message.parts if isinstance(part, ToolCall)]
    assert (call.name, json.loads(call.arguments)) == ("look", {"at": "sky"})
    assert shape.wording is not None
    assert answered.finish_reasons == (shape.wording.finishes[0],)


@pytest.mark.parametrize("changed", ["words", "model", "temperature"])
def test_another_question_is_a_miss(changed: str, tmp_path: Path) -> None:
    url = CASES[0][1].replace("small", "large") if changed == "model" else CASES[0][1]
    body = json.loads(json.dumps(GEMINI))
    if changed == "words":
        body["contents"][0]["parts"][0]["text"] = "Is it snowing?"
    if changed == "temperature":
        body["generationConfig"]["temperature"] = 1.0
    result, _ = replayed(traced(tmp_path, "gcp.gemini"), tmp_path, "agent.py", url, json.dumps(body))
    assert result["result"] == "diverged"
