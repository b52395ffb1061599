"""The documents: a front page that is short, an index that names every page, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import documents

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
OF_OURS = frozenset(
    f"REENACT_{name}"
    for name in (
        *("ADDED", "BESIDE", "GUARDED", "HANDED", "LEADS", "MODULES", "ORIGIN", "PARENT", "RECORD", "RECORDING"),
        *("REPLACED", "SHELL_VARIABLES"),
        *("REDACTION_TOLD", "REPLAY", "RUN_KEY", "SALT"),
    )
)
"""What one process of ours tells another; no user sets them."""
OF_AN_IDENTITY = frozenset({"REENACT_USER", "REENACT_SESSION", "REENACT_TENANT"})
"""The source makes these names of the name of the attribute."""


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in documents.PAGES.values()}


def anchors(text: str) -> set[str]:
    """Give the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def test_the_front_page_is_short(root: Path) -> None:
    text = (root / "README.md").read_bytes()
    assert len(text.splitlines()) <= 150
    assert len(text) <= 8192


def test_every_page_is_in_the_index(root: Path) -> None:
    index = (root / "docs" / "README.md").read_text()
    names = {path.name for path in (root / "docs").glob("*.md")} - {"README.md"}
    assert names - set(LINK.sub(lambda match: f" {match[1]} ", index).split()) == set()


def test_every_link_leads_somewhere(pages: dict[Path, str]) -> None:
    lost: list[str] = []
    for page, text in pages.items():
        for target, anchor in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if "://" in target:
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text())):
                lost.append(f"{page.name}: {target}#{anchor}")
    assert lost == []


def test_every_setting_is_in_the_table(root: Path, sources: list[Path]) -> None:
    name = re.compile(r"\bREENACT_[A-Z_]*[A-Z]\b")
    known = {each for path in sources for each in name.findall((root / path).read_text(encoding="utf-8"))}
    table = set(name.findall((root / "docs" / "settings.md").read_text()))
    assert known - OF_OURS - table == set(), "in the source, and not in the table"
    assert table - known - OF_AN_IDENTITY == set(), "in the table, and not in the source"
    named = {each for path in documents.PAGES.values() for each in name.findall(path.read_text(encoding="utf-8"))}
    assert named - OF_OURS - table == set(), "on a page, and not in the table"


def test_the_picture_of_the_house_names_every_room(root: Path, sources: list[Path]) -> None:
    rooms = {path.parts[2] for path in sources if len(path.parts) > 3}
    picture = (root / "docs" / "architecture.md").read_text().partition("## ")[0]
    assert rooms - set(re.findall(r"\w+", picture)) == set()
