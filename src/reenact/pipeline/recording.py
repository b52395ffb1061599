"""Putting a recorder in charge of this process, and taking it away again."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link

from reenact.boundary import children, door, inbound, lanes, pauses, side_effects, tape, variables
from reenact.boundary.forgiving import failures
from reenact.boundary.patching import Patches
from reenact.contracts.dialect import View
from reenact.contracts.doorman import Doorman
from reenact.contracts.integration import Integration
from reenact.dialects.openinference import WRITING
from reenact.discover import entries
from reenact.errors import InputError, ReplayStopped
from reenact.keep import run_proof
from reenact.pipeline import late_cuts
from reenact.pipeline.family import Family
from reenact.record import console, pipe, surroundings, undeclared, words
from reenact.record.bounds import bounds_from
from reenact.record.file_writes import Writes
from reenact.record.journal import JournalProcessor
from reenact.record.outputs import Outputs
from reenact.record.projection import Projection, application_provider
from reenact.record.recorder import Recorder, order_clock
from reenact.record.runs import REPLACED, Run, Runs
from reenact.record.span import CallSpans
from reenact.record.standard_input import StandardInput
from reenact.redact import in_force, keys
from reenact.redact.engine import KNOWN, Engine, names_a_secret
from reenact.redact.in_force import Guard
from reenact.redact.payloads import replace_spoken_words
from reenact.redact.processor import RedactionSpanProcessor
from reenact.stores.directory import DirectoryStore, locate
from reenact.values import typed
from reenact.values.call import Call, ExceptionRecord, Outcome
from reenact.values.json import Json, compact
from reenact.values.run import FAILURES, SESSION, TENANT, USER
from reenact.values.settings import set_by_command
from reenact.values.terminal import tell
from reenact.version import VERSION

_IDENTITY = {"user": USER, "session": SESSION, "tenant": TENANT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a recording is made. Code beats environment (REENACT_*)."""

    store: Path | None = None
    user: str | None = None
    session: str | None = None
    tenant: str | None = None
    policy: str | Path = ""
    """The redaction policy: a file, or `default`; else the one that the environment names."""
    salt: str = ""
    """The token key of the recording that is replayed; empty to draw one."""
    recorded: Mapping[str, Any] | None = None
    """What the root of the recording that is replayed says of its redaction: the live side passes the same."""
    root: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further attributes of every root."""
    roots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """What stands in place of `root` on those of units that are delivered before the run: by the recorded run."""
    around_unit: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further attributes of the process's own root, where one unit is run again in it; None removes one of `root`."""
    links: tuple[Link, ...] = ()
    doorman: Callable[[Recorder, Engine], Doorman] | None = None
    """Makes the doorman to put in charge; the recorder itself by default."""
    answers: tape.Answers | None = None
    """Gives recorded draws of the clock and of chance back."""
    taped: bool = True
    """Draws are taken down."""
    generators: Mapping[str, str] | None = None
    """Modes of the shared random generators (`boundary.tape`); None where the program may have seeded them already."""
    writes: bool = False
    """The program's writes go through in a replay, and are noted as in a recording."""
    hears: bool = True
    """What the program prints is part of its outcome."""
    wrote: Callable[[Iterable[str]], None] | None = None
    """Hears the paths that the process wrote, at its end."""
    application: TracerProvider | Any | None = None
    """The application's provider to project to; looked up by default."""


