"""Print the table: what each program did at each level, and what was said of it."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, [])]
    rows = sorted({str(value) for report in reports for name, value in report.user_properties if name == "row"})
    if rows:
        terminalreporter.section("kind, program, place, level, verdict, result, word, what changed outside")
        for row in rows:
            terminalreporter.line(row)
