"""The names of OTel GenAI beside its messages, in every spelling ever emitted: models, parameters, counts, ids.

The conventions have no version on the wire and keep renaming, so there is one table of names, newest first. Numbers
may have become text on their way (Jaeger, ClickHouse), and lists JSON text or Python's `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Usage

OPERATION: Final = "gen_ai.operation.name"
KINDS: Final[Mapping[str, CallKind]] = {
    **dict.fromkeys(
        ("chat", "generate_content", "text_completion", "text", "completion", "generate", "response", "llm_call"),
        CallKind.LLM,
    ),
    **dict.fromkeys(
        ("call_llm", "llm_request", "image", "audio", "responses", "inference", "chat.completions"), CallKind.LLM
    ),
    **dict.fromkeys(("text.completions", "chat.streaming_completions", "text.streaming_completions"), CallKind.LLM),
    **dict.fromkeys(("embeddings", "embedding", "embed"), CallKind.EMBEDDING),
    **dict.fromkeys(
        ("execute_tool", "tool_call", "tool", "create_memory", "update_memory", "upsert_memory", "delete_memory"),
        CallKind.TOOL,
    ),
    **dict.fromkeys(("create_memory_store", "delete_memory_store"), CallKind.TOOL),
    **dict.fromkeys(("retrieval", "search_memory", "vector_db_retrieve", "vectordb"), CallKind.RETRIEVER),
    **dict.fromkeys(("rerank",), CallKind.RERANKER),
    **dict.fromkeys(("invoke_agent", "create_agent", "agent_call", "agent", "framework_agent"), CallKind.AGENT),
    **dict.fromkeys(
        ("invoke_workflow", "plan", "execute_task", "agent_step", "handoff", "workflow", "task"), CallKind.CHAIN
    ),
    **dict.fromkeys(("execute_event_loop_cycle", "schedule_tool_calls", "agent_handoff"), CallKind.CHAIN),
    **dict.fromkeys(("guardrail", "guard", "apply_guardrail"), CallKind.GUARDRAIL),
    **dict.fromkeys(("evaluate", "evaluation"), CallKind.EVALUATOR),
    **dict.fromkeys(("user_prompt", "system_prompt"), CallKind.PROMPT),
}
"""`gen_ai.operation.name`, in the convention and beside it, to what such a call is."""
_PARAMETERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("temperature", ("gen_ai.request.temperature", "llm.temperature")),
    ("top_p", ("gen_ai.request.top_p", "llm.top_p")),
    ("top_k", ("gen_ai.request.top_k", "llm.top_k")),
    (
        "max_tokens",
        (
            "gen_ai.request.max_tokens",
            "gen_ai.request.max_output_tokens",
            "llm.request.max_tokens",
            "llm.max_tokens",
            "gen_ai.request.max_completion_tokens",
        ),
    ),
    ("frequency_penalty", ("gen_ai.request.frequency_penalty", "llm.frequency_penalty")),
    ("presence_penalty", ("gen_ai.request.presence_penalty", "llm.presence_penalty")),
    ("stop", ("gen_ai.request.stop_sequences", "llm.chat.stop_sequences", "llm.stop_sequences")),
    ("seed", ("gen_ai.request.seed", "gen_ai.openai.request.seed")),
    ("n", ("gen_ai.request.choice.count", "gen_ai.request.n")),
    ("reasoning_effort", ("gen_ai.request.reasoning.level", "gen_ai.request.reasoning_effort")),
    ("service_tier", ("openai.request.service_tier", "gen_ai.openai.request.service_tier")),
    ("tool_choice", ("gen_ai.request.tool_choice", "gen_ai.openai.request.tool_choice")),
    ("previous_response_id", ("gen_ai.request.previous_response.id",)),
    ("user", ("llm.user", "gen_ai.user", "gen_ai.request.user")),
)
_WHOLE: Final = frozenset({"max_tokens", "seed", "n", "top_k"})
_DECIMAL: Final = frozenset({"temperature", "top_p", "frequency_penalty", "presence_penalty"})
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
    "completion": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
    "total": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "gen_ai.client.token.usage"),
    "cache_read": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.input_tokens.cached",
    ),
    "cache_write": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
    ),
    "prompt_audio": ("gen_ai.usage.audio.input_tokens",),
    "completion_audio": ("gen_ai.usage.audio.output_tokens",),
}
_REQUEST_MODELS: Final = ("gen_ai.request.model", "llm.request.model", "gen_ai.request_model", "model_name")
_RESPONSE_MODELS: Final = ("gen_ai.response.model", "llm.response.model", "gen_ai.response_model")
_RESPONSE_IDS: Final = ("gen_ai.response.id", "llm.response.id", "gen_ai.response_id")
_SYSTEMS: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.vendor", "llm.system", "llm.provider")
_STREAMS: Final = ("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.is_stream")
_FINISHES: Final = (
    "gen_ai.response.finish_reasons",
    "gen_ai.response.finish_reason",
    "anthropic.message.stop_reason",
    "gen_ai.response.stop_reason",
    "llm.response.finish_reason",
    "llm.response.stop_reason",
)
_FINISH_WORDS: Final = {
    "tool_call": "tool_calls",
    "toolcalls": "tool_calls",
    "toolcall": "tool_calls",
    "tool-calls": "tool_calls",
    "tooluse": "tool_use",
    "content-filter": "content_filter",
    "contentfilter": "content_filter",
    "endturn": "end_turn",
    "maxtokens": "max_tokens",
    "complete": "stop",
    "finished": "stop",
}
"""Words of emitters alone, to those that some provider says."""
_SESSIONS: Final = (
    "session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id",
    "gcp.vertex.agent.session_id",
    "metadata.session_id",
    "metadata.user_api_key_session_id",
    "anthropic.session.id",
    "mcp.session.id",
)
_USERS: Final = (
    "user.id",
    "enduser.id",
    "traceloop.association.properties.user_id",
    "gcp.vertex.agent.user_id",
    "kagent.user_id",
    "metadata.user_api_key_end_user_id",
    "metadata.user_id",
    "llm.user",
    "gen_ai.request.user",
)
_FRAMEWORKS: Final = ("strands-agents", "microsoft.agent_framework", "langchain", "gcp.vertex.agent", "smolagents")
"""What names itself as the provider and is none."""
_HOSTS: Final = (
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("api.anthropic.com", "anthropic"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.deepseek.com", "deepseek"),
    ("openrouter.ai", "openrouter"),
)


_ASKED_KINDS: Final[Mapping[str, CallKind]] = {
    "chat": CallKind.LLM,
    "completion": CallKind.LLM,
    "embedding": CallKind.EMBEDDING,
    "rerank": CallKind.RERANKER,
}


def kind_of(attributes: Mapping[str, Json]) -> CallKind:
    """Tell what a call is by its operation, else by what older emitters said of it; UNKNOWN where nothing does."""
    operation = as_text(attributes.get(OPERATION)).lower()
    if (kind := KINDS.get(operation)) is not None:
        return kind
    if method := as_text(attributes.get("mcp.method.name")):
        return {"tools/call": CallKind.TOOL, "resources/read": CallKind.RETRIEVER, "prompts/get": CallKind.PROMPT}.get(
            method, CallKind.CHAIN
        )
    if (kind := _ASKED_KINDS.get(as_text(attributes.get("llm.request.type")).lower())) is not None:
        return kind
    return CallKind.UNKNOWN if operation else _implied(attributes)


def _implied(attributes: Mapping[str, Json]) -> CallKind:
    """Tell what a call without an operation is by what such calls alone say: tokens of a model, a tool's name."""
    model = as_text(attributes.get("gen_ai.request.model")).lower()
    if model and not attributes.get("gen_ai.agent.name") and usage(attributes) != Usage():
        return CallKind.EMBEDDING if "embed" in model else CallKind.LLM
    return CallKind.TOOL if attributes.get("gen_ai.tool.name") and not model else CallKind.UNKNOWN


