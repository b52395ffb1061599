"""One piece of a message's content, in any spelling that providers and frameworks use, told by its structure alone.

Blocks of OpenAI chat and responses, Anthropic, Gemini, Bedrock, LangChain, LlamaIndex, the AI SDK, pydantic-ai and the
parts of OTel GenAI. What is of no known kind is kept as it came (`Opaque`). Nothing here raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict

from reenact.values.json import Json, compact
from reenact.values.lenient import as_object, as_text, at, media_type, text_or_json, text_or_none, without
from reenact.values.message import Media, Opaque, Part, Reasoning, Text, ToolCall

_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text", "user-prompt"})
_CALLS: Final = frozenset(
    {"tool_call", "tool-call", "tool_use", "function_call", "custom_tool_call", "mcp_call", "function", "custom"},
)
_ANSWERS: Final = frozenset(
    {
        "tool_call_response",
        "tool_result",
        "tool-result",
        "tool-return",
        "function_call_output",
        "custom_tool_call_output",
        "function_response",
    },
)
_ARGUMENTS: Final = ("arguments", "args", "input", "tool_kwargs", "parameters")
_CALL_IDS: Final = ("call_id", "id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id")
_ANSWER_IDS: Final = ("tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "id")
_NAMES: Final = ("name", "toolName", "tool_name")
_TOLD: Final = ("response", "result", "output", "content", "value")
_FAILED: Final = ("is_error", "isError")
_URLS: Final = ("image_url", "video_url", "audio_url", "document_url")
GENERIC: Final = "generic"
"""OTel GenAI's type of a part that is of no kind it knows."""
GENERIC_TYPE: Final = "generic_type"
"""What the provider calls such a part; its other fields stand beside it, or what is no object below `value`."""
_DEEPEST: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool said, where it stands as a block among others. It is a message of its own in the field's terms."""

    id: str | None = None
    name: str | None = None
    parts: tuple[Part, ...] = ()
    is_error: bool | None = None


Piece: TypeAlias = Part | Answer


def pieces(content: Json, depth: int = 0) -> tuple[Piece, ...]:
    """Read what stands as the content of a message: a text, a block, or a list of either."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list) and depth < _DEEPEST:
        return tuple(piece for item in content for piece in pieces(item, depth + 1))
    if isinstance(content, dict):
        if isinstance(inner := content.get("parts"), list) and "type" not in content and depth < _DEEPEST:
            return pieces(inner, depth + 1)  # one of Gemini's contents inside of a message
        return (piece(content, depth),)
    return (Opaque(content),)


def parts(content: Json, depth: int = 0) -> tuple[Part, ...]:
    """Read the same where no tool's answer can stand; one that does is kept as it came."""
    read = pieces(content, depth)
    if not any(isinstance(piece, Answer) for piece in read):
        return tuple(piece for piece in read if not isinstance(piece, Answer))
    return tuple(Opaque(item) for item in (content if isinstance(content, list) else [content]))


def is_block(value: Json) -> bool:
    """Tell whether a JSON object is a piece of some known kind, rather than a message or anything else."""
    return isinstance(value, dict) and "role" not in value and not isinstance(piece(value), Opaque)


def piece(block: dict[str, Json], depth: int = 0) -> Piece:
    """Read one block."""
    kind = as_text(block.get("type") or block.get("part_kind") or block.get("block_type") or block.get("kind"))
    if kind == GENERIC and (GENERIC_TYPE in block or "value" in block):
        return Opaque(_generic(block))
    return (
        _text(block, kind)
        or _reasoning(block, kind)
        or tool_call(block, kind)
        or _answer(block, kind, depth)
        or _media(block, kind)
        or Opaque(block)
    )


def _generic(block: dict[str, Json]) -> Json:
    if GENERIC_TYPE not in block:
        return block["value"]
    return {"type": block[GENERIC_TYPE], **without(block, ("type", GENERIC_TYPE))}