class _Boundaries:
    """Every boundary of this process, cut once, however many recordings are open at a time."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._users = 0
        self._carried: list[Callable[[], None]] = []
        """What ends the carrying of our context variables to threads and pools."""

    def cut(self) -> None:
        """Put ourselves before every boundary."""
        self._users += 1
        if self._users > 1:
            return
        self._patches = Patches()
        lanes.install(self._patches)
        self._carried += [inbound.carry(), Runs.carry(), inbound.watch(), inbound.have_kept(_keep)]
        with tape.rebound_at_once():
            for entry in entries("integrations", Integration):
                late_cuts.install(entry, self._patches)
        self._patches.replace(sys, "excepthook", _hook)
        self._patches.replace(threading, "excepthook", _thread_hook)

    def give_back(self) -> None:
        """Give every boundary back with the last recording, in whatever order they end."""
        self._users -= 1
        if self._users == 0:
            self._patches.undo()
            while self._carried:
                self._carried.pop()()


def _keep(unit: inbound.Inbound) -> None:
    if _current:
        _current[-1].runs.keep(unit)


def _hook(original: Any) -> Any:
    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        for recording in _current:
            recording.died_of(error)
        if not isinstance(error, ReplayStopped):  # told by the replay's own report, first divergence first
            original(kind, error, trace)

    return excepthook


def _thread_hook(original: Any) -> Any:
    def excepthook(args: Any) -> None:
        if not issubclass(args.exc_type, ReplayStopped):
            original(args)

    return excepthook


class Recording:
    """A recorder in charge of this process. `stop` is safe to call twice."""

    def __init__(self, setup: Setup, environ: Mapping[str, str]) -> None:
        self.store = DirectoryStore(setup.store or locate(_here(), dict(environ)))
        self.id = environ.get("REENACT_RECORDING") or os.urandom(8).hex()
        process = os.urandom(8).hex()
        self.guard = _guard(setup, self.store.folder, environ)
        self.engine = self.guard.engine(environ)
        facts: dict[str, Json] = {
            "reenact.recording.id": self.id,
            "reenact.process.id": process,
            "process.pid": os.getpid(),
            "process.parent_pid": os.getppid(),
            "service.instance.id": process,
        }
        described = pipe.resource(Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", facts)
        name = f"{self.id}-{process}"
        self._prover = run_proof.prover(self.store, self.id, environ, make=setup.doorman is None)
        self.journal = JournalProcessor(
            self.store.journals,
            name,
            self.engine.attributes(described.attributes),
            "reenact",
            VERSION,
            bounds_from(environ),
            prove=self._prover,
        )
        processor = RedactionSpanProcessor(self.journal, self.engine, own=True)
        self.provider = pipe.provider(described, processor)
        self._spans = CallSpans(self.journal, self.engine)
        self._setup, self._environ, self._by_command = setup, environ, set_by_command(environ)
        self._has_replaced = bool(os.environ.pop(children.REPLACED, ""))
        self._error: ExceptionRecord | None = None
        self._has_started = self._has_stopped = False
        self._suppressed, self._unrecorded, self._failures = door.suppressed(), door.unrecorded(), failures()
        self._app_projection: Projection | None = None
        self._around: dict[str, str] = {}
        # The program may change these before anything is recorded.
        self._folder, self._umask = surroundings.working_folder(), surroundings.umask()
        self.taped = setup.taped and environ.get("REENACT_TAPE", "").lower() != "off"
        self.answers = setup.answers
        self.modes = tape.Modes(_unknown() if setup.generators is None else setup.generators)
        self.recorder = self._recorder(setup)
        self.doorman: Doorman = setup.doorman(self.recorder, self.engine) if setup.doorman else self.recorder
        self._family = Family(
            self.runs,
            self._inherited(),
            self._handed_on,
            replaying=self.doorman if self.strict else None,  # type: ignore[arg-type]  # a strict doorman is a replayer
            died_of=self.died_of,
            close=lambda code: self.runs.leave(self._error, code),
        )

    @staticmethod
    def _default_identity(setup: Setup, environ: Mapping[str, str]) -> dict[str, str]:
        values = {name: getattr(setup, name) or environ.get(f"REENACT_{name.upper()}") for name in _IDENTITY}
        return {_IDENTITY[name]: value for name, value in values.items() if value}

    def _recorder(self, setup: Setup) -> Recorder:
        next_order = order_clock()
        self.runs = Runs(
            self.provider,
            self._root_attributes,
            self._counts,
            next_order=next_order,
            identity=self._default_identity(setup, self._environ),
            links=setup.links,
            version=VERSION,
            entry=self._entry,
        )
        self.runs.below = setup.root
        self.runs.around_unit = setup.around_unit
        if self.watches or setup.writes:
            self.runs.writes = Writes(self.engine.attributes, self.runs.owner, side_effects.temporary_paths)
            self.runs.wrote = setup.wrote
        if self.hears:
            keeps = self.engine.plan.payloads == "scan"
            arguments = self.engine.attributes, self.runs.owner, side_effects.temporary_paths
            self.runs.outputs = Outputs(*arguments, keeps_texts=keeps)
            if not self.strict and "REENACT_RECORD" in self._environ and children.VARIABLE not in self._environ:
                self.runs.stdin = StandardInput()
        return Recorder(
            self._spans,
            self.journal,
            self.engine,
            WRITING,
            runs=self.runs,
            next_order=next_order,
            projection=self._projection,
        )

    def _projection(self) -> Projection | None:
        """Find the application's provider, which may be set up long after us. A replay shows nothing there."""
        if self._app_projection is None and self._setup.doorman is None:
            application = self._setup.application or application_provider(self.provider)
            if application is not None:
                self._app_projection = Projection(application, WRITING, self.engine, VERSION, self._show())
        return self._app_projection

    def _show(self) -> Callable[[Call, Outcome], View] | None:
        """Find in whose names the application's backend is shown calls; None for those that we record with."""
        from reenact.values.semconv import Semconv, semconv_from  # few applications have a provider of their own

        try:
            semconv = semconv_from(self._environ)
        except InputError:  # who sends says so
            return None
        if semconv is Semconv.OPENINFERENCE:
            return None
        from reenact.keep.flattening import view_of

        return lambda call, outcome: view_of(call, outcome, semconv)

    def _entry(self) -> dict[str, Json]:
        """Say how this program was started; a secret among its words is a token."""
        token = self.engine.token
        stands = self.guard.stands_for(self.engine)

        def safe(argv: Sequence[str]) -> list[str]:
            return replace_spoken_words(
                words.without_secrets(argv, lambda _, value: token(KNOWN, value), names_a_secret), stands
            )

        entry = surroundings.entry_point(safe, folder=self._folder)
        return {**entry, "replaced": True} if self._has_replaced else entry

    def _root_attributes(self) -> dict[str, Any]:
        engine = self.engine
        if not self._around:  # read once: a service opens many runs
            around = surroundings.surroundings(
                lambda _, value: engine.token(KNOWN, value),
                names_a_secret,
                folder=self._folder,
                mask=self._umask,
                by_command=self._by_command,
            )
            self._around = {
                "reenact.entry": compact(self._entry()),
                "reenact.surroundings": compact(around),
            }
        facts = self.guard.facts()
        if keys.handed_salt() and facts.get(in_force.SALT) == keys.handed_salt():
            del facts[in_force.SALT]  # whoever started this replay adds it: the program can read its journal
        return {**self._around, **facts, **self._setup.roots.get(lanes.current().reel.again, self._setup.root)}

    def _inherited(self) -> dict[str, str]:
        """Give the variables by which child programs record themselves or join the replay."""
        settings = {key: value for key, value in self._environ.items() if key.startswith("REENACT_")}
        settings |= self._redaction_told()
        if "REENACT_REPLAY" in settings or "REENACT_RECORD" in settings:
            return {key: value for key, value in settings.items() if key != children.VARIABLE}
        if self.strict:
            return {}  # the plan is in the memory of this process
        own = {
            "REENACT_RECORD": "1",
            "REENACT_RECORDING": self.id,
            "REENACT_STORE": str(self.store.folder.absolute()),
            "REENACT_SALT": self.guard.salt,
        }
        return {**settings, **{key: value for key, value in own.items() if value}}

    def _handed_on(self) -> dict[str, str]:
        """Give the variables by which a child proves its runs, or, in a replay, redacts as this process does."""
        if not self.strict:
            return self._prover.handed_on() if self._prover is not None else {}
        from reenact.pipeline import keyring  # nobody else has one

        handle = keyring.descriptor()
        return {} if handle is None else {children.HANDED: str(handle)}

    def _redaction_told(self) -> dict[str, str]:
        """Give children the policy and key that are in force here, wherever they run."""
        settings = in_force.handed_on(self.guard)
        return settings if self._setup.recorded is None else {}

    def start(self) -> Recording:
        """Cut every boundary and take charge."""
        self._has_started = True
        _current.append(self)
        lanes.restart()
        self._undo = lanes.finish_with(self.recorder)
        _boundaries.cut()
        _take_charge()
        if len(_current) == 1:
            variables.begin(os.environ)
        if self.runs.outputs is not None:
            self.runs.outputs.listen()
        if self.runs.writes is not None:
            console.listen_to_logs(self.runs.writes.logged)
        if self.runs.stdin is not None:
            self.runs.stdin.listen()
        children.install(self._family)
        atexit.register(self._end)
        if (descent := children.read(self._environ.get(children.VARIABLE, ""))) is not None:
            os.environ.pop(children.VARIABLE, None)  # a child's child hangs below the child
            self._family.take_in(descent, eager=True)
        return self

    @property
    def watches(self) -> bool:
        """What the program does past every boundary is noted. A replay refuses it, or leads it to a copy."""
        return not self.strict and self._environ.get("REENACT_UNDECLARED", "").lower() != "off"

    @property
    def hears(self) -> bool:
        """What the program prints is noted, in a replay as well."""
        return self._setup.hears and self._environ.get("REENACT_OUTPUT", "").lower() != "off"

    @property
    def strict(self) -> bool:
        """Nothing may go past the doorman: it answers from a recording."""
        return self._setup.doorman is not None

    def died_of(self, error: BaseException) -> None:
        """Note what the program died of."""
        self._error = typed.encode_exception(error)

    def unit(self, name: str, *, value: Json = None, **identity: str | None) -> AbstractContextManager[Run | None]:
        """Open a run of its own for one unit of work."""
        attributes = {_IDENTITY.get(key, key): value for key, value in identity.items() if value is not None}
        return self.runs.unit(name, attributes, value)

    def stop(self) -> None:
        """Close every run, give every boundary back, close the journal."""
        if self._has_stopped:
            return
        self._has_stopped = True
        if self._has_started:
            atexit.unregister(self._end)
            children.stop(self.doorman)
            _current.remove(self)
            _take_charge()
            children.remove(self._family)
            _boundaries.give_back()
            self._undo()
        self.runs.close(self._error)
        if self.runs.outputs is not None:
            self.runs.outputs.leave()
        if self.runs.writes is not None:
            console.leave_logs(self.runs.writes.logged)
        if self.runs.stdin is not None:
            self.runs.stdin.leave()
        self.provider.shutdown()
        if self._prover is not None:
            self._prover.close()
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            _stay_interrupted()

    def _end(self) -> None:
        pauses.end_with_the_program()
        self.stop()

    def _counts(self) -> dict[str, int]:
        replaced = dict(self.engine.replaced)
        return {
            REPLACED: sum(replaced.values()),
            **{f"{in_force.REPLACED}{name}": count for name, count in sorted(replaced.items())},
            "reenact.suppressed": door.suppressed() - self._suppressed,
            "reenact.unrecorded": door.unrecorded() - self._unrecorded,
            "reenact.dropped": self.journal.dropped,
            FAILURES: failures() - self._failures,
        }


