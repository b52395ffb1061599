"""What the URL of a request asks is part of its question, and a body is a provider's only on its paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.boundary.question import Question, question, shape_named
from reenact.boundary.resource import asked_at, resource, shape_at
from reenact.values.call import Body, Call, CallKind, HttpRequest

CHAT = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}).encode()
AZURE = "https://acme.openai.azure.com/openai/deployments/{}/chat/completions?api-version={}"
VERTEX = "https://{}-aiplatform.googleapis.com/v1/projects/{}/locations/{}/endpoints/openapi/chat/completions"
WATSONX = "https://us-south.ml.cloud.ibm.com/ml/v1"
FEATURES = "https://router.huggingface.co/hf-inference/models/{}/{}/pipeline/feature-extraction"
PREDICTIONS = "https://api.replicate.com/v1/models/{}/{}/predictions"


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
        ("https://h/models/acme/a/v1/chat/completions", "https://h/models/acme/b/v1/chat/completions"),
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
        (f"{WATSONX}/text/chat?version=1", {"messages": []}, "watsonx.chat"),
        (f"{WATSONX}/deployments/d-1/text/chat_stream", {"messages": []}, "watsonx.chat_stream"),
        (f"{WATSONX}/text/generation_stream", {"model_id": "m", "input": "hi"}, "watsonx.generation_stream"),
        (f"{WATSONX}/text/embeddings", {"model_id": "m", "inputs": ["hi"]}, "watsonx.embeddings"),
        ("http://127.0.0.1:8080/generate", {"inputs": "hi"}, "huggingface.generate"),
        ("http://127.0.0.1:8080/generate", {"prompt": "hi"}, None),
        (f"{FEATURES.format('acme', 'small')}", {"inputs": "hi"}, "huggingface.feature_extraction"),
        (PREDICTIONS.format("acme", "small"), {"input": {"prompt": "hi"}}, "replicate.predictions"),
        ("https://api.replicate.com/v1/predictions", {"version": "v", "input": {}}, "replicate.predictions"),
        ("http://127.0.0.1:5000/predictions", {"input": {"rooms": 3}}, None),
        ("https://api.ai21.com/studio/v1/chat/completions", {"messages": []}, "openai.chat"),
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


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (f"{WATSONX}/deployments/d-{{}}/text/generation", {"input": "hi"}, "d-{}"),
        (FEATURES.format("acme", "{}"), {"inputs": "hi"}, "acme/{}"),
        (PREDICTIONS.format("acme", "{}"), {"input": {"prompt": "hi"}}, "acme/{}"),
        (PREDICTIONS.format("{}", "small"), {"input": {"prompt": "hi"}}, "{}/small"),
    ],
)
def test_another_model_in_the_path_is_another_question(url: str, body: dict[str, Any], model: str) -> None:
    data = json.dumps(body).encode()
    keys: set[str] = set()
    for name in ("one", "two"):
        shape = shape_at("POST", url.format(name), data)
        assert shape is not None
        assert asked_at(url.format(name), shape, body).model == model.format(name)
        request = HttpRequest(shape=shape.name, method="POST", url=url.format(name), body=Body(data))
        keys.add(question(Call(kind=shape.kind, name=shape.span_name, request=request)).key)
    assert len(keys) == 2