def _text(block: dict[str, Json], kind: str) -> Part | None:
    if kind in _TEXTS or (not kind and "text" in block):
        for name in ("text", "content"):
            if isinstance(text := block.get(name), str):
                return Reasoning(text=text, **_sealed(block)) if block.get("thought") is True else Text(text)
    return None


_SEALS: Final = (
    ("signature", "signature"),
    ("thoughtSignature", "signature"),
    ("thought_signature", "signature"),
    ("encrypted_content", ""),
    ("data", "data"),
)


class _Seal(TypedDict, total=False):
    encrypted: str
    seal: str


def _sealed(block: dict[str, Json]) -> _Seal:
    for name, seal in _SEALS:
        if isinstance(opaque := block.get(name), str):
            return {"encrypted": opaque, "seal": seal}
    return {}


def _reasoning(block: dict[str, Json], kind: str) -> Part | None:
    if kind in ("reasoning", "thinking"):
        values = [block.get(name) for name in ("thinking", "reasoning", "text", "content", "summary")]
        return Reasoning(
            text="\n\n".join(text for value in values if (text := _plain(value))),
            id=text_or_none(block.get("id")),
            **_sealed(block),
        )
    if kind == "redacted_thinking" and isinstance(data := block.get("data"), str):
        return Reasoning(encrypted=data, seal="data")
    if isinstance(content := block.get("reasoningContent"), dict):  # Bedrock
        reasoning = as_object(content.get("reasoningText"))
        text = as_text(reasoning.get("text")) or as_text(content.get("text"))
        if signature := text_or_none(reasoning.get("signature")):
            return Reasoning(text=text, encrypted=signature, seal="signature")
        return Reasoning(text=text, encrypted=text_or_none(content.get("redactedContent")), seal="data")
    return None


def _plain(value: Json) -> str:
    if isinstance(value, list):
        return "\n\n".join(text for item in value if (text := as_text(item) or as_text(at(item, "text"))))
    return as_text(value)


def tool_call(block: dict[str, Json], kind: str = "") -> ToolCall | None:
    """Read a tool's call, or None where the block is no such thing."""
    inner: Json = None
    for name in ("toolUse", "functionCall", "function_call", "function", "custom"):
        if isinstance(inner := block.get(name), dict):
            break
    else:
        inner = None
    if inner is None and kind not in _CALLS and not ("toolCallId" in block and ("args" in block or "input" in block)):
        return None
    call = as_object(inner) or block
    name = first_text(call, _NAMES)
    if not name and inner is None:
        return None
    return ToolCall(
        id=first_text(call, _CALL_IDS) or first_text(block, _CALL_IDS),
        name=name,
        arguments=_arguments(call),
    )


def _arguments(call: dict[str, Json]) -> str:
    for name in _ARGUMENTS:
        if name in call:
            return text_or_json(call[name])
    return ""


def first_text(fields: dict[str, Json], names: tuple[str, ...]) -> str:
    """Give the first string that is not empty, among the fields named."""
    return next((text for name in names if (text := as_text(fields.get(name)))), "")


def _answer(block: dict[str, Json], kind: str, depth: int) -> Answer | None:
    inner: Json = None
    for name in ("toolResult", "functionResponse", "function_response"):
        if isinstance(inner := block.get(name), dict):
            break
    else:
        inner = None
    if inner is None and kind not in _ANSWERS:
        return None
    answer = as_object(inner) or block
    content = next((answer[name] for name in _TOLD if answer.get(name) is not None), None)
    return Answer(
        id=first_text(answer, _ANSWER_IDS) or None,
        name=first_text(answer, _NAMES) or None,
        parts=told_parts(content, depth + 1),
        is_error=failed_or_not(answer),
    )


def failed_or_not(answer: dict[str, Json]) -> bool | None:
    """Read whether a tool's answer says that it failed; None where it does not say."""
    if "toolUseId" in answer and answer.get("status") in ("error", "success"):  # Bedrock's
        return answer["status"] == "error" or None
    return next((flag for name in _FAILED if isinstance(flag := answer.get(name), bool)), None)