def system_of(attributes: Mapping[str, Json]) -> str:
    """Give the provider's name in the emitter's words; a framework that names itself gives way to what is known."""
    provider = next((text for name in _SYSTEMS if (text := as_text(attributes.get(name)))), "")
    if provider and provider.lower() not in _FRAMEWORKS:
        return provider
    address = as_text(attributes.get("server.address")) + as_text(attributes.get("gen_ai.openai.api_base"))
    if (host := next((system for part, system in _HOSTS if part in address), "")) or not provider:
        return host
    model = as_text(attributes.get("gen_ai.request.model")).lower()
    return "anthropic" if model.startswith("claude-") else provider


def api_of(attributes: Mapping[str, Json], span_name: str = "") -> str:
    """Give the word for the provider's API: what the emitter says, else what its name for the span tells."""
    api = as_text(attributes.get("openai.api.type")) or as_text(attributes.get("gen_ai.openai.api.type"))
    if api:
        return api
    if span_name in ("openai.response", "openai.responses"):
        return "responses"
    return "embeddings" if kind_of(attributes) is CallKind.EMBEDDING else ""


def number(value: Json) -> int | float | None:
    """Give a number, also one that became text on its way; None for anything else."""
    if isinstance(value, str) and len(value) <= 32:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 -- NaN
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


