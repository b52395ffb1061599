from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reenact.boundary import static_types
from reenact.boundary.static_types import OpenType, unsupported

TRIES = """
import datetime, pickle, runpy, sys
module = runpy.run_path(sys.argv[1])
assert module["unsupported"]() == "", module["unsupported"]()
held, cls = module["OpenType"](datetime.datetime), datetime.datetime
class Own(cls): pass
def read(): return cls.now()
for _ in range(1000): read()  # the interpreter has specialised it
original = vars(cls)["now"]
for _ in range(200):
    held.now = classmethod(lambda self, tz=None: (self, tz))
    assert read() == (cls, None) and cls.now(1) == (cls, 1) and Own.now() == (Own, None)
    assert pickle.loads(pickle.dumps(cls)) is cls is datetime.datetime
    held.now = original
    assert type(read()) is cls and type(Own.now()) is Own
assert vars(cls)["now"] is original
print(sys.version_info[:2])
"""


def interpreters(version: str) -> list[str]:
    """Name what may be that Python: this one, what the path names, what pyenv keeps."""
    here = [sys.executable] if version == f"{sys.version_info[0]}.{sys.version_info[1]}" else []
    named = shutil.which(f"python{version}")
    kept = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
    return [*here, *([named] if named else []), *map(str, kept)]


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_class_in_c_takes_another_method_and_its_own_again(version: str, tmp_path: Path) -> None:
    tries = tmp_path / "tries.py"
    tries.write_text(TRIES)
    found = (each for each in interpreters(version) if ran(each, "-c", "").returncode == 0)
    python = next(found, None)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    done = ran(python, str(tries), static_types.__file__)
    assert done.stdout.strip() == f"({version.replace('.', ', ')})", done.stderr


def test_other_interpreters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unsupported() == ""
    monkeypatch.setattr(sys, "version_info", (3, 19, 0))
    assert unsupported() == "not tried on Python 3.19"
    monkeypatch.undo()
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    assert unsupported() == "not tried on pypy"


def test_a_class_that_does_not_take_it_is_named() -> None:
    class Plain:
        """Takes assignments by itself."""

    opened = OpenType(Plain)
    opened.mark = 3
    assert (vars(Plain)["mark"], opened.mark) == (3, 3)
    assert vars(OpenType(dt.date))["today"] is vars(dt.date)["today"]
