"""The pytest plugin: recorded runs as tests, and made-up models for unit tests (docs/testing.md).

A project that uses none of it pays for this module and nothing else: everything is imported when a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from reenact.testing.cases import Case, Replays
    from reenact.testing.in_process import Here
    from reenact.testing.mock import MockModel
    from reenact.testing.reporting import Report

_MARK = "reenact"
_INI = {
    "reenact_mode": ("string", "none, once, new_episodes, all; or live, record, replay (default: none)"),
    "reenact_folder": ("string", "folder of the fixtures, beside the tests (default: recordings)"),
    "reenact_writes": ("string", "copy, refuse or allow: files that a replayed program writes outside every tool"),
    "reenact_children": ("string", "answer, run or refuse: programs that are started and are no Python of the agent's"),
    "reenact_allowed_hosts": ("args", "hosts that replayed tests may talk to (default: none, loopback included)"),
    "reenact_warm": ("string", "on or off: fork replayed programs from a warm interpreter (default: on)"),
}
_finishing: pytest.StashKey[list[Any]] = pytest.StashKey()
_report: pytest.StashKey[Report] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("reenact", "recorded runs as tests")
    group.addoption(
        "--reenact-mode",
        metavar="MODE",
        help="what becomes of the calls of marked tests: none (or replay), once, new_episodes, all (or record), live",
    )
    group.addoption(
        "--reenact-allow-network", action="store_true", help="let replayed tests use the network beside their calls"
    )
    group.addoption(
        "--reenact-allowed-hosts", metavar="HOSTS", default="", help="hosts that replayed tests may talk to, by commas"
    )
    group.addoption("--reenact-cold", action="store_true", help="start every replayed program in a new interpreter")
    for name, (kind, text) in _INI.items():
        parser.addini(name, text, type=kind, default=[] if kind == "args" else "")  # type: ignore[arg-type]  # the kinds are pytest's own words


def pytest_configure(config: pytest.Config) -> None:
    """Announce the marker; check the mode early, so that a misspelt one is no surprise in every test."""
    config.addinivalue_line(
        "markers",
        f'{_MARK}(fixture, mode="none", …): answer this test\'s calls from a recorded run (docs/testing.md)',
    )
    if config.getoption("reenact_mode") or os.environ.get("REENACT_MODE"):
        from reenact.errors import UsageError
        from reenact.testing.modes import mode_named

        try:
            for word, place in _modes(config):
                mode_named(word, place)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error


def _modes(config: pytest.Config) -> list[tuple[str, str]]:
    """Give what stands above every test's own mode: the command line, then the environment."""
    asked, environment = config.getoption("reenact_mode") or "", os.environ.get("REENACT_MODE", "")
    return [each for each in ((asked, "--reenact-mode"), (environment, "REENACT_MODE")) if each[0]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every marked test its block, before anything is deselected."""
    marked = [item for item in items if item.get_closest_marker(_MARK) is not None]
    if not marked:
        return
    from reenact.testing.reporting import Report

    report = config.stash.setdefault(_report, Report(config))
    for item in marked:
        report.names(_fixture_of(item))
        names: list[str] = getattr(item, "fixturenames", [])
        if "reenact_replay" not in names and "reenact_here" not in names:
            names.insert(0, "reenact_here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge a marked test when its body has ended, and fail it in our own words."""
    finishing = item.stash.get(_finishing, None)
    if finishing is None:
        return (yield)
    from reenact.testing.cases import TestFailed

    error: BaseException | None = None
    value: Any = None
    try:
        value = yield
    except BaseException as raised:  # noqa: BLE001 - what it means is decided below
        error = raised
    try:
        for each in finishing:
            each.finish(error)
    except TestFailed as failure:
        raise pytest.fail.Exception(str(failure), pytrace=False) from None
    finally:
        for each in finishing:
            item.user_properties += [(f"reenact.{name}", value) for name, value in each.properties().items()]
        del item.stash[_finishing]  # whoever runs the test again begins anew
    if isinstance(error, TestFailed):
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if error is not None:
        raise error
    return value


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave nothing of ours in the process for a test that is not marked."""
    if item.get_closest_marker(_MARK) is None or (nextitem is not None and nextitem.get_closest_marker(_MARK)):
        return
    from reenact.testing.inline import let_go

    let_go()


@pytest.fixture
def reenact_config() -> Mapping[str, Any]:
    """Override this in a conftest: mode, folder, writes, children, allowed_hosts, strict, warm of marked tests."""
    return {}


@pytest.fixture
def reenact_replay(request: pytest.FixtureRequest, reenact_config: Mapping[str, Any]) -> Replays:
    """Run a program in a process of its own, its calls answered from the fixture that the marker names."""
    from reenact.testing.cases import Replays

    case = _case(request, reenact_config, writes="copy")
    replays = Replays(case)
    request.node.stash.setdefault(_finishing, []).append(replays)
    return replays


@pytest.fixture
def reenact_here(request: pytest.FixtureRequest, reenact_config: Mapping[str, Any]) -> Generator[Here]:
    """Answer the calls of the test's own body from the fixture that the marker names."""
    from reenact.testing.cases import TestFailed
    from reenact.testing.in_process import Here

    case = _case(request, reenact_config, writes="allow")
    body = getattr(request.node, "obj", None)
    if getattr(body, "__unittest_skip__", False):  # unittest's own skip is seen later than fixtures are made
        pytest.skip(str(getattr(body, "__unittest_skip_why__", "")))
    here = Here(case)
    try:
        here.begin()
    except TestFailed as failure:
        raise pytest.fail.Exception(str(failure), pytrace=False) from None
    request.node.stash.setdefault(_finishing, []).append(here)
    yield here
    here.end(None)


@pytest.fixture
def mock_llm(request: pytest.FixtureRequest) -> Generator[MockModel]:
    """Answer model calls with what the test says, in the provider's own words. No key, no network, no fixture."""
    from reenact.testing.mock import MockModel

    model = MockModel()
    request.node.stash.setdefault(_finishing, []).append(model)
    with model:
        yield model


def _fixture_of(item: pytest.Item, folder: str = "") -> str:
    """Name the fixture of a test: what its marker says, beside the test's file; else by the test's own name."""
    from reenact.testing.fixtures import FOLDER, own_name

    marker = item.get_closest_marker(_MARK)
    marker_path = str(marker.args[0]) if marker is not None and marker.args else ""
    beside = item.path.parent
    if marker_path:
        return str(beside / marker_path)
    place = folder or (str(marker.kwargs.get("folder", "")) if marker else "") or item.config.getini("reenact_folder")
    inside = item.nodeid.partition("::")[2]
    return str(beside / (place or FOLDER) / item.path.stem / f"{own_name(inside)}.jsonl")


def _case(request: pytest.FixtureRequest, config: Mapping[str, Any], *, writes: str) -> Case:
    from reenact.errors import UsageError
    from reenact.testing.cases import Case, Options
    from reenact.testing.hosts import ANY, Hosts
    from reenact.testing.modes import Mode, mode_named

    item: pytest.Item = request.node
    marker = item.get_closest_marker(_MARK)
    if marker is None:
        pytest.fail(f'{request.fixturename} needs a marker: @pytest.mark.reenact("recordings/….jsonl")', pytrace=False)
    ini = {name.removeprefix("reenact_"): item.config.getini(name) for name in _INI}
    mark: dict[str, Any] = {**{name: value for name, value in ini.items() if value}, **config, **marker.kwargs}
    modes = [*_modes(item.config), (str(mark.get("mode") or Mode.NONE.value), "the mode of a marked test")]
    hosts: list[str] = [*mark.get("allowed_hosts", ()), *str(item.config.getoption("reenact_allowed_hosts")).split(",")]
    if item.config.getoption("reenact_allow_network"):
        hosts.append(ANY)
    try:
        mode = mode_named(*modes[0])
        options = Options(
            mode=Mode.NONE if mark.get("keep") and mode is not Mode.LIVE else mode,  # an incident does not come again
            writes=str(mark.get("writes", writes)),
            children=str(mark.get("children", "answer")),
            stubs=tuple(map(str, mark.get("stubs", ()))),
            lifespan=bool(mark.get("lifespan", True)),
            hosts=Hosts.of(hosts),
            strict=bool(mark.get("strict", True)),
            warm=not item.config.getoption("reenact_cold") and str(mark.get("warm", "on")) not in {"off", "False", "0"},
        )
    except UsageError as error:
        pytest.fail(str(error), pytrace=False)
    folder = str(mark.get("folder", ""))
    fixture = _fixture_of(item, folder)
    return Case(test=item.nodeid, fixture=fixture, options=options, store=_store(request))


def _store(request: pytest.FixtureRequest) -> Any:
    """Give the session's throw-away store."""
    from reenact.stores.directory import DirectoryStore

    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return DirectoryStore(factory.getbasetemp() / "reenact")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the recordings were good for: calls nobody asked for, fixtures nobody uses."""
    report = config.stash.get(_report, None)
    outcomes = [
        each
        for reports in terminalreporter.stats.values()
        for each in reports
        if getattr(each, "when", "") == "call" and any(name.startswith("reenact.") for name, _ in each.user_properties)
    ]
    if report is None and not outcomes:
        return
    from reenact.testing.reporting import Report

    (report or Report(config)).close(terminalreporter, outcomes)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker of xdist has seen to its controller."""
    report = session.config.stash.get(_report, None)
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if report is not None and output is not None:
        output["reenact"] = report.seen()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take in what a worker of xdist has seen."""
    del error
    output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
    entries: list[str] | None = output.get("reenact")
    if entries:
        from reenact.testing.reporting import Report

        node.config.stash.setdefault(_report, Report(node.config)).take_in(entries)
