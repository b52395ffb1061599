"""What a run's root says of the machine, told without a process of our own."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import Any

import pytest

from reenact.record.surroundings import surroundings


def test_the_surroundings_are_told_without_a_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_words: Any, **_options: Any) -> None:
        pytest.fail("a recorder starts no process in the agent's")

    expected = platform.platform(terse=True)
    monkeypatch.setattr(platform, "_uname_cache", None)
    monkeypatch.setattr(platform, "_platform_cache", {})
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(os, "fork", start)
    facts = surroundings(lambda _name, _value: "", lambda _name: False)
    assert facts["platform"] == expected
