"""Replicate's predictions (`POST /v1/predictions`, `/v1/models/OWNER/NAME/predictions`).

The reply is the prediction as it is so far: with its output where the client waits (`Prefer: wait`), else none yet, and
the client asks for it again by other requests. Written from the API's OpenAPI description and Replicate's client.
"""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Opaque, Part, Text, Usage

_ENDED = ("succeeded", "failed", "canceled", "aborted")


def _read_request(body: Json) -> Asked:
    """Read the prompts among a model's inputs as messages; all other inputs are parameters."""
    asked = as_object(body)
    inputs = as_object(asked.get("input"))
    said = {name: text for name in ("system_prompt", "prompt") if (text := text_or_none(inputs.get(name))) is not None}
    return Asked(
        model=text_or_none(asked.get("version")),
        messages=tuple(
            Message(role="user" if name == "prompt" else "system", parts=(Text(text),)) for name, text in said.items()
        ),
        parameters={**without(asked, ("version", "input")), "input": without(inputs, said)},
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    status = as_text(reply.get("status"))
    parts = _parts(reply.get("output"))
    return Answered(
        model=text_or_none(reply.get("model")) or text_or_none(reply.get("version")),
        id=text_or_none(reply.get("id")),
        messages=(Message(role="assistant", parts=parts),) if parts else (),
        finish_reasons=(status,) if status in _ENDED else (),
        usage=Usage(
            prompt=first_count(reply, ("metrics", "input_token_count")),
            completion=first_count(reply, ("metrics", "output_token_count")),
        ),
    )


def _parts(output: Json) -> tuple[Part, ...]:
    """Read an output: a text, the pieces of a text, or whatever else a model makes, as addresses of files."""
    pieces = as_list(output) or ([output] if isinstance(output, str) else [])
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if texts and len(texts) == len(pieces) and not texts[0].startswith(("https://", "http://", "data:")):
        return (Text("".join(texts)),)
    return () if output in (None, [], {}) else (Opaque(output),)


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: pieces of an output come from another address."""
    return as_object(next(iter(events), None))


SHAPE = Shape(
    name="replicate.predictions",
    system="replicate",
    operation="generate_content",
    kind=CallKind.LLM,
    span_name="CreatePrediction",
    paths=("/predictions",),
    before=r"v1(?:/models/[^/]+/[^/]+)?",
    needs=(b'"input"',),
    noise=frozenset({"webhook", "webhook_events_filter"}),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
)
