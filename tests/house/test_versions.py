from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.!+]*)")
OLDER = ["openai<3", "anthropic<1", "httpx", "pytest>=9.0", "pytest-timeout", "pyyaml"]


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def pins(path: Path) -> dict[str, str]:
    """Read a constraints file; a line that is neither a pin nor a comment is refused."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    matches = {line: PIN.fullmatch(line) for line in lines}
    assert [line for line, match in matches.items() if match is None] == [], "not of the form name==version"
    return {canonicalize_name(match[1]): match[2] for match in matches.values() if match}


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-older.txt"])
def test_every_constraint_is_a_plain_pin_in_order(root: Path, name: str) -> None:
    pinned = pins(root / name)
    assert list(pinned) == sorted(pinned)
    assert len(pinned) > 20


def test_what_the_project_asks_for_is_pinned_within_its_bounds(root: Path, project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"].values()
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"], *(r for e in extras for r in e)]
    assert unmet(asked, pins(root / "constraints.txt")) == []


def test_what_the_second_environment_asks_for_is_pinned_within_its_bounds(root: Path, project: dict[str, Any]) -> None:
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"], *OLDER]
    assert unmet(asked, pins(root / "constraints-older.txt")) == []


def test_no_requirement_has_an_upper_bound_or_an_address(project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"].values()
    asked = [Requirement(text) for text in [*project["project"]["dependencies"], *(r for e in extras for r in e)]]
    assert [str(one) for one in asked if one.url or [s for s in one.specifier if s.operator != ">="]] == []


def unmet(asked: list[str], pinned: dict[str, str]) -> list[str]:
    requirements = [Requirement(text) for text in asked]
    return [str(one) for one in requirements if pinned.get(canonicalize_name(one.name), "") not in one.specifier]
