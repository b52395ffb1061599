"""Steps of a run for a person and as a document. What the trace says is cleaned on its way out (`safe`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reenact.report import said
from reenact.report.documents import outcome_document, request_document
from reenact.report.safe import fitted, lines, one_line
from reenact.report.times import duration, instant, milliseconds
from reenact.values.call import CallKind, Raised, Unfinished
from reenact.values.json import Json
from reenact.values.message import Message, Reasoning, Text, ToolCall
from reenact.values.run import Run, Verdict
from reenact.values.step import Step

_MODELS: Final = frozenset({CallKind.LLM, CallKind.EMBEDDING})
_SHORT: Final = 200
"""Characters of a message or value where nothing limits the width."""
_MOST_NEW: Final = 12
"""So many new messages are shown; the rest are counted."""


def heading(run: Run, verdict: Verdict, many: int) -> str:
    """Name the run and how many steps it has."""
    facts = [f"run {run.id[:12]}", run.name, f"{many} steps" if many != 1 else "1 step", verdict.grade.value]
    return one_line(" · ".join(fact for fact in facts if fact))


def nothing(verdict: Verdict) -> list[str]:
    """Say why a run has no step."""
    return ["no call to step through", *(f"  {reason.call}: {reason.lost}" for reason in verdict.reasons)]


def step(each: Step, many: int, *, width: int | None = None) -> list[str]:
    """Show a step: state before, what went in, what came out, state after. Long texts are cut to one line."""
    node = each.node
    facts = [f"step {each.number} of {many}", one_line(node.label)]
    facts += [one_line(name) for name in (said.model(node) if node.kind in _MODELS else "",) if name]
    facts.append(duration(milliseconds(node.span.start_ns, node.span.end_ns)))
    facts += [tokens for tokens in (said.tokens(node),) if tokens]
    shown = [" · ".join(facts)]
    if each.under:
        shown.append(f"  under   {one_line(' / '.join(each.under))}")
    if each.caused_by:
        shown.append(f"  because {one_line(each.caused_by)}")
    shown += [*_before(each, width), *_through(each, width)]
    shown.append(f"  after   {_count(len(each.after))}")
    return [fitted(line, width) for line in shown]


def _before(each: Step, width: int | None) -> Iterator[str]:
    known = f", {each.new} of them new" if each.new else ""
    offered = f"; tools offered: {', '.join(each.tools)}" if each.tools else ""
    yield f"  before  {one_line(f'{_count(len(each.before))}{known}{offered}')}"
    fresh = each.before[len(each.before) - each.new :] if each.new else ()
    if len(fresh) > _MOST_NEW:
        yield f"    … {len(fresh) - _MOST_NEW} earlier ones"
    for message in fresh[-_MOST_NEW:]:
        yield f"    + {_short(_spoken(message), width)}"


def _through(each: Step, width: int | None) -> Iterator[str]:
    node = each.node
    if node.kind not in _MODELS or not each.before:
        yield f"  in      {_short(said.question(node) or '(nothing)', width)}"
    mark = "error   " if isinstance(node.outcome, Raised) else "out     "
    yield f"  {mark}{_short(said.outcome(node) or '(nothing)', width)}"


def _count(many: int) -> str:
    return "1 message" if many == 1 else f"{many} messages"


def _short(text: str, width: int | None) -> str:
    line = one_line(text)
    if width is None and len(line) > _SHORT:
        return f"{line[:_SHORT]}…"
    return line


def _spoken(message: Message) -> str:
    words = said.message(message)
    thought = "" if words else "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    return f"{message.role}: {words or thought or '(no text)'}"


def conversation(messages: Sequence[Message]) -> list[str]:
    """Give whole messages, numbered, over as many lines as they have."""
    shown: list[str] = []
    for number, message in enumerate(messages, 1):
        first, *rest = lines([_spoken(message)]) or [""]
        shown.append(f"  {number:>3}  {first}")
        shown += [f"       {line}" for line in rest]
    return shown or ["  no message"]


def listing(found: Sequence[Step], at: int, *, width: int | None = None) -> list[str]:
    """List the steps by their labels, the one at hand marked."""
    return [
        fitted(f"{'>' if each.number == at else ' '} {each.number:>3}  {one_line(each.node.label)}", width)
        for each in found
    ]


def says(each: Step, text: str) -> bool:
    """Tell whether a text occurs in a step: in its name, what went in, what came out, or the messages that are new."""
    fresh = each.before[len(each.before) - each.new :] if each.new else ()
    told = [each.node.label, said.question(each.node), said.outcome(each.node), *map(_spoken, fresh)]
    return any(text.lower() in word.lower() for word in told)


# ----------------------------------------------------------------------------------------------------------- documents


def step_document(run: Run, verdict: Verdict, found: Sequence[Step]) -> dict[str, Json]:
    """Make the document of `reenact step`."""
    return {
        "run": run.id,
        "name": run.name,
        "verdict": verdict.grade.value,
        "reasons": [{"call": each.call, "field": each.field, "lost": each.lost} for each in verdict.reasons],
        "steps": [_document(each) for each in found],
    }


def _document(each: Step) -> dict[str, Json]:
    node = each.node
    return {
        "step": each.number,
        "call": node.label,
        "id": node.id,
        "kind": node.call.word,
        "name": node.call.name,
        "model": (said.model(node) or None) if node.kind in _MODELS else None,
        "started": instant(node.span.start_ns) if node.span.start_ns else None,
        "duration_ms": milliseconds(node.span.start_ns, node.span.end_ns),
        "under": [*each.under],
        "caused_by": each.caused_by or None,
        "before": {"messages": _messages(each.before), "new": each.new, "tools": [*each.tools]},
        "input": request_document(node),
        "output": outcome_document(node),
        "answered": not isinstance(node.outcome, Unfinished),
        "after": {"messages": _messages(each.after)},
    }


def _messages(messages: Sequence[Message]) -> list[Json]:
    return [_message(message) for message in messages]


def _message(message: Message) -> Json:
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    told: dict[str, Json] = {
        "role": message.role,
        "text": "".join(part.text for part in message.parts if isinstance(part, Text)),
    }
    if calls:
        told["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    if message.tool_call_id:
        told["tool_call_id"] = message.tool_call_id
    if message.name:
        told["name"] = message.name
    return told
