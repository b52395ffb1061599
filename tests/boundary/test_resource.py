"""What the URL of a request asks is part of its question, and a body is a provider's only on its paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.boundary.question import Question, question, shape_named
from reenact.boundary.resource import resource, shape_at
from reenact.values.call import Body, Call, CallKind, HttpRequest

CHAT = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}).encode()
AZURE = "https://acme.openai.azure.com/openai/deployments/{}/chat/completions?api-version={}"
VERTEX = "https://{}-aiplatform.googleapis.com/v1/projects/{}/locations/{}/endpoints/openapi/chat/completions"


def asked(url: str) -> Question:
    request = HttpRequest(shape="openai.chat", method="POST", url=url, body=Body(CHAT))
    return question(Call(kind=CallKind.LLM, name="ChatCompletion", request=request))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AZURE.format("gpt-5", "1"), AZURE.format("gpt-5-eu", "1")),
        (VERTEX.format("eu", "p-1", "eu"), VERTEX.format("eu", "p-2", "eu")),
        ("https://h/models/a/v1/chat/completions", "https://h/models/b/v1/chat/completions"),
        ("https://gateway/acme/v1/chat/completions", "https://gateway/other/v1/chat/completions"),
    ],
)
def test_what_the_path_names_is_asked(one: str, other: str) -> None:
    assert asked(one).key != asked(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AZURE.format("gpt-5", "2024-06-01"), AZURE.format("gpt-5", "2025-01-01")),
        (VERTEX.format("us", "p-1", "us"), VERTEX.format("eu", "p-1", "eu")),
        ("https://api.openai.com/v1/chat/completions", "http://127.0.0.1:8000/chat/completions"),
        ("https://api.openai.com/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
    ],
)
def test_a_version_a_region_and_a_host_are_not(one: str, other: str) -> None:
    assert asked(one).key == asked(other).key
    assert asked(one).noise["url"] != asked(other).noise["url"]


def test_an_ordinary_address_names_nothing() -> None:
    shape = shape_named("openai.chat")
    assert shape is not None
    assert resource("https://api.openai.com/v1/chat/completions", shape) == ""
    assert resource(AZURE.format("gpt-5", "1"), shape) == "deployments/gpt-5"
    assert "resource" not in dict(asked("https://api.openai.com/v1/chat/completions").asked or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "body", "name"),
    [
        ("https://api.openai.com/v1/responses", {"model": "gpt-5", "input": "hi"}, "openai.responses"),
        ("https://gateway/acme/v1/responses", {"model": "gpt-5", "input": "hi"}, "openai.responses"),
        (AZURE.format("gpt-5", "1"), {"messages": []}, "openai.chat"),
        ("https://desk.example.com/tickets/17/responses", {"text": "hi", "input": "mail"}, None),
        ("https://forms.example.com/v1/responses", {"form": 3, "answers": []}, None),
        ("https://search.example.com/users/5/embeddings", {"input": "hi"}, None),
        ("https://mail.example.com/v1/messages", {"to": "a@example.com", "text": "hi"}, None),
        ("https://chat.example.com/rooms/4/v1/messages", {"messages": ["hi"]}, None),
    ],
)
def test_a_body_is_a_providers_on_its_paths_alone(url: str, body: dict[str, Any], name: str | None) -> None:
    shape = shape_at("POST", url, json.dumps(body).encode())
    assert (shape.name if shape is not None else None) == name
