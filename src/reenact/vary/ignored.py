"""A field that no call is recognised by has another value: ids, names of builds, counts of tokens, dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

from reenact.boundary.question import question
from reenact.boundary.reading import answered, reply_body, shape_of
from reenact.contracts.perturbation import Perturbation
from reenact.values.call import HttpReply, HttpRequest, Returned, Streamed
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.message import ToolCall
from reenact.values.run import Node, Run
from reenact.values.variation import Edit, Group, Variation

_HEADERS = frozenset({"x-request-id", "request-id", "date", "openai-processing-ms", "cf-ray", "openai-organization"})
_FIELDS = frozenset(
    {
        "id",
        "created",
        "created_at",
        "completed_at",
        "system_fingerprint",
        "service_tier",
        "usage",
        "obfuscation",
        "model",
    }
)
"""Top-level fields of replies that say nothing to the program."""
_SHORTEST = 8
"""Texts shorter than this may stand for something else elsewhere, and are replaced only where they are."""
_WORD = re.compile(r"[0-9A-Za-z]")


@dataclass(slots=True)
class _Row:
    """One ignored field, in however many calls."""

    edits: list[Edit] = field(default_factory=list[Edit])
    renames: dict[str, str] = field(default_factory=dict[str, str])
    calls: set[str] = field(default_factory=set[str])


def _vary(run: Run, chance: Random) -> Iterator[Variation]:
    rows: dict[str, _Row] = {}
    for node in run.nodes:
        if isinstance(node.call.request, HttpRequest) and shape_of(node) is not None:
            _read_reply(node, rows, chance)
            _read_headers(node, rows)
            _read_request(node, rows)
    yield from (_variation(name, row) for name, row in sorted(rows.items()))
    yield from _exchanged(run)


def _variation(name: str, row: _Row) -> Variation:
    return Variation(
        kind="ignored field",
        group=Group.KEYS,
        call=f"{len(row.calls)} calls",
        path=name,
        description=f"{name} has another value",
        size=len(row.calls),
        edits=tuple(row.edits),
        renames=tuple(row.renames.items()),
    )


def _read_reply(node: Node, rows: dict[str, _Row], chance: Random) -> None:
    body = reply_body(node)
    if not isinstance(body, dict):
        return
    for name in sorted(_FIELDS & body.keys()):
        _vary_field(node, f"reply.{name}", body[name], rows, chance)
    turn = answered(node)
    calls = [part for message in turn.messages for part in message.parts if isinstance(part, ToolCall)] if turn else []
    for call in calls:
        if len(call.id) >= _SHORTEST:
            row = rows.setdefault("reply.tool_calls[].id", _Row())
            row.renames.setdefault(call.id, _another(call.id, chance))
            row.calls.add(node.id)


def _vary_field(node: Node, name: str, value: Json, rows: dict[str, _Row], chance: Random) -> None:
    """Replace a text wherever the recording has it, so that a program that gives it back is answered; else in place."""
    row = rows.setdefault(name, _Row())
    if isinstance(value, str) and len(value) >= _SHORTEST and name.endswith(".id"):
        row.renames.setdefault(value, _another(value, chance))
        row.calls.add(node.id)
    elif (edit := _in_place(node, name.partition(".")[2])) is not None:
        row.edits.append(edit)
        row.calls.add(node.id)
    else:
        del rows[name]


def _in_place(node: Node, name: str) -> Edit | None:
    """Give the call with another value of a field, in every event of a stream that has it."""
    outcome = node.outcome
    match outcome:
        case Returned(payload=HttpReply(body=body) as reply):
            data = _replaced(body.data, name)
            changed = Returned(payload=replace(reply, body=replace(body, data=data)))
            return Edit(node=node.id, outcome=changed) if data != body.data else None
        case Streamed(chunks=chunks):
            pieces = [_replaced(chunk.data or b"", name) for chunk in chunks]
            if all(new == (old.data or b"") for new, old in zip(pieces, chunks, strict=True)):
                return None
            new_chunks = tuple(replace(chunk, data=data) for chunk, data in zip(chunks, pieces, strict=True))
            return Edit(node=node.id, outcome=replace(outcome, chunks=new_chunks))
        case _:
            return None


def _replaced(data: bytes, name: str) -> bytes:
    """Give another value to a field of this name, wherever it stands: numbers one more, texts with an x behind."""
    if name == "usage":
        return re.sub(
            rb'("[a-z_]*tokens"\s*:\s*)([0-9]+)', lambda match: match[1] + str(int(match[2]) + 1).encode(), data
        )
    key = re.escape(name).encode()
    data = re.sub(rb'("' + key + rb'"\s*:\s*"[^"\\]*)"', rb'\1x"', data)
    return re.sub(
        rb'("' + key + rb'"\s*:\s*)([0-9]+)\b', lambda match: match[1] + str(int(match[2]) + 1).encode(), data
    )


def _another(text: str, chance: Random) -> str:
    """Give an id of the same look: what stands before the last mark stays, the rest is drawn anew."""
    at = max(text.rfind("_"), text.rfind("-")) + 1
    letters = "abcdefghijkmnpqrstuvwxyz23456789"
    return text[:at] + _WORD.sub(lambda _match: chance.choice(letters), text[at:])


def _read_headers(node: Node, rows: dict[str, _Row]) -> None:
    outcome = node.outcome
    head = outcome.payload if isinstance(outcome, Returned) else outcome
    if not isinstance(head, HttpReply | Streamed):
        return
    for name in sorted({each.lower() for each, _ in head.headers} & _HEADERS):
        headers = tuple((key, f"{value}x" if key.lower() == name else value) for key, value in head.headers)
        changed = replace(head, headers=headers)
        whole = Returned(payload=changed) if isinstance(changed, HttpReply) else changed
        row = rows.setdefault(f"header {name}", _Row())
        row.edits.append(Edit(node=node.id, outcome=whole))
        row.calls.add(node.id)


def _read_request(node: Node, rows: dict[str, _Row]) -> None:
    """Vary what the key leaves out of a request: the recording then holds another value than the program sends."""
    request = node.call.request
    shape = shape_of(node)
    if not isinstance(request, HttpRequest) or shape is None:
        return
    for name in question(node.call).noise:
        if name == "url":
            edit = Edit(node=node.id, attributes={"url.full": _elsewhere(request.url)})
        else:
            edit = Edit(node=node.id, attributes={"input.value": _without(request, name)})
        row = rows.setdefault(f"request.{name}", _Row())
        row.edits.append(edit)
        row.calls.add(node.id)


def _elsewhere(url: str) -> str:
    return re.sub(r"^(https?://)[^/]+", r"\1elsewhere.invalid", url)


def _without(request: HttpRequest, name: str) -> str:
    body = parsed_or_none(request.body.data)
    value = body.get(name) if isinstance(body, dict) else None
    other: Json = f"{value}x" if isinstance(value, str) else {"varied": "x"}
    return compact({**body, name: other}) if isinstance(body, dict) else ""


def _exchanged(run: Run) -> Iterator[Variation]:
    """Exchange the answers of calls that ask the same but for an ignored field: the key takes one for the other."""
    alike: dict[tuple[str, str], list[tuple[Node, dict[str, Json]]]] = {}
    for node in run.nodes:
        if isinstance(node.call.request, HttpRequest) and shape_of(node) is not None:
            asked = question(node.call)
            alike.setdefault((asked.key, node.parent or ""), []).append((node, asked.noise))
    for calls in alike.values():
        for (one, noise), (other, others) in pairwise(calls):
            names = [name for name in noise if name != "url" and noise[name] != others.get(name)]
            if names and one.outcome != other.outcome:
                yield Variation(
                    kind="ignored field",
                    group=Group.KEYS,
                    call=f"{one.label} and {other.label}",
                    path=f"request.{names[0]}",
                    description=f"the answers of two calls that differ only in {names[0]} are exchanged",
                    size=2,
                    edits=(_taking(one, other), _taking(other, one)),
                )


def _taking(node: Node, other: Node) -> Edit:
    return Edit(node=node.id, outcome=_at(other, node))


def _at(other: Node, node: Node) -> Returned | Streamed | None:
    """Give another call's outcome, released where this one's was."""
    outcome = other.outcome
    if isinstance(outcome, Streamed):
        order = node.head_order or node.end_order
        return replace(outcome, chunks=tuple(replace(chunk, order=order) for chunk in outcome.chunks))
    return outcome if isinstance(outcome, Returned) else None


IGNORED = Perturbation(
    name="ignored field",
    groups=frozenset({Group.KEYS}),
    does="a field that no call is recognised by has another value",
    of_run=_vary,
)
