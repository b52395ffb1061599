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
    source = _read(value)
    if isinstance(source, dict):
        by_name = source and all(isinstance(item, dict) for item in source.values())
        items = [{"name": name, **as_object(item)} for name, item in source.items()] if by_name else [source]
        return tuple(tool for item in items for tool in _tool(item))
    return tuple(tool for item in as_list(source) for tool in _tool(_read(item)))


def _read(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    parsed = parsed_or_none(value)
    return value if parsed is None else parsed


def _tool(definition: Json) -> list[Json]:
    fields = as_object(definition)
    for name in ("functionDeclarations", "function_declarations"):  # Gemini holds several in one
        if isinstance(several := fields.get(name), list):
            rest = without(fields, (name,))
            return [*(tool for item in several for tool in _tool(item)), *([rest] if any(rest.values()) else [])]
    if isinstance(spec := fields.get("toolSpec"), dict):  # Bedrock
        return _tool({**without(fields, ("toolSpec",)), **spec})
    if isinstance(fields.get("function"), dict):
        return [{"type": "function", **fields}]
    has_name = isinstance(fields.get("name"), str)
    schema = next((name for name in _SCHEMAS if name in fields), "")
    if not has_name or (
        fields.get("type", "function") not in ("function", "custom", None) or not (schema or "type" in fields)
    ):
        return [definition]
    function: dict[str, Json] = {"name": fields["name"]}
    function |= {name: fields[name] for name in ("description", "strict") if fields.get(name) is not None}
    if schema:
        parameters = _read(fields[schema])
        inner = as_object(parameters)
        function["parameters"] = inner["json"] if set(inner) == {"json"} else parameters
    return [{"type": "function", "function": function, **without(fields, _KNOWN)}]
