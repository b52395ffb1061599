"""The OpenTelemetry conventions for generative AI, as a table of ours, and what a span breaks of them.

Written down from https://github.com/open-telemetry/semantic-conventions-genai as of September 2026, where every name is
of stability *development*: `docs/gen-ai/client-inference.md` (inference), `model/gen-ai/spans.yaml` (embeddings,
retrieval, agents, tools, with the renames of `docs/gen-ai/non-normative/migration.md`), `model/gen-ai/events.yaml`,
`model/mcp/spans.yaml`, and the JSON schemas `model/gen-ai/gen-ai-*.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema

from reenact.values.span import KIND_CLIENT, KIND_INTERNAL, SpanRecord

TEXT, WHOLE, NUMBER, TRUTH, TEXTS, ANY = "string", "int", "double", "boolean", "string[]", "any"

ERROR = {"error.type": TEXT}
SERVER = {"server.address": TEXT, "server.port": WHOLE}
MODELS = {"gen_ai.request.model": TEXT, "gen_ai.response.model": TEXT}
OPERATION = {"gen_ai.operation.name": TEXT, "gen_ai.conversation.id": TEXT}
REQUEST = {
    "gen_ai.request.choice.count": WHOLE,
    "gen_ai.request.seed": WHOLE,
    "gen_ai.request.stream": TRUTH,
    "gen_ai.request.top_k": WHOLE,
    "gen_ai.request.max_tokens": WHOLE,
    "gen_ai.request.frequency_penalty": NUMBER,
    "gen_ai.request.presence_penalty": NUMBER,
    "gen_ai.request.temperature": NUMBER,
    "gen_ai.request.top_p": NUMBER,
    "gen_ai.request.stop_sequences": TEXTS,
    "gen_ai.request.previous_response.id": TEXT,
    "gen_ai.request.reasoning.level": TEXT,
    "gen_ai.output.type": TEXT,
    "gen_ai.prompt.name": TEXT,
    "gen_ai.prompt.version": TEXT,
    "gen_ai.conversation.compacted": TRUTH,
}
RESPONSE = {
    "gen_ai.response.finish_reasons": TEXTS,
    "gen_ai.response.id": TEXT,
    "gen_ai.response.time_to_first_chunk": NUMBER,
}
USAGE = {
    f"gen_ai.usage.{part}": WHOLE
    for part in (
        *("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_write.input_tokens"),
        *("reasoning.output_tokens", "text.input_tokens", "text.output_tokens", "text.cache_read.input_tokens"),
        *("audio.input_tokens", "audio.output_tokens", "audio.cache_read.input_tokens"),
        *("image.input_tokens", "image.output_tokens", "image.cache_read.input_tokens"),
    )
}
CONTENT = {
    "gen_ai.input.messages": ANY,
    "gen_ai.output.messages": ANY,
    "gen_ai.system_instructions": ANY,
    "gen_ai.tool.definitions": ANY,
}
OPENAI = {
    "openai.api.type": TEXT,
    "openai.request.service_tier": TEXT,
    "openai.response.service_tier": TEXT,
    "openai.response.system_fingerprint": TEXT,
}
TOOL = {
    "gen_ai.tool.name": TEXT,
    "gen_ai.tool.call.id": TEXT,
    "gen_ai.tool.description": TEXT,
    "gen_ai.tool.type": TEXT,
    "gen_ai.tool.call.arguments": ANY,
    "gen_ai.tool.call.result": ANY,
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of span."""

    attributes: Mapping[str, str]
    required: frozenset[str] = frozenset({"gen_ai.operation.name"})
    kinds: frozenset[int]
    name: str
    """How its name is made of attributes; what is behind a blank is left out where it is not known."""
    prefixes: tuple[str, ...] = field(default=())


