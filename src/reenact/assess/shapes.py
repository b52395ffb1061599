"""Whether arguments have the shape that was written down, or that the model was shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never, cast

from reenact.assess.assertion_text import calls as spelled_calls
from reenact.assess.calls import CallView, Lost
from reenact.assess.plain_values import unstable
from reenact.assess.truth import TOKEN, same
from reenact.assess.view import Assessment, View, failing, holding, matches, none_of, undecided, with_values
from reenact.errors import UsageError
from reenact.values.assertion import (
    ArgumentsAre,
    ArgumentsFit,
    Calls,
    Exactly,
    ListOf,
    OneOf,
    Record,
    Shape,
    Simple,
)
from reenact.values.automaton import PatternRefused, TooHard, automaton
from reenact.values.difference import Absent, short_json
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.message import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "list": (list,),
}


class _Redacted(Exception):
    """A value was met that redaction replaced."""


def arguments_are(assertion: ArgumentsAre, view: View) -> Assessment:
    """Decide whether the arguments of each call have a shape."""
    return _each(assertion.calls, view, lambda _, value: next(misfits(value, assertion.shape, "arguments"), ""))


def arguments_fit(assertion: ArgumentsFit, view: View) -> Assessment:
    """Decide whether the arguments of each call are valid by the schema that the model was shown."""
    schemas = _Schemas(view)
    return _each(assertion.calls, view, schemas.misfit)


def _each(calls: Calls, view: View, misfit: Callable[[CallView, Json], str | Lost]) -> Assessment:
    hits = matches(calls, view.calls)
    unknown: Assessment | None = None
    for each in hits.sure:
        wrong = _judged(each, misfit)
        if isinstance(wrong, Lost):
            unknown = unknown or undecided(f"{each.label}: {wrong.why}", [each])
        elif wrong:
            return failing(f"{each.label}: {wrong}", [each])
    for each, why in hits.unsure:
        if _judged(each, misfit) != "":
            unknown = unknown or undecided(f"{with_values(each, calls.where)}: {why}", [each])
    if unknown is not None:
        return unknown
    if why := view.open(calls):
        return undecided(f"so in {len(hits.sure)} calls so far; {why}", hits.sure)
    if not hits.sure:
        return holding(none_of(calls, hits))
    return holding(f"so in {len(hits.sure)} call{'s'[: len(hits.sure) != 1]} of {spelled_calls(calls)}", hits.sure)


def _judged(each: CallView, misfit: Callable[[CallView, Json], str | Lost]) -> str | Lost:
    value = each.arguments
    if isinstance(value, Lost):
        return value
    if isinstance(value, Absent):
        return "it has no arguments"
    if unstable(value):
        return Lost(f"{short_json(value)} could not be written down as data")
    try:
        return misfit(each, value)
    except _Redacted as redacted:
        return Lost(f"redaction replaced {redacted}")


def misfits(value: Json, shape: Shape, where: str) -> Iterator[str]:
    """Say in what `value` does not have a shape, place by place; nothing where it has."""
    match shape:
        case Simple(name=name):
            if not _is(value, name):
                yield f"{where} = {short_json(value, 80)} is no {name}"
        case Exactly(value=wanted):
            yield from _other(value, wanted, where)
        case ListOf(item=item):
            yield from _items(value, item, where)
        case OneOf(options=options):
            if all(next(misfits(value, option, where), "") for option in options):
                yield f"{where} = {short_json(value, 80)} fits none of {len(options)} types"
        case Record():
            yield from _record(value, shape, where)
        case _:
            assert_never(shape)


def _other(value: Json, wanted: Json, where: str) -> Iterator[str]:
    if same(value, wanted):
        return
    if isinstance(value, str) and TOKEN.search(value):
        raise _Redacted(where)
    yield f"{where} = {short_json(value, 80)} is not {short_json(wanted)}"


def _items(value: Json, item: Shape, where: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{where} = {short_json(value, 80)} is no list"
        return
    for place, each in enumerate(value):
        yield from misfits(each, item, f"{where}[{place}]")


def _record(value: Json, shape: Record, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} = {short_json(value, 80)} is no object"
        return
    begins = "" if where == "arguments" else f"{where}."
    for field in shape.fields:
        if field.name in value:
            yield from misfits(value[field.name], field.shape, f"{begins}{field.name}")
        elif not field.optional:
            yield f"{begins}{field.name} is absent"
    names = {field.name for field in shape.fields}
    if not shape.more and (extra := [name for name in value if name not in names]):
        yield f"{begins}{extra[0]} = {short_json(value[extra[0]], 80)} was not expected"


def _is(value: Json, name: str) -> bool:
    if name == "any":
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


class _Validator(Protocol):
    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


class _Schemas:
    """The schemas that models were shown, by tool."""

    def __init__(self, view: View) -> None:
        self._offers = [
            (each.node, {name: schema for tool in each.asked.tools for name, schema in offered(tool)})
            for each in view.calls
            if each.word == "llm" and each.wanted is None and each.asked is not None
        ]
        self._validators: dict[int, _Validator] = {}
        self._arguments_by_call = {
            (each.node.id, part.id): part.arguments
            for each in view.calls
            if each.word == "llm" and each.wanted is None and each.answered is not None
            for message in each.answered.messages
            for part in message.parts
            if isinstance(part, ToolCall) and part.id
        }

    def misfit(self, each: CallView, value: Json) -> str | Lost:
        """Say in what arguments are not valid by the schema shown last before the call, nothing where they are.

        A schema is a promise about what the model writes, so that is what is judged where it is known; the function
        behind it may take defaults besides, or all of it as one.
        """
        schema = self._schema(each)
        if each.wanted is None and each.node.caused_by and each.node.tool_call_id:
            text = self._arguments_by_call.get((each.node.caused_by, each.node.tool_call_id))
            wrote = parsed_or_none(text or "{}") if text is not None else value
            if wrote is None:
                return f"{each.label}: the model wrote arguments that are no JSON: {short_json(text)}"
            value = wrote
        if schema is None:
            return Lost("no model was shown a schema of it before, as far as is recorded")
        validator = self._validators.get(id(schema))
        if validator is None:
            validator = self._validators[id(schema)] = _validator(schema)
        try:
            error = next(iter(validator.iter_errors(value)), None)
        except (TooHard, PatternRefused, RecursionError) as refused:
            return Lost(f"its schema cannot be held against arguments: {str(refused)[:200] or 'it takes too long'}")
        except Exception as refused:  # noqa: BLE001 - a schema of a trace may be none, or refer to what is not there
            return Lost(f"its schema is none that can be held against arguments: {str(refused)[:200]}")
        if error is None:
            return ""
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        if TOKEN.search(short_json(cast("Json", error.instance), 10_000)):
            raise _Redacted(where.removeprefix(".") or "its arguments")
        detail = str(error.message)
        return f"{where.removeprefix('.') or 'arguments'}: {detail if len(detail) < 300 else detail[:300] + ' …'}"

    def _schema(self, each: CallView) -> Json:
        if each.wanted is None and each.node.caused_by:
            for node, schemas in self._offers:
                if node.id == each.node.caused_by and each.name in schemas:
                    return schemas[each.name]
        earlier = [
            schemas[each.name]
            for node, schemas in self._offers
            if each.name in schemas and node.number <= each.node.number
        ]
        return earlier[-1] if earlier else None


def offered(tool: Json) -> Iterator[tuple[str, Json]]:
    """Read name and schema of what a model is offered, in whichever provider's spelling."""
    description = as_object(tool)
    for spelled in (description, as_object(description.get("function"))):
        schema = next((spelled[key] for key in ("parameters", "input_schema", "inputSchema") if key in spelled), None)
        if isinstance(name := spelled.get("name"), str) and isinstance(schema, dict):
            yield name, as_object(schema.get("json")) or schema  # Bedrock's stands below `json`
    if isinstance(spec := description.get("toolSpec"), dict):
        yield from offered(spec)
    for inner in as_list(description.get("functionDeclarations")):
        yield from offered(inner)