def _stay_interrupted() -> None:
    """Have the interpreter end as one that Ctrl-C ended, by the signal.

    It forgets that with each text that is run as code, as when a module of dataclasses is imported (`run_eval_code_obj`
    in CPython's pythonrun.c), and knows it again when one of these ends so.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 - see above


def _guard(setup: Setup, store: Path, environ: Mapping[str, str]) -> Guard:
    """Find what redaction is in force. A policy that cannot be read is told once, by whoever comes first."""
    if setup.recorded is not None:
        return in_force.as_recorded({in_force.SALT: setup.salt, **setup.recorded}, store, environ)
    guard = in_force.guard(store, environ, chosen=setup.policy, salt=setup.salt or environ.get("REENACT_SALT", ""))
    if guard.problem and in_force.TOLD not in environ:
        tell(guard.problem)
    return guard


_boundaries = _Boundaries()


def keep_cut() -> Callable[[], None]:
    """Keep every boundary cut between recordings, until what this gives is called: cutting takes longer than a test."""
    _boundaries.cut()
    left = [_boundaries.give_back]
    return lambda: left.pop()() if left else None


def _unknown() -> dict[str, str]:
    """Name the shared generators that were there before us, and may have been seeded."""
    modules = {"random": "random", "numpy": "numpy.random"}
    return {generator: tape.UNKNOWN for generator, module in modules.items() if module in sys.modules}


def _here() -> Path:
    """Give the working directory, or the one for temporary files where it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return Path(tempfile.gettempdir())


