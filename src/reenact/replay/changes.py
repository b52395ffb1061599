"""What a fork changes: a run and changes in, a run whose calls came out differently.

Only outcomes change; what was asked stays, so that the program still meets the changed call. A change of a request
(`request.…`) is none of an outcome's: the call has to go out again, which is the replayer's to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reenact.boundary.reading import is_plain, reply_body, shape_of
from reenact.errors import UsageError
from reenact.replay import set_exchange, set_function
from reenact.replay.call_lookup import call_named
from reenact.values.call import CallKind, FunctionCall, HttpRequest, Outcome
from reenact.values.change import Change
from reenact.values.difference import Absent
from reenact.values.discovered_tools import TOUCHED, is_found, listed
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.json_path import NoSuchPlace, parse_path, spell, value_at, with_value
from reenact.values.run import Node, Run

REQUEST = frozenset({"request", "prompt"})
"""First steps of paths that change what is asked."""
_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One change as it was done: for reports, and for the fork's own trace."""

    node: Node
    """The call as it was recorded."""
    path: str
    before: Json | Absent
    after: Json


def apply(run: Run, changes: Iterable[Change]) -> Run:
    """Give `run` with the outcomes of the named calls changed, in the order of `changes`.

    Raises `UsageError` where a change names no call, or nothing that the call has or that decides what the program
    sees. Changes of requests are passed over.
    """
    outcomes: dict[str, Outcome] = {}
    for node, change in resolved(run, changes):
        if not asks(change):
            outcomes[node.id] = _outcome(replace(node, outcome=outcomes.get(node.id, node.outcome)), change)
    if not outcomes:
        return run
    nodes = tuple(_answering(node, outcomes[node.id]) if node.id in outcomes else node for node in run.nodes)
    return replace(run, nodes=nodes)


def _answering(node: Node, outcome: Outcome) -> Node:
    """Give a call with another outcome. A found tool that would run again is answered: what is set is not its own."""
    if not is_found(node):
        return replace(node, outcome=outcome)
    touched = compact([*listed(node, TOUCHED), "answer set by a fork"])
    span = replace(node.span, attributes={**node.span.attributes, TOUCHED: touched})
    return replace(node, outcome=outcome, span=span)


def requests(run: Run, changes: Iterable[Change]) -> dict[str, bytes]:
    """Give the bodies that are to go out instead of the recorded ones, by the id of the call. Raises `UsageError`."""
    bodies: dict[str, Json] = {}
    for node, change in resolved(run, changes):
        if asks(change):
            request_body = bodies[node.id] if node.id in bodies else _request_body(node)
            bodies[node.id] = _set(request_body, parse_path(change.path)[1:], change.value, node, "request")
    return {node_id: _spelled(body) for node_id, body in bodies.items()}


def asks(change: Change) -> bool:
    """Tell whether a change is one of what is asked."""
    return next(iter(_steps(change)), "") in REQUEST


def resolved(run: Run, changes: Iterable[Change]) -> list[tuple[Node, Change]]:
    """Find the call of each change and check that changing it says something. Raises `UsageError`."""
    above = {node.id: node for node in run.nodes}
    pairs = [(call_named(run, change.call), change) for change in changes]
    for node, _ in pairs:
        _check(node, above)
    return pairs


def describe_changes(run: Run, changes: Sequence[Change]) -> list[Changed]:
    """Say what changes do: each with the value that was there before. Raises `UsageError` as `apply` does."""
    entries: list[Changed] = []
    for at, (node, change) in enumerate(resolved(run, changes)):
        before = next(each for each in apply(run, changes[:at]).nodes if each.id == node.id)
        path = spell(_steps(change))
        entries.append(Changed(node=node, path=path, before=_value(before, change), after=change.value))
    return entries


def _check(node: Node, above: dict[str, Node]) -> None:
    """Raise where the program would not see what is set: another call answers for this one."""
    if node.call.is_structure:
        raise UsageError(
            f"{node.label} is code of the program's own, which runs again: it has no answer to change",
            hint="change what one of the calls inside it was answered",
        )
    inner = _answering_inside(node, above)
    if inner is not None:
        raise UsageError(f"{node.label} is answered by {inner.label} inside it", hint=f"change {inner.label}")
    parent, climbed = node.parent, set[str]()
    while parent in above and parent not in climbed:
        outer = above[parent]
        if outer.call.is_whole and not outer.call.is_structure and not outer.span.attributes.get("reenact.run.root"):
            raise UsageError(
                f"{node.label} lies inside {outer.label}, which is answered as a whole", hint=f"change {outer.label}"
            )
        climbed.add(parent)
        parent = outer.parent


def _answering_inside(node: Node, nodes: dict[str, Node]) -> Node | None:
    if node.call.is_whole:
        return None
    children: dict[str, list[Node]] = defaultdict(list)
    for each in nodes.values():
        if each.parent is not None:
            children[each.parent].append(each)
    left = [*children[node.id]]
    while left:
        inner = left.pop(0)
        if inner.kind in _MODELS and isinstance(inner.call.request, HttpRequest):
            return inner
        left += children[inner.id]
    return None


def _outcome(node: Node, change: Change) -> Outcome:
    steps = _steps(change)
    try:
        if isinstance(node.call.request, FunctionCall):
            return set_function.changed(node.outcome, steps, change.value)
        return set_exchange.changed(node, steps, change.value)
    except ValueError as error:
        raise _refused(node, change.path, error) from error


def _steps(change: Change) -> tuple[str | int, ...]:
    try:
        return parse_path(change.path)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _set(document: Json, steps: tuple[str | int, ...], value: Json, node: Node, what: str) -> Json:
    try:
        return with_value(document, steps, value)
    except NoSuchPlace as error:
        raise _refused(node, what, error) from error


def _refused(node: Node, path: str, error: ValueError) -> UsageError:
    return UsageError(f"{node.label}: {path} cannot be set: {error}", hint=_settable(node))


def _settable(node: Node) -> str:
    if isinstance(node.call.request, FunctionCall):
        return 'of this call can be set: result, result.PATH, raised=TimeoutError:"…"'
    words = [] if is_plain(node) else ["text", "tool_calls[0].name", "tool_calls[0].arguments.NAME", "finish_reason"]
    return f"of this call can be set: {', '.join([*words, 'reply.PATH, status, headers.NAME, body, raised'])}"


def _request_body(node: Node) -> Json:
    request = node.call.request
    body = parsed_or_none(request.body.data) if isinstance(request, HttpRequest) and shape_of(node) else None
    if not isinstance(body, dict):
        raise UsageError(
            f"{node.label} is no call of a model: its question cannot be changed",
            hint="what a tool is asked comes from the model's reply, or from the program: change that reply",
        )
    return body


def _spelled(body: Json) -> bytes:
    return compact(body).encode("utf-8", "replace")


def _value(node: Node, change: Change) -> Json | Absent:
    steps = _steps(change)
    if asks(change):
        return value_at(_request_body(node), steps[1:])
    if isinstance(node.call.request, FunctionCall):
        return set_function.value(node.outcome, steps)
    return set_exchange.value(node, steps, reply_body(node))
