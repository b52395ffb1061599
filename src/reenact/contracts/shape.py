"""What a shape promises: one provider's own JSON, read and folded, with no SDK and no span attribute in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reenact.values.call import CallKind
from reenact.values.json import Json, parsed_or_none
from reenact.values.message import Answered, Asked, Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """One way to put events into a stream of bytes."""

    media_type: str
    """What a reply's `content-type` calls it."""
    events: Callable[[bytes], list[Json]]
    """Give the JSON of each event of a stream. What is no JSON at its end was cut off and is left out."""


def _server_sent(data: bytes) -> list[Json]:
    from reenact.values.sse import json_events  # most processes read no stream

    return json_events(data)


SSE = Framing(media_type="text/event-stream; charset=utf-8", events=_server_sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How to make a whole reply body say something else."""

    read: Callable[[Json], Said]
    """Read what a body says. Of several choices the first speaks."""
    write: Callable[[Json, Said], Json]
    """Give a copy of a body that says this; writing what was read changes nothing.

    A body that names no more than its model becomes a whole reply, as SDKs insist on it.
    """
    finishes: tuple[str, str]
    """The provider's words for an answer that ended with tool calls, and with none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One provider API's wire JSON.

    Each module of `reenact.shapes` declares one as `SHAPE`, and beside it those that are asked in the same words.
    """

    name: str
    """Dotted, provider first: `openai.chat`."""
    system: str
    """`llm.system` of OpenInference, such as `openai`."""
    genai_provider: str = ""
    """`gen_ai.provider.name` where that is another word than `system`."""
    operation: str
    """`gen_ai.operation.name`: `chat`, `embeddings`, …"""
    kind: CallKind
    span_name: str
    """OpenInference's name for the span of such a call, such as `ChatCompletion`."""
    paths: tuple[str, ...]
    """Endings of the URL path that speak this shape, such as `/chat/completions`."""
    noise: frozenset[str]
    """Top-level request fields that identify a caller or a request and say nothing to the model."""
    opaque: tuple[str, ...] = ()
    """Names of JSON fields, at any depth, whose text is signed, encrypted or binary and must never be rewritten."""
    decode_request: Callable[[bytes], Json] = parsed_or_none
    """Give the JSON that a request body holds, None where it is none: of a form its fields."""
    read_request: Callable[[Json], Asked]
    """Read a request body. Never raises on a JSON object: what is not understood stays `Opaque` or a parameter."""
    read_reply: Callable[[Json], Answered]
    """Read a whole reply body, or what `fold` gave. Never raises on a JSON object."""
    fold: Callable[[Iterable[Json]], Json]
    """Join the JSON events of a stream into the reply body that the provider would have sent whole."""
    is_stream: Callable[[Json], bool] = field(
        default=lambda body: isinstance(body, dict) and body.get("stream") is True
    )
    """Tell from a request body whether a stream was asked for."""
    framing: Framing = SSE
    """How the bytes of a stream hold its events."""
    api: str = ""
    """The shape in whose words this one is asked and answered, where they differ by the path alone: its whole form."""
    unfold: Callable[[Json], bytes] | None = None
    """Spell a whole reply as the stream that folds into it, for a recording that kept no more than that of a stream."""
    write_request: Callable[[Asked], Json] | None = None
    """Spell a request body of which only the meaning was kept; reading it gives the same. Nothing is invented."""
    write_reply: Callable[[Answered], Json] | None = None
    """Spell a whole reply likewise. What an SDK cannot do without and nobody said is empty: a time of 0, no id."""
    wording: Wording | None = None
    """How a fork changes what a reply says, words and tool calls; None where a reply has not both."""
    before: str = ""
    """A pattern for the end of the path before that ending, where it must name something, as `model/…` does."""
    fields: tuple[str, ...] = ()
    """Top-level fields of which every request body holds one; none where nothing is known of it."""
    needs: tuple[bytes, ...] = ()
    """What every request body of this shape holds, where other APIs use the same path; none where the path says it."""
    stream_ends: tuple[bytes, ...] = (b"[DONE]",)
    """What the last event of a stream holds and no other; who stops reading there has read the stream to its end."""
    credentials: tuple[str, ...] = ()
    """Environment variables in which the provider's SDK insists on finding a key."""

    def outline(self) -> dict[str, Json]:
        """Give what is known of the shape before it is loaded, for the index of families (`discover`)."""
        return {"name": self.name, "paths": [*self.paths]}