PROVIDER = {"gen_ai.provider.name": TEXT}
INFERENCE = Kind(
    attributes={
        **OPERATION,
        **PROVIDER,
        **ERROR,
        **SERVER,
        **MODELS,
        **REQUEST,
        **RESPONSE,
        **USAGE,
        **CONTENT,
        **OPENAI,
    },
    required=frozenset({"gen_ai.operation.name", "gen_ai.provider.name"}),
    kinds=frozenset({KIND_CLIENT, KIND_INTERNAL}),
    name="{gen_ai.operation.name} {gen_ai.request.model}",
)
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("chat", "generate_content", "text_completion"), INFERENCE),
    "embeddings": Kind(
        attributes={
            **OPERATION,
            **PROVIDER,
            **ERROR,
            **SERVER,
            **MODELS,
            "gen_ai.request.encoding_formats": TEXTS,
            "gen_ai.embeddings.dimension.count": WHOLE,
            "gen_ai.usage.input_tokens": WHOLE,
        },
        required=frozenset({"gen_ai.operation.name", "gen_ai.provider.name"}),
        kinds=frozenset({KIND_CLIENT}),
        name="{gen_ai.operation.name} {gen_ai.request.model}",
    ),
    "retrieval": Kind(
        attributes={
            **OPERATION,
            **PROVIDER,
            **ERROR,
            **SERVER,
            "gen_ai.request.model": TEXT,
            "gen_ai.retrieval.query.text": TEXT,
            "gen_ai.retrieval.top_k": WHOLE,
            "gen_ai.retrieval.documents": ANY,
            "gen_ai.data_source.id": TEXT,
        },
        kinds=frozenset({KIND_CLIENT}),
        name="{gen_ai.operation.name} {gen_ai.data_source.id}",
    ),
    "execute_tool": Kind(
        attributes={**OPERATION, **ERROR, **TOOL},
        required=frozenset({"gen_ai.operation.name", "gen_ai.tool.name"}),
        kinds=frozenset({KIND_INTERNAL}),
        name="{gen_ai.operation.name} {gen_ai.tool.name}",
    ),
    "invoke_agent": Kind(
        attributes={
            **OPERATION,
            **ERROR,
            **MODELS,
            **REQUEST,
            **RESPONSE,
            **USAGE,
            **CONTENT,
            "gen_ai.agent.name": TEXT,
            "gen_ai.agent.description": TEXT,
            "gen_ai.data_source.id": TEXT,
        },
        kinds=frozenset({KIND_INTERNAL}),
        name="{gen_ai.operation.name} {gen_ai.agent.name}",
    ),
}
MCP = Kind(
    attributes={
        **OPERATION,
        **ERROR,
        **SERVER,
        "mcp.method.name": TEXT,
        "mcp.protocol.version": TEXT,
        "mcp.session.id": TEXT,
        "mcp.resource.uri": TEXT,
        "jsonrpc.request.id": TEXT,
        "rpc.response.status_code": TEXT,
        "network.transport": TEXT,
        **{name: TOOL[name] for name in ("gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")},
        "gen_ai.prompt.name": TEXT,
    },
    required=frozenset({"mcp.method.name"}),
    kinds=frozenset({KIND_CLIENT}),
    name="{mcp.method.name} {gen_ai.tool.name}{gen_ai.prompt.name}",
    prefixes=("gen_ai.prompt.variable.",),
)
EVENTS: Mapping[str, tuple[Mapping[str, str], frozenset[str]]] = {
    "gen_ai.evaluation.result": (
        {
            "gen_ai.evaluation.name": TEXT,
            "gen_ai.evaluation.score.value": NUMBER,
            "gen_ai.evaluation.score.label": TEXT,
            "gen_ai.evaluation.explanation": TEXT,
            "gen_ai.response.id": TEXT,
            **ERROR,
        },
        frozenset({"gen_ai.evaluation.name"}),
    )
}
OUTPUT_TYPES = {"text", "json", "image", "speech"}
PROVIDERS = {
    *("openai", "gcp.gen_ai", "gcp.vertex_ai", "gcp.gemini", "anthropic", "cohere", "azure.ai.inference"),
    *("azure.ai.openai", "ibm.watsonx.ai", "aws.bedrock", "perplexity", "x_ai", "deepseek", "groq", "mistral_ai"),
    "moonshot_ai",
}
"""The conventions' own words; another provider is named by a word of its own."""


def _part(kind: str, **fields: Any) -> dict[str, Any]:
    required = [name.removesuffix("_") for name in fields if name.endswith("_")]
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, **{name.removesuffix("_"): each for name, each in fields.items()}},
        "required": ["type", *required],
    }


