"""A test that has a fixture: what it runs, how it is judged, what it tells the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reenact.errors import ReenactError
from reenact.find.sources import RunSource
from reenact.graph.build import build
from reenact.pipeline.appending import appended
from reenact.stores.directory import DirectoryStore
from reenact.testing import fixtures
from reenact.testing.hosts import Hosts
from reenact.testing.modes import Mode
from reenact.testing.portable import entered_by, portable
from reenact.testing.program import Program, Ran, policy_of
from reenact.testing.project import root_of
from reenact.testing.verdicts import About, path_name
from reenact.values.call import Unfinished
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_text
from reenact.values.run import Run

if TYPE_CHECKING:
    from reenact.testing.judging import Judged


class TestFailed(Exception):
    """A test that has to fail; the message is all that is to be shown."""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a test wants its fixture used."""

    mode: Mode = Mode.NONE
    writes: str = "copy"
    """Files that are written outside every declared tool: `refuse` or `allow`."""
    children: str = "answer"
    """Programs that are started and are no Python of the agent's: `answer`, `run` or `refuse`."""
    stubs: tuple[str, ...] = ()
    """Functions that have other bodies: MODULE:FUNCTION=VALUE, or =@FILE.py:NAME, the file relative to the project."""
    lifespan: bool = True
    """An application is started up before a request is delivered to it."""
    hosts: Hosts = field(default_factory=Hosts)
    strict: bool = True
    """Recorded calls that are not asked for fail the test."""
    warm: bool = True
    """Programs may be forked from an interpreter that has the libraries loaded already."""


@dataclass(slots=True, kw_only=True)
class Case:
    """One test, while it runs."""

    test: str
    """The node id."""
    fixture: str
    """The fixture: its path, with `#id` where it holds several runs."""
    options: Options
    store: DirectoryStore
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """What the report and JUnit are told."""

    @property
    def path(self) -> Path:
        """The file of the fixture."""
        return fixtures.path_of(self.fixture)

    @property
    def replays(self) -> bool:
        """Calls are answered from the fixture."""
        match self.options.mode:
            case Mode.NONE | Mode.NEW_EPISODES:
                return self.options.mode is Mode.NONE or self.path.exists()
            case Mode.ONCE:
                return self.path.exists()
            case _:
                return False

    @property
    def records(self) -> bool:
        """Calls are made for real, and kept in the fixture."""
        return not self.replays and self.options.mode is not Mode.LIVE

    def read(self) -> RunSource:
        """Read the fixture. Raises `TestFailed` where there is none."""
        if not self.path.exists():
            raise TestFailed(
                f"there is no recording at {path_name(self.path)}\n"
                f"  record it  pytest --reenact-mode=once '{self.test}'   (its calls are made for real, once)"
            )
        try:
            return fixtures.read(self.fixture)
        except ReenactError as error:
            raise TestFailed(f"{error}") from error

    def keep(self, run: Run | None, others: Sequence[Run], *, inline: bool = False) -> None:
        """Write a recording down as the fixture. Nothing is written where nothing was called.

        What the test's own body called (`inline`) was started by a test and not by a command line.
        """
        if run is None:
            raise TestFailed(f"nothing was called, so there is nothing to keep in {path_name(self.path)}")
        recording = RunSource(run=run, siblings=tuple(others), source="")
        spans = portable(recording, root_of(self.path)).spans
        fixtures.write(self.path, entered_by(spans, self.test) if inline else spans)
        self.facts["recorded"] = run.id[:12]

    def add(self, fixture: RunSource, runs: Sequence[Run]) -> None:
        """Add calls that had to be made for real to the fixture."""
        new = [node for run in runs for node in run.nodes if node.span.attributes.get("reenact.replay.live") is True]
        new = [node for node in new if not isinstance(node.outcome, Unfinished)]
        if not new:
            return
        (extra,) = build(appended(fixture.run, new))
        extras = portable(
            RunSource(run=replace(extra, salt=fixture.run.salt), siblings=(), source=""), root_of(self.path)
        )
        fixtures.add(self.path, extras.spans)
        self.facts["added"] = str(len(new))

    def properties(self) -> dict[str, str]:
        """Give what the report and JUnit are told."""
        return {"fixture": path_name(self.path), **self.facts}

    def about(
        self, recorded: Run | None, words: Sequence[str] = (), app: str | None = None, *, inline: bool = False
    ) -> About:
        """Say what a failure is about."""
        run_id = self.fixture.partition("#")[2]
        return About(
            fixture=path_name(self.path, run_id),
            recorded=recorded,
            command=tuple(words),
            app=app,
            test=self.test,
            inline=inline,
        )

    def tell(self, judged: Judged, recorded: Run | None, result: ReplayResult | None) -> None:
        """Note what came out for the report; raise `TestFailed` where the test has to fail."""
        self.facts["word"] = judged.word
        if recorded is not None:
            self.facts["run"] = recorded.id[:12]
        if judged.first:
            self.facts["first"] = judged.first
        if result is not None:
            self.facts["answered"] = str(sum(result.answered.values()))
            renamed = sum("by renaming" in as_text(each.get("reason")) for each in result.ignored)
            if renamed:
                self.facts["renamed"] = str(renamed)
            unused = len(result.unconsumed) + result.not_reached
            if unused and judged.word != "fixed":  # whoever mends something leaves what was recorded behind
                self.facts["unused"] = str(unused)
        if not judged.passes:
            raise TestFailed(judged.message)


