"""The table of `docs/frameworks.md`: a line for each program, in the order of the rows."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from frameworks.rows import ROWS, Row
from frameworks.trial import Trial

PROPERTY = "framework"
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "frameworks.md"
_HEAD = "| program |"


def line(row: Row, trial: Trial) -> str:
    """Spell what came of a row."""
    cells = (
        _name(row),
        f"{row.framework} {version(row.framework)}",
        row.tries,
        f"{trial.llm} of {trial.made}",
        f"{trial.tools} of {trial.ran}",
        trial.structure or "none",
        ", ".join(trial.verdicts),
        ", ".join(trial.results),
        "identical" if trial.is_identical else "differs",
        "untouched" if trial.is_untouched else "changed",
    )
    return f"| {' | '.join(cells)} |"


def _name(row: Row) -> str:
    return f"[{row.program}](../tests/frameworks/programs/{row.program}.py)"


def lines() -> dict[str, str]:
    """Give the lines of the page, each under its first cell."""
    text = PAGE.read_text(encoding="utf-8")
    body = text[text.index(_HEAD) :].splitlines()[2:]
    return {each.split("|")[1].strip(): each for each in body if each.startswith("|")}


def write(fresh: dict[str, str]) -> None:
    """Put lines into the page; those of other environments stay."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index(_HEAD)
    head = text[begin:].splitlines()[:2]
    rest = text[begin:].partition("\n\n")[2]
    known = lines() | fresh
    body = [known[name] for row in ROWS.values() if (name := _name(row)) in known]
    told = "\n".join([*head, *body])
    PAGE.write_text(text[:begin] + told + (f"\n\n{rest}" if rest else "\n"), encoding="utf-8")
