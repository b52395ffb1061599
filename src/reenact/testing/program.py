"""A program as a test runs it: in a process of its own, its calls answered from a fixture, or made for real."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from reenact.boundary.reading import shape_of
from reenact.disk import private
from reenact.errors import InputError, NotYours
from reenact.find.sources import RunSource
from reenact.keep.drain import Drain
from reenact.pipeline.commands import command
from reenact.pipeline.hook import injected
from reenact.pipeline.replaying import Start, check_judgeable, replay
from reenact.replay.policy import Policy, Source
from reenact.stores.directory import DirectoryStore
from reenact.testing.program_start import new_process, spawned
from reenact.testing.warm import forked
from reenact.values.judgement import ReplayResult
from reenact.values.run import Run
from reenact.values.terminal import tell

_PYTHONS = frozenset({"python", "python3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of one program."""

    result: ReplayResult | None
    """None where its calls were made for real."""
    run: Run | None
    """What it did this time."""
    siblings: tuple[Run, ...] = ()
    """Further runs that it made while its calls were made for real."""
    exit_code: int
    """Negative for a signal."""
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run, in the project at `root`."""

    root: Path
    store: DirectoryStore
    """Where its spans go; thrown away with the session."""
    words: tuple[str, ...] = ()
    """Empty for the delivery of a recorded request to `app`."""
    app: str | None = None
    path: tuple[str, ...] = ()
    """Folders, relative to where the program runs, in which the modules of `app` are found."""
    imports: tuple[str, ...] = ()
    """Modules that are imported with `app`."""
    folder: str = ""
    """Relative to the project."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the test's environment."""
    policy: Policy = field(default_factory=Policy)
    """What may go live."""
    warm: bool = True
    """A replayed program may be forked from an interpreter that has the libraries loaded."""

    def replayed(self, fixture: RunSource, *, quiet: bool = False) -> Ran:
        """Run it against a recording, `quiet` without passing its output on. Raises `CannotJudge` and `InputError`."""
        check_judgeable(fixture, self.words)
        argv, cwd = self._argv(), self.root / self.folder
        if not argv:  # a fixture is data: of what it names nothing is run
            try:
                argv, _ = command(fixture, (), self.app, path=self.path, modules=self.imports)
            except NotYours as refused:
                hint = 'let the test name it: reenact_replay("python", "agent.py"), or app="module:attribute"'
                raise NotYours(refused.message, hint=hint) from None
        with _Output(self.store) as output:
            start = self._start(fixture, output)
            execution = replay(fixture, argv, cwd, self.policy, self.store, start=_with(start, self.environ))
            out, err = output.texts(quiet=quiet)
        return Ran(result=execution.result, run=execution.run, exit_code=execution.exit_code, stdout=out, stderr=err)

    def _start(self, fixture: RunSource, output: _Output) -> Start:
        if not self.warm:
            return new_process(output.stdout, output.stderr)
        shapes = {shape.name for node in fixture.run.nodes if (shape := shape_of(node)) is not None}
        return forked(output.stdout, output.stderr, {shape.partition(".")[0] for shape in shapes if "." in shape})

    def live(self) -> Ran:
        """Run it for real, and write down what it calls. Raises `InputError` where it cannot be started."""
        if not self.words:
            hint = 'name it: reenact_replay("python", "agent.py")'
            raise InputError("reenact_replay()", "no program is named, and nothing is recorded yet", hint=hint)
        self.store.prepare()
        recording = os.urandom(8).hex()
        environ = injected(
            {"PYTHONHASHSEED": "0", **os.environ, **self.environ},
            REENACT_RECORD="1",
            REENACT_RECORDING=recording,
            REENACT_SALT=os.urandom(16).hex(),
            REENACT_STORE=str(self.store.folder),
        )
        environ.pop("REENACT_REPLAY", None)
        drain = Drain(self.store, recording=recording, report=_say)
        with _Output(self.store) as output:
            process = spawned(self._argv(), self.root / self.folder, environ, output.stdout, output.stderr)
            code = process.wait()
            runs = drain.finish({process.pid: code})
            out, err = output.texts()
        own = max(runs, key=lambda run: len(run.nodes), default=None)
        others = tuple(run for run in runs if run is not own)
        return Ran(result=None, run=own, siblings=others, exit_code=code, stdout=out, stderr=err)

    def _argv(self) -> list[str]:
        """Give the command with the interpreter that runs the tests, and its scripts before those of the PATH."""
        if not self.words:
            return []
        first, *rest = self.words
        if first in _PYTHONS:
            return [sys.executable, *rest]
        beside = Path(sysconfig.get_path("scripts")) / first
        return [str(beside) if os.sep not in first and beside.exists() else first, *rest]


def _say(line: str) -> None:
    tell(line)


def _with(start: Start, further: Mapping[str, str]) -> Start:
    if not further:
        return start
    return lambda argv, cwd, environ: start(argv, cwd, {**environ, **further})


class _Output:
    """What a program says on its standard streams, kept in files and passed on to the test's own."""

    def __init__(self, store: DirectoryStore) -> None:
        store.prepare()
        self._folder = store.folder / f"output-{os.urandom(6).hex()}"
        private.folder(self._folder, store.folder)
        self.stdout, self.stderr = (
            os.fdopen(private.opened(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), "w+b")
            for name in ("stdout", "stderr")
        )

    def texts(self, *, quiet: bool = False) -> tuple[str, str]:
        """Give both texts, and unless `quiet` show them as the test's own output."""
        texts: list[str] = []
        for stream, ours in ((self.stdout, sys.stdout), (self.stderr, sys.stderr)):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
            if not quiet:
                ours.write(texts[-1])
        return texts[0], texts[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def policy_of(
    *,
    adding: bool,
    writes: str,
    children: str = "answer",
    stubs: Sequence[str] = (),
    lifespan: bool = True,
    root: Path | None = None,
) -> Policy:
    """Say what a replay lets go live: nothing, or (`adding`) what the recording does not hold.

    Files of `stubs` are relative to the `root` of the project.
    """
    source = Source.RECORDED_OR_LIVE if adding else Source.RECORDED
    choices = {"models": source, "tools": source, "writes": writes, "children": children}
    return replace(Policy.named(choices, stubs=stubs, lifespan=lifespan, folder=root), dials=adding)
