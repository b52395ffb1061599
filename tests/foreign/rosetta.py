"""One exchange that many vendors' emitters wrote down, read from each of their files: what is equal, what is lost.

`python tests/foreign/rosetta.py [FOLDER]` prints the table. What was really said is taken from the files that keep the
provider's bodies whole; whether an emitter lost a value is judged by its own file: a value that stands nowhere in it,
after JSON inside of JSON (and Python's spelling of it) is unpacked, was lost there. All else is ours to find.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.boundary.reading import answered, asked
from reenact.find.sources import find
from reenact.stores.directory import DirectoryStore
from reenact.values.call import CallKind, FunctionCall, Returned, Value
from reenact.values.json import Json, canonical, compact, parsed_or_none
from reenact.values.message import Answered, Asked, Message, Text, ToolCall
from reenact.values.run import Node, Run

EQUAL, AT_EMITTER, BY_US = "=", "–", "LOST BY US"
FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "traces" / "rosetta"
_DEEPEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What was asked and answered, as two model calls and the tool calls between them have it."""

    model: str
    resolved: str
    system: str
    question: str
    tool: str
    description: str
    schema: dict[str, Any]
    tool_choice: Any
    ids: tuple[str, ...]
    arguments: tuple[dict[str, Any], ...]
    results: tuple[str, ...]
    answer: str
    replies: tuple[str, ...]
    session: str
    user: str
    usage: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Reading:
    """What we make of one file."""

    runs: list[Run]
    models: list[Node] = field(default_factory=list[Node])
    tools: list[Node] = field(default_factory=list[Node])

    @property
    def asked(self) -> list[Asked]:
        """What each model call asked."""
        return [question for node in self.models if (question := asked(node)) is not None]

    @property
    def answered(self) -> list[Answered]:
        """What each was answered."""
        return [reply for node in self.models if (reply := answered(node)) is not None]


