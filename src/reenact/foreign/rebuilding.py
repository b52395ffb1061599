"""A provider's request and reply, made again of what a foreign trace kept of them: the meaning, not the bytes.

The shape that the provider speaks is found by the words with which emitters name it (`gen_ai.provider.name`,
`gen_ai.system`, `llm.provider`, a vendor's own). What was not kept stays absent; nothing is invented. What had to be
filled in, since no SDK takes a reply without it, is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.boundary.question import shape_named
from reenact.contracts.shape import Shape
from reenact.values.call import (
    Body,
    ExceptionRecord,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Unfinished,
)
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.message import Answered, Asked, ToolCall
from reenact.values.providers import provider_of

CHAT: Final = "openai.chat"
_APIS: Final[Mapping[str, str]] = {
    "chat": CHAT,
    "chat.completions": CHAT,
    "chat_completions": CHAT,
    "completions": CHAT,
    "responses": "openai.responses",
    "response": "openai.responses",
    "messages": "anthropic.messages",
    "embeddings": "openai.embeddings",
    "embedding": "openai.embeddings",
}
"""Words for an API (`openai.api.type`, an operation, a span's name) to the shape that it speaks."""
_SPEAK_CHAT: Final = (
    "openai",
    "azure",
    "az.ai",
    "groq",
    "deepseek",
    "mistral",
    "x_ai",
    "xai",
    "perplexity",
    "together",
    "fireworks",
    "openrouter",
    "litellm",
    "ollama",
    "vllm",
    "lmstudio",
    "moonshot",
    "cerebras",
    "nvidia",
    "sambanova",
    "nebius",
)
"""What the name of a provider begins with whose SDKs send OpenAI's chat completions."""
_ERROR_CODE: Final = re.compile(r"\s*(?:\w+: )?Error code: (\d{3})(?: - (.*))?", re.DOTALL)
_STATUS_OF: Final[Mapping[str, int]] = {
    "BadRequestError": 400,
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "RequestTooLargeError": 413,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "InternalServerError": 500,
    "ServiceUnavailableError": 503,
    "OverloadedError": 529,
}
"""The class that an SDK raises, to the status that it raises it for."""
_TRANSPORT: Final[Mapping[str, str]] = {"APITimeoutError": "ReadTimeout", "APIConnectionError": "ConnectError"}
_TOOLS: Final = frozenset({"tool_call", "tool_calls", "tool-calls", "tool_use", "function_call", "tooluse"})
_STOPS: Final = frozenset({"stop", "end_turn", "completed", "complete", "stop_sequence", "finish", "finished"})
_LENGTHS: Final[Mapping[str, str]] = {"anthropic.messages": "max_tokens", "openai.responses": "max_output_tokens"}
_LARGEST_LITERAL: Final = 100_000
_JSON_TYPE: Final = ("content-type", "application/json")


def shape_for(system: str, api: str = "", *, embeds: bool = False, model: str = "") -> tuple[Shape, bool]:
    """Find the shape that a provider speaks by the words for it and for its API, and whether the words told it.

    Where nobody named the provider the model's own name may: `gpt-…`, `claude-…`.

    A provider that none is known for is taken to speak OpenAI's chat completions, as most gateways do.
    """
    word, asks = (system or provider_of(model)).strip().lower(), api.strip().lower()
    name, is_certain = CHAT, True
    if embeds:
        name = "openai.embeddings"
    elif ("anthropic" in word or "claude" in word) and not any(host in word for host in ("bedrock", "vertex")):
        name = "anthropic.messages"
    elif (shape_name := _APIS.get(asks)) is not None and (shape_name != "anthropic.messages" or not word):
        name = shape_name
    else:
        is_certain = word.startswith(_SPEAK_CHAT) and "bedrock" not in word
    shape = shape_named(name)
    if shape is None:  # all of these are built in
        raise LookupError(name)
    return shape, is_certain


def rebuilt(
    asked: Asked,
    answered: Answered | None,
    *,
    system: str,
    api: str = "",
    stream: bool | None = None,
    failed: ExceptionRecord | None = None,
    whole: bool = False,
) -> tuple[Request, Outcome, tuple[str, ...]]:
    """Give the request and the outcome that say what was kept of a model call, and what of it was rebuilt.

    `system` is the emitter's word for the provider, `api` for its API where it said one (`chat`, `responses`,
    `messages`, `embeddings`); `stream` whether a stream was asked for, None where nobody said; `failed` what was
    raised; `whole` says that all fields of the request were kept, so that what is not in it was not sent. The names
    belong under `reenact.rebuilt` among the call's attributes: `request`, or `spelling` where it is whole but for how
    it was spelled; `reply` where there is one;
    `failure` where a raised error was turned back into the status and body that cause it; `finish_reason` where it was
    told from what the reply says; `shape` where nothing said which API this provider speaks. Never raises.
    """
    embeds = bool(asked.inputs or (answered is not None and answered.vectors))
    model = asked.model or (answered.model if answered is not None else "") or ""
    shape, is_certain = shape_for(system, api, embeds=embeds, model=model)
    names = ["spelling" if whole else "request", *([] if is_certain else ["shape"])]
    if stream and "stream" not in asked.parameters:
        asked = replace(asked, parameters={**asked.parameters, "stream": True}, stream=True)
    request_body = shape.write_request(asked) if shape.write_request is not None else {}
    request = HttpRequest(shape=shape.name, method="POST", url="", body=_body(request_body))
    if failed is not None:
        outcome = failure(shape, failed)
        return request, outcome, (*names, *(["failure"] if isinstance(outcome, Returned) else []))
    if answered is None or not (answered.messages or answered.vectors) or shape.write_reply is None:
        return request, Unfinished(), tuple(names)
    answer, filled = _finished(shape, replace(answered, id=answered.id or "", model=answered.model or ""))
    reply = HttpReply(status=200, headers=(_JSON_TYPE,), body=_body(shape.write_reply(answer)))
    return request, Returned(payload=reply), (*names, "reply", *filled)


def _body(json: Json) -> Body:
    return Body(compact(json).encode("utf-8", "surrogatepass"))


def _finished(shape: Shape, answered: Answered) -> tuple[Answered, list[str]]:
    """Give why a reply ended in the provider's own words; where nobody said, as what it says has it."""
    if shape.wording is None:
        return answered, []
    calls, ends = shape.wording.finishes
    reasons = tuple(_word(shape, reason, calls, ends) for reason in answered.finish_reasons)
    if shape.name != CHAT:
        if reasons or shape.name == "openai.responses":
            return replace(answered, finish_reasons=reasons or (ends,)), [] if reasons else ["finish_reason"]
        any_calls = any(isinstance(part, ToolCall) for message in answered.messages for part in message.parts)
        return replace(answered, finish_reasons=(calls if any_calls else ends,)), ["finish_reason"]
    guesses = tuple(
        calls if any(isinstance(part, ToolCall) for part in message.parts) else ends for message in answered.messages
    )
    filled = reasons[: len(guesses)] + guesses[len(reasons) :]
    return replace(answered, finish_reasons=filled), ["finish_reason"] if len(guesses) > len(reasons) else []


def _word(shape: Shape, reason: str, calls: str, ends: str) -> str:
    """Spell a reason to end as the provider does; emitters write it in words of their own."""
    word = reason.rpartition(".")[2].lower()
    if word in _TOOLS:
        return calls
    if word in _STOPS:
        return reason if word == "stop_sequence" and shape.name == "anthropic.messages" else ends
    if word in ("length", "max_tokens", "max_output_tokens"):
        return _LENGTHS.get(shape.name, "length")
    return reason


def failure(shape: Shape, failed: ExceptionRecord) -> Outcome:
    """Turn an error that an SDK raised into what made it raise that: a status and a body, or a failed transport.

    Emitters write down one call for all the tries of an SDK, so the reply says that it is not to be tried again.
    """
    name = failed.qualname.rpartition(".")[2]
    match = _ERROR_CODE.match(failed.message)
    status = int(match[1]) if match else _STATUS_OF.get(name)
    message = (match[2] or "").strip() if match else failed.message
    if status is None and name.isdigit() and len(name) == 3:
        status = int(name)
    if status is None or status < 400:
        if (raised := _TRANSPORT.get(name)) is not None:
            return Raised(exception=replace(failed, module="httpx", qualname=raised, bases=(), args=None, state=None))
        return Raised(exception=failed)
    literal = _literal(message) if match and message else None
    kind = "type" if shape.system == "anthropic" else "code"
    body: Json = literal if isinstance(literal, dict) else {"error": {"message": message, kind: None}}
    headers = (_JSON_TYPE, ("x-should-retry", "false"))
    return Returned(payload=HttpReply(status=status, headers=headers, body=_body(body)))


def _literal(text: str) -> Json:
    """Read the body that an SDK put into an error's message: JSON, or Python's spelling of it."""
    if (read := parsed_or_none(text)) is not None or len(text) > _LARGEST_LITERAL:
        return read
    try:
        return parsed_or_none(compact(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
