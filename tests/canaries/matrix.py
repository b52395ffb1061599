"""Many recorded processes make one matrix: rows are recorded, with redaction and without, and the finds are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from canaries import commands, recorded, table
from canaries.promises import not_promised
from canaries.recorded import Left, Row
from canaries.searching import Cell, Search
from reenact.stores.directory import DirectoryStore

NEVER_WRITTEN = {"request header", "authorization header", "user in a URL", "request cookie", "reply cookie"}
"""Paths of which nothing is ever written down, redaction or not: the counter-proof is that the other side saw it."""
AT_ONCE = 7
"""Rows of one process: of what is done past every boundary 50 acts are listed."""


@dataclass
class Matrix:
    """What became of the cells of some rows."""

    cells: list[Cell] = field(default_factory=list[Cell])
    found: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    off: set[str] = field(default_factory=set[str])
    """Found with redaction off, or seen by the other side where nothing is ever written."""
    not_carried: dict[str, str] = field(default_factory=dict[str, str])
    places: set[str] = field(default_factory=set[str])
    size: int = 0

    def add(self, left: Left, *, off: bool) -> None:
        if off:
            self.off |= set(left.searched.found) | _seen(left)
            return
        self.cells += left.cells
        self.found |= left.searched.found
        self.not_carried |= {cell: why for cell, why in left.carried.items() if why}
        self.size += left.searched.size

    def void(self, cell: Cell) -> bool:
        """It cannot go that way: a header holds no line feed."""
        return cell.id in self.not_carried

    def told(self) -> str:
        """Spell the tables."""
        count = partial(table.lines, self.cells, self.found, self.void)
        by = {"class": lambda c: c.name, "encoding": lambda c: c.encoding, "path": lambda c: c.path}
        tables = (table.spelled(what, count(of)) for what, of in by.items())
        return "\n\n".join((*tables, f"{self.size:,} bytes searched"))

    def wrong(self) -> list[str]:
        """Say which promised cells were found."""
        found = (cell for cell in self.cells if cell.id in self.found and not not_promised(cell))
        return [f"{c.name} | {c.path} | {c.encoding} | {', '.join(sorted(self.found[c.id]))}" for c in found]

    def never_there(self, shown: Sequence[Cell]) -> list[str]:
        """Say which cells no path carried, even with redaction off: they prove nothing."""
        lost = (cell for cell in shown if cell.id not in self.off and not self.void(cell))
        return [f"{cell.name} | {cell.path} | {cell.encoding}" for cell in lost]


def _seen(left: Left) -> set[str]:
    search = Search([cell for cell in left.cells if cell.path in NEVER_WRITTEN])
    for said in left.seen:
        search.bytes(said, "the other side")
    sent = {cell.id for cell in left.cells if cell.path == "reply cookie" and not left.carried.get(cell.id)}
    return set(search.result.found) | sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one recorded process carries."""

    rows: Sequence[Row] = ()
    """Each along every path."""
    streams: Sequence[tuple[str, str, str]] = ()
    """Class, kind of stream, encoding: cut at every place."""
    deaths: Sequence[Row] = ()
    """Each cut at every place in streams that the process does not survive."""
    paths: Sequence[str] = ()
    """Those that the rows go along; all by default."""
    facts: bool = False
    """The rows are facts of the process alone: its words, variables and resource."""


def recorded_part(folder: Path, part: Part, *, off: bool, looked_at: int = 0) -> Left:
    """Record one process, and search all that is left, and what is said of `looked_at` runs."""
    if part.facts:
        return recorded_process(folder, part.rows, off=off)
    cells, plan = recorded.plan_of(part.rows, part.paths)
    streamed, more_runs = recorded.plan_of_streams(part.streams)
    dying, plan["killed"] = recorded.plan_of_deaths(part.deaths)
    plan["runs"] += more_runs["runs"]

    def more(left: Left, search: Search) -> None:
        if looked_at:
            store = DirectoryStore(folder / "store")
            commands.everything(left, search, [entry.id for entry in store.find(newest=looked_at)])

    return recorded.record(folder, [*cells, *streamed, *dying], plan, off=off, more=more)


def recorded_process(folder: Path, rows: Sequence[Row], *, off: bool) -> Left:
    """Record a small process whose own facts hold canaries."""
    environ: dict[str, str] = {}
    cells, words = recorded.of_process(rows, environ)
    called, plan = recorded.plan_of(rows[:1], ("tool argument",))
    return recorded.record(folder, [*cells, *called], plan, off=off, words=words, environ=environ)


def everything(folder: Path, parts: Sequence[Part], off: Sequence[Part], *, looked_at: int = 0) -> Matrix:
    """Record all parts, one after the other; those of `off` with redaction off."""
    matrix = Matrix()
    jobs = [(False, part) for part in parts] + [(True, part) for part in off]
    for number, (without, part) in enumerate(jobs):
        looks = 0 if without else looked_at
        matrix.add(recorded_part(folder / str(number), part, off=without, looked_at=looks), off=without)
    return matrix


def parts_of(rows: Sequence[Row], paths: Sequence[str] = ()) -> list[Part]:
    """Divide rows among processes."""
    some = [rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE)]
    return [*(Part(rows=each, paths=paths) for each in some), Part(rows=rows, facts=True)]
