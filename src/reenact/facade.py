"""What programs call: thin, and lazy, so that decorating a function costs no import of the recorder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from reenact.compare.align import Comparison
    from reenact.compare.judge import ReplayResult
    from reenact.find.sources import RunSource
    from reenact.pipeline.recording import Recording
    from reenact.values.assertion import Assertion, Checked, Placed
    from reenact.values.json import Json
    from reenact.values.judgement import FixJudgement
    from reenact.values.run import Run


class Recorder:
    """A recording of this process, in charge from `reenact.record()` until `stop()`; also a context manager."""

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        self.runs: tuple[Run, ...] = ()

    @property
    def store(self) -> Path:
        """The folder of the store that the recording goes to."""
        return self._recording.store.folder if self._recording is not None else _store(None).folder

    def stop(self) -> tuple[Run, ...]:
        """Stop recording, carry the journal into the store and to the backends, and give the runs."""
        from reenact.pipeline import embedded, recording

        if self._recording is None:
            return ()
        recording.stop(self._recording)
        self.runs = embedded.carried(self._recording) or self.runs
        return self.runs

    def force_flush(self, timeout_s: float = 10.0) -> bool:
        """Carry what ended so far, and tell whether all of it is in the store and with every backend by then.

        True is said of nothing that is waiting or was dropped since the recording began. Under `reenact run`, which
        carries from outside, it is False.
        """
        from reenact.pipeline import embedded

        return self._recording is not None and embedded.flushed(self._recording, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and self._recording is not None:
            self._recording.died_of(error)
        self.stop()


def record(
    *,
    store: str | Path | None = None,
    user: str | None = None,
    session: str | None = None,
    tenant: str | None = None,
    policy: str | Path = "",
) -> Recorder:
    """Record this process from here on: every model call over httpx or httpx2, every decorated function.

    `policy` is the file of a redaction policy (docs/policies.md); else the environment, the project or the store names
    one. One that cannot be read costs the payloads, which are then not recorded.

    Under `reenact run` or in a replay this is the recording that is already in charge. Never raises: a recorder that
    cannot start says so on stderr and records nothing.
    """
    from reenact.pipeline import embedded, recording

    try:
        if (current := recording.current()) is not None:
            recording.keeps_policy(current, policy)
            return Recorder(current)
        folder = Path(store) if store else None
        setup = recording.Setup(store=folder, user=user, session=session, tenant=tenant, policy=policy)
        return Recorder(embedded.begin(setup))
    except Exception as error:  # noqa: BLE001 - the host is sacred
        from reenact.values.terminal import tell

        tell(f"the recorder did not start ({error!r}); the program runs unrecorded")
        return Recorder(None)


@contextmanager
def run(
    name: str,
    *,
    user: str | None = None,
    session: str | None = None,
    tenant: str | None = None,
    input: Json = None,  # noqa: A002 - OpenInference's word
) -> Generator[str | None]:
    """Open a run of its own for one unit of work, and give its id. Without a recording in charge it does nothing."""
    from reenact.boundary.forgiving import forgive
    from reenact.pipeline import recording

    unit, run_id = ExitStack(), None
    try:
        current = recording.current()
        if current is not None:
            identity = {"user": user, "session": session, "tenant": tenant}
            opened = unit.enter_context(current.unit(name, value=input, **identity))
            run_id = opened.id if opened is not None else None
    except Exception:  # noqa: BLE001 - as above
        forgive("reenact.run")
    with unit:
        yield run_id


def load(selector: str | Path = "last", *, store: str | Path | None = None) -> RunSource:
    """Find a recorded run: `last`, an id or prefix, or the path of a trace file. Raises `errors.InputError`."""
    from reenact.find import sources

    return sources.find(str(selector), _store(store))


class Replay:
    """A replay in charge of this process. `result` is set when it is over; `judgement` too, where there is a check."""

    result: ReplayResult | None = None
    run: Run | None = None
    """The replay's own run."""
    judgement: FixJudgement | None = None
    """What the replay says of the code, by the assertions it was given."""


