"""Whether a live question is the one of which a foreign trace kept only a part.

What the trace kept must agree: the messages in their order, each tool call with its arguments, the tools and parameters
that stand in it. What it did not keep is not compared, and named. Spellings that say the same are one: a message in one
piece or several, arguments as the model spelled them or as JSON has them, 0 and 0.0, a parameter that is not given and
its default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from reenact.boundary.question import Question, shape_named
from reenact.boundary.resource import asked_at, model_in
from reenact.values.call import HttpRequest
from reenact.values.difference import ABSENT, FieldDifference, differences
from reenact.values.json import Json, canonical, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, at, without
from reenact.values.masks import is_masked
from reenact.values.masks import may_be as may_be_hidden
from reenact.values.message import MADE_ID, Asked, Media, Message, Opaque, Text, ToolCall
from reenact.values.redaction_marks import blinded
from reenact.values.run import OURS, Node

if TYPE_CHECKING:
    from reenact.contracts.redactor import Redactor

REBUILT: Final = "reenact.rebuilt"
LOST: Final = "reenact.lost"
TOOL_ENDS: Final = "reenact.tool_ends"
"""On a model call of a carrier: JSON of the tools that its reply calls, by id: `start_ns`, `end_ns`, `is_error`."""
TOLD: Final = "reenact.told"
"""On a tool's call: the text that a model was told of its result."""
_ROLES: Final[Mapping[str, str]] = {
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
}
_NO_PARAMETERS: Final = frozenset({"model", "stream", "stream_options"})
_DEFAULTS: Final[Mapping[str, Json]] = {
    "n": 1,
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "logprobs": False,
}
"""What a parameter is where it is not given, by the OpenAPI description of OpenAI's API."""
_ALIASES: Final[Mapping[str, str]] = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "num_predict": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
}
"""Names of a parameter that APIs renamed, to the one that emitters write down."""
_GROUPS: Final = ("generationConfig", "inferenceConfig", "options")
"""Where other APIs than OpenAI's hold such parameters: Gemini's, Bedrock's, Ollama's."""
_FIELDS: Final[Mapping[str, Json]] = {"request model": "model", "request.model": "model", "asked model": "model"}
"""Words of dialects and formats for a field that has one name in verdicts."""
_VERSION: Final = re.compile(r"[-@:](?:v?\d|latest|preview|exp)")
"""What stands behind the name of a model in that of one version of it; `-mini` is another model."""
_SCHEMAS: Final = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
)
_REDACTED: Final = ("__REDACTED__", "<REDACTED>", "[REDACTED]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation, as it is compared."""

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None
    """The id of the tool call that it answers."""
    media: tuple[Media, ...] = ()
    rest: tuple[Json, ...] = ()
    place: int = 0
    """Where it stands among the messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialQuestion:
    """What a trace kept of a model's question."""

    shape: str
    asked: Asked
    turns: tuple[Turn, ...]
    whole: bool
    """The request's own body was kept, so what is not in it was not sent."""
    lost: frozenset[str]
    """Fields that the dialect knows to be lost or changed."""
    guessed: bool = False
    """Nothing said which API was asked, so it may be any."""


@dataclass(slots=True)
class Compared:
    """How a live question differs from what was kept."""

    differs: list[FieldDifference] = field(default_factory=list[FieldDifference])
    ignored: list[FieldDifference] = field(default_factory=list[FieldDifference])
    """What was not compared, or is another spelling of the same."""


def is_partial(node: Node) -> bool:
    """Tell a model's call over HTTP that another emitter wrote down."""
    if not isinstance(node.call.request, HttpRequest):
        return False
    foreign = OURS not in node.span.attributes or bool(rebuilt_parts(node))
    return foreign and shape_named(node.call.request.shape) is not None


def rebuilt_parts(node: Node) -> tuple[str, ...]:
    """Name what of a call was built again of its meaning."""
    return tuple(name for name in as_list(_told_of(node, REBUILT)) if isinstance(name, str))


def losses(node: Node) -> list[dict[str, Json]]:
    """List what the dialect, or the carrier, says was lost of a call: objects of `field`, `lost` and `fix`."""
    loss_items = [item for item in as_list(_told_of(node, LOST)) if isinstance(item, dict)]
    return [{**item, "field": _FIELDS.get(as_text(item.get("field")), item.get("field"))} for item in loss_items]


def _told_of(node: Node, name: str) -> Json:
    """Read what stands beside a call: set by its dialect, or by the carrier as an attribute of the span."""
    if (value := node.call.attributes.get(name)) is not None:
        return value
    attribute: Any = node.span.attributes.get(name)
    if isinstance(attribute, str):
        return parsed_or_none(attribute)
    return list(cast("tuple[Json, ...]", attribute)) if isinstance(attribute, tuple | list) else None


def read_partial_question(node: Node, redactor: Redactor | None = None) -> PartialQuestion | None:
    """Read what a foreign trace kept of a model's question, redacted as the live one is; None for any other call."""
    request = node.call.request
    if not isinstance(request, HttpRequest) or not is_partial(node):
        return None
    text = request.body.text or ""
    body = parsed_or_none(redactor.text(text) if redactor is not None else text)
    shape = shape_named(request.shape)
    if shape is None or not isinstance(body, dict):
        return None
    asked = asked_at(request.url, shape, without(body, shape.noise))
    return PartialQuestion(
        shape=request.shape,
        asked=asked,
        turns=turns(asked.messages),
        whole="request" not in rebuilt_parts(node),
        lost=frozenset(as_text(loss.get("field")) for loss in losses(node)) | {*rebuilt_parts(node)} & {"tools"},
        guessed="shape" in rebuilt_parts(node),
    )


def live(question: Question) -> Asked | None:
    """Read what a live model call asks, or None where nothing can be read."""
    shape = shape_named(question.shape)
    body = as_object(question.asked).get("body")
    if shape is None or not isinstance(body, dict):
        return None
    asked = shape.read_request(body)
    model = model_in(as_text(as_object(question.asked).get("resource"))) if asked.model is None else None
    return asked if model is None else replace(asked, model=model)


def may_be(of: PartialQuestion, dialog: Sequence[Turn], shape: str) -> bool:
    """Tell cheaply, by length and last words, a question that may be the recorded one from one that is not."""
    if (_api(of.shape) != _api(shape) and not of.guessed) or not (len(of.turns) == len(dialog) or "system" in of.lost):
        return False
    if not dialog or not of.turns:
        return True
    last, now = blinded(of.turns[-1].text), blinded(dialog[-1].text)
    return _same_text(last, now) or (is_masked(last) and may_be_hidden(last, now))


def _api(name: str) -> str:
    shape = shape_named(name)
    return (shape.api or shape.name) if shape is not None else name


def compared(of: PartialQuestion, asked: Asked, shape: str) -> Compared:
    """Hold a live question against what was kept of a recorded one."""
    comparison = Compared()
    is_other = _api(of.shape) != _api(shape)
    if is_other and not of.guessed:
        comparison.differs.append(FieldDifference(path="api", a=of.shape, b=shape))
        return comparison
    _model(of, asked, comparison)
    if of.asked.inputs or asked.inputs:
        inputs: tuple[Json, Json] = [*of.asked.inputs], [*asked.inputs]
        comparison.differs += differences(*inputs, "body.input")
    _turns(of.turns, turns(asked.messages), of, comparison)
    _tools(of, asked, comparison)
    if is_other:
        _parameters_elsewhere(of, asked, comparison)
    else:
        _parameters(of, asked, comparison)
    return comparison


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Read a conversation as it is compared: instructions in one, and a model's words and calls in one."""
    conversation: list[Turn] = []
    system: list[str] = []
    for place, message in enumerate(messages):
        turn = _turn(message, place)
        if turn.role == "system":
            system.append(turn.text)
        elif turn.role == "assistant" and conversation and conversation[-1].role == "assistant":
            conversation[-1] = _together(conversation[-1], turn)
        else:
            conversation.append(turn)
    head = (Turn(role="system", text="\n".join(system)),) if system else ()
    return (*head, *conversation)


def _together(a: Turn, b: Turn) -> Turn:
    text = "\n".join(text for text in (a.text, b.text) if text)
    return Turn(
        role=a.role,
        text=text,
        calls=(*a.calls, *b.calls),
        media=(*a.media, *b.media),
        rest=(*a.rest, *b.rest),
        place=a.place,
    )


def _turn(message: Message, place: int) -> Turn:
    role = _ROLES.get(message.role.lower(), message.role.lower())
    parts = message.parts
    return Turn(
        role="tool" if message.tool_call_id is not None and role == "user" else role,
        text="\n".join(part.text for part in parts if isinstance(part, Text)),
        calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        answers=message.tool_call_id,
        media=tuple(part for part in parts if isinstance(part, Media)),
        rest=tuple(part.json for part in parts if isinstance(part, Opaque)),
        place=place,
    )


def _model(of: PartialQuestion, asked: Asked, comparison: Compared) -> None:
    recorded, now = of.asked.model, asked.model
    if recorded == now:
        return
    difference = FieldDifference(
        path="body.model", a=ABSENT if recorded is None else recorded, b=ABSENT if now is None else now
    )
    unkept = recorded is None and not of.whole
    renamed = _bare(recorded or "") == _bare(now or "") or ("model" in of.lost and _resolves(now or "", recorded or ""))
    (comparison.ignored if unkept or (recorded and now and renamed) else comparison.differs).append(difference)


def _bare(model: str) -> str:
    """Take off what gateways put before a model's name: `openai/`, `models/`."""
    return model.rpartition("/")[2]


def _resolves(asked: str, answered: str) -> bool:
    """Tell whether a provider may answer to one name of a model by the other: `gpt-4o` by `gpt-4o-2024-08-06`."""
    short, full = _bare(asked).removesuffix("-latest"), _bare(answered)
    return full.startswith(short) and (full == short or _VERSION.match(full, len(short)) is not None)


def _turns(recorded: Sequence[Turn], now: Sequence[Turn], of: PartialQuestion, comparison: Compared) -> None:
    if "system" in of.lost and recorded and now and recorded[0].role != "system" == now[0].role:
        comparison.ignored.append(FieldDifference(path="body.messages[0]", a=ABSENT, b=now[0].text))
        now = now[1:]
    for number in range(max(len(recorded), len(now))):
        if number >= len(recorded) or number >= len(now):
            there = number < len(recorded)
            turn = recorded[number] if there else now[number]
            a, b = (_turn_document(turn), ABSENT) if there else (ABSENT, _turn_document(turn))
            comparison.differs.append(FieldDifference(path=f"body.messages[{turn.place}]", a=a, b=b))
        else:
            _of_turn(recorded[number], now[number], comparison)


def _turn_document(turn: Turn) -> Json:
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    return {"role": turn.role, "content": turn.text, **({"tool_calls": calls} if calls else {})}


def _of_turn(a: Turn, b: Turn, comparison: Compared) -> None:
    path = f"body.messages[{b.place}]"
    if a.role != b.role:
        comparison.differs.append(FieldDifference(path=f"{path}.role", a=a.role, b=b.role))
    if a.answers and b.answers and a.answers != b.answers and not b.answers.startswith(MADE_ID):
        comparison.differs.append(FieldDifference(path=f"{path}.tool_call_id", a=a.answers, b=b.answers))
    if not _same_text(a.text, b.text):
        (comparison.ignored if _hidden(a.text, b.text) else comparison.differs).append(
            FieldDifference(path=f"{path}.content", a=a.text, b=b.text)
        )
    for number in range(max(len(a.calls), len(b.calls))):
        inner = f"{path}.tool_calls[{number}]"
        if number >= len(a.calls) or number >= len(b.calls):
            sides = [[call.name for call in turn.calls] for turn in (a, b)]
            comparison.differs.append(FieldDifference(path=f"{path}.tool_calls", a=[*sides[0]], b=[*sides[1]]))
            break
        comparison.differs += _of_call(a.calls[number], b.calls[number], inner)
    _of_media(a, b, path, comparison)
    for json in b.rest[len(a.rest) :]:
        kind = "a field that this version does not know" if "type" not in as_object(json) else "content"
        piece = FieldDifference(path=f"{path}.{kind}", a=ABSENT, b=json)
        (comparison.differs if "type" in as_object(json) else comparison.ignored).append(piece)


def _hidden(recorded: str, now: str) -> bool:
    """Tell that a text differs where its emitter hid something, and nowhere else."""
    return any(mark in recorded for mark in _REDACTED) or (is_masked(recorded) and may_be_hidden(recorded, now))


def _same_text(a: str, b: str) -> bool:
    if a == b:
        return True
    if a.split() == b.split():  # pieces are joined by one emitter with lines, by another with nothing
        return True
    read = parsed_or_none(a), parsed_or_none(b)
    return isinstance(read[0], dict | list) and isinstance(read[1], dict | list) and equal(read[0], read[1])


def _of_call(a: ToolCall, b: ToolCall, path: str) -> Iterator[FieldDifference]:
    if a.name != b.name:
        yield FieldDifference(path=f"{path}.function.name", a=a.name, b=b.name)
    if a.id and b.id and a.id != b.id and not b.id.startswith(MADE_ID):
        yield FieldDifference(path=f"{path}.id", a=a.id, b=b.id)
    if a.arguments != b.arguments:
        read: tuple[Json, Json] = _read(a.arguments), _read(b.arguments)
        if not equal(*read):
            yield FieldDifference(path=f"{path}.function.arguments", a=read[0], b=read[1])


def _read(arguments: str) -> Json:
    read = parsed_or_none(arguments or "{}")
    return arguments if read is None else read


def _of_media(a: Turn, b: Turn, path: str, comparison: Compared) -> None:
    for number, media in enumerate(b.media):
        inner = f"{path}.{media.modality}"
        if (
            number >= len(a.media)
            or not a.media[number].url
            or a.media[number].url in _REDACTED
            or is_masked(a.media[number].url)
        ):
            comparison.ignored.append(FieldDifference(path=inner, a=ABSENT, b=media.modality))
        elif a.media[number].url != media.url:
            comparison.differs.append(FieldDifference(path=inner, a=a.media[number].url, b=media.url))
    for media in a.media[len(b.media) :]:
        comparison.differs.append(FieldDifference(path=f"{path}.{media.modality}", a=media.url, b=ABSENT))


def _tools(of: PartialQuestion, asked: Asked, comparison: Compared) -> None:
    recorded, now = _by_name(of.asked.tools), _by_name(asked.tools)
    if "tools" in of.lost or (not recorded and not of.whole):
        if now:
            comparison.ignored.append(FieldDifference(path="body.tools", a=ABSENT, b=[*now]))
        return
    if recorded.keys() != now.keys():
        comparison.differs.append(FieldDifference(path="body.tools", a=[*recorded], b=[*now]))
        return
    for name, (description, schema) in recorded.items():
        live_tool = now[name]
        for what, a, b in (("description", description, live_tool[0]), ("parameters", schema, live_tool[1])):
            if a is None and b is not None and not of.whole:
                comparison.ignored.append(FieldDifference(path=f"body.tools.{name}.{what}", a=ABSENT, b=b))
            elif not equal(a, b) and not (isinstance(a, str) and isinstance(b, str) and a.split() == b.split()):
                comparison.differs.append(FieldDifference(path=f"body.tools.{name}.{what}", a=a, b=b))


def _by_name(tools: Sequence[Json]) -> dict[str, tuple[Json, Json]]:
    """Read tools as name to description and schema, from whichever provider's spelling."""
    tools_by_name: dict[str, tuple[Json, Json]] = {}
    for tool in tools:
        inner = at(tool, "function")
        spec = at(tool, "toolSpec")
        offer = as_object(inner if isinstance(inner, dict) else spec if isinstance(spec, dict) else tool)
        name = as_text(offer.get("name")) or as_text(offer.get("type")) or (tool if isinstance(tool, str) else "")
        schema = next((offer[key] for key in _SCHEMAS if key in offer), None)
        schema = schema["json"] if isinstance(schema, dict) and schema.keys() == {"json"} else schema
        schema = _read(schema) if isinstance(schema, str) else schema
        schema = without(schema, ("$schema",)) if isinstance(schema, dict) else schema  # which draft, and no more
        tools_by_name[name] = (offer.get("description") or None, schema)
    return tools_by_name


def _parameters(of: PartialQuestion, asked: Asked, comparison: Compared) -> None:
    recorded, now = _emitter_parameters(of.asked), _emitter_parameters(asked)
    for name in [*recorded, *(name for name in now if name not in recorded)]:
        a, b = recorded.get(name), now.get(name)
        if equal(a, b):
            continue
        difference = FieldDifference(path=f"body.{name}", a=ABSENT if a is None else a, b=ABSENT if b is None else b)
        default = name in _DEFAULTS and equal(_DEFAULTS[name] if a is None else a, _DEFAULTS[name] if b is None else b)
        unkept = name not in recorded and not of.whole
        (comparison.ignored if default or unkept or name in of.lost else comparison.differs).append(difference)


def _parameters_elsewhere(of: PartialQuestion, asked: Asked, comparison: Compared) -> None:
    """Compare what an emitter wrote down with the parameters of an API that it did not name, where both have a name."""
    recorded, now = _emitter_parameters(of.asked), _emitter_parameters(asked)
    for group in _GROUPS:
        now |= {_ALIASES.get(name, name): value for name, value in as_object(now.get(group)).items()}
    for name, value in recorded.items():
        live_value = now.get(name)
        if not equal(value, live_value):
            difference = FieldDifference(path=f"body.{name}", a=value, b=ABSENT if live_value is None else live_value)
            (comparison.ignored if live_value is None else comparison.differs).append(difference)


def _emitter_parameters(asked: Asked) -> dict[str, Json]:
    """Give a request's parameters by the names that emitters use; one that is null was not given."""
    return {
        _ALIASES.get(name, name): [value] if name == "stop" and isinstance(value, str) else value
        for name, value in asked.parameters.items()
        if name not in _NO_PARAMETERS and value is not None
    }


def equal(a: Json, b: Json) -> bool:
    """Tell whether two values are one as JSON has it, where 1 and 1.0 are one and 1 and true are two."""
    if a == b and canonical(a) == canonical(b):
        return True
    return canonical(_level(a)) == canonical(_level(b))


def _level(value: Json) -> Json:
    """Spell whole numbers alike."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_level(item) for item in value]
    if isinstance(value, dict):
        return {key: _level(item) for key, item in value.items()}
    return value
