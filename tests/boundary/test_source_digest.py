"""The digest of what a function is written as: other with each change of what it does, the same with any other."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reenact.boundary.source_digest import source_digest

TOOLS = '''
"""Tools."""
import functools
from .prices import LIMIT, rate as exchange
from . import shelf
from ._deep.more import *

seen = 0
TABLE = {"gold": 1}
TABLE["silver"] = 2

def logged(fn):
    @functools.wraps(fn)
    def inner(*args):
        return fn(*args)
    return inner

class Desk(shelf.Furniture):
    def __init__(self):
        self.drawer = "left"

    def look_up(self, name):
        """Look it up."""
        return self.open(self.drawer), self.lock(), name

    def open(self, drawer):
        return drawer

    def unused(self):
        return 1

@logged
def get_profile(user):
    """Give a profile."""
    global seen
    seen += 1  # counted
    from .prices import fee
    return helper(user), TABLE, LIMIT, exchange(2), shelf.plank(), deep(), fee()

def helper(user):
    return {"plan": "gold"}

def elsewhere():
    return 1

def build(plan):
    suffix = f"{plan}!"
    unrelated = 1
    def tool(user):
        return user + suffix
    return tool, lambda user: helper(user)
'''
OTHERS = {
    "__init__.py": "",
    "prices.py": "LIMIT = 10\n\ndef rate(x):\n    return x * FACTOR\n\nFACTOR = 3\n\ndef fee():\n    return 1\n",
    "shelf.py": (
        "def plank():\n    return board()\n\ndef board():\n    return 5\n\n"
        "class Furniture:\n    def lock(self):\n        return 'locked'\n"
    ),
    "_deep/__init__.py": "",
    "_deep/more.py": "def deep():\n    return 'deep'\n",
}
CHANGES = [
    ("tools.py", '"plan": "gold"', '"plan": "silver"'),
    ("tools.py", '{"gold": 1}', '{"gold": 9}'),
    ("tools.py", '["silver"] = 2', '["silver"] = 3'),
    ("tools.py", "return fn(*args)", "return fn(*args[:1])"),
    ("prices.py", "LIMIT = 10", "LIMIT = 11"),
    ("prices.py", "FACTOR = 3", "FACTOR = 4"),
    ("prices.py", "return 1", "return 2"),
    ("shelf.py", "return 5", "return 6"),
    ("_deep/more.py", "'deep'", "'deeper'"),
]
"""Each changes what `get_profile` does."""
NONE = [
    ("tools.py", "  # counted", "  # how often it was called"),
    ("tools.py", '"""Give a profile."""', '"""Give the profile of a user."""'),
    ("tools.py", '"""Tools."""', '"""Tools."""\n# moved\n\n'),
    ("tools.py", "def elsewhere():\n    return 1", "def elsewhere():\n    return 2"),
    ("tools.py", "return helper(user), TABLE", "return (helper( user ),  TABLE"),
    ("shelf.py", "'locked'", "'open'"),
]
"""None changes what it does."""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[str] = []

    def loaded(*changes: tuple[str, str, str]) -> ModuleType:
        name = f"agent_{len(made)}"
        made.append(name)
        for path, text in {"tools.py": TOOLS, **OTHERS}.items():
            for file, old, new in changes:
                if file == path:
                    assert old in text
                    closes = "return (helper" in new
                    text = text.replace(old, new)  # noqa: PLW2901 - it is the text that changes
                    text = text.replace("deep(), fee()", "deep(), fee())") if closes else text  # noqa: PLW2901
            target = tmp_path / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            os.utime(target, (1_000_000_000, 1_000_000_000))
        importlib.invalidate_caches()
        return importlib.import_module(f"{name}.tools")

    yield loaded
    for name in [each for each in sys.modules if each.partition(".")[0] in made]:
        del sys.modules[name]


def test_each_change_of_what_it_does_is_seen_wherever_it_stands(load: Callable[..., ModuleType]) -> None:
    before = source_digest(load().get_profile)
    assert before
    for change in CHANGES:
        now = source_digest(load(change).get_profile)
        assert now not in {"", before}, change


def test_no_other_change_is(load: Callable[..., ModuleType]) -> None:
    module = load()
    before = source_digest(module.get_profile)
    module.get_profile("u")
    assert module.seen == 1
    assert source_digest(module.get_profile) == before
    for change in NONE:
        assert source_digest(load(change).get_profile) == before, change


def test_a_method_stands_on_what_it_reads_of_its_instance(load: Callable[..., ModuleType]) -> None:
    before = source_digest(load().Desk().look_up)
    assert before
    for old, new in (('"left"', '"right"'), ("return drawer", "return drawer or None")):
        assert source_digest(load(("tools.py", old, new)).Desk().look_up) != before, old
    assert source_digest(load(("shelf.py", "'locked'", "'open'")).Desk().look_up) != before
    unused = ("tools.py", "def unused(self):\n        return 1", "def unused(self):\n        return 2")
    assert source_digest(load(unused).Desk().look_up) == before


def test_a_function_made_in_another_stands_on_what_it_names_there(load: Callable[..., ModuleType]) -> None:
    before = [source_digest(each) for each in load().build("gold")]
    assert all(before)
    other = [source_digest(each) for each in load(("tools.py", "{plan}!", "{plan}?")).build("gold")]
    assert (other[0] != before[0], other[1] == before[1]) == (True, True)
    assert [source_digest(each) for each in load(("tools.py", "unrelated = 1", "unrelated = 2")).build("x")] == before
    helper = ("tools.py", '"plan": "gold"', '"plan": "silver"')
    assert source_digest(load(helper).build("gold")[1]) != before[1]


def test_what_has_no_source_of_the_agents_has_no_digest(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    space: dict[str, Callable[..., object]] = {}
    exec("def made(): return 1", space)
    assert source_digest(space["made"]) == source_digest(len) == source_digest(time.sleep) == ""
    module = load()  # its file was written anew since it was loaded
    (tmp_path / module.__name__.replace(".", "/")).with_suffix(".py").write_text(
        TOOLS.replace('"plan": "gold"', '"plan": "silver"')
    )
    assert source_digest(module.helper) == ""
