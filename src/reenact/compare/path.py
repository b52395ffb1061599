"""The path of a run: which calls it made, in order, models by that word and everything else with what it was asked."""

from __future__ import annotations

from reenact.boundary.reading import frames
from reenact.compare.content import content
from reenact.compare.ending import is_root
from reenact.values.call import CallKind, FunctionCall
from reenact.values.json import canonical
from reenact.values.lenient import as_object
from reenact.values.run import Node, Run

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


def path_of(run: Run) -> tuple[str, ...]:
    """Spell the calls of a run, those of the agent's own structure and those inside of other calls left out.

    Equal paths are spelled alike whichever run they are of.
    """
    return tuple(_spelled(node) for node in steps(run))


def steps(run: Run) -> list[Node]:
    """Give the calls that make the path."""
    left_out = set(frames(run.nodes))
    inside = set[str]()
    calls: list[Node] = []
    for node in run.nodes:  # parents come before children
        if node.parent in inside:
            inside.add(node.id)
            continue
        if is_root(node, run) or node.call.is_structure or node.id in left_out:
            continue
        calls.append(node)
        if node.call.is_whole:
            inside.add(node.id)
    return calls


def _spelled(node: Node) -> str:
    if node.kind in _MODELS:
        return node.call.word
    request = node.call.request
    if not isinstance(request, FunctionCall):
        asked = as_object(content(node).asked)
        return f"{asked.get('method')} {asked.get('url')}"
    arguments = as_object(request.arguments)
    arguments_text = ", ".join(f"{name}={canonical(value).decode()}" for name, value in sorted(arguments.items()))
    return f"{node.call.name}({arguments_text})"
