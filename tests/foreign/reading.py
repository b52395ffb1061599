"""What is read from each real trace: calls, messages, tools, and what the spans that give none of these hold.

`python tests/foreign/reading.py FILE…` prints the table. A call of a model without messages, or of a tool without a
result, is explained where its span holds nothing that could be one; else it is ours to read, and printed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from reenact.boundary.question import shape_named
from reenact.errors import ReenactError
from reenact.graph.build import interpret
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import Call, CallKind, HttpReply, HttpRequest, Outcome, Raised, Returned, Unfinished
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list
from reenact.values.message import Message, Opaque
from reenact.values.span import SpanRecord

_SAYS = re.compile(
    r"gen_ai\.(input|output)\.messages$|gen_ai\.(prompt|completion)($|\.\d+\.(content|user|tool_calls))"
    r"|gen_ai\.tool\.(call\.)?(arguments|args|result)$|tool_(arguments|response)$|gen_ai\.output$"
    r"|gcp\.vertex\.agent\.(llm_request|llm_response|tool_call_args|tool_response)$"
    r"|traceloop\.entity\.(input|output)$|llm\.\w+\.(messages|choices)$|llm\.(input|output)_messages\.\d+\.message\.content"
    r"|request_data$|response_data$|events$|(content|message|body)$"
)
"""Names under which emitters keep what was said."""
_NOTHING = ("", "{}", "[]", "null")


@dataclass(slots=True)
class Table:
    """The counts of one file."""

    spans: int = 0
    dialects: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    messages: int = 0
    tools: int = 0
    replies: int = 0
    failures: int = 0
    results: int = 0
    opaque: int = 0
    explained: Counter[str] = field(default_factory=Counter[str])
    """Calls that say nothing, by what their spans hold instead."""
    unread: list[str] = field(default_factory=list[str])
    """Calls that say nothing though their spans hold something: a fault of ours."""


def read(path: Path) -> Table:
    """Read a file, each span by the dialect that is surest of it."""
    table = Table()
    for span in joined(open_spans(path)):
        call, outcome = interpret(span)
        table.spans += 1
        table.dialects[str(call.attributes.get("reenact.dialect", "none"))] += 1
        table.kinds[call.kind.value] += 1
        if call.kind in (CallKind.LLM, CallKind.EMBEDDING):
            _model(table, span, call, outcome)
        elif call.kind is CallKind.TOOL:
            table.results += isinstance(outcome, Returned)
            table.failures += isinstance(outcome, Raised)
            if isinstance(outcome, Unfinished):
                _explain(table, span, "result", ("result", "response", "output"))
    return table


def _model(table: Table, span: SpanRecord, call: Call, outcome: Outcome) -> None:
    if isinstance(call.request, HttpRequest):
        shape = shape_named(call.request.shape)
        asked = None if shape is None else shape.read_request(parsed_or_none(call.request.body.data))
        if asked is not None:
            table.messages += len(asked.messages) + len(asked.inputs)
            table.tools += len(asked.tools)
            table.opaque += _opaque(asked.messages)
    else:
        _explain(table, span, "question", ("input", "prompt", "request", "content", "messages"))
    if isinstance(outcome, Returned) and isinstance(outcome.payload, HttpReply):
        table.replies += 1
    elif isinstance(outcome, Raised):
        table.failures += 1
    else:
        _explain(table, span, "reply", ("output", "completion", "response", "choice"))


def _opaque(messages: tuple[Message, ...]) -> int:
    return sum(isinstance(part, Opaque) for message in messages for part in message.parts)


def _explain(table: Table, span: SpanRecord, what: str, words: tuple[str, ...]) -> None:
    """Say why nothing was read, or that something should have been."""
    held = {name: value for name, value in span.attributes.items() if _SAYS.search(name)}
    told = [name for name, value in held.items() if any(word in name for word in words) and _speaks(value)]
    for event in span.events:
        said = {name: value for name, value in event.attributes.items() if _SAYS.search(name)}
        told += [f"{event.name}: {name}" for name, value in said.items() if _speaks(value) and _is(event.name, what)]
    if told:
        table.unread.append(f"{span.name}: no {what}, though it holds {', '.join(told)}")
    else:
        table.explained[f"no {what} on the span"] += 1


def _is(name: str, what: str) -> bool:
    return (name == "gen_ai.choice") == (what in ("reply", "result")) and name.startswith("gen_ai.")


def _speaks(value: object) -> bool:
    """Tell whether an attribute says anything at all."""
    read: Json = parsed_or_none(value) if isinstance(value, str) else None
    if isinstance(read, dict):
        message = read.get("message", read)
        inner = message if isinstance(message, dict) else {"content": message}
        calls = [call for call in as_list(inner.get("tool_calls")) if "arguments" in str(call)]
        return bool(inner.get("content") or calls or set(inner) - _SILENT)
    return value not in (None, *_NOTHING) and read != []


_SILENT = {"role", "index", "finish_reason", "id", "message", "content", "tool_calls", "name", "model"}


def printed(tables: dict[str, Table | str]) -> list[str]:
    """Give the tables as Markdown."""
    columns = (
        "spans",
        "model calls",
        "messages",
        "tools",
        "replies",
        "failed",
        "tool calls",
        "results",
        "opaque parts",
    )
    lines = [f"| file | {' | '.join(columns)} | explained | not read |", "|---" * (len(columns) + 3) + "|"]
    for name, table in tables.items():
        if isinstance(table, str):
            lines.append(f"| {name} | {table} |")
            continue
        models = table.kinds["LLM"] + table.kinds["EMBEDDING"]
        counts = (table.spans, models, table.messages, table.tools, table.replies, table.failures)
        more = (table.kinds["TOOL"], table.results, table.opaque)
        why = "; ".join(f"{count} {text}" for text, count in table.explained.items())
        lines.append(f"| {name} | {' | '.join(map(str, (*counts, *more)))} | {why} | {'; '.join(table.unread)} |")
    return lines


def main(arguments: list[str]) -> None:
    """Print the table of the files named."""
    tables: dict[str, Table | str] = {}
    for argument in arguments:
        path = Path(argument)
        try:
            tables[f"{path.parent.name}/{path.name}"] = read(path)
        except ReenactError as refusal:
            tables[f"{path.parent.name}/{path.name}"] = f"refused: {str(refusal).splitlines()[0][-90:]}"
    sys.stdout.write("\n".join(printed(tables)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
