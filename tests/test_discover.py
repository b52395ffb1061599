from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from reenact import discover
from reenact.contracts.format import Format
from reenact.contracts.shape import Shape


@pytest.fixture(autouse=True)
def _looked_for_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put an empty folder on the path, and forget what was found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()


def forget() -> None:
    discover._members.cache_clear()
    discover._entry_points.cache_clear()
    for name in [name for name in sys.modules if name.startswith("strangers")]:
        del sys.modules[name]


def install(folder: Path, entry_points: str, module: str = "", *, name: str = "strangers") -> None:
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


PLUG_IN = """
from reenact.contracts.format import Format
FIRST = Format(
    name="first", suffix=".1", recognises=lambda head: 0.0, encode=lambda spans: b"", decode=lambda f, p: iter(())
)
"""


def names(family: str = "formats") -> list[str]:
    return [member.name for member in discover.members(family, Format)]


def test_a_family_is_the_constants_of_its_modules_in_name_order() -> None:
    found = discover.members("shapes", Shape)
    assert found
    assert all(isinstance(member, Shape) for member in found)
    modules = [
        name
        for member in found
        for name, module in sys.modules.items()
        if name.startswith("reenact.shapes.") and member in vars(module).values()
    ]
    assert modules == sorted(modules)
    assert len(modules) == len(found)


def test_a_family_is_looked_for_once() -> None:
    assert discover.members("shapes", Shape) is discover.members("shapes", Shape)


@pytest.mark.parametrize("target", ["strangers:FIRST", "strangers"], ids=["a constant", "a module"])
def test_a_plug_in_comes_after_the_built_in_members(tmp_path: Path, target: str) -> None:
    before = names()
    forget()
    install(tmp_path, f"[reenact_formats]\nfirst = {target}\n", PLUG_IN)
    assert names() == [*before, "first"]


def test_a_plug_in_joins_only_the_family_that_it_names(tmp_path: Path) -> None:
    before = names()
    forget()
    install(
        tmp_path, "[reenact_format]\nfirst = strangers:FIRST\n[other]\nreenact_formats = strangers:FIRST\n", PLUG_IN
    )
    assert names() == before


@pytest.mark.parametrize(
    ("target", "module", "said"),
    [
        ("strangers:FIRST", "raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("strangers:FIRST", "raise SystemExit(3)", "SystemExit: 3"),
        ("strangers:FIRST", "import a_module_that_is_not_there", "ModuleNotFoundError"),
        ("strangers:GONE", PLUG_IN, "AttributeError"),
        ("strangers:FIRST", "FIRST = 'a string'", "it declares no Format"),
        ("strangers", "", "it declares no Format"),
        ("not a reference!", "", "is left out"),
    ],
)
def test_a_broken_plug_in_is_told_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, target: str, module: str, said: str
) -> None:
    before = names()
    forget()
    install(tmp_path, f"[reenact_formats]\nbroken = {target}\nsound = sound_stranger\n", module)
    (tmp_path / "sound_stranger.py").write_text(PLUG_IN, encoding="utf-8")
    with caplog.at_level(logging.WARNING, logger="reenact.discover"):
        assert names() == [*before, "first"]
    assert "'broken' in group 'reenact_formats'" in caplog.text
    assert said in caplog.text


def test_a_damaged_distribution_is_told_and_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = names()
    forget()
    install(tmp_path, "[reenact_formats]\nfirst = strangers\n", PLUG_IN)
    (tmp_path / "strangers-1.0.dist-info" / "entry_points.txt").write_bytes(b"[reenact_formats]\n\xff\xfe = x\n")
    assert names() == before
    assert "plug-ins cannot be listed: UnicodeDecodeError" in caplog.text


def test_the_same_constant_met_twice_is_one_member(tmp_path: Path) -> None:
    install(tmp_path, "[reenact_formats]\nfirst = strangers:FIRST\nagain = strangers\n", PLUG_IN)
    assert names().count("first") == 1
