"""The names of variables that the agent's own code reads are noted; whoever takes all of them reads none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator

import pytest

from reenact.boundary import children, variables
from reenact.boundary.patching import Patches
from reenact.integrations.variables import INTEGRATION


@pytest.fixture(autouse=True)
def _on(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("TEA_SHOP", "open")
    monkeypatch.delenv("CAKE_SHOP", raising=False)
    patches = Patches()
    INTEGRATION.install(patches)
    variables.begin(os.environ)
    yield
    variables.end()
    patches.undo()


@pytest.mark.parametrize(
    "read",
    [
        lambda: os.environ["TEA_SHOP"],
        lambda: os.environ.get("TEA_SHOP"),
        lambda: os.getenv("TEA_SHOP", "shut"),
        lambda: "TEA_SHOP" in os.environ,
    ],
    ids=["by index", "get", "getenv", "in"],
)
def test_who_reads_one_variable_is_noted(read: Callable[[], object]) -> None:
    assert read()
    assert variables.variable_readings() == [("TEA_SHOP", True)]


@pytest.mark.parametrize(
    "read", [lambda: dict(os.environ), lambda: {**os.environ}, os.environ.copy], ids=["dict", "spread", "copy"]
)
def test_who_takes_all_of_them_reads_none(read: Callable[[], object]) -> None:
    assert read()
    assert variables.variable_readings() == []


def test_it_counts_what_was_set_when_the_program_began(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.getenv("CAKE_SHOP") is None
    monkeypatch.setenv("ALE_HOUSE", "open")
    assert os.environ["ALE_HOUSE"] == "open"
    variables.end()
    assert os.getenv("TEA_SHOP")
    assert variables.variable_readings() == [("ALE_HOUSE", False), ("CAKE_SHOP", False)]


@pytest.fixture
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "uvloop", raising=False)
    for name in variables.set_by_us():
        monkeypatch.delenv(name)
    monkeypatch.setenv("REENACT_RECORD", "1")
    monkeypatch.setenv("PYTHONHASHSEED", "3")


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize(
    "names",
    [
        lambda: list(os.environ),
        lambda: [*os.environ.keys()],
        lambda: [name for name, _ in os.environ.items()],
        lambda: [*dict(os.environ)],
        lambda: [*{**os.environ}],
        lambda: [*os.environ.copy()],
        lambda: [*(os.environ | {})],
        lambda: [os.fsdecode(name) for name in os.environb],
    ],
    ids=["list", "keys", "items", "dict", "spread", "copy", "joined", "bytes"],
)
def test_who_goes_through_them_sees_none_of_ours(names: Callable[[], list[str]]) -> None:
    seen = names()
    assert "TEA_SHOP" in seen
    assert {"REENACT_RECORD", "PYTHONHASHSEED"}.isdisjoint(seen)
    assert len(seen) == len(os.environ) == len(os.environb)
    assert "REENACT_RECORD" not in repr(os.environ)
    assert os.environ["REENACT_RECORD"] == "1", "by its name it is there"


@pytest.mark.usefixtures("_ours")
def test_a_child_gets_what_could_not_be_seen_where_its_environment_was_made_of_ours() -> None:
    made = variables.handed_on({**os.environ, "CUP": "1"})
    assert (made["REENACT_RECORD"], made["PYTHONHASHSEED"], made["CUP"]) == ("1", "3", "1")
    assert variables.handed_on({"TEA_SHOP": "open"}) == {"TEA_SHOP": "open"}, "it was made anew"
    assert variables.handed_on(None) is None
    chosen = {**os.environ, "REENACT_RECORD": "1"}
    assert variables.handed_on(chosen) is chosen, "it holds what it is to hold"


@pytest.mark.usefixtures("_ours")
def test_a_copy_that_is_put_back_is_whole() -> None:
    saved = dict(os.environ)
    os.environ.clear()
    assert len(os.environ) == 0
    os.environ.update(saved)
    assert dict(os.environ) == saved
    assert os.environ["REENACT_RECORD"] == "1"


@pytest.mark.usefixtures("_ours")
def test_what_a_replay_adds_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert "TZ" in list(os.environ)
    monkeypatch.setenv(variables.ADDED, "TZ")
    assert "TZ" not in list(os.environ)
    monkeypatch.setattr(children, "own_variables", lambda: ["TZ"])
    assert "TZ" in list(os.environ), "the agent's own code set it meanwhile"