_MOST_REFERENCES = 10_000
"""So many references of one schema are followed: those of a few lines can double forty times."""


def _validator(schema: Json) -> _Validator:
    """Make what judges by a schema, which a trace has brought: nothing is fetched, and nothing takes for ever."""
    try:
        from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped, unused-ignore]  # an extra, and without types
        from referencing import Registry  # comes with jsonschema
    except ImportError:
        raise UsageError(
            "`arguments of … fit its schema` needs the package jsonschema", hint="pip install 'reenact[schema]'"
        ) from None
    from jsonschema import Draft202012Validator

    json_schema: Any = schema
    kind: Any = validator_for(json_schema, default=Draft202012Validator)
    left = _MOST_REFERENCES

    def referred(validator: Any, to: Any, instance: Any, within: Any) -> Iterator[Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooHard
        yield from kind.VALIDATORS["$ref"](validator, to, instance, within) or ()

    keywords = {"$ref": referred, "pattern": _pattern, "patternProperties": _named_by, "additionalProperties": _others}
    if "unevaluatedProperties" in kind.VALIDATORS:
        keywords["unevaluatedProperties"] = _unevaluated(kind.VALIDATORS["unevaluatedProperties"], json_schema)
    registry: Any = cast("Any", Registry)()  # of nothing: what a schema refers to elsewhere is not asked for
    return cast("_Validator", extend(kind, keywords)(json_schema, registry=registry))


def _pattern(validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(instance, "string") and not automaton(str(pattern)).search(instance):
        yield ValidationError(f"{short_json(instance, 80)} does not match {pattern!r}")


def _named_by(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, below in patterns.items():
            for name, item in instance.items():
                if automaton(pattern).search(name):
                    yield from validator.descend(item, below, path=name, schema_path=pattern)


def _others(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not validator.is_type(instance, "object"):
        return
    patterns = [automaton(pattern) for pattern in schema.get("patternProperties", {})]
    properties = schema.get("properties", {})
    others = [name for name in instance if name not in properties and not any(each.search(name) for each in patterns)]
    if validator.is_type(below, "object"):
        for name in others:
            yield from validator.descend(instance[name], below, path=name)
    elif below is False and others:
        extra_names = ", ".join(short_json(name, 80) for name in others)
        yield ValidationError(f"{extra_names} {'was' if len(others) == 1 else 'were'} not expected")


def _unevaluated(plain: Any, whole: Json) -> Any:
    def judged(validator: Any, below: Any, instance: Any, schema: Any) -> Any:
        if "patternProperties" in compact(whole):
            raise PatternRefused("unevaluatedProperties beside patternProperties is not judged")
        return plain(validator, below, instance, schema)

    return judged
