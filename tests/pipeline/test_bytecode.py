from __future__ import annotations

import importlib.util
import os
import py_compile
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reenact.pipeline import bytecode
from reenact.pipeline.bytecode import missing_caches, write_caches


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that stands for ours, in a process that may write caches."""
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(bytecode, "_PACKAGE", folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return folder


def cache_of(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def loaded(source: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a file as the import system does, which writes no cache here."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return module


def test_a_module_whose_cache_is_not_there_is_missing_until_it_is_written(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(package / "one.py", "ours.one", monkeypatch)
    loaded(package / "__init__.py", "ours", monkeypatch)
    assert sorted(missing_caches()) == [str(package / "__init__.py"), str(package / "one.py")]
    write_caches(missing_caches())
    assert missing_caches() == []
    assert cache_of(package / "one.py").is_file()


def test_a_cache_that_was_written_is_the_one_that_the_import_system_takes(package: Path) -> None:
    write_caches([str(package / "one.py")])
    (package / "one.py").touch()
    told = cache_of(package / "one.py").read_bytes()
    code = importlib.util.spec_from_file_location("ours.one", package / "one.py")
    assert code is not None
    assert told[:4] == importlib.util.MAGIC_NUMBER
    os.utime(package / "one.py", (0, int.from_bytes(told[8:12], "little")))
    (package / "one.py").write_bytes(b"VALUE = 2\n")  # as long, and as old: only the cache knows the other
    os.utime(package / "one.py", (0, int.from_bytes(told[8:12], "little")))
    module = importlib.util.module_from_spec(code)
    assert code.loader is not None
    code.loader.exec_module(module)
    assert module.VALUE == 1


def test_a_cache_that_is_older_than_its_source_is_written_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_caches([str(package / "one.py")])
    (package / "one.py").write_text("VALUE = 11\n")
    os.utime(cache_of(package / "one.py"), (1, 1))
    loaded(package / "one.py", "ours.one", monkeypatch)
    assert missing_caches() == [str(package / "one.py")]
    write_caches(missing_caches())
    assert cache_of(package / "one.py").read_bytes()[12:16] == (11).to_bytes(4, "little"), "the size of the new source"


def test_a_cache_that_is_valid_or_goes_by_digest_stays_as_it_is(package: Path) -> None:
    source, cache = package / "one.py", cache_of(package / "one.py")
    for mode in (py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.UNCHECKED_HASH):
        py_compile.compile(str(source), invalidation_mode=mode)
        os.utime(cache, (1, 1))
        write_caches([str(source)])
        assert cache.stat().st_mtime == 1


def test_a_file_that_is_not_of_the_package_is_never_compiled(package: Path) -> None:
    other = package.parent / "other.py"
    other.write_text("VALUE = 1\n")
    write_caches([str(other), str(package / ".." / "other.py"), "other.py", "", "\0", str(package / "one.txt")])
    assert list(package.parent.rglob("*.pyc")) == []


def test_where_nothing_can_be_written_nothing_is_raised(package: Path) -> None:
    (package / "__pycache__").write_text("no folder")
    (package / "broken.py").write_text("this is no Python")
    write_caches([str(package / "one.py"), str(package / "broken.py"), str(package / "gone.py")])
    assert (package / "__pycache__").read_text() == "no folder"


def test_who_may_write_no_cache_writes_none(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_caches([str(package / "one.py")])
    assert list(package.rglob("*.pyc")) == []
