"""The names of variables that the agent's own code reads are noted; whoever takes all of them reads none."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator

import pytest

from reenact.boundary import variables
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
