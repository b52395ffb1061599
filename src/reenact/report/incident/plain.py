"""The calls for a reader without JavaScript: a line each. The script takes its place."""

from __future__ import annotations

from reenact.report.incident.document import Document
from reenact.report.incident.markup import Html, el
from reenact.report.times import duration
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_text

_LISTED = 300
_DEEPEST = 6


def plain(built: Document) -> Html:
    """List the first calls with what each asked and what came of it."""
    rows, kinds = as_list(built.rows["rows"]), as_list(built.rows["kinds"])
    items = [_item(place, as_list(row), kinds) for place, row in enumerate(rows[:_LISTED])]
    left = len(rows) - _LISTED
    more = el("p", f"and {left:,} more, which the script of this page shows", class_="dim") if left > 0 else None
    return el("div", el("ol", *items), more, id="plain")


def _item(place: int, row: list[Json], kinds: list[Json]) -> Html:
    number, depth, kind, name, _, took, question, answer, marks = row
    word = as_text(kinds[as_count(kind) or 0])
    time = "" if took is None else f" {duration((as_count(took) or 0) / 1000)}"
    flags = ", ".join(as_text(each) for each in as_list(marks))
    return el(
        "li",
        el("strong", el("bdi", f"{word} {as_text(name)}"), f" #{number}"),
        f"{time}{f' [{flags}]' if flags else ''} ",
        el("bdi", f"{as_text(question)} → {as_text(answer)}") if question or answer else None,
        class_=f"d{min(as_count(depth) or 0, _DEEPEST)}",
        id=f"call-{place}",
    )
