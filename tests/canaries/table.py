"""The table of the canaries: planted, promised, caught, found; and what patterns over string attributes catch of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from canaries.promises import not_promised
from canaries.searching import Cell

NAIVE: Mapping[str, re.Pattern[str]] = {
    "github_token": re.compile(r"\bghp_[A-Za-z0-9]{36}\b"),
    "jwt": re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"),
    "private_key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----"),
    "e_mail": re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b"),
    "payment_card": re.compile(r"\b[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}\b"),
    "iban": re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]{4}){3,7}(?: ?[0-9A-Z]{1,3})?\b"),
    "phone": re.compile(r"\+[0-9]{1,3}[ .-]?(?:[0-9]{2,5}[ .-]?){2,4}"),
}
"""The patterns that others put over the string attributes of a span."""


def naively_caught(cell: Cell) -> bool:
    """Tell whether a pattern over the span's string finds the value: the text as a model call's attribute holds it."""
    attribute = json.dumps({"messages": [{"role": "user", "content": cell.text}]})
    if cell.name == "known_secret":
        return cell.value in attribute
    return any(found[0] in cell.value or cell.value in found[0] for found in NAIVE[cell.name].finditer(attribute))


@dataclass(slots=True)
class Line:
    """One row of the table."""

    planted: int = 0
    void: int = 0
    promised: int = 0
    found: int = 0
    """Of the promised ones."""
    caught_all_the_same: int = 0
    not_promised: int = 0
    naive: int = 0

    @property
    def caught(self) -> int:
        return self.promised - self.found

    def spelled(self, name: str) -> str:
        others = f"{self.caught_all_the_same}/{self.not_promised}" if self.not_promised else ""
        numbers = (self.planted, self.promised, self.caught, self.found, others, self.naive)
        return f"| {name} | {' | '.join(map(str, numbers))} |"


HEAD = (
    "| {} | planted | promised | caught | found | caught of the not promised | patterns over string attributes |\n"
    "|---|---|---|---|---|---|---|"
)


def lines(
    cells: Iterable[Cell], found: Mapping[str, set[str]], void: Callable[[Cell], bool], by: Callable[[Cell], str]
) -> dict[str, Line]:
    """Count the cells by one of their facts. A cell that could not be carried counts for nothing."""
    table: dict[str, Line] = {}
    for cell in cells:
        line = table.setdefault(by(cell), Line())
        if void(cell):
            line.void += 1
            continue
        line.planted += 1
        line.naive += naively_caught(cell)
        if not_promised(cell):
            line.not_promised += 1
            line.caught_all_the_same += cell.id not in found
        else:
            line.promised += 1
            line.found += cell.id in found
    return table


def total(table: Mapping[str, Line]) -> Line:
    """Add the rows up."""
    whole = Line()
    for line in table.values():
        for name in Line.__slots__:
            setattr(whole, name, getattr(whole, name) + getattr(line, name))
    return whole


def spelled(what: str, table: Mapping[str, Line]) -> str:
    """Spell a table in Markdown."""
    rows = [line.spelled(name) for name, line in table.items()]
    return "\n".join((HEAD.format(what), *rows, total(table).spelled("**all**")))
