"""Steps of a run for a person and as a document. What the trace says is cleaned on its way out (`safe`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reenact.report import call_text
from reenact.report.documents import outcome_document, request_document
from reenact.report.safe import fitted, lines, one_line
from reenact.report.times import duration, instant, milliseconds
from reenact.values.call import CallKind, Raised, Unfinished
from reenact.values.json import Json
from reenact.values.message import Message, Reasoning, Text, ToolCall
from reenact.values.run import Run, Verdict
from reenact.values.step import Step, last

_MODELS: Final = frozenset({CallKind.LLM, CallKind.EMBEDDING})
_SHORT: Final = 200
"""Characters of a message or value where nothing limits the width."""
_MOST_AROUND: Final = 12
"""So many levels of what a call hangs below are shown."""
_MOST_NEW: Final = 12
"""So many new messages are shown; the rest are counted."""
_MOST_LISTED: Final = 200
"""So many steps are listed at once."""
_MOST_MESSAGES: Final = 50_000
"""So many messages are in one document: of longer conversations each step has the last."""


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
    facts += [one_line(name) for name in (call_text.model(node) if node.kind in _MODELS else "",) if name]
    facts.append(duration(milliseconds(node.span.start_ns, node.span.end_ns)))
    facts += [tokens for tokens in (call_text.tokens(node),) if tokens]
    rows = [" · ".join(facts)]
    if under := each.under(_MOST_AROUND):
        rows.append(f"  under   {one_line(' / '.join(under))}")
    if each.caused_by:
        rows.append(f"  because {one_line(each.caused_by)}")
    rows += [*_before(each, width), *_through(each, width)]
    rows.append(f"  after   {_count(each.known + len(each.added))}")
    return [fitted(line, width) for line in rows]


def _before(each: Step, width: int | None) -> Iterator[str]:
    new_note = f", {each.new} of them new" if each.new else ""
    offered = f"; tools offered: {', '.join(each.tools)}" if each.tools else ""
    yield f"  before  {one_line(f'{_count(each.known)}{new_note}{offered}')}"
    if each.new > _MOST_NEW:
        yield f"    … {each.new - _MOST_NEW} earlier ones"
    for message in last(each.talk, min(each.new, _MOST_NEW)):
        yield f"    + {_short(_message_text(message), width)}"


def _through(each: Step, width: int | None) -> Iterator[str]:
    node = each.node
    if node.kind not in _MODELS or not each.known:
        yield f"  in      {_short(call_text.question(node) or '(nothing)', width)}"
    mark = "error   " if isinstance(node.outcome, Raised) else "out     "
    yield f"  {mark}{_short(call_text.outcome(node) or '(nothing)', width)}"


def _count(many: int) -> str:
    return "1 message" if many == 1 else f"{many} messages"


def _short(text: str, width: int | None) -> str:
    line = one_line(text)
    if width is None and len(line) > _SHORT:
        return f"{line[:_SHORT]}…"
    return line


def _message_text(message: Message) -> str:
    words = call_text.message(message)
    thought = "" if words else "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    return f"{message.role}: {words or thought or '(no text)'}"


def conversation(messages: Sequence[Message]) -> list[str]:
    """Give whole messages, numbered, over as many lines as they have."""
    rows: list[str] = []
    for number, message in enumerate(messages, 1):
        first, *rest = lines([_message_text(message)]) or [""]
        rows.append(f"  {number:>3}  {first}")
        rows += [f"       {line}" for line in rest]
    return rows or ["  no message"]


def listing(steps: Sequence[Step], at: int, *, width: int | None = None) -> list[str]:
    """List the steps around the one at hand by their labels, that one marked; how many there are besides."""
    first = max(0, min(at - 1 - _MOST_LISTED // 2, len(steps) - _MOST_LISTED))
    near = steps[first : first + _MOST_LISTED]
    rows = [
        fitted(f"{'>' if each.number == at else ' '} {each.number:>3}  {one_line(each.node.label)}", width)
        for each in near
    ]
    rest = len(steps) - first - len(near)
    return [*([f"      … {first} before"] if first else []), *rows, *([f"      … {rest} more"] if rest else [])]


def says(each: Step, text: str) -> bool:
    """Tell whether a text occurs in a step: in its name, what went in, what came out, or the messages that are new."""
    fresh = last(each.talk, each.new)
    texts = [each.node.label, call_text.question(each.node), call_text.outcome(each.node), *map(_message_text, fresh)]
    return any(text.lower() in word.lower() for word in texts)


# ----------------------------------------------------------------------------------------------------------- documents


def step_document(run: Run, verdict: Verdict, steps: Sequence[Step], many: int) -> dict[str, Json]:
    """Make the document of `reenact step`, with some of the `many` steps of a run.

    Where their conversations have more messages together than one document should, each step has the last of its own,
    and says how many it leaves out; one step alone has all of them.
    """
    whole = len(steps) == 1 or sum(2 * each.known + len(each.added) for each in steps) <= _MOST_MESSAGES
    most = None if whole else max(1, _MOST_MESSAGES // (2 * len(steps)))
    return {
        "run": run.id,
        "name": run.name,
        "verdict": verdict.grade.value,
        "reasons": [{"call": each.call, "field": each.field, "lost": each.lost} for each in verdict.reasons],
        "many": many,
        "steps": [_document(each, most) for each in steps],
    }


def _document(each: Step, most: int | None) -> dict[str, Json]:
    node = each.node
    before, after = (_conversation(each, part, most) for part in ((), each.added))
    return {
        "step": each.number,
        "call": node.label,
        "id": node.id,
        "kind": node.call.word,
        "name": node.call.name,
        "model": (call_text.model(node) or None) if node.kind in _MODELS else None,
        "started": instant(node.span.start_ns) if node.span.start_ns else None,
        "duration_ms": milliseconds(node.span.start_ns, node.span.end_ns),
        "under": [*each.under()],
        "caused_by": each.caused_by or None,
        "before": {**before, "new": each.new, "tools": [*each.tools]},
        "input": request_document(node),
        "output": outcome_document(node),
        "answered": not isinstance(node.outcome, Unfinished),
        "after": after,
    }


def _conversation(each: Step, added: tuple[Message, ...], most: int | None) -> dict[str, Json]:
    """Give a conversation, or the last messages of it with the number of those before them."""
    many = each.known + len(added)
    limit = min(many, most) if most is not None else many
    listed = (*last(each.talk, limit - len(added)), *added)[-limit:] if limit else ()
    document: dict[str, Json] = {"messages": [_message(message) for message in listed]}
    return document if len(listed) == many else {**document, "left_out": many - len(listed)}


def _message(message: Message) -> Json:
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    document: dict[str, Json] = {
        "role": message.role,
        "text": "".join(part.text for part in message.parts if isinstance(part, Text)),
    }
    if calls:
        document["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    if message.tool_call_id:
        document["tool_call_id"] = message.tool_call_id
    if message.name:
        document["name"] = message.name
    if message.is_error:
        document["is_error"] = True
    return document
