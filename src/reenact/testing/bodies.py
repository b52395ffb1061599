"""Replies as providers send them, made up: a whole body in the provider's own JSON, which its real SDK parses.

What a reply says is put into it by its shape's own `wording`; here stands only what surrounds that. To add a provider,
add its shape's name and the body of an empty answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from reenact.contracts.shape import Shape
from reenact.errors import UsageError
from reenact.values.call import Body, HttpReply
from reenact.values.json import Json, compact
from reenact.values.message import Said, ToolCall

_CREATED: Final = 1_700_000_000
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
_RETRIED: Final = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What one made-up answer says."""

    text: Any = None
    """A text, or a function from the call to one."""
    tool_calls: Sequence[Any] = ()
    """Each `{"name": …, "arguments": {…}}`, or a pair of both; `id` may be given."""
    status: int = 200
    message: str = ""
    """Of an error."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    finish: str | None = None
    """The provider's word for why it ended; by default what fits."""
    usage: tuple[int, int] = (1, 1)
    """Tokens of the prompt and of the answer."""
    model: str | None = None
    """By default the model that was asked."""
    vectors: Sequence[Sequence[float]] = ()
    """For an embedding request."""
    body: Json = None
    """The whole body, in place of all of the above but `status` and `headers`."""
    raises: BaseException | None = None
    """Raised where the SDK sends its request, as a lost connection is."""


def reply(response: Response, shape: Shape, model: str, number: int) -> HttpReply:
    """Spell an answer in a shape's JSON. Raises `UsageError` where the shape has no words for it."""
    headers = {"content-type": "application/json", "x-request-id": f"req_mock_{number}"}
    if response.body is not None:
        body = response.body
    elif response.status >= 400:
        body = _error(response, shape)
        if response.status in _RETRIED or response.status >= 500:
            headers["retry-after-ms"] = "1"  # SDKs try again; a test does not wait for it
    else:
        body = _answer(response, shape, response.model or model, number)
    headers |= {name.lower(): value for name, value in response.headers.items()}
    return HttpReply(status=response.status, headers=tuple(headers.items()), body=Body(compact(body).encode()))


def _answer(response: Response, shape: Shape, model: str, number: int) -> Json:
    if shape.name == "openai.embeddings":
        return _embeddings(response, model)
    empty = _EMPTY.get(shape.name)
    if empty is None or shape.wording is None:
        hint = "give the whole reply: mock_llm.add_response(body={…})"
        raise UsageError(f"mock_llm has no words for a {shape.name} reply", hint=hint)
    calls = tuple(_tool_call(each, number, place) for place, each in enumerate(response.tool_calls))
    finish = response.finish or shape.wording.finishes[0 if calls else 1]
    turn = Said(text=response.text if response.text is not None or calls else "", calls=calls, finish=finish)
    return shape.wording.write(empty(model, number, *response.usage), turn)


def _tool_call(value: Any, number: int, place: int) -> ToolCall:
    fields: dict[str, Any]
    if isinstance(value, Mapping):
        fields = dict(cast("Mapping[str, Any]", value))
    else:
        fields = dict(zip(("name", "arguments"), value, strict=False))
    if not isinstance(name := fields.get("name"), str):
        raise UsageError(f"a tool call of mock_llm has no name: {value!r}", hint='{"name": "…", "arguments": {…}}')
    arguments = fields.get("arguments", {})
    text = arguments if isinstance(arguments, str) else compact(arguments)
    return ToolCall(id=str(fields.get("id") or f"call_mock_{number}_{place + 1}"), name=name, arguments=text)


def _error(response: Response, shape: Shape) -> Json:
    kind = _ERRORS.get(response.status, "api_error")
    message = response.message or f"mock_llm answers with status {response.status}"
    if shape.system == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _embeddings(response: Response, model: str) -> Json:
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": list(vector)}
        for index, vector in enumerate(response.vectors)
    ]
    used = response.usage[0]
    usage: Json = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _chat(model: str, number: int, prompt: int, answer: int) -> Json:
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    return {
        "id": f"chatcmpl-mock-{number}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": None}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
    }


def _responses(model: str, number: int, prompt: int, answer: int) -> Json:
    return {
        "id": f"resp_mock_{number}",
        "object": "response",
        "created_at": _CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + answer,
        },
    }


def _messages(model: str, number: int, prompt: int, answer: int) -> Json:
    return {
        "id": f"msg_mock_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "output_tokens": answer},
    }


_EMPTY: Final = {"openai.chat": _chat, "openai.responses": _responses, "anthropic.messages": _messages}
