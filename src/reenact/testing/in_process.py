"""An agent that the test's body calls itself: the fixture `reenact_here`, which a marked test has without asking."""

from __future__ import annotations

import os
from typing import Any

from reenact.boundary.reading import shape_of
from reenact.errors import ReenactError, ReplayStopped
from reenact.find.sources import RunSource
from reenact.testing import judging
from reenact.testing.cases import Case, TestFailed
from reenact.testing.inline import Answered, BlockResult, Recorded, hold
from reenact.testing.modes import Mode
from reenact.testing.program import policy_of
from reenact.testing.project import root_of
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_text
from reenact.values.run import Run


class Here:
    """A test's own block. What is asserted of it is judged when the test's body has ended."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._assertions: list[Any] = []
        self._fixture: RunSource | None = None
        self._report: BlockResult | None = None
        self._keys: dict[str, str] = {}
        self._open: Answered | Recorded | None = None

    @property
    def mode(self) -> str:
        """The record mode in force: `none`, `once`, `new_episodes`, `all` or `live`."""
        return self._case.options.mode.value

    @property
    def replays(self) -> bool:
        """Calls are answered from the fixture."""
        return isinstance(self._open, Answered)

    @property
    def recorded(self) -> Run | None:
        """The recorded run; None where calls are made for real."""
        return self._fixture.run if self._fixture is not None else None

    @property
    def run(self) -> Run | None:
        """What the test called, once its body has ended."""
        return self._report.run if self._report is not None else None

    @property
    def result(self) -> ReplayResult | None:
        """The replay's whole result, once the test's body has ended; None where calls are made for real."""
        return self._report.result if self._report is not None else None

    def holds(self, *assertions: Any) -> None:
        """Expect assertions to hold of what the test calls; they are judged when its body has ended."""
        self._assertions += judging.placed(assertions)

    def begin(self) -> None:
        """Take charge of the process. Raises `TestFailed` where there is no fixture."""
        case = self._case
        hold()
        if not case.replays:
            self._open = Recorded(case.store)
            return
        self._fixture = case.read()
        self._inert_keys(self._fixture.run)
        options = case.options
        policy = policy_of(
            adding=options.mode is Mode.NEW_EPISODES,
            writes=options.writes,
            children=options.children,
            stubs=options.stubs,
            root=root_of(case.path),
        )
        try:
            self._open = Answered(self._fixture, policy, case.store, case.options.hosts)
        except ReenactError as error:
            raise TestFailed(str(error)) from error

    def _inert_keys(self, run: Run) -> None:
        """Give the SDKs of the recorded calls the key that they insist on, where there is none."""
        shapes = [shape for node in run.nodes if (shape := shape_of(node)) is not None]
        for name in {name for shape in shapes for name in shape.credentials}:
            if name not in os.environ:
                self._keys[name] = os.environ[name] = "reenact-inert"

    def end(self, error: BaseException | None) -> None:
        """Give the process back. Safe to call twice."""
        session, self._open = self._open, None
        if session is None:
            return
        for name in self._keys:
            os.environ.pop(name, None)
        self._report = session.end(error)

    def properties(self) -> dict[str, str]:
        """Give what the report is told."""
        return self._case.properties()

    def finish(self, error: BaseException | None) -> None:
        """Judge the test, whose body has ended with `error`. Raises `TestFailed` where it has to fail."""
        self.end(error)
        report = self._report
        if report is None:
            return
        if report.result is not None and self._fixture is not None:
            self._judge(self._fixture, report.result, report, error)
        else:
            self._finish_live(report, error)

    def _judge(
        self, fixture: RunSource, result: ReplayResult, report: BlockResult, error: BaseException | None
    ) -> None:
        case = self._case
        about = case.about(fixture.run, inline=True)
        if case.options.mode is Mode.NEW_EPISODES and error is None:
            case.add(fixture, report.runs)
        if self._assertions and error is None:
            judged = judging.holds(fixture.run, report.run, result, self._assertions, about)
        elif result.result == "unjudged" and error is None:
            judged = judging.Judged(word="same", passes=True)  # nothing was owed and nothing asked
        else:
            judged = judging.same(result, about)
        if self._is_only_unused(result):
            judged = judging.Judged(word="same", passes=True)
        if error is not None and not isinstance(error, ReplayStopped):
            if not judged.passes:
                judged = judging.after(judged, error)
            elif judged.passes:
                case.facts["word"] = "error"
                return
        case.tell(judged, fixture.run, result)

    def _is_only_unused(self, result: ReplayResult) -> bool:
        """Tell whether the replay is the recording but for calls at hand that were not asked for, where that may be."""
        left = {as_text(entry.get("id")) for entry in result.unconsumed}
        differ = [each for each in result.divergences if as_text(each.get("node_a")) not in left]
        return not self._case.options.strict and bool(left) and not differ and not result.misses

    def _finish_live(self, report: BlockResult, error: BaseException | None) -> None:
        case = self._case
        case.facts["word"] = self.mode
        if error is not None:
            return
        if case.records:
            case.keep(report.run, report.runs[1:], inline=True)
        if self._assertions:
            case.tell(judging.live(report.run, self._assertions, case.about(None, inline=True)), report.run, None)
