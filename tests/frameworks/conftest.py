"""Write the table of `docs/frameworks.md` where it is asked for: `make test-frameworks TABLE=--write-table`."""

from __future__ import annotations

import pytest

from frameworks import table


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-table", action="store_true", help="write what came of each row into docs/frameworks.md")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, [])]
    rows = {
        line.split("|")[1].strip(): str(line)
        for report in reports
        for name, line in report.user_properties
        if name == table.PROPERTY
    }
    if not rows:
        return
    terminalreporter.section("frameworks")
    for line in rows.values():
        terminalreporter.line(line)
    if config.getoption("--write-table"):
        table.write(rows)
