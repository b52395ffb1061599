from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reenact.boundary import origins
from reenact.values.json import parse


class App:
    def __init__(self, app: Any = None) -> None:
        self.app = app

    def __call__(self) -> None: ...


Module = Callable[..., ModuleType]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    def make(name: str, **held: object) -> ModuleType:
        made = ModuleType(name)
        vars(made).update(held)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    yield make
    origins._known.clear()
    origins._spelled.clear()


def test_an_application_is_found_in_the_module_that_holds_it(module: Module) -> None:
    app = App()
    module("made_up.service", other=1, api=app)
    assert origins.of(app) == origins.Origin(name="made_up.service:api")


def test_what_stands_around_it_is_taken_before_it(module: Module) -> None:
    inner = App()
    module("made_up.inner", app=inner)
    assert origins.of(App(App(inner))) == origins.Origin(name="made_up.inner:app")
    outer = App(inner)
    module("made_up.outer", app=outer)
    assert origins.of(App(outer)) == origins.Origin(name="made_up.outer:app")


def test_an_agent_s_own_module_is_taken_before_a_library_s(module: Module) -> None:
    app = App()
    module("a_library", app=app).__file__ = str(Path(pytest.__file__).parent / "x.py")
    module("their_own", app=app).__file__ = "/srv/their_own.py"
    assert origins.of(app) == origins.Origin(name="their_own:app")


def test_a_program_is_named_by_its_file(module: Module) -> None:
    app = App()
    module("__main__", app=app).__file__ = "/srv/main.py"
    assert origins.of(app) == origins.Origin(name="__main__:app", file="/srv/main.py")


def test_a_program_run_as_a_module_is_named_by_the_module(module: Module) -> None:
    app = App()
    module("__main__", app=app).__spec__ = type("Spec", (), {"name": "shop.main"})()
    assert origins.of(app) == origins.Origin(name="shop.main:app")


def test_what_a_server_says_goes_before_what_is_found(module: Module) -> None:
    app = App()
    module("made_up.service", app=app, make=lambda: app)
    origins.note(app, "made_up.service:app")
    assert origins.of(app) == origins.Origin(name="made_up.service:app")
    origins.note(app, "made_up.service:make")
    assert origins.of(app) == origins.Origin(name="made_up.service:make", factory=True)
    origins.note(app, "made_up.service:make(name='x')")
    assert origins.of(app) == origins.Origin(name="made_up.service:make(name='x')")
    origins.note(app, app)
    origins.note(app, None)
    assert origins.of(app) == origins.Origin(name="made_up.service:make(name='x')")


def test_one_without_a_name_is_said_to_have_none() -> None:
    app = App()
    assert origins.of(app) is None
    said = parse(origins.spelled(app, "asgi"))
    assert isinstance(said, dict)
    assert (said["interface"], said["import"]) == ("asgi", None)
    origins._known.clear()
    origins._spelled.clear()


def test_one_that_holds_itself_is_not_followed_for_ever() -> None:
    app = App()
    app.app = app
    assert origins.of(app) is None
    app.app = App(app)
    assert origins.of(app) is None
    origins._known.clear()


def test_only_folders_of_the_agent_s_own_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    library = str(Path(pytest.__file__).parents[1])
    monkeypatch.setattr(sys, "path", ["", "lib", "/srv/app", library, "/usr/lib/python311.zip"])
    assert origins.search_path() == [f"{tmp_path}", f"{tmp_path}/lib", "/srv/app"]
