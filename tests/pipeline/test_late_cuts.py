from __future__ import annotations

import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary import door
from reenact.boundary.patching import Patches
from reenact.contracts.integration import Integration, PatchSet
from reenact.discover import Entry
from reenact.pipeline import late_cuts

_numbers = itertools.count()
Make = Callable[[], Entry[Integration]]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A library of two modules, `.one` importing `.two` at its top, under a name that nobody has imported yet."""
    name = f"library_cut_late_{next(_numbers)}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / name / "one.py").write_text(f"import {name}.two\ndef call():\n    return 'one'\n")
    (tmp_path / name / "two.py").write_text("def call():\n    return 'two'\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def patches() -> Iterator[Patches]:
    made = Patches()
    yield made
    made.undo()


class Cutting:
    """An integration that marks what `call` of both modules gives, and counts its own loads."""

    def __init__(self, library: str) -> None:
        self.hooks = (f"{library}.one", f"{library}.two")
        self.loads = 0
        self.made = Integration(name="late", libraries=(library,), install=self.install, hooks=self.hooks)
        self.entry = Entry(self.made.outline(), self.load)

    def load(self) -> Integration:
        self.loads += 1
        return self.made

    def install(self, patches: PatchSet) -> None:
        for name in self.hooks:
            patches.when_imported(name, lambda module: patches.replace(module, "call", self._marked))

    def _marked(self, original: Callable[[], str]) -> Callable[[], str]:
        return lambda: f"{original()}, cut"


def imported(library: str, name: str) -> Any:
    return importlib.import_module(f"{library}.{name}")


def test_an_integration_is_loaded_with_the_first_module_that_it_waits_for(library: str, patches: Patches) -> None:
    late = Cutting(library)
    late_cuts.install(late.entry, patches)
    importlib.import_module(library)
    assert late.loads == 0
    assert imported(library, "two").call() == "two, cut"
    assert late.loads == 1
    assert imported(library, "one").call() == "one, cut"
    assert late.loads == 1


def test_a_module_that_is_still_being_imported_is_cut_when_it_is_whole(library: str, patches: Patches) -> None:
    late = Cutting(library)
    late_cuts.install(late.entry, patches)
    assert imported(library, "one").call() == "one, cut", "its own import of `two` loads the integration meanwhile"
    assert imported(library, "two").call() == "two, cut"


def test_a_library_that_is_imported_already_is_cut_at_once(library: str, patches: Patches) -> None:
    late = Cutting(library)
    one = imported(library, "one")
    late_cuts.install(late.entry, patches)
    assert one.call() == "one, cut"


def test_each_module_is_cut_once_and_given_back(library: str) -> None:
    late, patches = Cutting(library), Patches()
    late_cuts.install(late.entry, patches)
    one = imported(library, "one")
    patches.undo()
    assert one.call() == "one"
    assert imported(library, "two").call() == "two"


def test_nothing_is_loaded_for_a_recording_that_is_over(library: str) -> None:
    late, patches = Cutting(library), Patches()
    late_cuts.install(late.entry, patches)
    patches.undo()
    assert imported(library, "one").call() == "one"
    assert late.loads == 0


def test_threads_that_import_two_modules_at_once_find_each_cut_once(library: str, patches: Patches) -> None:
    late = Cutting(library)
    both = threading.Barrier(2, timeout=20)

    def load() -> Integration:
        both.wait()  # both threads load it before either has installed it
        return late.made

    late_cuts.install(Entry(late.made.outline(), load), patches)
    (Path(importlib.import_module(library).__path__[0]) / "one.py").write_text("def call():\n    return 'one'\n")
    importlib.invalidate_caches()
    threads = [threading.Thread(target=imported, args=(library, name)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [imported(library, name).call() for name in ("one", "two")] == ["one, cut", "two, cut"]


def test_an_integration_that_cannot_be_loaded_leaves_the_library_as_it_is(library: str, patches: Patches) -> None:
    late = Cutting(library)

    def load() -> Integration:
        raise ImportError("our files are gone")

    late_cuts.install(Entry(late.made.outline(), load), patches)
    assert imported(library, "one").call() == "one"


def test_a_replay_is_told_of_an_integration_that_cannot_be_loaded(
    library: str, patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Cutting(library)

    def load() -> Integration:
        raise ImportError("our files are gone")

    monkeypatch.setattr(door, "is_strict", lambda: True)
    late_cuts.install(Entry(late.made.outline(), load), patches)
    with pytest.raises(ImportError, match="our files are gone"):
        imported(library, "one")


def test_what_an_integration_asks_for_besides_its_hooks_is_asked_for(library: str, patches: Patches) -> None:
    late = Cutting(library)
    late.made = Integration(name="late", libraries=(library,), install=late.install, hooks=(f"{library}.two",))
    late_cuts.install(Entry(late.made.outline(), late.load), patches)
    assert imported(library, "two").call() == "two, cut"
    assert imported(library, "one").call() == "one, cut"


def test_an_integration_that_waits_for_nothing_is_installed_at_once(patches: Patches) -> None:
    done: list[PatchSet] = []
    made = Integration(name="now", libraries=("time",), install=done.append)
    late_cuts.install(Entry(made.outline(), lambda: made), patches)
    assert done == [patches]


def test_a_module_is_cut_where_somebody_has_restored_the_import_hooks(
    library: str, patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [each for each in sys.meta_path if not type(each).__module__.startswith("wrapt")]
    monkeypatch.setattr(sys, "meta_path", others)
    late_cuts.install(Cutting(library).entry, patches)
    assert imported(library, "two").call() == "two, cut"
