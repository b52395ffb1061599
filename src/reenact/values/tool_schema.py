"""A tool's definition in any spelling, brought to one: OpenAI's nested `{"type": "function", "function": {…}}`."""

from __future__ import annotations

from typing import Final

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, without

_SCHEMAS: Final = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "schema",
)
_KNOWN: Final = frozenset({"type", "name", "description", "strict", *_SCHEMAS})


def tools(value: Json) -> tuple[Json, ...]:
    """Read a list of definitions, or one, or a mapping of name to definition; JSON texts among them are read.

    Functions of every spelling come out nested as OpenAI's chat completions have it. A tool that the provider runs
    itself, and what is no tool at all, stays as it came. Never raises.
    """
    given = _read(value)
    if isinstance(given, dict):
        named = given and all(isinstance(item, dict) for item in given.values())
        items = [{"name": name, **as_object(item)} for name, item in given.items()] if named else [given]
        return tuple(tool for item in items for tool in _tool(item))
    return tuple(tool for item in as_list(given) for tool in _tool(_read(item)))


def _read(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    parsed = parsed_or_none(value)
    return value if parsed is None else parsed


def _tool(definition: Json) -> list[Json]:
    held = as_object(definition)
    for name in ("functionDeclarations", "function_declarations"):  # Gemini holds several in one
        if isinstance(several := held.get(name), list):
            rest = without(held, (name,))
            return [*(tool for item in several for tool in _tool(item)), *([rest] if any(rest.values()) else [])]
    if isinstance(spec := held.get("toolSpec"), dict):  # Bedrock
        return _tool({**without(held, ("toolSpec",)), **spec})
    if isinstance(held.get("function"), dict):
        return [{"type": "function", **held}]
    named = isinstance(held.get("name"), str)
    schema = next((name for name in _SCHEMAS if name in held), "")
    if not named or (
        held.get("type", "function") not in ("function", "custom", None) or not (schema or "type" in held)
    ):
        return [definition]
    function: dict[str, Json] = {"name": held["name"]}
    function |= {name: held[name] for name in ("description", "strict") if held.get(name) is not None}
    if schema:
        told = _read(held[schema])
        inner = as_object(told)
        function["parameters"] = inner["json"] if set(inner) == {"json"} else told
    return [{"type": "function", "function": function, **without(held, _KNOWN)}]
