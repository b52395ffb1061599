"""What a script of the stand-in provider is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from reenact.values.json import Json, parsed_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One tool call in a scripted answer."""

    name: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """An answer: text, tool calls, or both."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    breaks_after: int | None = None
    """Drop the connection after this many events of a stream. None lets it end well; a whole reply ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuses:
    """An error status in place of an answer."""

    status: int = 429
    message: str = "Rate limit reached for requests. Please try again later."
    type: str = "requests"
    code: str | None = "rate_limit_exceeded"
    param: str | None = None
    retry_after_ms: int | None = None
    """Sent as `retry-after-ms` and, rounded up to whole seconds, as `Retry-After` (RFC 9110, section 10.2.3)."""
    body: bytes | None = None
    """Sent in place of the error JSON, for instance half of it."""


Reply: TypeAlias = Says | Refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool call of the conversation and what the agent reported back for it."""

    name: str
    arguments: dict[str, Json]
    content: str

    @property
    def json(self) -> Json:
        """The content read as JSON, or None where it is not JSON."""
        return parsed_or_none(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A chat request as a script sees it."""

    body: dict[str, Json]
    """The request body as it came."""
    attempt: int = 0
    """0 for the first try, n for the n-th retry, as the SDK tells in `x-stainless-retry-count`."""
    slip: float | None = None
    """How likely a slip is, 0 to 1, in place of each script's own odds."""

    def slips(self, chance: Random, usual: float) -> bool:
        """Draw whether the model slips this time; `usual` is the script's own probability."""
        return chance.random() < (usual if self.slip is None else self.slip)

    @property
    def prompt(self) -> str:
        """The text of the last user message, or "" without one."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return ""

    @property
    def messages(self) -> list[dict[str, Json]]:
        """The messages that are JSON objects."""
        return objects(self.body.get("messages"))

    @property
    def offers_tools(self) -> bool:
        """Whether the request offers the model any tool."""
        return bool(self.body.get("tools"))

    @property
    def results(self) -> list[ToolResult]:
        """The tool results of the conversation, oldest first."""
        asked: dict[str, tuple[str, dict[str, Json]]] = {}
        results: list[ToolResult] = []
        for message in self.messages:
            for call in objects(message.get("tool_calls")):
                function = call.get("function")
                if isinstance(function, dict):
                    arguments = parsed_or_none(str(function.get("arguments")))
                    parsed_arguments = arguments if isinstance(arguments, dict) else {}
                    asked[str(call.get("id"))] = str(function.get("name")), parsed_arguments
            if message.get("role") == "tool":
                name, arguments = asked.get(str(message.get("tool_call_id")), ("", {}))
                results.append(ToolResult(name=name, arguments=arguments, content=text_of(message.get("content"))))
        return results


Script: TypeAlias = Callable[[Question, Random], Reply]
"""Samples one answer to a question. `Random` is the only source of chance that it may use."""


@dataclass(slots=True, kw_only=True)
class Served:
    """What a stand-in has served so far."""

    requests: int = 0
    refused: int = 0
    """Requests answered with an error status."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_model: dict[str, int] = field(default_factory=dict[str, int])
    """Requests per `model` field."""


def objects(value: Json) -> list[dict[str, Json]]:
    """The JSON objects of an array; nothing where `value` is no array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(content: Json) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(str(part["text"]) for part in objects(content) if "text" in part)
