from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

EXAMPLES = {"few": 15, "many": 100}
"""How many examples a property is tried with: by default, and in `make slow`."""

STORIES = {
    *("change", "collect", "deliver", "faults", "find", "foreign", "integrations", "journeys", "keep", "pipeline"),
    *("matrix", "stores", "testing", "trust"),
}
"""Folders whose tests start programs and servers: each is a story of its own, and takes seconds."""
ONE_IN = 4
"""Of how many stories of a file one is tried by default."""
SIZES = ((30, 6), (8, 4), (3, 2))
"""Of a family with more members than that, of how many one is tried by default."""
ROOT = Path(__file__).resolve().parent.parent
TESTS = str(Path(__file__).resolve().parent)


@pytest.fixture(scope="session", autouse=True)
def configuration() -> Iterator[Path]:
    """The user's configuration folder of the tests: nobody's own key is touched, and all tests have the same one.

    It is none of pytest's own temporary folders, which another pytest may sweep.
    """
    before = os.environ.get("XDG_CONFIG_HOME")
    with tempfile.TemporaryDirectory(prefix="reenact-tests-") as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        yield Path(folder)
    if before is None:
        del os.environ["XDG_CONFIG_HOME"]
    else:
        os.environ["XDG_CONFIG_HOME"] = before


@pytest.fixture(autouse=True)
def _own_key() -> Iterator[None]:
    """Forget after a test what REENACT_KEY said in it: the next test has the key of the configuration folder."""
    from reenact.disk import user_key

    before = user_key.key_message()
    yield
    os.environ.pop(user_key.VARIABLE, None)
    user_key.hear(before)


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


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples the properties are tried with; modules read the profile when they are imported.

    A background job of a shell ignores SIGINT, and so would every program that a test starts.
    """
    if (elsewhere := _other_tree()) is not None:
        pytest.exit(
            f"programs that the tests start would import reenact of {elsewhere}; `make index` makes .venv here", 2
        )
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(ModuleNotFoundError):  # the environments of other instrumentations have no hypothesis
        from hypothesis import HealthCheck, settings

        for name, count in EXAMPLES.items():
            # How long a machine takes to make an example says nothing of the example.
            settings.register_profile(
                name,
                max_examples=count,
                derandomize=name == "few",  # a commit is judged by its own changes; `make slow` searches by chance
                suppress_health_check=[HealthCheck.too_slow],
                deadline=None,
            )
        settings.load_profile("many" if asks_for_slow(config) else "few")


def _other_tree() -> str | None:
    """Name the tree that this environment's reenact is installed from, where it is another one."""
    try:
        origin = metadata.distribution("reenact").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    tree = unquote(urlsplit(json.loads(origin)["url"]).path) if origin else str(ROOT)
    return None if Path(tree).resolve() == ROOT else tree


def asks_for_slow(config: pytest.Config) -> bool:
    """Tell whether the slow tests were chosen, as `-m slow` does."""
    chosen = str(config.option.markexpr)
    return "slow" in chosen and "not slow" not in chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take every property into the slow tests, where it has more examples than by default, and much of each family."""
    _leave_samples(items)
    if asks_for_slow(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):  # its own mark comes later
                item.add_marker("slow")


def _leave_samples(items: list[pytest.Item]) -> None:
    """Take into the slow tests what the default suite leaves out of each file, so that it ends within ten minutes.

    Of a family one member in so many is tried, as its mark `sample` says or else by its size, and one at least; where a
    module has several families of two, as sync and async, one takes the first of them, the next the other. Where a test
    is a whole story (`STORIES`) one in `ONE_IN` of a file is tried, and those marked `always`.
    """
    files: dict[Path, dict[str, list[pytest.Item]]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None and item.get_closest_marker("bench") is None:
            files.setdefault(item.path, {}).setdefault(getattr(item, "originalname", item.name), []).append(item)
    for path, functions in files.items():
        stories = path.relative_to(ROOT / "tests").parts[0] in STORIES
        turn = 0
        for first, members in enumerate(functions.values()):
            if stories and members[0].get_closest_marker("always") is None:
                turn += 1
                if turn % ONE_IN != 1:
                    _to_slow(members)
                    continue
            for at, item in enumerate(members):
                if (first + at) % _every(members):
                    _to_slow([item])


def _every(members: list[pytest.Item]) -> int:
    """Say of how many members of a family one is tried by default."""
    mark = members[0].get_closest_marker("sample")
    asked = mark.args[0] if mark is not None else next((every for size, every in SIZES if len(members) > size), 1)
    return min(int(asked), len(members))


def _to_slow(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off what tests are made of: it is never garbage, and there is much of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide the other modules of tests from a test.

    A recording looks for the agent's tools in all modules that are no library's: in those of all tests together that
    takes a second each time, and finds what is none of the agent's.
    """
    module = getattr(item, "module", None)
    if module is not None and _shown[-1:] != [module]:
        sys.modules.update(_hidden)
        _hidden.clear()
        near = {str(ROOT / "tests"), str(Path(module.__file__).parent)}
        for name, other in [*sys.modules.items()]:
            file = str(vars(other).get("__file__"))
            if file.startswith(TESTS) and (
                name.rpartition(".")[2].startswith("test_") or file.rpartition(os.sep)[0] not in near
            ):
                _hidden[name] = sys.modules.pop(name)
        sys.modules[module.__name__] = module
        _shown[:] = [module]
    return (yield)


_shown: list[object] = []
"""The module whose tests run, alone."""
_hidden: dict[str, ModuleType] = {}
"""Other tests' modules, by name, to be found again when theirs run."""


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