STRING: dict[str, Any] = {"type": "string"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}
KNOWN_PARTS = [
    _part("text", content_=STRING),
    _part("reasoning", content_=STRING),
    _part("tool_call", id=MAYBE, name_=STRING, arguments={}),
    _part("tool_call_response", id=MAYBE, response_={}),
    _part("blob", modality_=STRING, mime_type=MAYBE, content_=STRING),
    _part("file", modality_=STRING, mime_type=MAYBE, file_id_=STRING),
    _part("uri", modality_=STRING, mime_type=MAYBE, uri_=STRING),
    _part("generic", generic_type=STRING),
]
MESSAGE = {
    "type": "object",
    "properties": {
        "role": STRING,
        "name": MAYBE,
        "finish_reason": MAYBE,
        "parts": {"type": "array", "items": {"anyOf": KNOWN_PARTS}},
    },
    "required": ["role", "parts"],
}
SCHEMAS: Mapping[str, Any] = {
    "gen_ai.input.messages": {"type": "array", "items": MESSAGE},
    "gen_ai.output.messages": {"type": "array", "items": MESSAGE},
    "gen_ai.system_instructions": {"type": "array", "items": {"anyOf": [KNOWN_PARTS[0], _part("generic")]}},
    "gen_ai.tool.definitions": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "type": STRING,
                "name": STRING,
                "description": MAYBE,
                "parameters": {"type": ["object", "boolean", "null"]},
            },
            "required": ["type", "name"],
        },
    },
    "gen_ai.retrieval.documents": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": STRING, "score": {"type": ["number", "null"]}}},
    },
    "gen_ai.tool.call.arguments": {"type": "object"},
}


def findings(span: SpanRecord) -> list[str]:
    """Give what a span breaks of the conventions; nothing of one that they have no kind for."""
    attributes = span.attributes
    problems = [problem for event in span.events for problem in _of_event(event.name, event.attributes)]
    kind = MCP if "mcp.method.name" in attributes else KINDS.get(str(attributes.get("gen_ai.operation.name")))
    named = {
        name: value
        for name, value in attributes.items()
        if name.startswith(("gen_ai.", "openai.", "mcp.", "error.", "server."))
    }
    if kind is None:
        return problems
    problems += [f"{name} is missing" for name in kind.required - named.keys()]
    for name, value in named.items():
        if name.startswith(kind.prefixes) and kind.prefixes:
            continue
        if name not in kind.attributes:
            problems.append(f"{name} is none of such a span's")
        elif problem := _wrong(value, kind.attributes[name]):
            problems.append(f"{name} {problem}")
        problems += [f"{name}: {each}" for each in _against_schema(name, value)]
    name = kind.name
    for word in sorted(kind.attributes, key=len, reverse=True):
        name = name.replace(f"{{{word}}}", str(attributes.get(word, "")))
    if span.name != name.strip():
        problems.append(f"the name {span.name!r} is not {name.strip()!r}")
    if span.kind not in kind.kinds:
        problems.append(f"the span's kind is {span.kind}")
    if attributes.get("gen_ai.output.type", "text") not in OUTPUT_TYPES:
        problems.append("gen_ai.output.type is no word of the conventions")
    return problems


def _of_event(name: str, attributes: Mapping[str, Any]) -> list[str]:
    if not name.startswith("gen_ai."):
        return []
    if name not in EVENTS:
        return [f"there is no event {name}"]
    known, required = EVENTS[name]
    own = {each: value for each, value in attributes.items() if not each.startswith("reenact.")}
    problems = [f"{name}: {each} is missing" for each in required - own.keys()]
    problems += [f"{name}: {each} is none of its" for each in own.keys() - known.keys()]
    return problems + [
        f"{name}: {each} {why}" for each in own.keys() & known.keys() if (why := _wrong(own[each], known[each]))
    ]


def _wrong(value: Any, kind: str) -> str:
    fits = {
        TEXT: isinstance(value, str) and value != "",
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: isinstance(value, float),
        TRUTH: isinstance(value, bool),
        TEXTS: isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value),
        ANY: isinstance(value, str),
    }
    return "" if fits[kind] else f"is {value!r}, and no {kind}"


def _against_schema(name: str, value: Any) -> list[str]:
    if name not in SCHEMAS:
        return []
    try:
        document = json.loads(value)
    except ValueError:
        return ["is no JSON"]
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]
