from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

with suppress(ModuleNotFoundError):  # the environments of other instrumentations have none
    from hypothesis import HealthCheck, settings

    # How long a machine takes to make an example says nothing of the example.
    settings.register_profile("ours", suppress_health_check=[HealthCheck.too_slow], deadline=None)
    settings.load_profile("ours")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's configuration folder of the tests: nobody's own key is touched, and all tests have the same one."""
    folder = tmp_path_factory.mktemp("configuration")
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CONFIG_HOME"]
    else:
        os.environ["XDG_CONFIG_HOME"] = before


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the tree."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real traces and provider replies of other projects, kept beside the repository and never inside it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data here: these tests read ../shared/data, beside the repository")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests found out: the text of each `figure` property, and how many of each `counted` one passed."""
    figures: dict[str, None] = {}
    counted: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", []):
                if name == "figure":
                    figures[str(value)] = None
                elif name == "counted":
                    counted.setdefault(str(value), Counter())[outcome] += 1
    if figures or counted:
        terminalreporter.section("figures")
    for figure in sorted(figures):
        terminalreporter.line(figure)
    for label, outcomes in sorted(counted.items()):
        terminalreporter.line(f"{label}: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.items())}")
