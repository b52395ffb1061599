"""Print the table: what was said of each program, as it was and with its bug."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, [])]
    rows = sorted({str(value) for report in reports for name, value in report.user_properties if name == "outcome"})
    if rows:
        terminalreporter.section("program, verdict, what was said of it as it was, and with its bug")
        for row in rows:
            terminalreporter.line(row)
