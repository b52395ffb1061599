"""What a replay came to, told again from the spans that it left: the ledger of a replay does not outlive it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reenact.compare.align import compare
from reenact.values.difference import divergence_to_json
from reenact.values.json import Json
from reenact.values.judgement import Comparison, ReplayResult
from reenact.values.run import Run

MISSED = "reenact.replay.missed"
"""Id of the recorded call that was nearest to one that nobody recorded; empty where none was near."""
_REFUSED = "SideEffectRefused"


def retold(recorded: Run, replay: Run) -> tuple[ReplayResult, Comparison]:
    """Tell what a replay of `recorded` came to from its own run.

    Where it was stopped at a call that nobody recorded, what lies behind that place says nothing: it was not reached.
    Of the outside world, of clock and chance, and of what was refused by name, the spans say nothing.
    """
    comparison = compare(recorded, replay)
    divergences = [divergence_to_json(each) for each in comparison.divergences]
    misses = [*_misses(replay, divergences)]
    stopped = bool(misses)
    refused = _refused(replay)
    reached = divergences
    if stopped or refused:
        reached = [each for each in divergences if not _is_aftermath(each, misses)]
    met = {str(node.span.attributes.get(name)) for node in replay.nodes for name in _MET}
    answered = [node for node in recorded.nodes if node.id in met]
    result = ReplayResult(
        result="diverged" if reached else "same",
        answered=dict(Counter(node.call.word for node in answered)),
        live=sum(bool(node.span.attributes.get("reenact.replay.live")) for node in replay.nodes),
        beyond=sum(node.span.attributes.get("reenact.evidence") is not None for node in replay.nodes),
        misses=misses,
        refused=refused,
        not_reached=sum(each.get("kind") == "missing" for each in divergences)
        - sum(each.get("kind") == "missing" for each in reached),
        divergences=reached,
        replay=replay.id,
        exit_code=_exit(replay),
        recorded_exit=_exit(recorded),
    )
    return result, comparison


_MET = ("reenact.replay.answered_by", "reenact.replay.ran_again")


def _misses(replay: Run, rows: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """Give the calls that the replay could not answer, each with the divergence that it is: it was stopped there."""
    first = True
    for node in replay.nodes:
        nearest = node.span.attributes.get(MISSED)
        if isinstance(nearest, str):
            of = next((each for each in rows if each.get("node_b") == node.id), {"call": node.label, "field": "call"})
            sides: dict[str, Json] = {"recorded": of.get("a"), "replay": of.get("b")}
            yield {"call": of["call"], "field": of["field"], "nearest": nearest or None, "first": first, **sides}
            first = False
    root = replay.root
    if first and root is not None and root.span.attributes.get("exception.type") == "Miss":
        yield {"call": "run", "reason": str(root.span.attributes.get("exception.message")), "first": True}


def _refused(replay: Run) -> list[dict[str, Json]]:
    root = replay.root
    if root is None or root.span.attributes.get("exception.type") != _REFUSED:
        return []
    return [{"what": str(root.span.attributes.get("exception.message")), "where": "", "hint": ""}]


def _is_aftermath(divergence: dict[str, Json], misses: list[dict[str, Json]]) -> bool:
    """Tell what only shows that the replay was stopped: calls not reached, no outcome of the missed one, the end."""
    if divergence.get("call") == "run" and divergence.get("field") in {"outcome", "exit code"}:
        return True
    if divergence.get("kind") == "missing":
        return all(divergence.get("node_a") != miss.get("nearest") for miss in misses)
    return str(divergence.get("field")).startswith("outcome")


def _exit(run: Run) -> int | None:
    code = run.root.span.attributes.get("process.exit.code") if run.root else None
    return code if isinstance(code, int) else None
