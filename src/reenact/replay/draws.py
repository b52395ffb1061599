"""Giving back what the recorded run drew of the clock and of chance.

Recorded draws are found by who drew: the reel (the program's own lines of execution, or a unit's), the lane, the call
inside which it was drawn, the site. Between two calls that a lane makes they are a segment; when the replay makes a
recorded call, the lane goes on with the segment behind it, however much of the one before was used.

What the recording does not hold is never made up: a site that is new, or drew more often, gets a real value, and the
ledger says so. Only the clock is not the real one then. It runs on from the last moment that was given back, since a
day's jump in the middle of a run would be no answer to anything. So does each clock that says how long something took;
of those nothing is told, since a loop that waits reads them another number of times.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from reenact.boundary.inbound import LANE
from reenact.boundary.lanes import Lane, Reel
from reenact.boundary.place import Place
from reenact.boundary.tape import Site, Source
from reenact.replay.guard import is_allowed
from reenact.replay.ledger import Ledger
from reenact.replay.stubs import process_of
from reenact.values.call import CallKind
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import Node, Run

TAPE: Final = "reenact.tape"
_NAME, _BEFORE, _REST = "reenact.draws", "reenact.draws.before", "reenact.draws.rest"
_PROCESS: Final = "reenact.draws.process"
_EARLIER: Final = "reenact.draws.earlier"
_ROOT: Final = "/"
_NOTHING: Final = object()
_monotonic = time.monotonic  # the real one, before the clock integration stands in front of it
_NOTES: Final = 200
"""So many sites are told one by one."""

Page = dict[str, deque[Json]]
Where = tuple[str, str]
"""A lane, and the id of the call inside which it draws; "" for the root."""


class Scope:
    """What was drawn below one root: of a process, of a unit of work, of a job in another process."""

    def __init__(self, root: Node | None) -> None:
        self.root = root
        self.id = root.id if root is not None else ""
        self._segments: dict[Where, dict[int, Page]] = defaultdict(lambda: defaultdict(dict))
        self._count: dict[Where, int] = defaultdict(int)
        """How many calls, or units of work, a lane makes inside a call."""
        self._behind: dict[str, tuple[Where, int]] = {}
        """Which segment begins behind a call."""
        self._units: dict[str, list[int]] = defaultdict(list)
        """Which segments begin behind the units of work on a lane."""
        self._at: dict[Where, int] = {}
        self._of_libraries: dict[tuple[Where, int, str], dict[int, Json]] = defaultdict(dict)
        """What libraries drew at a site in a segment and was seen in what the run gave out, by its number there."""
        self._clock_readings: dict[tuple[Where, int, str], list[Json]] = defaultdict(list)
        """What a clock told libraries at a site in a segment."""
        self._numbers: dict[tuple[Where, int, str], int] = defaultdict(int)

    def where(self, lane: str, call: str | None) -> Where:
        """Name a place; a call that is the root itself is none."""
        return lane, "" if call is None or call in {self.id, _ROOT} else call

    def add(self, node: Node, earlier: Iterable[Json] = ()) -> None:
        """Add a call, in start order, and what its lane drew before it; `earlier` are pages that later ones told."""
        where = self.where(node.lane, node.parent)
        self._keep(node.lane, where[1], node.span.attributes.get(_NAME))
        self._keep_pages(node.lane, where[1], [*earlier])
        if not node.call.places_draws:  # what its lane drew before stands before its next call
            return
        self._count[where] += 1
        self._behind[node.id] = where, self._count[where]

    def add_unit(self, root: Node, earlier: Iterable[Json] = ()) -> None:
        """Add a unit of work of its own that began on a lane of this one, in start order."""
        where = (root.lane, "")
        self._keep(root.lane, "", root.span.attributes.get(_BEFORE))
        self._keep_pages(root.lane, "", [*earlier])
        self._count[where] += 1
        self._units[root.lane].append(self._count[where])

    def add_rest(self) -> None:
        """Add what was drawn after the last calls."""
        rest_json = self.root.span.attributes.get(_REST) if self.root is not None else None
        for each in as_list(parsed_or_none(rest_json) if isinstance(rest_json, str) else None):
            match each:
                case [str() as lane, pages]:
                    self._keep_pages(lane, "", pages)
                case _:
                    continue

    def add_process(self, sites: Json) -> None:
        """Add what a process drew before any call, outside of all units that came in."""
        self._keep_pages("main", "", [["", sites]])

    def add_begin(self, lane: str, pages: Iterable[Json]) -> None:
        """Add what libraries drew on a lane before any call, as a later call of another reel told it."""
        self._keep_pages(lane, "", [*pages])

    def _keep(self, lane: str, parent: str, pages_json: object) -> None:
        if isinstance(pages_json, str):
            self._keep_pages(lane, parent, parsed_or_none(pages_json))

    def _keep_pages(self, lane: str, parent: str, pages: Json) -> None:
        for page in as_list(pages):
            match page:
                case [str() as call, list() as sites]:
                    where = (lane, parent) if call == "" else self.where(lane, call)
                    segment = self._segments[where][self._count[where]]
                case _:
                    continue
            for each in sites:
                match each:
                    case [str() as key, list() as values]:
                        segment.setdefault(key, deque()).extend(values)
                    case [str() as key, list() as values, "clock"]:
                        self._clock_readings[where, self._count[where], key] += values
                    case [str() as key, list() as values, "library"]:
                        library_values = self._of_libraries[where, self._count[where], key]
                        library_values.update(_numbered(values))
                    case _:
                        continue

    def next(self, where: Where, key: str, units: Mapping[str, int]) -> Json | object:
        """Take the next recorded draw of a site."""
        at = self._segment(where, units)
        return self._taken(self._segments[where][at].get(key) if where in self._segments else None)

    def next_of_any_lane(self, key: str) -> Json | object:
        """Take the next recorded draw of a site outside every call, whichever lane drew."""
        for (_, call), pages in self._segments.items():
            for _, page in sorted(pages.items()) if not call else ():
                if (draw := self._taken(page.get(key))) is not _NOTHING:
                    return draw
        return _NOTHING

    @staticmethod
    def _taken(values: deque[Json] | None) -> Json | object:
        if not values:
            return _NOTHING
        try:
            value = values[0]
            if not isinstance(value, dict):
                return values.popleft()
        except IndexError:  # another thread of the same lane took it
            return _NOTHING
        left = value.get("lost")
        if isinstance(left, int) and left > 1:
            values[0] = {"lost": left - 1}
        else:
            values.popleft()
        return _NOTHING

    def next_of_library(self, where: Where, key: str, units: Mapping[str, int], *, unseen: bool) -> Json | object:
        """Take the next recorded draw of a library's site; most of them are not recorded.

        Of clocks there is what nobody saw, too, where the `unseen` is wanted.
        """
        place = where, self._segment(where, units), key
        numbered_values, read = self._of_libraries.get(place), self._clock_readings.get(place) if unseen else None
        if numbered_values is None and read is None:
            return _NOTHING
        number = self._numbers[place]
        self._numbers[place] = number + 1
        if numbered_values is not None and number in numbered_values:
            return numbered_values[number]
        return read[number] if read is not None and number < len(read) else _NOTHING

    def first(self, source: str) -> float | None:
        """Say what a clock that tells how long something took was read as first."""
        own = (readings for pages in self._segments.values() for page in pages.values() for readings in page.items())
        libraries = ((key, values) for (_, _, key), values in self._clock_readings.items())
        values = (each for key, readings in (*own, *libraries) if key.endswith(f" {source}") for each in readings)
        return min((each for each in values if isinstance(each, int | float)), default=None)

    def _segment(self, where: Where, units: Mapping[str, int]) -> int:
        """Say behind how many calls and units of work a lane stands."""
        at = self._at.get(where, 0)
        if where[1] == "" and (begun := units.get(where[0])):
            behind = self._units[where[0]][:begun]
            at = max([at, *behind[-1:]])
        return at

    def crossed(self, node: Node) -> None:
        """Hear that its call was made again: what its lane draws from now on was drawn behind it."""
        if (behind := self._behind.get(node.id)) is not None:
            self._at[behind[0]] = behind[1]


class Draws:
    """Gives recorded draws back (`boundary.tape.Answers`)."""

    def __init__(
        self,
        runs: Iterable[Run],
        selected: Run,
        ledger: Ledger,
        process: Callable[[], str],
        *,
        block: bool = False,
        is_closed: bool = True,
    ) -> None:
        """Give back what `runs` drew. A `block` of code begins with what the selected unit drew.

        Where a replay is not closed, libraries may sign what they send to somebody who has today's date, and what they
        measure may be a call that is really made.
        """
        self._ledger = ledger
        self._block, self._is_closed = block, is_closed
        self.process = process
        """Says which recorded process this one is again."""
        self._of: dict[str, Scope] = {}
        """The scope of every recorded call."""
        self._own: dict[str, Scope] = {}
        """Of the recorded processes, outside all units."""
        self._by_lane: dict[str, Scope] = {}
        """Of what was handed to other processes."""
        self._units: dict[tuple[str, str], list[Scope]] = defaultdict(list)
        self._volatile_sites: set[tuple[str, str]] = set()
        self._clock: tuple[Source, Any, float] | None = None
        self._clocks = set[str]()
        """The modules of libraries that were given recorded times."""
        self._began = _monotonic()
        self._elapsed: dict[str, tuple[Any, Any]] = {}
        """Of each clock that says how long something took: the last value given back, and what it was really."""
        tape = taped(selected)
        self.is_taped = tape is not None
        """Whether the recording has a tape at all."""
        self.generators = {name: str(mode) for name, mode in as_object((tape or {}).get("generators")).items()}
        """The modes of the shared random generators, as they were when the recorded run began."""
        self._by_run: dict[str, Scope] = {}
        """Of the units that came in, by their runs."""
        self._came_in: deque[Scope] = deque()
        self._delivered: Scope | None = None
        self._load([node for run in runs for node in run.nodes], selected.root.id if selected.root is not None else "")

    def _load(self, nodes: list[Node], selected: str) -> None:
        by_id = {node.id: node for node in nodes}
        nodes.sort(key=lambda node: (process_of(node), node.start_order, node.span.start_ns))
        roots = [node for node in nodes if TAPE in node.span.attributes]
        for root in roots:
            self._place(root)
        self._by_run = {root.trace_id: self._of[root.id] for root in roots if root.lane == LANE}
        for root in roots:
            self._own.setdefault(process_of(root), Scope(None))
        self._delivered = self._of.get(selected)
        earlier = self._earlier(nodes)
        for node in nodes:
            if TAPE not in node.span.attributes:
                if (scope := self._nearest(node, by_id)) is not None:
                    self._of[node.id] = scope
                    scope.add(node, earlier.get(node.id, ()))
            elif node.kind is not CallKind.CHAIN and node.lane != LANE:
                self._own[process_of(node)].add_unit(node, earlier.get(node.id, ()))
        for root in roots:
            self._of[root.id].add_rest()
        if (delivered := self._delivered) is not None and delivered.root is not None:
            process_json = delivered.root.span.attributes.get(_PROCESS)
            own = self._own[process_of(delivered.root)]
            if isinstance(process_json, str) and own.root is None:
                own.add_process(parsed_or_none(process_json))

    def _earlier(self, nodes: Iterable[Node]) -> dict[str, list[Json]]:
        """Read what later calls told of earlier draws: pages by the call that ended the segment they stand in."""
        pages_by_call = defaultdict[str, list[Json]](list)
        for node in nodes:
            earlier_json = node.span.attributes.get(_EARLIER)
            for each in as_list(parsed_or_none(earlier_json) if isinstance(earlier_json, str) else None):
                match each:
                    case ["", str() as lane, list() as pages]:
                        self._own.setdefault(process_of(node), Scope(None)).add_begin(lane, pages)
                    case [str() as call, str(), list() as pages]:
                        pages_by_call[call] += pages
                    case _:
                        continue
        return pages_by_call

    def _place(self, root: Node) -> None:
        """Make the scope of a root, and note whose draws it holds."""
        scope = self._of[root.id] = Scope(root)
        if root.kind is CallKind.CHAIN:
            if "/p:" in root.lane:
                self._by_lane.setdefault(root.lane, scope)
            self._own.setdefault(process_of(root), scope)
        elif root.lane == LANE:
            self._came_in.append(scope)
        else:
            self._units[process_of(root), root.lane].append(scope)

    def _nearest(self, node: Node, nodes: Mapping[str, Node]) -> Scope | None:
        at: Node | None = node
        seen_ids = set[str]()
        while at is not None and at.id not in seen_ids:
            seen_ids.add(at.id)
            if TAPE in at.span.attributes:
                return self._of.get(at.id)
            at = nodes.get(at.parent or "")
        return None

    def _scope(self, reel: Reel) -> Scope | None:
        cached_pair: Any = reel.recorded
        if cached_pair is not None and cached_pair[0] is self:
            cached_scope: Scope | None = cached_pair[1]
            return cached_scope
        process = self.process()
        if reel.again and reel.path == LANE and not reel.unit:
            scope = self._by_run.get(reel.again)
        elif self._block and (units := self._from_the_selected(reel)):
            scope = units[max(reel.unit, 1) - 1] if reel.unit <= len(units) else None
        elif reel.unit:
            units = self._units.get((process, reel.path), [])
            scope = units[reel.unit - 1] if reel.unit <= len(units) else None
        elif reel.path == LANE:
            scope = self._next_unit()
        elif "/p:" in reel.path:
            scope = self._by_lane.get(reel.path)
        else:
            scope = self._own.get(process)
        reel.recorded = self, scope
        return scope

    def _next(self, scope: Scope, lane: Lane, here: Place | None, key: str) -> Json | object:
        call = here.recorded if here is not None and isinstance(here.recorded, str) else None
        draw = scope.next(scope.where(lane.path, call), key, lane.reel.units)
        if draw is _NOTHING and call is None and self._is_around_the_delivered(scope):
            return scope.next_of_any_lane(key)
        return draw

    def _is_around_the_delivered(self, scope: Scope) -> bool:
        """Tell whether it is of the process whose unit is delivered: without its server, its lanes have other names."""
        delivered = self._delivered.root if self._delivered is not None else None
        return delivered is not None and delivered.lane == LANE and scope is self._own.get(process_of(delivered))

    def _from_the_selected(self, reel: Reel) -> list[Scope]:
        """List the units of work on a lane from the one on that is replayed: a block begins with it."""
        units = self._units.get((self.process(), reel.path if reel.unit else "main"), [])
        at = next((at for at, each in enumerate(units) if each is self._delivered), len(units))
        return units[at:] if reel.unit or reel.path == "main" else []

    def _next_unit(self) -> Scope | None:
        """Give the unit that is delivered again; where the whole program runs again, one after the other."""
        delivered = self._delivered
        if delivered is not None and delivered.root is not None and delivered.root.lane == LANE:
            return delivered
        return self._came_in.popleft() if self._came_in else None

    def crossed(self, lane: str, node: Node) -> None:
        """Hear that a lane made a recorded call again."""
        scope = self._of.get(node.id)
        if scope is not None and node.lane == lane:
            scope.crossed(node)

    def take(
        self, lane: Lane, here: Place | None, site: Site, make: Callable[[], Any], at: Callable[[float], Any] | None
    ) -> Any:
        """Give the recorded draw; a call that the policy lets go live sees the real world."""
        if is_allowed():
            return make()
        scope = self._scope(lane.reel)
        why = "draw not recorded"
        if scope is not None:
            draw = self._next(scope, lane, here, site.key)
            if draw is not _NOTHING:
                try:
                    value = site.source.read(draw)  # type: ignore[arg-type]  # a site's source reads what it wrote
                except Exception as error:  # noqa: BLE001 - a value that redaction replaced, or that was damaged
                    why = f"draw cannot be read back ({type(error).__name__})"
                else:
                    self._keep(site, value, make)
                    return value
        if site.source.elapses:
            return self._elapsed_now(site.source.name, make())
        if not site.source.runs_on:
            self._tell(lane.path, site, why)
        return make() if at is None else at(self._now(scope))

    def _keep(self, site: Site, value: Any, make: Callable[[], Any]) -> None:
        """Keep what a clock said; say, once for each value, where the program would be given another one today."""
        if site.source.moment is not None:
            self._clock = site.source, value, _monotonic()
            return
        if not (site.source.elapses or site.source.is_compared):
            return
        now = make()
        if site.source.elapses:
            self._elapsed[site.source.name] = value, now
        elif now != value and (key := (site.key, compact([value, now]))) not in self._volatile_sites:
            self._volatile_sites.add(key)
            self._ledger.note("ignored", call="run", field=site.source.name, recorded=value, replay=now)

    def take_for_library(
        self, lane: Lane, here: Place | None, site: Site, make: Callable[[], Any], at: Callable[[float], Any] | None
    ) -> Any:
        """Give a recorded draw of a library's, else a real one: nobody knows that anything came of it.

        A clock is the recorded one, which runs on: the program's own times are recorded ones, and a library that holds
        them against another day's would take each appointment for missed. Where somebody outside may be talked to, that
        goes for the modules alone that were given a recorded time.
        """
        if is_allowed() or (scope := self._scope(lane.reel)) is None:
            return make()
        call = here.recorded if here is not None and isinstance(here.recorded, str) else None
        where = scope.where(lane.path, call)
        draw = scope.next_of_library(where, site.key, lane.reel.units, unseen=self._is_closed)
        module = site.key.partition(":")[0]
        if draw is not _NOTHING:
            with suppress(Exception):  # a value that redaction replaced, or that was damaged
                value = site.source.read(draw)  # type: ignore[arg-type]  # a site's source reads what it wrote
                if site.source.moment is not None:
                    self._clock = site.source, value, _monotonic()
                    self._clocks.add(module)
                elif site.source.elapses:
                    self._elapsed[site.source.name] = value, make()
                return value
        if site.source.elapses:
            return self._elapsed_now(site.source.name, make()) if self._is_closed else make()
        is_recorded = self._is_closed or module in self._clocks
        return at(self._now(scope)) if at is not None and is_recorded else make()

    def moment(self, lane: Lane) -> float:
        """Give what the recorded clock says now; a call that the policy lets go live sees the real one."""
        return time.time() if is_allowed() else self._now(self._scope(lane.reel))

    def _elapsed_now(self, name: str, now: Any) -> Any:
        """Let a clock that says how long something took go on from what it said last, or from what it said first.

        Code may hold what it read itself against what another module read.
        """
        if name not in self._elapsed and self._is_closed:
            first_readings = (each.first(name) for each in {*self._of.values(), *self._own.values()})
            first = min((each for each in first_readings if each is not None), default=now)
            self._elapsed[name] = first, now
        last, then = self._elapsed.get(name, (0, 0))
        return last + now - then

    def _now(self, scope: Scope | None) -> float:
        """Let the recorded clock run on."""
        now = _monotonic()
        if self._clock is not None:
            source, value, then = self._clock
            if source.moment is not None:
                return source.moment(value) + now - then
        root = scope.root if scope is not None else self._delivered.root if self._delivered is not None else None
        return (root.span.start_ns / 1e9 if root is not None else time.time()) + now - self._began

    def _tell(self, lane: str, site: Site, why: str) -> None:
        if not site.of_library and (lane, site.key) not in self._volatile_sites and len(self._volatile_sites) < _NOTES:
            self._volatile_sites.add((lane, site.key))
            self._ledger.note("volatile", site=site.key, lane=lane, reason=f"{why}: {site.key}")


def _numbered(values: Iterable[Json]) -> dict[int, Json]:
    """Read draws that are told with their numbers; what tells of lost ones has none."""
    pairs = [each for each in values if isinstance(each, list) and len(each) == 2]
    return {number: value for number, value in pairs if isinstance(number, int)}


def taped(run: Run) -> dict[str, Json] | None:
    """Say how the draws of a run were taped, from its root; None where they were not."""
    tape_json = run.root.span.attributes.get(TAPE) if run.root is not None else None
    return as_object(parsed_or_none(tape_json)) if isinstance(tape_json, str) else None
