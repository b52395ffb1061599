"""What a model call says, in the field's own terms and apart from any provider's spelling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reenact.values.json import Json

MADE_ID: Final = "call_reenact_"
"""How the id of a tool call begins that nobody kept and a replay made."""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of plain text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """A piece of the model's reasoning, perhaps opaque."""

    text: str = ""
    id: str | None = None
    encrypted: str | None = None
    """Opaque, signed or encrypted; never rewritten."""
    seal: str = field(default="", compare=False)
    """What the provider calls that: `signature`, `data`, or nothing for `encrypted_content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, sound or document, by URL or data URL."""

    modality: str
    """`image`, `audio`, `video` or `document`."""
    url: str = ""
    mime_type: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that the model asked for."""

    id: str
    name: str
    arguments: str
    """The JSON text of the arguments, as the model wrote it."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a kind this version does not know, kept as it came."""

    json: Json


Part: TypeAlias = Text | Reasoning | Media | ToolCall | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to or from a model."""

    role: str
    parts: tuple[Part, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None
    is_error: bool | None = None
    """Of a tool's answer: it failed, or did not. None where nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, counted by the provider. None where it did not say."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    prompt_audio: int | None = None
    completion_audio: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request body says."""

    model: str | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[Json, ...] = ()
    """Tool schemas in the provider's spelling, one JSON value a tool."""
    parameters: dict[str, Json] = field(default_factory=dict[str, Json])
    """Everything else in the body: the request less messages and tools."""
    inputs: tuple[str, ...] = ()
    """The texts to embed, for an embedding request."""
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a reply says to the program that asked, in short: that which a fork of a run changes."""

    text: str | None = None
    """All of its plain text, or None where it has none."""
    calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    """Why it ended, in the provider's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a reply body says."""

    model: str | None = None
    id: str | None = None
    messages: tuple[Message, ...] = ()
    finish_reasons: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    vectors: tuple[tuple[float, ...], ...] = ()
    """For an embedding reply; decoded from base64 where the provider sent that."""
