"""What came back live, held against what was recorded in its place.

A live call stands in the place of the recorded call that asked the same (the replay says which), else of the next one
of its kind and name that no other stands for. Question and answer are compared as two runs are (`compare.content`):
structure, wording, and the model that answered. The fingerprint of the provider's build is compared too, since it is
what a provider says when the same model answers otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reenact.boundary.reading import frames, reply_body
from reenact.compare.content import content, gist
from reenact.compare.fields import is_structural, outcome_differences, question_differences
from reenact.compare.unasked_calls import Recorded
from reenact.values.call import CallKind, Unfinished
from reenact.values.difference import ABSENT, Divergence, FieldDifference, divergence_to_json
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text
from reenact.values.run import Node, Run

Entry = Mapping[str, Json]
_FINGERPRINT = "system_fingerprint"
_MOST_FIELDS = 20
"""So many fields of one call are told."""
_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTold:
    """What is said of the calls that the policy let go live."""

    count: int = 0
    """Calls that went live; a function around a provider's call that went live too is not counted again."""
    stood_for: frozenset[str] = frozenset()
    """Ids of the recorded calls in whose place they stood."""
    unknown: str = ""
    """A live call of which no answer was written down, so that nothing can be said of it."""
    found: tuple[tuple[float, dict[str, Json]], ...] = ()
    """Divergences, each with its place in the recorded causal order; `live` says that they are of a live call."""


def told_of_live(of: Recorded, replays: Sequence[Run], entries: Sequence[Entry], settled: Collection[str]) -> LiveTold:
    """Compare the calls of `entries` (of the ledger: `live`) with the recorded ones, less those that are `settled`.

    An entry without `compare` is counted and not compared: it went live where nothing was recorded, or behind a fork.
    """
    nodes = {node.id: node for run in replays for node in run.nodes}
    outer = frames(nodes.values())
    counted = [each for each in entries if as_text(each.get("span")) not in outer]
    compared = [each for each in counted if each.get("compare") is True]
    pairs = [*_pairs(of, compared, nodes, settled)]
    stood_for = {node.id for _, node, _ in pairs if node is not None}
    stood_for |= {as_text(each.get("id")) for each in entries if each.get("id")}
    differences: list[tuple[float, dict[str, Json]]] = []
    furthest = 0.0
    for entry, recorded, live in pairs:
        place = furthest + 0.5 if recorded is None else float(of.rank[recorded.id])
        furthest = max(furthest, place)
        differences += [(place, each) for each in _differences(entry, recorded, live)]
    unknown = next(
        (as_text(entry.get("call")) for entry, node, live in pairs if node is not None and _is_open(live)), ""
    )
    return LiveTold(count=len(counted), stood_for=frozenset(stood_for), found=tuple(differences), unknown=unknown)


def _is_open(live: Node | None) -> bool:
    return live is None or isinstance(live.outcome, Unfinished)


def _pairs(
    of: Recorded, entries: Iterable[Entry], nodes: Mapping[str, Node], settled: Collection[str]
) -> Iterator[tuple[Entry, Node | None, Node | None]]:
    """Give each live call with the recorded one in whose place it stands, in the order in which they went out."""
    entries = [*entries]
    used_ids = {*settled, *(as_text(each.get("id")) for each in entries)}
    free = [node for node in of.answerable() if node.id not in used_ids]
    for entry in entries:
        live = nodes.get(as_text(entry.get("span")))
        recorded = of.nodes.get(as_text(entry.get("id")))
        if recorded is None:
            recorded = next((node for node in free if _is_alike(node, entry)), None)
            if recorded is not None:
                free.remove(recorded)
        yield entry, recorded, live


def _is_alike(node: Node, entry: Entry) -> bool:
    return node.kind.value == entry.get("kind") and f"{node.call.word} {node.call.name}" == entry.get("call")


def _differences(entry: Entry, recorded: Node | None, live: Node | None) -> Iterator[dict[str, Json]]:
    if recorded is None:
        about = gist(live) if live is not None else as_text(entry.get("call"))
        call = as_text(entry.get("call"))
        yield _live_divergence(
            Divergence(kind="extra", call=call, field="call", a=ABSENT, b=about, structural=True), "extra"
        )
        return
    if live is None or _is_open(live):
        return  # its process ended in the middle of it: how that ended says more
    before, now = content(recorded, blind=True), content(live, blind=True)
    fields = [*question_differences(before, now)]
    fields += outcome_differences(before, now)
    fields += _of_fingerprint(recorded, live)
    for each in fields[:_MOST_FIELDS]:
        structural = is_structural(each, recorded.kind) and not each.path.endswith(_FINGERPRINT)
        yield _live_divergence(
            Divergence(
                kind="changed",
                call=recorded.label,
                field=each.path,
                a=each.a,
                b=each.b,
                structural=structural,
                node_a=recorded.id,
                node_b=live.id,
            ),
            _what(each, structural=structural),
        )


def _of_fingerprint(recorded: Node, live: Node) -> list[FieldDifference]:
    """Compare the builds that a provider names, where both answers name one."""
    if recorded.kind not in _MODELS:
        return []
    a, b = (as_object(reply_body(node)).get(_FINGERPRINT) for node in (recorded, live))
    return (
        [FieldDifference(path=f"reply.{_FINGERPRINT}", a=a, b=b)] if a is not None and b is not None and a != b else []
    )


def _what(each: FieldDifference, *, structural: bool) -> str:
    """Name what kind of difference it is."""
    if each.path.endswith(_FINGERPRINT):
        return "fingerprint"
    if each.path == "reply.model":
        return "model"
    return "structure" if structural else "words"


def _live_divergence(divergence: Divergence, what: str) -> dict[str, Json]:
    return {**divergence_to_json(divergence), "live": what}
