from __future__ import annotations

import logging
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact import discover
from reenact.contracts.format import Format, HeadMarks
from reenact.contracts.shape import Shape


@pytest.fixture(autouse=True)
def _looked_for_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Put an empty folder on the path, and forget what was found, before and after."""
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield
    forget()


def forget() -> None:
    discover._members.cache_clear()
    discover._entries.cache_clear()
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


SURE_PLUG_IN = """
from reenact.contracts.format import Format
FIRST = Format(name="first", suffix=".1", recognises=lambda head: 0.99, decode=lambda f, p: iter(()))
"""


def test_a_plug_in_is_among_the_entries_and_is_asked_what_no_mark_of_its_tells(tmp_path: Path) -> None:
    install(tmp_path, "[reenact_formats]\nfirst = strangers:FIRST\n", SURE_PLUG_IN)
    found = discover.entries("formats", Format)
    assert [entry.load().name for entry in found] == names()
    assert found[-1].outline["name"] == "first"
    among = discover.candidates("formats", Format, HeadMarks.read)
    sure, chosen = discover.surest(among, b'{"resourceSpans": []}')
    assert (sure, chosen.name if chosen else "") == (0.99, "first")
    sure, chosen = discover.surest(among, b"RNACTJ3\n")
    assert (sure, chosen.name if chosen else "") == (0.99, "journal")


def test_no_distribution_is_parsed_where_none_mentions_us() -> None:
    source = (
        "import sys; from reenact.contracts.format import Format; from reenact.discover import entries\n"
        "assert entries('formats', Format); print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.parametrize("packed", ["a zip file", "an egg"])
def test_what_is_no_plain_folder_of_distributions_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    before = names()
    forget()
    archive = tmp_path / ("strangers.zip" if packed == "a zip file" else "strangers-1.0-py3.egg")
    folder = "strangers-1.0.dist-info" if packed == "a zip file" else "EGG-INFO"
    with zipfile.ZipFile(archive, "w") as writing:
        writing.writestr("strangers.py", SURE_PLUG_IN)
        named = "METADATA" if packed == "a zip file" else "PKG-INFO"
        writing.writestr(f"{folder}/{named}", "Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
        writing.writestr(f"{folder}/entry_points.txt", "[reenact_formats]\nfirst = strangers:FIRST\n")
    monkeypatch.syspath_prepend(str(archive))
    assert names() == [*before, "first"]
    assert [entry.load().name for entry in discover.entries("formats", Format)] == [*before, "first"]
