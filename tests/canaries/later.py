"""A recording, and what is said and written when the same program runs again with the secrets of another day."""

from __future__ import annotations

import json
from pathlib import Path

from canaries import commands, recorded
from canaries.encodings import BY_NAME
from canaries.recorded import Left
from canaries.searching import Cell, Search
from canaries.values import canary

PATHS = (
    "run input",
    "run user",
    "chat prompt",
    "chat tool schema",
    "query of a model call",
    "messages MCP authorization_token",
    "tool argument, nested",
    "body of a plain call, form",
    "path of a plain call",
    "file name",
)
ROWS = [("github_token", "plain")]


def todays(cell: Cell) -> Cell:
    """Give a cell another canary."""
    value = canary(cell.name, "today", cell.path, cell.encoding)
    spell = BY_NAME[cell.encoding].spell
    text = cell.text.replace(spell(cell.value), spell(value))
    return Cell(id=cell.id, name=cell.name, path=cell.path, encoding=cell.encoding, value=value, text=text)


def again(folder: Path, *, off: bool) -> Left:
    """Record, then replay and fork with other canaries in every place, and search for those alone."""
    cells, plan = recorded.plan_of(ROWS, PATHS)
    left = recorded.record(folder, cells, dict(plan), off=off)
    others = {cell.id: todays(cell) for cell in cells}
    search = Search(others.values())
    for run in plan["runs"]:
        for cell in run["cells"]:
            cell["text"] = others[cell["id"]].text
        for fact in ("user", "input"):
            old = next(cell for cell in cells if cell.path == f"run {fact}" and cell.text == run[fact])
            run[fact] = others[old.id].text
    plan |= {"url": json.loads((folder / "plan.json").read_text())["url"], "report": str(folder / "again.json")}
    (folder / "again plan.json").write_text(json.dumps(plan))
    for words in (
        ["replay", "last", "--after", "nearest", "--json"],
        ["fork", "last", "--at", "first llm", "--set", "text=Something else.", "--after", "nearest"],
    ):
        commands.again(left, search, words, folder / "again plan.json", off=off)
    return Left(list(others.values()), search.result, {}, folder)