class Outcome:
    """What a program did in a test. A test that says nothing of it expects it to be the same as recorded."""

    def __init__(self, case: Case, ran: Ran, recorded: Run | None, program: Program) -> None:
        self._case, self._ran, self._recorded_run, self._program = case, ran, recorded, program
        self._verdict: Judged | None = None

    @property
    def exit_code(self) -> int:
        """The program's exit code; negative for a signal."""
        return self._ran.exit_code

    @property
    def stdout(self) -> str:
        """What it printed."""
        return self._ran.stdout

    @property
    def stderr(self) -> str:
        """What it printed on its standard error."""
        return self._ran.stderr

    @property
    def run(self) -> Run | None:
        """What it called this time, as a run; None where it called nothing."""
        return self._ran.run

    @property
    def recorded(self) -> Run | None:
        """The recorded run; None where its calls were made for real."""
        return self._recorded_run

    @property
    def result(self) -> ReplayResult | None:
        """The replay's whole result; None where its calls were made for real."""
        return self._ran.result

    @property
    def word(self) -> str:
        """What it came to, in a word: `same`, `diverged`, `fixed`, …; empty before `same` or `holds` was asked."""
        return self._verdict.word if self._verdict is not None else ""

    def same(self) -> None:
        """Expect the same as recorded, to its end. Otherwise the test fails and names the first divergence."""
        from reenact.testing import judging

        result = self._ran.result
        if result is None:
            self._settle(judging.Judged(word=self._case.options.mode.value, passes=True))
            return
        self._settle(judging.same(result, self._about()))

    def holds(self, *assertions: Any) -> None:
        """Expect assertions to hold: texts of the language, a `Path` of a file of it, or `reenact.assertions`.

        Where they failed on the recording, the run may leave it, provided that nothing else changed first.
        """
        from reenact.testing import judging

        asked = judging.placed(assertions)
        if self._ran.result is None or self._recorded_run is None:
            self._settle(judging.live(self._ran.run, asked, self._about()))
        else:
            self._settle(judging.holds(self._recorded_run, self._ran.run, self._ran.result, asked, self._about()))

    def settle(self) -> None:
        """Expect the same as recorded where the test has said nothing."""
        if self._verdict is None:
            self.same()

    def _about(self) -> About:
        return self._case.about(self._recorded_run, self._program.words, self._program.app)

    def _settle(self, judged: Judged) -> None:
        self._verdict = judged
        self._case.tell(judged, self._recorded_run, self._ran.result)


class Replays:
    """The fixture `reenact_replay`: runs a program against the test's fixture. Call it once for each program."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._outcomes: list[Outcome] = []

    def __call__(
        self,
        *words: str,
        app: str | None = None,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        path: Sequence[str] = (),
        imports: Sequence[str] = (),
    ) -> Outcome:
        """Run a program and give what it did.

        `words` are its command line, `python` being the interpreter of the tests; none for a request that came in,
        which is delivered to `app`, whose modules are found in the folders of `path` too, `imports` with it. `cwd` is
        relative to the project, `env` is added to the environment. Nothing that the fixture names is run. Network,
        child processes and writes are refused, and what the recording does not answer stops the program.
        """
        case, options = self._case, self._case.options
        root = root_of(case.path)
        program = Program(
            root=root,
            store=case.store,
            words=words,
            app=app,
            path=tuple(path),
            imports=tuple(imports),
            folder=cwd,
            environ=env or {},
            policy=policy_of(
                adding=options.mode is Mode.NEW_EPISODES,
                writes=options.writes,
                children=options.children,
                stubs=options.stubs,
                lifespan=options.lifespan,
                root=root,
            ),
            warm=options.warm,
        )
        try:
            outcome = self._replay(program) if case.replays else self._run_live(program)
        except ReenactError as error:
            raise TestFailed(str(error)) from error
        self._outcomes.append(outcome)
        return outcome

    def _replay(self, program: Program) -> Outcome:
        fixture = self._case.read()
        ran = program.replayed(fixture)
        if self._case.options.mode is Mode.NEW_EPISODES:
            self._case.add(fixture, [ran.run] if ran.run else [])
        return Outcome(self._case, ran, fixture.run, program)

    def _run_live(self, program: Program) -> Outcome:
        ran = program.live()
        if self._case.records:
            self._case.keep(ran.run, ran.siblings)
        return Outcome(self._case, ran, None, program)

    def properties(self) -> dict[str, str]:
        """Give what the report is told."""
        return self._case.properties()

    def finish(self, error: BaseException | None) -> None:
        """Judge what the test has said nothing of. A test that failed by itself is left its own failure."""
        if error is not None:
            return
        if not self._outcomes:
            raise TestFailed("the test asks for reenact_replay and runs nothing: call it with the program to run")
        for outcome in self._outcomes:
            outcome.settle()
