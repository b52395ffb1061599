"""A run as a tree: one line a call, or with everything that was said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import orjson

from reenact.report import call_text, safe
from reenact.report.safe import fitted, one_line
from reenact.report.times import duration, instant, milliseconds
from reenact.values.call import CallKind, Raised, Streamed, Unfinished
from reenact.values.discovered_tools import REACHES, TOUCHED, listed
from reenact.values.ending import in_short, seen_by_parents
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import (
    FORK_AT,
    FORK_CHANGED,
    FORK_CHANGES,
    FORK_PARAMETERS,
    FORK_PARENT,
    LEFT_BY,
    NOTHING_WRITTEN,
    OURS,
    OUTPUT,
    PROCESS_REST,
    PROCESS_ROOT,
    STOPPED,
    WRITTEN,
    Node,
    Run,
    Verdict,
)
from reenact.values.span import STATUS_ERROR

_SAID = ((FORK_CHANGED, "changed"), ("reenact.replay.live", "live"))
"""Attributes that a word stands for."""
_FRAMES = frozenset({CallKind.AGENT, CallKind.CHAIN})
_SHORT = 100
"""Characters of a question or answer where nothing limits the width."""


def tree(
    run: Run, verdict: Verdict | None = None, *, status: str = "", full: bool = False, width: int | None = None
) -> list[str]:
    """Draw a run: what was called below what, what it asked, what came of it, how long it took.

    `width` is in terminal cells; None, as for a pipe, cuts only questions and answers. `full` gives them whole.
    """
    drawn = [fitted(one_line(_heading(run, verdict, status)), width)]
    drawn += [fitted(one_line(line), width) for line in (*_forked(run), *_file_writes(run))]
    ends = seen_by_parents(run.nodes)
    for node, first, rest in _branches(run):
        drawn.append(_line(node, first, width, ends.get(node.lane), full=full))
        if full:
            drawn += safe.lines(f"{rest}  {line}" for line in _whole(node))
    drawn += [fitted(line, width) for line in safe.lines(_printed(run))]
    drawn += [fitted(one_line(f"note: {note}"), width) for note in run.notes]
    return drawn


def _heading(run: Run, verdict: Verdict | None, status: str) -> str:
    ms = milliseconds(run.started_ns, run.ended_ns)
    when = instant(run.started_ns) if run.started_ns else ""
    facts = [f"run {run.id[:12]}", run.name, when, duration(ms), status]
    facts += [f"{name} {value}" for name, value in (("session", run.session), ("user", run.user)) if value]
    if verdict is not None:
        facts.append(f"{verdict.grade.value}{' up to redaction' if verdict.redacted else ''}")
    return " · ".join(fact for fact in facts if fact)


def _forked(run: Run) -> Iterator[str]:
    """Say what a fork changed in its parent."""
    if run.root is None:
        return
    attributes = run.root.span.attributes
    parent = attributes.get(FORK_PARENT)
    if not isinstance(parent, str):
        return
    at = attributes.get(FORK_AT)
    yield f"fork of {parent[:12]} {f'at {at}' if at else 'from its beginning'}"
    listed_changes = parsed_or_none(str(attributes.get(FORK_CHANGES) or "[]"))
    parameters = parsed_or_none(str(attributes.get(FORK_PARAMETERS) or "{}"))
    edits = [as_object(each) for each in as_list(listed_changes)]
    from reenact.report.forking import changes

    for line in changes(edits, as_object(parameters)):
        yield f"  set {line}"


def _file_writes(run: Run) -> Iterator[str]:
    """Say what the run wrote, where that was noted."""
    if all(node.span.attributes.get(WRITTEN, NOTHING_WRITTEN) == NOTHING_WRITTEN for node in run.nodes):
        return
    from reenact.report.file_writes import in_short

    yield from in_short(run)


def _printed(run: Run) -> Iterator[str]:
    """Say what the run printed, where that was noted."""
    if not any(OUTPUT in node.span.attributes for node in run.nodes):
        return
    from reenact.report.console_text import in_short

    yield from in_short(run)


def _branches(run: Run) -> Iterator[tuple[Node, str, str]]:
    """Give each node with what is drawn before it and before what hangs below it. The root is the heading."""
    sections = _shown_sections(run)
    known = {node.id for node in (*run.nodes, *sections)} if sections else set[str]()
    children: dict[str | None, list[Node]] = defaultdict(list)
    for node in (*run.nodes, *sections):
        if PROCESS_REST not in node.span.attributes:
            children[_above(node, known) if sections else node.parent].append(node)
    top = run.root if run.root is not None and run.root.call.is_structure else None
    tops = [*children[top.id if top else None], *(node for node in children[None] if top and node.id != top.id)]
    left = _hung(_ordered(tops), "")
    while left:
        node, first, rest = left.pop()
        below = _ordered(children[node.id]) if sections else children[node.id]
        yield node, first, rest + ("│" if below else " ")
        left += _hung(below, rest)


def _shown_sections(run: Run) -> tuple[Node, ...]:
    """Give the sections that are drawn: none where another instrumentation tells of the same structure."""
    if run.sections and any(node.kind in _FRAMES and OURS not in node.span.attributes for node in run.nodes):
        return ()
    return run.sections


def _above(node: Node, known: set[str]) -> str | None:
    at = node.section if node.section in known else node.parent
    return at if at in known else None


def _ordered(nodes: list[Node]) -> list[Node]:
    """Order what hangs in one place: as numbered, or by time where sections, which have no number, stand between."""
    if all(node.number for node in nodes):
        return sorted(nodes, key=lambda node: node.number)
    return sorted(nodes, key=lambda node: node.span.start_ns)


def _hung(nodes: list[Node], before: str) -> list[tuple[Node, str, str]]:
    drawn = [(node, f"{before}├─ ", f"{before}│  ") for node in nodes]
    if drawn:
        drawn[-1] = (nodes[-1], f"{before}└─ ", f"{before}   ")
    return drawn[::-1]


def _line(node: Node, before: str, width: int | None, ended: int | None, *, full: bool) -> str:
    facts = [one_line(node.label if node.number else f"{node.call.word} {node.call.name}")]
    if node.kind in {CallKind.LLM, CallKind.EMBEDDING}:
        facts += [f"({name})" for name in [one_line(call_text.model(node))] if name]
    facts.append(duration(milliseconds(node.span.start_ns, node.span.end_ns)))
    facts += [text for text in (one_line(call_text.tokens(node)),) if text and not node.call.is_structure]
    facts += [f"[{one_line(marker)}]" for marker in _markers(node, ended)]
    head = before + "  ".join(facts)
    if full or (node.call.is_structure and not isinstance(node.outcome, Raised)):
        return fitted(head, width)
    room = _SHORT * 2 if width is None else max(24, width - len(head) - 6)
    question, outcome = one_line(call_text.question(node)), one_line(call_text.outcome(node))
    half = max(room // 2, room - len(outcome))
    question = fitted(question, half)
    return fitted(f"{head}  {question} → {fitted(outcome, max(room // 2, room - len(question)))}", width)


def _markers(node: Node, ended: int | None) -> Iterator[str]:
    attributes = node.span.attributes
    outcome = node.outcome
    if isinstance(outcome, Raised) or getattr(outcome, "exception", None) or node.span.status == STATUS_ERROR:
        yield "error"
    if left_by := attributes.get(LEFT_BY):
        yield f"left by {left_by}"
    if isinstance(outcome, Unfinished) and not node.call.is_structure:
        yield "answer not kept" if call_text.is_mute(node) else "unfinished"
    if isinstance(outcome, Streamed) and outcome.end.value != "finished":
        yield f"stream {outcome.end.value}"
    if stopped := attributes.get(STOPPED):
        yield f"stopped by {stopped}"
    elif attributes.get(PROCESS_ROOT) and attributes.get("reenact.incomplete"):
        yield in_short(attributes, ended)
    yield from _acts(node)
    if by := attributes.get("reenact.replay.answered_by"):
        yield f"from recording {str(by)[:8]}"
    if again := attributes.get("reenact.replay.ran_again"):
        yield f"run again, as {str(again)[:8]}"
    yield from (word for name, word in _SAID if attributes.get(name))
    if node.orphan:
        yield "orphan"


def _acts(node: Node) -> Iterator[str]:
    """Say what a found tool touched, or why it is not known to touch nothing."""
    if touched := listed(node, TOUCHED):
        yield touched[0] if len(touched) == 1 else f"{touched[0]} and {len(touched) - 1} more"
    elif reached := listed(node, REACHES):
        yield f"can reach {reached[0]}"


def _whole(node: Node) -> Iterator[str]:
    """Give all that was asked and answered, as JSON over several lines."""
    if node.call.is_structure and isinstance(node.outcome, Unfinished):
        return
    from reenact.report.documents import outcome_document, request_document  # a tree without payloads asks for none

    for sign, document in (("← ", request_document(node)), ("→ ", outcome_document(node))):
        for number, line in enumerate(_pretty(document).split("\n")):
            yield (sign if number == 0 else "  ") + line


def _pretty(value: Json) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # integers over 64 bit, lone surrogates
        return compact(value)
