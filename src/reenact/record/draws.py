"""Writing down what was drawn of the clock and of chance: with the next call of the lane, else at the end of the run.

Spelled as JSON (docs/schema.md): arrays and no objects, since what stands under a key is judged by the key's name when
it is redacted, and a function may well be called `make_token`.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import lanes, tape
from reenact.boundary.lanes import Lane, Reel
from reenact.boundary.place import Place
from reenact.boundary.tape import Lost, Site
from reenact.values.json import Json, compact

NAME: Final = "reenact.draws"
BEFORE: Final = "reenact.draws.before"
REST: Final = "reenact.draws.rest"
PROCESS: Final = "reenact.draws.process"
TAPE: Final = "reenact.tape"
_KEPT: Final = 100
"""So many sites, and draws of each, are told with every unit."""
_ROOT: Final = "/"
_NOT_A_CALL: Final = 0


def opening() -> dict[str, Any]:
    """Say on a root that draws are taped, and how."""
    if not tape.is_on():
        return {}
    said: dict[str, Json] = {}
    if untaped := tape.untaped():
        said["untaped"] = dict(untaped)
    if generators := tape.generators():
        said["generators"] = dict(generators)
    return {TAPE: compact(said)}


def before(lane: Lane) -> dict[str, Any]:
    """Take what a lane drew before the unit of work that begins on it now, and begin anew."""
    facts = {BEFORE: compact(_spelled(lane.drawn, 0, 0))} if lane.drawn else {}
    lane.drawn = None
    lane.reel.drew.pop(id(lane), None)
    return facts


def of_process() -> dict[str, Any]:
    """Tell what the program drew before any call, as where its modules were imported, for a unit that came in.

    A unit is replayed without the others of its process, which draws these again: so each unit has them.
    """
    lane: Lane | None = lanes.main()
    pages: list[Json] = []
    while lane is not None:
        page = (lane.drawn or {}).get(_NOT_A_CALL, {})
        kept = [[site.key, [_value(site, value) for value in values[:_KEPT]]] for site, values in tuple(page.items())]
        pages[:0] = kept[:_KEPT]
        lane = lane.earlier
    return {PROCESS: compact(pages)} if pages else {}


def taken(lane: Lane, parent: Place) -> str:
    """Take what a lane drew since its last call, for a call below `parent` that it makes now."""
    drawn, lane.drawn = lane.drawn or {}, None
    lane.reel.drew.pop(id(lane), None)
    return compact(_spelled(drawn, parent.span_id, parent.root))


def rest(reel: Reel, root: int) -> dict[str, Any]:
    """Take what the lanes of a run drew since their last calls, for the end of the run whose root span this is."""
    facts: dict[str, Any] = {}
    said: list[Json] = []
    for lane in tuple(reel.drew.values()):
        drawn, lane.drawn = lane.drawn or {}, None
        said.append([lane.path, _spelled(drawn, root, root)])
    reel.drew.clear()
    if said:
        facts[REST] = compact(said)
    if reel.forgotten:
        facts["reenact.draws.forgotten"] = reel.forgotten
    return facts


def _spelled(drawn: dict[int, dict[Any, list[Any]]], parent: int, root: int) -> Json:
    """Spell draws as `[[call, [[site, [value, …]], …]], …]`; the call is "" for the one that the span hangs below."""
    said: list[Json] = []
    for call, page in tuple(drawn.items()):
        span_id = root if call == _NOT_A_CALL else call
        name = "" if span_id == parent else _ROOT if span_id == root else format(span_id, "016x")
        said.append([name, [[site.key, [_value(site, value) for value in values]] for site, values in page.items()]])
    return said


def _value(site: Site, value: Any) -> Json:
    return {"lost": value.count} if isinstance(value, Lost) else site.source.spell(value)
