"""The JSON that the page's script shows: rows of the list first, what was said in each call apart and read later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reenact.report.incident.calls import Calls, causes
from reenact.report.incident.incident import Incident
from reenact.report.incident.pool import Pool, pretty
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text

_SHOWN = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page's data."""

    rows: dict[str, Json]
    """`kinds`, `rows` (`calls.Calls`), `total` in microseconds, `signs` (how a call differs, by its place), `parting`
    (the place of the call in which the runs part first, or null)."""
    bodies: dict[str, Json]
    """`bodies`, and what they share: `texts`, `messages`, `tools`; `cut`: lengths of the texts that were cut;
    `differences` (`[kind, field, recorded or null, other or null]`, by place)."""
    at: dict[str, int]
    """The place of a call in the list, by its id."""
    tokens: tuple[int, int]
    """Tokens in and out, as far as providers counted them."""


def document(incident: Incident) -> Document:
    """Build the data of a page."""
    pool = Pool()
    calls = Calls(incident.run, pool)
    causes(incident.run, calls.at, calls.bodies)
    signs, differences, parting = _differing(incident, calls.at, pool)
    total = max(1, (incident.run.ended_ns - incident.run.started_ns) // 1000)
    rows: dict[str, Json] = {"kinds": calls.kinds, "rows": calls.rows, "total": total, "signs": signs}
    rows |= {"parting": parting, "names": ["Recorded", "Replay"] if _is_replay(incident) else ["This run", "Other run"]}
    bodies: dict[str, Json] = {
        "bodies": calls.bodies,
        "texts": [*pool.texts],
        "messages": pool.messages,
        "tools": pool.tools,
        "cut": pool.cut,
        "differences": differences,
    }
    return Document(rows=rows, bodies=bodies, at=calls.at, tokens=_tokens(calls.bodies))


def _is_replay(incident: Incident) -> bool:
    return incident.second is None or incident.second.is_replay


def _differing(
    incident: Incident, at: dict[str, int], pool: Pool
) -> tuple[dict[str, Json], dict[str, Json], int | None]:
    """Give the sign and the differences of each call that differs, by its place, and the place of the first one."""
    signs: dict[str, Json] = {}
    differences: dict[str, Json] = {}
    second = incident.second
    if second is None:
        return signs, differences, None
    for divergence in second.divergences:
        node_id = as_text(divergence.get("node_a"))
        if node_id not in at:
            continue
        place = str(at[node_id])
        signs.setdefault(place, as_text(divergence.get("kind")) if divergence.get("structural") else "wording")
        further = () if place in differences else second.more.get(node_id, ())
        entries = [_difference(each, pool) for each in (divergence, *further)]
        differences[place] = [*as_list(differences.get(place)), *entries]
    first = second.divergences[0].get("node_a") if second.divergences else None
    return signs, differences, at.get(as_text(first))


def _difference(divergence: Mapping[str, Json], pool: Pool) -> Json:
    absent = as_list(divergence.get("absent"))
    sides: list[Json] = [
        None if side in absent else pool.text(_spelled(divergence.get(side))[:_SHOWN]) for side in ("a", "b")
    ]
    return [as_text(divergence.get("kind")), as_text(divergence.get("field")), *sides]


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else pretty(value)


def _tokens(bodies: list[Json]) -> tuple[int, int]:
    usages = [as_object(as_object(as_object(body).get("said")).get("usage")) for body in bodies]
    return sum(as_count(u.get("in")) or 0 for u in usages), sum(as_count(u.get("out")) or 0 for u in usages)
