"""Who answers at a host, in the words of both conventions."""

from __future__ import annotations

import pytest
from openinference.semconv.trace import OpenInferenceLLMProviderValues, OpenInferenceLLMSystemValues

from reenact.dialects.openinference import DIALECT
from reenact.values.call import Body, Call, CallKind, HttpRequest
from reenact.values.hosts import provider_at

CASES = [
    ("https://api.openai.com/v1/chat/completions", "openai.chat", "openai", "openai", "openai"),
    ("https://mine.openai.azure.com/openai/chat/completions", "openai.chat", "openai", "azure", "azure.ai.openai"),
    ("https://api.mistral.ai/v1/chat/completions", "openai.chat", "mistralai", "mistralai", "mistral_ai"),
    ("https://api.groq.com/openai/v1/chat/completions", "openai.chat", "groq", "groq", "groq"),
    ("https://openrouter.ai/api/v1/chat/completions", "openai.chat", "openrouter", "openrouter", "openrouter"),
    ("https://api.x.ai/v1/chat/completions", "openai.chat", "xai", "xai", "x_ai"),
    (
        "https://us-east5-aiplatform.googleapis.com/v1/publishers/anthropic/models/m:rawPredict",
        "anthropic.vertex",
        "anthropic",
        "google",
        "gcp.vertex_ai",
    ),
    (
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
        "aws.bedrock.converse",
        "aws.bedrock",
        "aws",
        "aws.bedrock",
    ),
    ("http://127.0.0.1:11434/api/chat", "ollama.chat", "ollama", None, "ollama"),
    ("http://127.0.0.1:8000/m:generateContent", "google.generate_content", "vertexai", None, "gcp.gen_ai"),
]


@pytest.mark.parametrize(("url", "shape", "system", "provider", "genai"), CASES, ids=[case[0] for case in CASES])
def test_a_call_is_told_by_who_answers_it(url: str, shape: str, system: str, provider: str | None, genai: str) -> None:
    request = HttpRequest(shape=shape, method="POST", url=url, body=Body(b"{}"))
    assert DIALECT.writing is not None
    told = DIALECT.writing.encode_call(Call(kind=CallKind.LLM, name="chat", request=request))
    assert (told["llm.system"], told.get("llm.provider"), told["gen_ai.provider.name"]) == (system, provider, genai)


def test_every_word_of_the_convention_is_some_host_s() -> None:
    hosts = (
        *("api.openai.com", "api.anthropic.com", "api.cohere.com", "api.mistral.ai", "x.aiplatform.googleapis.com"),
        *("a.openai.azure.com", "bedrock-runtime.us-east-1.amazonaws.com", "api.x.ai", "api.deepseek.com"),
        *("api.groq.com", "api.fireworks.ai", "api.moonshot.ai", "api.cerebras.ai", "api.perplexity.ai"),
        *("api.together.xyz", "ollama.com", "api.llama.com", "api.z.ai", "api.minimax.io", "a.oraclecloud.com"),
    )
    assert {provider_at(host)[0] for host in hosts} == {each.value for each in OpenInferenceLLMProviderValues} - {
        "typesafe"
    }
    systems = {each.value for each in OpenInferenceLLMSystemValues} - {"vertexai", "typesafe"}
    assert systems <= {provider_at(host)[2] for host in hosts}  # Google's is told by the shape
    assert provider_at("api.openai.com.evil.example") == ("", "", "")
