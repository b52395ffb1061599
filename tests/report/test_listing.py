from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from reenact.report.listing import listing


def summary(**facts: Any) -> dict[str, Any]:
    return {
        "id": "0af7651916cd43dd8448eb211c80319c",
        "name": "triage.py",
        "started": "2026-11-21T10:00:00.000Z",
        "duration_ms": 3240.0,
        "status": "ok",
        "calls": {"llm": 3, "tool": 2},
        "verdict": "exact",
        "session": None,
        "user": None,
        **facts,
    }


def test_columns_are_aligned_and_empty_ones_left_out() -> None:
    rows = listing([summary(), summary(name="a", status="error", verdict={"grade": "partial"}, replay_of="x")])
    assert rows == [
        "RUN           STARTED               NAME        STATUS  TOOK   CALLS          VERDICT",
        "0af7651916cd  2026-11-21 10:00:00Z  triage.py   ok      3.2 s  3 llm, 2 tool  exact",
        "0af7651916cd  2026-11-21 10:00:00Z  a (replay)  error   3.2 s  3 llm, 2 tool  partial",
    ]


def test_a_terminal_is_filled_and_not_overrun_and_a_pipe_gets_everything() -> None:
    long = summary(name="日本語" * 40, user="u" * 50)
    assert max(map(cell_len, listing([long, summary()], width=100))) <= 100
    assert "日本語" * 40 in listing([long])[1]
    assert "\t" not in "".join(listing([long]))


def test_names_of_strangers_are_cleaned() -> None:
    row = listing([summary(name="\x1b[2Jevil\nsecond\u202e", user="[red]x[/nope]")])[1]
    assert "evil second" in row
    assert "[red]x[/nope]" in row
    assert "\x1b" not in row


def test_no_run_is_said() -> None:
    assert listing([]) == ["no run"]