@contextmanager
def replay(  # noqa: PLR0913 - a door: each is an option by its name
    recording: RunSource | Run | str | Path = "last",
    *,
    models: str = "recorded",
    tools: str = "recorded",
    writes: str = "copy",
    children: str = "answer",
    after: str = "writes",
    check: Iterable[str | Path | Placed | Assertion] = (),
    strict: bool = True,
    store: str | Path | None = None,
) -> Generator[Replay]:
    """Answer this process's calls from a recording: a run, what `load` gave, an id or a path.

    Files that are written outside every declared tool are refused, since this process cannot be sealed any more;
    `writes="allow"` lets that happen. Programs that are no Python of the agent's are given back; `children="refuse"`
    refuses them. `after` says what happens after the first divergence: `writes`, `stop`, `nearest` or `live-models`.
    `check` holds assertions, as text or as `reenact.assertions` makes them, or the paths of files that hold some; the
    handle's `judgement` then says what the replay means for them. At the end, `strict` raises `errors.Diverged`
    where the replay left the recording, even if the agent swallowed the miss; with `check` where the judgement is
    none of `fixed`, `same` and `holds`.
    """
    from reenact.keep.assertion_sources import asserted
    from reenact.pipeline import embedded

    source = _located(recording, store)
    assertions = asserted(check)
    handle = Replay()
    policies = {"models": models, "tools": tools, "writes": writes, "children": children, "after": after}
    with embedded.replaying(source, _store(store).folder, policies) as outcome:
        yield handle
    handle.result, handle.run = outcome.result, outcome.run
    if assertions:
        handle.judgement = embedded.judged(source, outcome, assertions)
    if strict:
        embedded.accuse(outcome, handle.judgement)


def check(
    run: RunSource | Run | str | Path,
    *assertions: Assertion | Placed | str | Path,
    judge: str | Callable[[str, str], Any] = "",
    judge_url: str = "",
    complete: bool = True,
    store: str | Path | None = None,
) -> Checked:
    """Hold assertions against a run: lines of the language, files of it, or what `reenact.assertions` makes.

    What comes back is true where every structural assertion holds; `raise_for_failures()` raises an `AssertionError`
    that says what does not, and why. `judge` is asked about prose: a callable of the answer and the statement,
    `module:function`, or `model:NAME` of an OpenAI-compatible API at `judge_url`. `complete=False` says that the run
    was stopped before its end. Raises `errors.AssertionInvalid` for a text that is no assertion, and
    `errors.UsageError` where nothing is asserted.
    """
    from reenact.errors import UsageError
    from reenact.find.sources import RunSource as Located
    from reenact.keep.assertion_sources import asserted
    from reenact.pipeline.opinions import Bench, judged_check

    if not assertions:
        raise UsageError("nothing is asserted", hint="reenact.check(run, 'never called delete_accounts')")
    source = load(run, store=store) if isinstance(run, str | Path) else run
    checked_run = source.run if isinstance(source, Located) else source
    bench = Bench(judge=judge, base_url=judge_url)
    return judged_check(checked_run, asserted(assertions), bench, _store(store), complete=complete)[0]


def compare(a: RunSource | Run, b: RunSource | Run) -> Comparison:
    """Compare two runs, first divergence first."""
    from reenact.compare.align import compare as align
    from reenact.find.sources import RunSource as Located

    return align(a.run if isinstance(a, Located) else a, b.run if isinstance(b, Located) else b)


def _located(recording: RunSource | Run | str | Path, store: str | Path | None) -> RunSource:
    """Give a recording with the other runs beside it, where the store holds them; of a run alone it is that run."""
    from reenact.errors import ReenactError
    from reenact.find.sources import RunSource as Located

    if isinstance(recording, Located):
        return recording
    if isinstance(recording, str | Path):
        return load(recording, store=store)
    try:
        beside = load(recording.id, store=store).siblings
    except ReenactError:
        beside = ()
    return Located(run=recording, siblings=beside, source="a run")


def _store(folder: str | Path | None):  # noqa: ANN202 - its type is not imported here
    import os

    from reenact.stores.directory import DirectoryStore, locate

    located = DirectoryStore(Path(folder) if folder else locate(Path.cwd(), dict(os.environ)))
    located.check_owner()
    return located
