"""Which scopes a block of code did not enter that was replayed: what a call of the recording hung below.

A block (`with reenact.replay(run)`) is no program: it may call what was recorded inside of a run, an agent or a chain
without these around it. Calls are found all the same; what was drawn there of clock and chance stands in the scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reenact.values.json import Json
from reenact.values.lenient import as_text
from reenact.values.run import PROCESS_ROOT, Node, Run


def scopes_missed(
    recorded: Run, siblings: Sequence[Run], replay: Run | None, divergences: Sequence[Mapping[str, Json]]
) -> list[str]:
    """Name the scopes, the outermost first, that hold the call of the first divergence and that a block did not enter.

    Spelled as the line that enters one: `with reenact.run("shop")`, `@reenact.agent shop`.
    """
    nodes = {node.id: node for run in (recorded, *siblings) for node in run.nodes}
    entered = {_spelled(node) for node in replay.nodes} if replay is not None else set[str]()
    at = next((nodes[name] for each in divergences if (name := as_text(each.get("node_a"))) in nodes), None)
    scopes: list[str] = []
    while at is not None and (at := nodes.get(at.parent or "")) is not None and len(scopes) < len(nodes):
        if (spelled := _spelled(at)) and spelled not in entered:
            scopes.append(spelled)
    return [*dict.fromkeys(reversed(scopes))]


def _spelled(node: Node) -> str:
    attributes = node.span.attributes
    if attributes.get("reenact.run.root"):
        return "" if attributes.get(PROCESS_ROOT) else f'with reenact.run("{node.call.name}")'
    if attributes.get(PROCESS_ROOT) or not node.call.is_structure:
        return ""
    return f"@reenact.{node.call.word} {node.call.name}"