def told_parts(body: Json, depth: int = 0) -> tuple[Part, ...]:
    """Read what a tool answered: text stays text, blocks are read, and any other value is its JSON text."""
    if body is None:
        return ()
    if isinstance(body, str):
        return (Text(body),)
    if isinstance(body, dict) and "value" in body and body.get("type") in ("text", "json", "error-text", "error-json"):
        value = body["value"]  # the AI SDK's output
        return (Text(value if isinstance(value, str) else compact(value)),)
    if depth >= _DEEPEST:
        return (Opaque(body),)
    if isinstance(body, list) and body and all(_is_told(item) for item in body):
        return tuple(part for item in body for part in _answer_parts(item, depth))
    return (Text(compact(body)),)


def _is_told(item: Json) -> bool:
    if not isinstance(item, dict):
        return isinstance(item, str)
    return set(item) == {"json"} or GENERIC_TYPE in item or is_block(item)


def _answer_parts(item: Json, depth: int) -> tuple[Part, ...]:
    fields = as_object(item)
    return (Text(text_or_json(fields["json"])),) if set(fields) == {"json"} else parts(item, depth + 1)


def _media(block: dict[str, Json], kind: str) -> Part | None:
    for name in ("inlineData", "inline_data", "fileData", "file_data"):  # Gemini
        if isinstance(media := block.get(name), dict):
            mime = first_text(media, ("mimeType", "mime_type"))
            url = _data_url(media.get("data"), mime) or first_text(media, ("fileUri", "file_uri"))
            return _medium(_modality(mime), url, mime)
    for name in ("image", "video", "document"):  # Bedrock
        media = as_object(block.get(name))
        if not kind and (source := as_object(media.get("source"))):
            mime = f"{name}/{as_text(media.get('format'))}"
            return _medium(name, _data_url(source.get("bytes"), mime), mime, as_text(media.get("name")))
    if kind in _URLS:
        media = block.get(kind)
        url = media if isinstance(media, str) else as_text(at(media, "url"))
        return _medium(kind.removesuffix("_url"), url, media_type(url))
    if kind == "input_audio":
        audio = as_object(block.get("input_audio"))
        mime = f"audio/{as_text(audio.get('format')) or 'wav'}"
        return _medium("audio", _data_url(audio.get("data"), mime), mime)
    return _file(block, kind)


def _file(block: dict[str, Json], kind: str) -> Part | None:
    word = kind.removeprefix("input_").removesuffix("-url")
    if word not in ("image", "audio", "video", "document", "file", "blob", "uri", "binary", "media"):
        return None
    source = as_object(block.get("source")) or as_object(block.get("file")) or block
    mime = first_text(
        {**source, **block},
        ("media_type", "mediaType", "mime_type", "mimeType", "image_mimetype", "document_mimetype"),
    )
    url = first_text(source, ("url", "uri", "image_url", "file_url", "file_uri"))
    for name in ("data", "file_data", "content", "image", "image_data"):
        url = url or _data_url(source.get(name), mime)
    fallback = word if word in ("image", "audio", "video", "document") else _modality(mime or media_type(url))
    modality = as_text(block.get("modality")) or fallback
    name = first_text({**source, **block}, ("filename", "title", "name"))
    return _medium(modality, url, mime or media_type(url), name)


def _medium(modality: str, url: str, mime: str, name: str = "") -> Media | None:
    return Media(modality=modality or "document", url=url, mime_type=mime, name=name) if url else None


def _modality(mime: str) -> str:
    word = mime.partition("/")[0]
    return word if word in ("image", "audio", "video") else "document"


def _data_url(data: Json, mime: str) -> str:
    text = as_text(data)
    return text if not text or text.startswith(("data:", "http:", "https:", "gs:")) else f"data:{mime};base64,{text}"