def files(folder: Path = FOLDER) -> list[Path]:
    """List the files, one for each emitter; a file of logs belongs to the spans beside it."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and ".logs." not in path.name]


def read(path: Path) -> Reading:
    """Read a file as any command does: the one run that `reenact show FILE` shows."""
    found = Reading([find(str(path), DirectoryStore(path.parent / "no-store")).run])
    nodes = [node for run in found.runs for node in run.nodes]
    found.models = [node for node in nodes if node.kind is CallKind.LLM and asked(node) is not None]
    found.tools = [node for node in nodes if node.kind is CallKind.TOOL]
    return found


def exchange(folder: Path = FOLDER) -> Exchange:
    """Read what was said from the file whose emitter keeps the bodies whole."""
    found = read(folder / "openinference.otlp.jsonl")
    first, last = found.asked[0], found.asked[-1]
    replies = found.answered
    function = first.tools[0]["function"]  # type: ignore[index,call-overload]
    calls = [part for message in replies[0].messages for part in message.parts if isinstance(part, ToolCall)]
    run = found.runs[0]
    return Exchange(
        model=first.model or "",
        resolved=replies[0].model or "",
        system=_said(first, "system"),
        question=_said(first, "user"),
        tool=calls[0].name,
        description=function["description"],
        schema=function["parameters"],
        tool_choice=first.parameters["tool_choice"],
        ids=tuple(call.id for call in calls),
        arguments=tuple(json.loads(call.arguments) for call in calls),
        results=tuple(_text(message) for message in last.messages if message.role == "tool"),
        answer=_text(replies[-1].messages[0]),
        replies=tuple(reply.id or "" for reply in replies),
        session=run.session or "",
        user=run.user or "",
        usage=tuple((reply.usage.prompt or 0, reply.usage.completion or 0) for reply in replies),
    )


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _said(question: Asked, role: str) -> str:
    roles = {role, "developer"} if role == "system" else {role}
    return "\n".join(_text(message) for message in question.messages if message.role in roles)


def _function(question: Asked) -> dict[str, Any]:
    tool: Any = question.tools[0] if question.tools else {}
    return tool.get("function", tool) if isinstance(tool, dict) else {}


def _calls(reply: Answered) -> list[ToolCall]:
    return [part for message in reply.messages for part in message.parts if isinstance(part, ToolCall)]


def _results(reading: Reading) -> list[str]:
    return [
        node.outcome.payload.json if isinstance(node.outcome.payload.json, str) else compact(node.outcome.payload.json)
        for node in reading.tools
        if isinstance(node.outcome, Returned) and isinstance(node.outcome.payload, Value)
    ]


def _tool_arguments(reading: Reading) -> list[Json]:
    return [node.call.request.arguments for node in reading.tools if isinstance(node.call.request, FunctionCall)]


def _holds(schema: Any, truth: dict[str, Any]) -> bool:
    """Tell whether a schema says all that the sent one does; a framework that made its own has the same properties."""
    if not isinstance(schema, dict):
        return False
    said = all(canonical(schema.get(key)) == canonical(value) for key, value in truth.items())
    properties = schema.get("properties")
    return said or (isinstance(properties, dict) and properties.keys() == truth["properties"].keys())


Check = Callable[[Reading, Exchange], bool]
Raw = Callable[["Leaves", Exchange], bool]


@dataclass(slots=True)
class Leaves:
    """Every text and number in a file, JSON and Python literals inside of texts unpacked."""

    texts: set[str] = field(default_factory=set[str])
    numbers: set[float] = field(default_factory=set[float])
    written: str = ""
    """The whole file without a backslash, for what is said by a key and a value near to it."""

    def chose(self, choice: str) -> bool:
        """Tell whether a choice of tools stands behind its name."""
        near = rf"tool_?choice(?:\W|value|stringValue|type){{1,60}}{re.escape(choice)}\b"
        return re.search(near, self.written, re.IGNORECASE) is not None

    def holds(self, *values: str) -> bool:
        """Tell whether each value stands in some text."""
        return all(any(value in text for text in self.texts) for value in values)

    def is_there(self, value: str) -> bool:
        """Tell whether a text is just this value."""
        return value in self.texts


def leaves(path: Path) -> Leaves:
    """Take a file apart, and the logs beside it."""
    found = Leaves()
    beside = path.with_name(path.name.replace(".otlp.jsonl", ".otlp.logs.jsonl"))
    for each in {path, beside}:
        if each.exists():
            data = each.read_bytes()
            text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
            found.written += text.replace("\\", "")
            for document in _documents(text):
                _walk(document, found, 0)
    return found


def _documents(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except ValueError:
        for line in text.splitlines():
            if line.strip():
                yield json.loads(line)


def _walk(value: Any, found: Leaves, depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            found.texts.add(str(name))
            _walk(item, found, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _walk(item, found, depth + 1)
    elif isinstance(value, str):
        found.texts.add(value)
        inner = _unpacked(value)
        if inner is not None:
            _walk(inner, found, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.numbers.add(value)


def _unpacked(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in tuple('{["') and not re.fullmatch(r"-?\d+(\.\d+)?", stripped):
        return None
    try:
        return json.loads(stripped)
    except ValueError:
        pass
    try:
        return ast.literal_eval(stripped)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _described(reading: Reading) -> list[Any]:
    """Give the descriptions that stand on the tools' own spans."""
    names = ("tool.description", "gen_ai.tool.description")
    return [node.call.attributes[name] for node in reading.tools for name in names if name in node.call.attributes]


