from __future__ import annotations

import pytest

from reenact.cli import main as cli


def test_a_failure_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 would say that a replay diverged, and make a bad commit of this one in a bisection."""

    def fails(**_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(cli.reenact, "main", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 125
    assert "RuntimeError: a bug of ours" in capsys.readouterr().err
