"""Writing down what was drawn of the clock and of chance: with the next call of the lane, else at the end of the run.

Spelled as JSON (docs/schema.md): arrays and no objects, since what stands under a key is judged by the key's name when
it is redacted, and a function may well be called `make_token`. The end of a run also says where its code waited by the
clock.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from reenact.boundary import flows, lanes, pauses, tape
from reenact.boundary.flows import Segment
from reenact.boundary.lanes import Lane, Reel
from reenact.boundary.pauses import Pause
from reenact.boundary.place import Place
from reenact.boundary.tape import Lost, Site
from reenact.values.json import Json, compact
from reenact.values.run import LANDINGS, PAUSES, UNPAUSED

NAME: Final = "reenact.draws"
BEFORE: Final = "reenact.draws.before"
REST: Final = "reenact.draws.rest"
EARLIER: Final = "reenact.draws.earlier"
PROCESS: Final = "reenact.draws.process"
TAPE: Final = "reenact.tape"
_KEPT: Final = 100
"""So many sites, and draws of each, are told with every unit."""
_ROOT: Final = "/"
_NOT_A_CALL: Final = 0
_LIBRARY, _CLOCK = "library", "clock"


def opening() -> dict[str, Any]:
    """Say on a root that draws are taped, and how."""
    if not tape.is_on():
        return {}
    tape_facts: dict[str, Json] = {}
    if untaped := tape.untaped():
        tape_facts["untaped"] = dict(untaped)
    if generators := tape.generators():
        tape_facts["generators"] = dict(generators)
    return {TAPE: compact(tape_facts)}


def before(lane: Lane) -> dict[str, Any]:
    """Take what a lane drew before the unit of work that begins on it now, and begin anew."""
    pages = _pages(lane, 0, 0)
    _forget(lane)
    return {BEFORE: compact(pages)} if pages else {}


def of_process() -> dict[str, Any]:
    """Tell what the program drew before any call, as where its modules were imported, for a unit that came in.

    A unit is replayed without the others of its process, which draws these again: so each unit has them. What tasks and
    threads of the process drew meanwhile, as an application's lifespan does, is told with it: their lanes have other
    names where the application is made without its server.
    """
    lanes_of_process: dict[int, Lane] = {}
    lane: Lane | None = lanes.main()
    while lane is not None:
        drew = dict(islice(lane.reel.drew.items(), _KEPT))
        lanes_of_process = {id(lane): lane, **drew, **lanes_of_process}
        lane = lane.earlier
    pages: list[Json] = []
    for each in lanes_of_process.values():
        page = (each.drawn or {}).get(_NOT_A_CALL, {})
        sites = [[site.key, [_value(site, value) for value in values[:_KEPT]]] for site, values in tuple(page.items())]
        pages += sites[:_KEPT]
    return {PROCESS: compact(pages)} if pages else {}


def take_draws(lane: Lane, parent: Place) -> str:
    """Take what a lane drew since its last call, for a call below `parent` that it makes now."""
    pages = _pages(lane, parent.span_id, parent.root)
    _forget(lane)
    return compact(pages)


def are_there(lane: Lane) -> bool:
    """Tell whether anything was drawn on a lane since its last call."""
    segment: Segment | None = lane.library
    return bool(lane.drawn) or (segment is not None and bool(segment.kept or segment.read))


def _forget(lane: Lane) -> None:
    lane.drawn = None
    lane.reel.drew.pop(id(lane), None)
    lane.reel.read.pop(id(lane), None)


def given_out(text: str, reel: Reel) -> dict[str, Any]:
    """Look for what libraries drew in a text that a run gives out; tells what was drawn before calls that are told.

    What was drawn since the last call of a lane is told with the next one.
    """
    entries: list[Json] = []
    for segment in flows.note_output(text, reel):
        if segment.call or segment.reel is not reel:
            call = format(segment.call, "016x") if segment.call else ""
            entries.append([call, segment.lane.path, _of_libraries(segment, -1, 0)])
            segment.kept = {} if segment.call and segment.reel is reel else segment.kept
    return {EARLIER: compact(entries)} if entries else {}


def crossed(lane: Lane, call: int) -> None:
    """Hear that a call, or a unit of work, begins on a lane: what libraries draw from now on is drawn behind it."""
    segment: Segment | None = lane.library
    if segment is not None:
        segment.call, segment.kept, segment.read, lane.library = call, {}, {}, None


def rest(reel: Reel, root: int) -> dict[str, Any]:
    """Take what the lanes of a run drew since their last calls, for the end of the run whose root span this is."""
    facts: dict[str, Any] = {}
    lane_pages: list[Json] = []
    for lane in tuple({**reel.drew, **reel.read}.values()):
        if pages := _pages(lane, root, root):
            lane_pages.append([lane.path, pages])
        lane.drawn = None
    reel.drew.clear()
    reel.read.clear()
    if lane_pages:
        facts[REST] = compact(lane_pages)
    if reel.forgotten:
        facts["reenact.draws.forgotten"] = reel.forgotten
    return facts


def paused(reel: Reel, began_ns: int, root: int) -> dict[str, Any]:
    """Take the pauses of the lanes of a run: places in the sequence, microseconds since it began, done, call, loop."""

    def spelled(each: Pause) -> Json:
        call: list[Json] = [format(each.call, "016x")] if each.call not in {0, root} else []
        loop: list[Json] = [each.loop if each.beside else -each.loop] if each.loop else []
        done_places: list[Json] = [list(each.done)] if each.done is not None else []
        return [each.began, each.ended, (each.at_ns - began_ns) // 1000, *done_places, *call, *loop]

    by_lane: dict[str, Json] = {lane: [spelled(each) for each in queue] for lane, queue in pauses.take(reel).items()}
    facts: dict[str, Any] = {PAUSES: compact(by_lane)} if by_lane else {}
    landings, reel.landings = reel.landings, {}
    if landings:
        facts[LANDINGS] = compact(landings)
    return facts | {UNPAUSED: reel.unpaused} if reel.unpaused else facts


def _pages(lane: Lane, parent: int, root: int) -> list[Json]:
    """Spell all that was drawn on a lane since its last call."""
    pages = _spelled(lane.drawn, parent, root) if lane.drawn else []
    segment: Segment | None = lane.library
    if segment is None:
        return pages
    return [*pages, *_of_libraries(segment, parent, root), *_read(segment, parent, root)]


def _of_libraries(segment: Segment, parent: int, root: int) -> list[Json]:
    """Spell what libraries drew and was seen, as pages with `[site, [[number, value], …], "library"]`."""
    pages: dict[str, list[Json]] = {}
    for (call, site), numbered_values in tuple(segment.kept.items()):
        values: list[Json] = [[number, site.source.spell(value)] for number, value in sorted(numbered_values.items())]
        if (lost := segment.counts[call, site] - flows.MOST) > 0:
            values.append({"lost": lost})
        pages.setdefault(_name(call, parent, root), []).append([site.key, values, _LIBRARY])
    return [[name, sites] for name, sites in pages.items()]


def _read(segment: Segment, parent: int, root: int) -> list[Json]:
    """Spell what clocks told libraries, as pages with `[site, [value, …], "clock"]`."""
    pages: dict[str, list[Json]] = {}
    for (call, site), values in tuple(segment.read.items()):
        spelled: list[Json] = [site.source.spell(value) for value in values]
        pages.setdefault(_name(call, parent, root), []).append([site.key, spelled, _CLOCK])
    return [[name, sites] for name, sites in pages.items()]


def _name(call: int, parent: int, root: int) -> str:
    span_id = root if call == _NOT_A_CALL else call
    return "" if span_id == parent else _ROOT if span_id == root else format(span_id, "016x")


def _spelled(drawn: dict[int, dict[Any, list[Any]]], parent: int, root: int) -> list[Json]:
    """Spell draws as `[[call, [[site, [value, …]], …]], …]`; the call is "" for the one that the span hangs below."""
    pages: list[Json] = []
    for call, page in tuple(drawn.items()):
        name = _name(call, parent, root)
        pages.append([name, [[site.key, [_value(site, value) for value in values]] for site, values in page.items()]])
    return pages


def _value(site: Site, value: Any) -> Json:
    return {"lost": value.count} if isinstance(value, Lost) else site.source.spell(value)