FIELDS: dict[str, tuple[Check, Raw]] = {
    "system prompt": (
        lambda r, x: bool(r.asked) and _said(r.asked[0], "system") == x.system,
        lambda raw, x: raw.holds(x.system),
    ),
    "question": (
        lambda r, x: bool(r.asked) and _said(r.asked[0], "user") == x.question,
        lambda raw, x: raw.holds(x.question),
    ),
    "tool description": (
        lambda r, x: bool(r.asked) and x.description in (_function(r.asked[0]).get("description"), *_described(r)),
        lambda raw, x: raw.holds(x.description),
    ),
    "tool schema": (
        lambda r, x: (
            bool(r.asked)
            and any(_holds(said, x.schema) for said in (_function(r.asked[0]).get("parameters"), *_schemas(r)))
        ),
        lambda raw, x: re.search(rf"properties\W{{1,12}}{next(iter(x.schema['properties']))}", raw.written) is not None,
    ),
    "tool_choice": (
        lambda r, x: (
            bool(r.asked) and r.asked[0].parameters.get("tool_choice") in (x.tool_choice, {"type": x.tool_choice})
        ),
        lambda raw, x: bool(raw.chose(x.tool_choice)),
    ),
    "asked model": (
        lambda r, x: [question.model for question in r.asked] == [x.model] * len(x.replies),
        lambda raw, x: raw.is_there(x.model),
    ),
    "resolved model": (
        lambda r, x: [reply.model for reply in r.answered] == [x.resolved] * len(x.replies),
        lambda raw, x: raw.is_there(x.resolved),
    ),
    "call ids": (
        lambda r, x: bool(r.answered) and tuple(call.id for call in _calls(r.answered[0])) == x.ids,
        lambda raw, x: raw.holds(*x.ids),
    ),
    "arguments": (
        lambda r, x: (
            bool(r.answered) and [parsed_or_none(call.arguments) for call in _calls(r.answered[0])] == [*x.arguments]
        ),
        lambda raw, x: raw.holds(*(str(value) for each in x.arguments for value in each.values())),
    ),
    "results": (
        lambda r, x: (
            sorted(_results(r)) == sorted(x.results)
            and tuple(_text(m) for m in r.asked[-1].messages if m.role == "tool") == x.results
        ),
        lambda raw, x: raw.holds(*x.results),
    ),
    "tool calls": (
        lambda r, x: sorted(map(canonical, _tool_arguments(r))) == sorted(map(canonical, x.arguments)),
        lambda raw, x: raw.holds(*(str(value) for each in x.arguments for value in each.values())),
    ),
    "answer": (
        lambda r, x: (
            bool(r.answered) and bool(r.answered[-1].messages) and _text(r.answered[-1].messages[-1]) == x.answer
        ),
        lambda raw, x: raw.holds(x.answer),
    ),
    "reply ids": (
        lambda r, x: tuple(reply.id or "" for reply in r.answered) == x.replies,
        lambda raw, x: raw.holds(*x.replies),
    ),
    "session": (
        lambda r, x: any(run.session == x.session for run in r.runs),
        lambda raw, x: raw.holds(x.session),
    ),
    "user": (lambda r, x: any(run.user == x.user for run in r.runs), lambda raw, x: raw.holds(x.user)),
    "parameters": (
        lambda r, x: all(_sent(question, x) for question in r.asked),
        lambda *_: True,
    ),
    "usage": (
        lambda r, x: tuple((reply.usage.prompt, reply.usage.completion) for reply in r.answered) == x.usage,
        lambda raw, x: all(count in raw.numbers for pair in x.usage for count in pair),
    ),
}


def _sent(question: Asked, truth: Exchange) -> bool:
    """Tell whether nothing stands among the parameters that was not sent."""
    known = {"model": truth.model, "tool_choice": truth.tool_choice, "stream": False}
    return all(name in known for name, value in question.parameters.items() if value is not None)


def _schemas(reading: Reading) -> list[Any]:
    names = ("tool.json_schema", "gen_ai.tool.json_schema", "tool.parameters")
    held = [node.call.attributes[name] for node in reading.tools for name in names if name in node.call.attributes]
    read = [parsed_or_none(schema) if isinstance(schema, str) else schema for schema in held]
    return [schema.get("json", schema) for schema in read if isinstance(schema, dict)]


def table(folder: Path = FOLDER) -> dict[str, dict[str, str]]:
    """Judge every field of every file."""
    truth = exchange(folder)
    found: dict[str, dict[str, str]] = {}
    for path in files(folder):
        reading, raw = read(path), leaves(path)
        found[path.name] = {name: cell(reading, raw, truth, *how) for name, how in FIELDS.items()}
    return found


def cell(reading: Reading, raw: Leaves, truth: Exchange, is_equal: Check, is_there: Raw) -> str:
    """Judge one field of one file."""
    if is_equal(reading, truth):
        return EQUAL
    return BY_US if is_there(raw, truth) else AT_EMITTER


def printed(found: dict[str, dict[str, str]]) -> Iterator[str]:
    """Spell the table in Markdown."""
    yield "| file | " + " | ".join(FIELDS) + " |"
    yield "|---|" + "---|" * len(FIELDS)
    for name, cells in found.items():
        yield f"| {name} | " + " | ".join(cells[each] for each in FIELDS) + " |"
    counts = {
        mark: sum(cells[each] == mark for cells in found.values() for each in FIELDS)
        for mark in (EQUAL, AT_EMITTER, BY_US)
    }
    yield ""
    yield f"{counts[EQUAL]} equal, {counts[AT_EMITTER]} lost at the emitter, {counts[BY_US]} lost by us"


if __name__ == "__main__":
    sys.stdout.write("\n".join(printed(table(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))) + "\n")
