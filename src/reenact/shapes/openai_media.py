"""OpenAI's images, speech, transcription and moderation: one request, and one reply of another kind than a message.

What has files to send, sound to write down or images to change, comes as a form. Of a file its name, type and length
are shown; its bytes are in the body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.form_data import fields_or_none
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, media_type, text_or_none, without
from reenact.values.message import Answered, Asked, Media, Message, Opaque, Part, Text, Usage

_WORDS = ("prompt", "input")


def _read_request(body: Json) -> Asked:
    """Read the prompt, the text to speak, or what is to be judged as the user's message."""
    asked = as_object(body)
    name = next((name for name in _WORDS if name in asked), "")
    value = asked.get(name)
    parts = tuple(_part(each) for each in (value if isinstance(value, list) else [value] if value is not None else []))
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=(Message(role="user", parts=parts),) if parts else (),
        parameters=without(asked, (name,)) if parts else asked,
    )


def _part(value: Json) -> Part:
    if isinstance(value, str):
        return Text(value)
    if at(value, "type") == "text" and isinstance(text := at(value, "text"), str):
        return Text(text)
    if url := as_text(at(value, "image_url", "url")):
        return Media(modality="image", url=url, mime_type=media_type(url))
    return Opaque(value)


def _read_images(body: Json) -> Answered:
    reply, usage = as_object(body), at(body, "usage")
    form = as_text(reply.get("output_format")) or "png"
    parts: list[Part] = []
    for each in map(as_object, as_list(reply.get("data"))):
        data, url = as_text(each.get("b64_json")), as_text(each.get("url"))
        kind = f"image/{form}" if data else ""
        if data or url:
            parts.append(Media(modality="image", url=f"data:{kind};base64,{data}" if data else url, mime_type=kind))
    return Answered(
        messages=(Message(role="assistant", parts=tuple(parts)),) if parts else (),
        usage=Usage(
            prompt=first_count(usage, ("input_tokens",)),
            completion=first_count(usage, ("output_tokens",)),
            total=first_count(usage, ("total_tokens",)),
        ),
    )


def _read_judgement(body: Json) -> Answered:
    reply = as_object(body)
    parts = tuple(Opaque(each) for each in as_list(reply.get("results")))
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=(Message(role="assistant", parts=parts),) if parts else (),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Keep the last event, which holds the whole; the ones before it are drafts."""
    last: dict[str, Json] = {}
    for event in events:
        last = as_object(event) or last
    return {"data": [last], **without(last, ("b64_json",))} if "b64_json" in last and "data" not in last else last


def _read_form(body: Json) -> Asked:
    """Read a prompt, and the files as parts that stand for them, as the user's message."""
    asked, parts, parameters = as_object(body), list[Part](), dict[str, Json]()
    for name, value in asked.items():
        files = value if isinstance(value, list) else [value]
        if name == "prompt" and isinstance(value, str):
            parts.append(Text(value))
        elif files and all(isinstance(each, dict) and "filename" in each for each in files):
            parts += map(Opaque, files)
        elif name != "model":
            parameters[name] = value
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=(Message(role="user", parts=tuple(parts)),) if parts else (),
        parameters=parameters,
        stream=_is_stream(body),
    )


def _read_transcript(body: Json) -> Answered:
    reply, usage = as_object(body), at(body, "usage")
    text = reply.get("text")
    return Answered(
        messages=(Message(role="assistant", parts=(Text(text),)),) if isinstance(text, str) else (),
        usage=Usage(
            prompt=first_count(usage, ("input_tokens",)),
            completion=first_count(usage, ("output_tokens",)),
            total=first_count(usage, ("total_tokens",)),
        ),
    )


def _fold_transcript(events: Iterable[Json]) -> Json:
    """Give what the last event says, or what the pieces before it say where the stream was cut off."""
    pieces: list[str] = []
    for event in map(as_object, events):
        if event.get("type") == "transcript.text.done":
            return without(event, ("type",))
        if event.get("type") == "transcript.text.delta":
            pieces.append(as_text(event.get("delta")))
    return {"text": "".join(pieces)} if pieces else {}


def _is_stream(body: Json) -> bool:
    return at(body, "stream") in (True, "true", "True")


def _read_nothing(body: Json) -> Answered:
    """Read sound: it says nothing in words."""
    del body
    return Answered()


def _asks_for_events(body: Json) -> bool:
    return at(body, "stream_format") == "sse"


def _never(body: Json) -> bool:
    del body
    return False


SHAPE = Shape(
    name="openai.images",
    system="openai",
    operation="generate_content",
    kind=CallKind.LLM,
    span_name="GenerateImages",
    paths=("/images/generations",),
    needs=(b'"prompt"',),
    noise=frozenset({"user"}),
    opaque=("b64_json",),
    read_request=_read_request,
    read_reply=_read_images,
    fold=_fold,
    stream_ends=(),
    credentials=("OPENAI_API_KEY",),
)

SPEECH = replace(
    SHAPE,
    name="openai.speech",
    span_name="CreateSpeech",
    paths=("/audio/speech",),
    needs=(b'"input"', b'"voice"'),
    opaque=(),
    read_reply=_read_nothing,
    is_stream=_asks_for_events,
)
"""A text that is spoken. The reply is sound, kept to the byte and not shown."""

MODERATION = replace(
    SHAPE,
    name="openai.moderation",
    operation="moderate",
    span_name="CreateModeration",
    paths=("/moderations",),
    needs=(b'"input"',),
    opaque=(),
    read_reply=_read_judgement,
    is_stream=_never,
)
"""What a model says of a text that it is to judge; the judgement is kept as it came."""

TRANSCRIPTION = replace(
    SHAPE,
    name="openai.transcription",
    span_name="CreateTranscription",
    paths=("/audio/transcriptions", "/audio/translations"),
    needs=(b'name="model"', b'name="file"'),
    noise=frozenset(),
    opaque=(),
    decode_request=fields_or_none,
    read_request=_read_form,
    read_reply=_read_transcript,
    fold=_fold_transcript,
    is_stream=_is_stream,
    stream_ends=(b"transcript.text.done",),
)
"""Sound that is written down. A reply that is asked for as plain text or as subtitles is kept, and not shown."""

EDITS = replace(
    SHAPE,
    name="openai.image_edits",
    span_name="EditImages",
    paths=("/images/edits", "/images/variations"),
    needs=(b'name="image',),
    noise=frozenset(),
    decode_request=fields_or_none,
    read_request=_read_form,
    is_stream=_is_stream,
)
"""An image that is changed as a prompt says, or varied without one."""