def count(value: Json) -> int | None:
    """Give a whole number that is not negative, also one that became text; None for anything else."""
    read = number(value)
    return read if isinstance(read, int) and read >= 0 else None


def flag(value: Json) -> bool | None:
    """Give a truth value, also one that became text."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def texts(value: Json) -> list[str]:
    """Give a list of texts, also one that became JSON text or Python's `repr`, or stands alone."""
    read = structured(value)
    if isinstance(read, str) and read.startswith(("[", "(")) and read.endswith(("]", ")")):
        inside = [item.strip().strip("'\"") for item in read[1:-1].split(",")]
        return [item for item in inside if item]
    if isinstance(read, str):
        return [read] if read else []
    return [item for item in as_list(read) if isinstance(item, str)]


def parameters(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Give what of the request's parameters was kept, in the words of OpenAI's chat completions.

    What emitters write for nothing (`""`, -1 tokens, an empty list, one choice) is left out.
    """
    fields: dict[str, Json] = {}
    for name, spelled in _PARAMETERS:
        value = next((attributes[each] for each in spelled if attributes.get(each) not in (None, "", [])), None)
        if name in _WHOLE:
            value = count(value)
        elif name in _DECIMAL:
            value = number(value)
        elif name == "stop":
            stops: list[Json] = [*texts(value)]
            value = stops or None
        elif name == "tool_choice":
            value = structured(value)
        if value is None or value in ("[]", "None", "null") or (name == "n" and value == 1):
            continue
        fields[name] = value
    if formats := texts(attributes.get("gen_ai.request.encoding_formats")):
        fields["encoding_format"] = formats[0]
    shaped = attributes.get("gen_ai.openai.request.response_format")
    if isinstance(shaped, str) and shaped in ("json_object", "text"):
        fields["response_format"] = {"type": shaped}
    return fields


def usage(attributes: Mapping[str, Json]) -> Usage:
    """Give the counts of tokens."""
    counts = {
        name: next((amount for each in spelled if (amount := count(attributes.get(each))) is not None), None)
        for name, spelled in _COUNTS.items()
    }
    return Usage(**counts)


def finishes(attributes: Mapping[str, Json]) -> tuple[str, ...]:
    """Give why the model's answers ended."""
    for name in _FINISHES:
        if words := texts(attributes.get(name)):
            return tuple(finish_word(word) for word in words)
    return ()


def finish_word(word: str) -> str:
    """Bring an emitter's own spelling of a reason to a provider's; a provider's word stays."""
    bare = word.rpartition(".")[2] if word.startswith("FinishReason.") else word
    return _FINISH_WORDS.get(bare.lower(), bare)


def finished(answered: Answered | None, attributes: Mapping[str, Json]) -> Answered | None:
    """Complete what was read of an answer with its model, id, reasons and counts, where those were kept beside it."""
    first = answered or Answered()
    reasons = tuple(finish_word(word) for word in first.finish_reasons) or finishes(attributes)
    counted = usage(attributes)
    whole = replace(
        first,
        model=first.model or _text(attributes, _RESPONSE_MODELS),
        id=first.id or _text(attributes, _RESPONSE_IDS),
        finish_reasons=reasons,
        usage=first.usage if counted == Usage() else counted,
    )
    return whole if whole != Answered() else None


def completed(asked: Asked | None, attributes: Mapping[str, Json]) -> Asked | None:
    """Complete what was read of a question with its model and parameters, where those were kept beside it."""
    if asked is None:
        return None
    streams = next((is_stream for name in _STREAMS if (is_stream := flag(attributes.get(name))) is not None), False)
    return replace(
        asked,
        model=asked.model or _text(attributes, _REQUEST_MODELS),
        parameters={**parameters(attributes), **asked.parameters},
        stream=asked.stream or streams,
    )


def _text(attributes: Mapping[str, Json], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := as_text(attributes.get(name)))), None)


def identity(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Give session and user under OpenInference's names, where the span has them under another name alone."""
    fields: dict[str, Json] = {}
    for name, spelled in (("session.id", _SESSIONS), ("user.id", _USERS)):
        value = next((attributes[each] for each in spelled if attributes.get(each) not in (None, "", "None")), None)
        if value is not None and name not in attributes and isinstance(value, str | int):
            fields[name] = str(value)
    return fields


def as_documents(value: Json) -> list[Json]:
    """Give retrieved documents as a list, whatever they came in."""
    read = structured(value)
    container = as_object(read)
    for name in ("documents", "results", "matches", "records"):
        if isinstance(listed := container.get(name), list):
            return listed
    return as_list(read)