_current: list[Recording] = []


def current() -> Recording | None:
    """Give the recording in charge of this process."""
    return _current[-1] if _current else None


def _take_charge() -> None:
    """Put the innermost recording's doorman at the door."""
    innermost = current()
    watched = innermost.runs.undeclared if innermost and innermost.watches else None
    undeclared.listen(watched, innermost.runs.writes if innermost else None)
    door.install(innermost.doorman if innermost else None, strict=innermost.strict if innermost else False)
    if innermost is None:
        tape.install(on=False)
        pauses.install(None)
        variables.end()
    else:
        pace: Any = getattr(innermost.doorman, "pacing", None)
        pauses.install(innermost.recorder.next_order if innermost.taped else None, pace)
        tape.install(on=innermost.taped, answers=innermost.answers, modes=innermost.modes)


def keeps_policy(recording: Recording, policy: str | Path) -> None:
    """Say so where a program asks for a policy after its recording began: it stays under the one that it has."""
    if policy and str(Path(policy).absolute()) != recording.guard.chosen and not recording.strict:
        name = recording.guard.plan.name
        tell(f"this process is recorded already, under the policy {name!r}, and stays so")


def start(setup: Setup, environ: Mapping[str, str] | None = None) -> Recording:
    """Begin to record this process. The innermost recording is in charge."""
    recording = Recording(setup, os.environ if environ is None else environ)
    try:
        return recording.start()
    except BaseException:
        recording.stop()
        raise


def stop(recording: Recording) -> None:
    """End a recording."""
    recording.stop()
