"""`reenact promote`: a run becomes a fixture and a test in the project that it ran in."""

from __future__ import annotations

import os
import shlex
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reenact.assess.check import check
from reenact.assess.language import spell
from reenact.deliver.applications import Making
from reenact.errors import InputError, UsageError
from reenact.find.sources import RunSource
from reenact.pipeline.commands import is_unit, refused
from reenact.replay.policy import Children, Writes
from reenact.replay.substitutes import Substitute
from reenact.stores.directory import DirectoryStore
from reenact.testing import authored, fixtures, judging
from reenact.testing.authored import Authored
from reenact.testing.fixtures import FOLDER, slug
from reenact.testing.judging import Judged
from reenact.testing.portable import Portable, named_paths, portable, relative_words, seeded
from reenact.testing.program import Program, policy_of
from reenact.testing.project import folder_of_tests, root_of
from reenact.testing.verdicts import About, path_name
from reenact.values import unit
from reenact.values.assertion import Placed, Standing
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_text
from reenact.values.run import Run

_VERBS = ("delete", "remove", "drop", "purge", "refund", "pay", "transfer", "order", "buy", "sell", "send", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be written, and where."""

    command: tuple[str, ...] = ()
    """Empty for the recorded one."""
    app: str | None = None
    assertions: tuple[Placed, ...] = ()
    output: Path | None = None
    """Folder of the test; the project's own folder of tests by default."""
    name: str = ""
    force: bool = False
    tried: bool = True
    """Replay the program once, to say what the test says now."""
    writes: Writes = Writes.COPY
    children: Children = Children.ANSWER
    stubs: tuple[str, ...] = ()
    """Functions that have other bodies, as `replay.substitutes` reads them."""
    lifespan: bool = True

    def settings(self, root: Path) -> dict[str, str | bool | Sequence[str]]:
        """Give what the marker of a test in a project says of them, where they are not what they are without a word.

        Raises `UsageError` for a stub whose file is not in the project.
        """
        asked = {"writes": (self.writes, Writes.COPY), "children": (self.children, Children.ANSWER)}
        settings: dict[str, str | bool | Sequence[str]] = {
            name: value.value for name, (value, plain) in asked.items() if value is not plain
        }
        if self.stubs:
            settings["stubs"] = [_within(Substitute.read(each), root).spelled() for each in self.stubs]
        return settings if self.lifespan else {**settings, "lifespan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What was written."""

    test: Path
    fixture: Path
    function: str
    now: str = ""
    """What the test says of the code as it is now; empty where it was not tried."""
    why: str = ""
    """Why it fails now, as the test would say it."""
    replaced: dict[str, int] = field(default_factory=dict[str, int])
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        """Spell it for `--json`."""
        return {
            "test": str(self.test),
            "fixture": str(self.fixture),
            "name": self.function,
            "now": self.now or None,
            "why": self.why or None,
            "redacted": dict(self.replaced),
            "warnings": list(self.warnings),
        }


def promote(recording: RunSource, wanted: Wanted, store: DirectoryStore) -> Promoted:
    """Write the fixture and the test of a run. Raises `InputError` where a file is there already."""
    run = recording.run
    cwd = Path(as_text(run.entry.get("cwd")) if recording.starts else "")
    here = cwd if cwd.is_absolute() and cwd.is_dir() else Path.cwd()
    root = root_of(here)
    started = _started(recording, wanted, root, here)
    folder = wanted.output if wanted.output is not None else folder_of_tests(root)
    name = slug(wanted.name.removeprefix("test_")) if wanted.name else f"{slug(run.name)}_{run.id[:6]}"
    test, fixture = folder / f"test_{name}.py", folder / FOLDER / f"{name}.jsonl"
    for path in (test, fixture):
        if path.exists() and not wanted.force:
            raise InputError(
                path_name(path), "is there already", hint="give another --name, or --force to overwrite it"
            )
    portable_run = portable(recording, root)
    fixtures.write(fixture, portable_run.spans)
    marked = f"{FOLDER}/{fixture.name}" + (f"#{run.id[:12]}" if _is_one_of_several(recording) else "")
    text = Authored(
        name=name,
        fixture=marked,
        run=run,
        words=started.words,
        cwd=started.folder,
        app=started.app,
        path=started.path,
        imports=started.imports,
        assertions=tuple(spell(each.assertion) for each in wanted.assertions),
        proposals=() if wanted.assertions else authored.proposals(run, _VERBS),
        settings=wanted.settings(root),
    )
    fixtures.replace_text(test, authored.source(text))
    judged = _tried(text, fixture, portable_run, wanted, root, store) if wanted.tried else None
    return Promoted(
        test=test,
        fixture=fixture,
        function=f"test_{name}",
        now=judged.word if judged is not None else "",
        why=judged.message if judged is not None else "",
        replaced=portable_run.replaced,
        warnings=(*_warnings(portable_run, started.words), *_undecided(run, wanted.assertions)),
    )


def _within(substitute: Substitute, root: Path) -> Substitute:
    """Name the file of a substitute from the root of the project."""
    if not substitute.file:
        return substitute
    path = Path(substitute.file)
    if not path.is_relative_to(root):
        raise UsageError(f"--stub: {path} is not in the project {root}", hint="the test needs it: move it there")
    return replace(substitute, file=path.relative_to(root).as_posix())


def _is_one_of_several(recording: RunSource) -> bool:
    return bool(recording.history.units or (recording.siblings and unit.inbound(recording.run) is None))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """How the test starts the program, in words of the project: as the user says, or as the user's own run does."""

    words: tuple[str, ...] = ()
    folder: str = ""
    app: str | None = None
    path: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


def _started(recording: RunSource, wanted: Wanted, root: Path, here: Path) -> _Started:
    run = recording.run
    if wanted.command:
        below = os.path.relpath(Path.cwd(), root)
        if below.startswith(".."):
            raise UsageError(f"{Path.cwd()} is not in the project {root}", hint="run reenact promote inside it")
        return _Started(words=_plain(wanted.command, root, Path.cwd()), folder=below)
    below = os.path.relpath(here, root)
    if is_unit(recording) and wanted.app is not None:
        return _Started(app=wanted.app, folder=below, path=_search_path(recording, root, here))
    argv = [as_text(word) for word in as_list(run.entry.get("argv"))]
    if not argv and not is_unit(recording):
        hint = "name the program: `reenact promote RUN -- python your_agent.py`"
        raise UsageError("the recording does not say how its program was started", hint=hint)
    if not recording.starts:
        raise refused(recording)
    if is_unit(recording):
        return replace(_application(recording, here), folder=below, path=_search_path(recording, root, here))
    return _Started(words=_plain(["python", *argv[1:]], root, here), folder=below)


def _application(recording: RunSource, here: Path) -> _Started:
    """Spell how the application of the user's own run was made, so that the test says it and not the fixture."""
    making = Making.of(recording.run)
    module, _, attribute = making.name.partition(":")
    if making.file:
        program = os.path.relpath(making.file, here) + (f":{attribute}" if attribute else "")
        app = shlex.join([program, *making.arguments])
    else:
        app = f"{making.name}()" if making.factory and not making.name.endswith(")") else making.name
    if not app:
        raise UsageError(
            "the recording does not say how its application is made", hint="name it: --app module:attribute"
        )
    return _Started(app=app, imports=tuple(each for each in making.modules if each not in {module, "__main__"}))


def _search_path(recording: RunSource, root: Path, here: Path) -> tuple[str, ...]:
    """Give the folders of the project in which modules were found, besides the one that the program runs in."""
    if not recording.starts:
        return ()
    folders = [Path(each) for each in Making.of(recording.run).path]
    inside = [each for each in folders if each.is_dir() and each.resolve().is_relative_to(root) and each != here]
    return tuple(dict.fromkeys(os.path.relpath(each, here) for each in inside))


def _plain(command: Sequence[str], root: Path, cwd: Path) -> tuple[str, ...]:
    words, _ = relative_words(command, root, cwd)
    if Path(words[0]).name.startswith("python"):
        words[0] = "python"
        scripts = f"{sysconfig.get_path('scripts')}{os.sep}"
        if len(words) > 1 and command[1].startswith(scripts):
            words = [command[1].removeprefix(scripts), *words[2:]]
    return tuple(words)


def _tried(text: Authored, fixture: Path, spans: Portable, wanted: Wanted, root: Path, store: DirectoryStore) -> Judged:
    """Do once what the test does.

    First by the hash seed that fixtures share. Where the program does not do the same by it, nobody can say whose doing
    that is, so the recorded seed stays.
    """
    command = Program(
        root=root,
        store=store,
        words=text.words,
        app=text.app,
        path=text.path,
        imports=text.imports,
        folder="" if text.cwd == "." else text.cwd,
        warm=False,
        policy=policy_of(
            adding=False,
            writes=wanted.writes,
            children=wanted.children,
            stubs=wanted.stubs,
            lifespan=wanted.lifespan,
        ),
    )
    named_run = str(fixture) + text.fixture.partition(".jsonl")[2]
    fixtures.write(fixture, seeded(spans.spans))
    ran = command.replayed(fixtures.read(named_run), quiet=True)
    if ran.result is None or ran.result.result != "same":
        fixtures.write(fixture, spans.spans)
        ran = command.replayed(fixtures.read(named_run), quiet=True)
    recorded = fixtures.read(named_run).run
    about = About(fixture=path_name(fixture), recorded=recorded, command=text.words, app=text.app)
    if ran.result is None:
        return Judged(word="", passes=True)
    if wanted.assertions:
        return judging.holds(recorded, ran.run, ran.result, wanted.assertions, about)
    return judging.same(ran.result, about)


def _undecided(run: Run, assertions: Sequence[Placed]) -> list[str]:
    """Say of each assertion that nothing can decide on the recording that the test does not stand on it."""
    return [
        f"`{each.assertion}` is undecided on the recording: {each.because}; a run that is the same passes all the same"
        for each in check(run, assertions)
        if each.standing is Standing.UNDECIDED
    ]


def _warnings(portable_spans: Portable, words: Sequence[str]) -> tuple[str, ...]:
    warnings = [
        f"the command names {word}, which is outside the project: give the test's own command after `--`"
        for word in named_paths(words)
    ]
    if portable_spans.paths:
        excerpt = ", ".join(portable_spans.paths[:3])
        warnings.append(f"evidence names folders of this machine ({excerpt}): the test may diverge on another one")
    return tuple(warnings)
