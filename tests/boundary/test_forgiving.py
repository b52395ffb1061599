from __future__ import annotations

import logging

import pytest

from reenact.boundary import forgiving

SECRET = "ghp_" + "x" * 36


def fails() -> None:
    raise ValueError(SECRET)


def test_a_failure_of_ours_is_told_by_its_place_and_kind_without_what_it_says(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgiving, "_counted", {})
    with caplog.at_level(logging.WARNING, "reenact"):
        try:
            fails()
        except ValueError:
            forgiving.swallow("Recorder.open")
    assert SECRET not in caplog.text
    assert "Recorder.open failed" in caplog.text
    assert "ValueError" in caplog.text
    assert "test_forgiving.py" in caplog.text
