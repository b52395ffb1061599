"""Lanes: which line of execution a call is on, named so that the name is the same when the program runs again.

A lane is a spawn path. It is assigned where a task, thread or pool job is *created*, by whoever creates it:
`main/ask#2` is the third `ask` that the main lane spawned. Schedulers decide when a lane runs, never what it is
called. Counters are kept per name, so that a spawn that happens on some runs only (a resolver thread, a connection
task) does not shift the others; what the outside world's libraries spawn during a real call comes from a throw-away
lane (`aside`).
"""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import concurrent.futures.thread
import contextvars
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

from reenact.boundary import place, program_threads, task_births
from reenact.boundary.forgiving import forgive
from reenact.boundary.own_code import is_of_package, own_line
from reenact.boundary.patching import Patches
from reenact.boundary.program_threads import innermost, is_work, runs_in_context
from reenact.values import locks

T = TypeVar("T")
_running_loop: Callable[[], object] = vars(asyncio.events)["_get_running_loop"]

_LONGEST_PATH = 1000
"""Longer spawn paths, as of a task that starts its own successor for ever, go on from their digest."""

_DREW = 10_000
"""So many lanes may draw without ever making a call; a service that spawns for ever keeps the latest."""

_PAUSES = 20_000
"""So many pauses of a run are noted."""

_RESOLVE_S = 0.25
"""How long the end of a pool job waits for the callbacks of another one: they may themselves wait for this end."""


class Reel:
    """What holds together the draws of a line of execution and all that it spawned: the program's own, or a unit's."""

    __slots__ = (
        *("again", "drew", "forgotten", "landings", "looked_at", "path", "pauses", "read", "recorded", "unit", "units"),
        *("_noted", "unpaused", "waiting"),
    )

    def __init__(self, path: str, unit: int = 0, again: str = "") -> None:
        self.path = path
        """The lane that it began on."""
        self.unit = unit
        """Which unit of work it is of those that began on this lane, from 1; 0 where the lane began with it."""
        self.again = again
        """In a replay that delivers several units that came in: the run of the one that it does again."""
        self.units: dict[str, int] = {}
        """How many units of work began within it, by lane."""
        self.drew: dict[int, Lane] = {}
        """The lanes that drew of the clock or of chance since their last call, by identity."""
        self.read: dict[int, Lane] = {}
        """The lanes on which libraries read a clock since their last call, by identity."""
        self.forgotten = 0
        """How many of these were dropped, being too many."""
        self.looked_at = ""
        """The text in which draws of libraries were looked for last."""
        self.recorded: object = None
        """In a replay, the recorded draws that stand for theirs."""
        self.pauses: dict[str, list[Any]] = {}
        """Where they waited by the clock (`boundary.pauses.Pause`), by lane."""
        self.landings: dict[str, Any] = {}
        """By the lanes of jobs whose ends an event loop heard of close behind another: that one, and after how long."""
        self.waiting: set[Any] = set()
        """Who waits now (`boundary.pauses.Waiting`)."""
        self._noted = self.unpaused = 0
        """How many pauses were noted; how many more were not, being too many."""

    def begin_unit(self, path: str) -> Reel:
        """Make the reel of a unit of work that begins on a lane of this one."""
        number = self.units[path] = self.units.get(path, 0) + 1
        return Reel(path, number, self.again)

    def paused(self, path: str, pause: object) -> None:
        """Note that code of a lane waited by the clock."""
        if self._noted < _PAUSES:
            self._noted += 1
            self.pauses.setdefault(path, []).append(pause)
        else:
            self.unpaused += 1

    def landed(self, path: str, before: str, turns: int) -> None:
        """Note how many turns of a loop behind another job the end of one was heard of (`boundary.landings`)."""
        if len(self.landings) < _PAUSES:
            self.landings[path] = [before, turns]

    def is_full(self) -> bool:
        """Tell whether no further pause is noted; it counts the one of who asks."""
        self.unpaused += (full := self._noted >= _PAUSES)
        return full

    def has_room(self) -> bool:
        """Tell whether half of the pauses that are noted at most are to come."""
        return self._noted < _PAUSES // 2

    def take_pauses(self) -> dict[str, list[Any]]:
        """Give the pauses that were noted since the last time, by lane."""
        pauses, self.pauses, self._noted = self.pauses, {}, 0
        return pauses


class Lane:
    """One line of execution."""

    __slots__ = (
        "_spawned",
        "aside",
        "call",
        "drawn",
        "earlier",
        "hashed",
        "is_work",
        "library",
        "origin",
        "path",
        "reel",
        "root",
        "streams",
        "threaded",
        "used",
    )

    def __init__(self, path: str, reel: Reel | None = None) -> None:
        self.path = path
        self.reel = Reel(path) if reel is None else reel
        self.drawn: dict[int, dict[Any, list[Any]]] | None = None
        """What was drawn of the clock and of chance since its last call: by the call it was made in, then by site."""
        self.library: Any = None
        """What installed libraries drew on it since then (`boundary.flows.Segment`)."""
        self.streams: dict[Any, Any] | None = None
        """The random streams of the sites that draw on it outside every call."""
        self.earlier: Lane | None = None
        """The main lane of the process that this one's process was forked off, where anything was drawn there."""
        self.hashed: tuple[int, dict[int, int]] | None = None
        """Where the numbers of its objects begin, and the last of each call (`integrations.object_hashes`)."""
        self.threaded = False
        """It runs on a thread other than its creator's."""
        self.origin = ""
        """The agent's line that started its thread or handed over its job, as `file:line`; "" on other lanes."""
        self.is_work = False
        """It is a job of a pool, and work of the program's."""
        self.call = 0
        """The span of the call in which its job was handed over."""
        self.used = False
        """A boundary was crossed on it."""
        self.root = 0
        """The root span of the run whose boundary was last crossed on it."""
        self._spawned: dict[str, int] = {}
        self.aside: Lane | None = None
        """What `beside` gives, once it was asked for."""

    @property
    def is_aside(self) -> bool:
        """Whether it is of what libraries do for another lane during its calls."""
        return "/~" in self.path

    def beside(self) -> Lane:
        """Give the lane of what libraries do for this one during its calls."""
        if self.aside is None:
            self.aside = Lane(f"{self.path}/~")
        return self.aside

    def spawn(self, label: str) -> Lane:
        """Name a lane that this one creates."""
        number = self._spawned.get(label, 0)
        self._spawned[label] = number + 1
        path = self.path
        if len(path) > _LONGEST_PATH:
            path = f"…{hashlib.blake2b(path.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"
        return Lane(f"{path}/{label}#{number}", self.reel)

    def begin_drawing(self) -> dict[int, dict[Any, list[Any]]]:
        """Begin to note draws, and have the reel know of it."""
        self.drawn = drawn = dict[int, dict[Any, list[Any]]]()
        drew = self.reel.drew
        drew[id(self)] = self
        if len(drew) > _DREW:
            drew.pop(next(iter(drew))).drawn = None
            self.reel.forgotten += 1
        return drawn


_main = Lane("main")
_LANE: contextvars.ContextVar[Lane | None] = contextvars.ContextVar("reenact_lane", default=None)


class _OfThread(threading.local):
    """What is known of one thread."""

    ended: Lane | None = None
    """The job that came to its end last, until its future is resolved."""
    job: Lane | None = None
    """The job of a pool that runs, or the lane of the thread, where nobody set one since by hand."""


_local = _OfThread()
_BY_A_LIBRARY = nullcontext()
_resolving = locks.rlock()
"""Held while an end is told; a callback that hears of it may hand over, and add, what is to be told next."""


class Listener(Protocol):
    """Who hears of lanes, in a replay."""

    def lane_spawned(self, lane: Lane) -> None:
        """Hear that `lane` started a thread or handed a job to a pool."""

    def lane_ended(self, lane: Lane) -> None:
        """Hear that `lane` came to its end."""


class Finisher(Protocol):
    """Who hears of a pool job between the end of its work and the moment its future is resolved."""

    @property
    def holds(self) -> bool:
        """Whether `may_end` may block."""
        ...

    def may_end(self, lane: Lane) -> None:
        """Block until the future of this job may be resolved."""

    def ended(self, lane: Lane) -> None:
        """Hear that it is being resolved: called for one job at a time, in the order in which others will see them."""


_listeners: list[Listener] = []
_finishers: list[Finisher] = []
_further: list[contextvars.ContextVar[Any]] = []


def current() -> Lane:
    """Give the lane of the code now running.

    A job may run its function in a copy of its creator's context, which has its creator's lane (LangChain's `map`).
    """
    lane, job = _LANE.get() or _main, _local.job
    if job is None or job.reel is not lane.reel or not job.path.startswith(f"{lane.path}/"):
        return lane
    return job if _running_loop() is None else lane  # a loop's tasks are told apart by their contexts alone


def restart(path: str = "main") -> None:
    """Begin counting afresh: at the start of a recording or replay in a process that lives longer than that."""
    global _main  # the one lane that nobody spawned
    before, _main = _main, Lane(path)
    program_threads.restart()
    if path != "main":  # a fork of a process that had begun: what was drawn then may be used by the fork
        _main.earlier = before if before.drawn else before.earlier
    _LANE.set(None)


def main() -> Lane:
    """Give the lane that nobody spawned."""
    return _main


class on:  # noqa: N801 - reads as a function does; a generator would cost a call three times as much
    """Run on `lane`: a context manager for integrations that are given a unit of work by hand."""

    __slots__ = ("_before", "_job", "_lane")

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> None:
        self._before, self._job = _LANE.get(), _local.job
        _local.job = None
        _LANE.set(self._lane)

    def __exit__(self, *_: object) -> None:
        if _LANE.get() is self._lane:  # else it is closed in another context
            _LANE.set(self._before)
            _local.job = self._job


class aside:  # noqa: N801 - as above
    """Surround a real call: what libraries spawn inside takes no numbers from the agent's lane."""

    __slots__ = ("_before", "_lane")

    def __enter__(self) -> None:
        self._before = _LANE.get()
        lane = current()
        self._lane = beside = lane.aside or lane.beside()
        _LANE.set(beside)

    def __exit__(self, *_: object) -> None:
        if _LANE.get() is self._lane:  # as above
            _LANE.set(self._before)


def listen(listener: Listener) -> Callable[[], None]:
    """Have `listener` told of lanes; gives back a function that stops it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def finish_with(finisher: Finisher) -> Callable[[], None]:
    """Have `finisher` told of the ends of pool jobs; gives back a function that stops it."""
    _finishers.append(finisher)
    return lambda: _finishers.remove(finisher)


def carry(variable: contextvars.ContextVar[Any]) -> Callable[[], None]:
    """Have a context variable with a default go along to threads and pool jobs; gives a function that stops it."""
    _further.append(variable)
    return lambda: _further.remove(variable)


def tell_ended(lane: Lane, *_: object) -> None:
    """Tell that a lane has come to its end."""
    for listener in tuple(_listeners):
        listener.lane_ended(lane)


def _spawn_threaded(label: str) -> Lane:
    """Name a lane on another thread, and tell that the current one spawned it."""
    parent = current()
    for listener in tuple(_listeners):
        listener.lane_spawned(parent)
    lane = parent.spawn(label)
    lane.threaded = True
    lane.origin = own_line() or parent.origin
    return lane


def label(work: Any) -> str:
    """Name a piece of work by its function, never by an address or a running number."""
    while isinstance(work, partial):
        job = cast("partial[Any]", work)
        wrapped = _in_context(job)
        work = wrapped.args[innermost(wrapped.func, *wrapped.args) - 1] if wrapped is not None else job.func
    name: object = None
    with suppress(Exception):  # a proxy's own attribute access
        name = getattr(work, "__qualname__", None) or getattr(work, "__name__", None)
    return str(name or type(work).__qualname__).replace("/", "_").replace("#", "_")


def _in_context(work: object) -> partial[Any] | None:
    """Give `work` where it is `partial(Context.run, function, …)`, as asyncio makes it."""
    if not isinstance(work, partial):
        return None
    bound_call = cast("partial[Any]", work)
    return bound_call if bound_call.args and runs_in_context(bound_call.func) else None


def carried(lane: Lane, work: Callable[..., Any], *, job: bool = False, on_thread: bool = False) -> Callable[..., Any]:
    """Make `work` run on `lane`, below the call that spawned it. Only our own variables are carried.

    It is the `job` of a pool, or all that is done `on_thread`.
    """
    here, further = place.current(), [(variable, variable.get()) for variable in _further]
    wrapped = _in_context(work)
    if wrapped is not None:
        # asyncio.to_thread and friends bring a context of their own, which would hide ours
        at = innermost(wrapped.func, *wrapped.args)
        inner = carried(lane, wrapped.args[at - 1], job=job)
        return partial(wrapped.func, *wrapped.args[: at - 1], inner, *wrapped.args[at:], **wrapped.keywords)
    lane.call = here.span_id if here is not None else 0

    def run(*args: Any, **kwargs: Any) -> Any:
        before, stood, outer = _LANE.get(), place.move(here), _local.job
        others = [(variable, variable.get()) for variable, _ in further]
        _LANE.set(lane)
        _local.job = lane if job or on_thread else None
        _set(further)
        try:
            return work(*args, **kwargs)
        finally:
            _LANE.set(before)
            _local.job = outer
            place.move(stood)
            _set(others)
            if job and (lane.used or lane.is_work):
                _local.ended = lane

    return run


def _set(values: list[tuple[contextvars.ContextVar[Any], Any]]) -> None:
    for variable, value in values:
        variable.set(value)


def _enter(lane: Lane, context: contextvars.Context | None) -> None:
    """Have a task that is spawned now, in this context or a copy of the current one, begin on a lane."""
    if context is None:
        _LANE.set(lane)
        return
    with suppress(RuntimeError):  # it is entered: the tasks that share it share their creator's lane
        context.run(_LANE.set, lane)


def _born(lane: Lane, task: Any) -> None:
    task_births.note(task, lane.path.rpartition("/")[0])
    if _listeners:
        with suppress(AttributeError):  # a task factory of the host's may make what it will; trio tells by itself
            task.add_done_callback(partial(tell_ended, lane))


def _spawning(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Have each task that `original` spawns of its first argument begin on a lane of its own.

    What fails of ours leaves the task as it would be without us.
    """

    @wraps(original)
    def spawn(self: Any, *args: Any, **kwargs: Any) -> Any:
        lane, before = None, _LANE.get()
        try:
            if not kwargs.get("system_task"):  # trio's own
                lane = current().spawn(label(args[0] if args else kwargs["coro"]))
                _enter(lane, kwargs.get("context"))
        except Exception:
            forgive(name)
        try:
            task = original(self, *args, **kwargs)
        finally:
            _LANE.set(before)
        try:
            if lane is not None:
                _born(lane, task)
        except Exception:
            forgive(name)
        return task

    return spawn


def _create_task(original: Callable[..., Any]) -> Callable[..., Any]:
    return _spawning(original, "lanes.create_task")


def spawning_task(original: Callable[..., Any]) -> Callable[..., Any]:
    """Give the tasks that a runner of trio spawns for the program a lane."""
    return _spawning(original, "lanes.spawn_impl")


def ending_task(original: Callable[..., None]) -> Callable[..., None]:
    """Tell that the lane of a task of trio has ended."""

    @wraps(original)
    def task_exited(self: Any, task: Any, *args: Any) -> None:
        original(self, task, *args)
        if _listeners and (lane := task.context.get(_LANE)) is not None:
            tell_ended(lane)

    return task_exited


_POOL_THREAD = vars(concurrent.futures.thread)["_worker"].__code__
_OF_POOLS = (_POOL_THREAD, getattr(getattr(asyncio.BaseEventLoop, "_do_shutdown", None), "__code__", _POOL_THREAD))
"""That, and what the thread runs in which `asyncio.run` ends its pool."""


def _thread_start(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def start(self: threading.Thread) -> None:
        if self.ident is not None:  # it was started before, and will say so
            original(self)
            return
        try:
            undo = _prepare(self)
        except Exception:
            forgive("lanes.start")
            original(self)
            return
        try:
            original(self)
        except BaseException:
            undo()
            raise

    return start


def _prepare(thread: threading.Thread) -> Callable[[], object]:
    """Make a thread run on a lane of its own; gives a function that makes it as it was."""
    attributes: dict[str, Any] = vars(thread)
    target, args, own = attributes.get("_target"), attributes.get("_args") or (), attributes.get("run")
    code = getattr(type(thread).run if target is None else target, "__code__", None)
    if code not in _OF_POOLS and (code is None or not is_of_package(code.co_filename)):
        program_threads.count_thread()
    if at := innermost(target, *args):  # Thread(target=context.run, args=(function, …))
        lane = _spawn_threaded(label(args[at - 1]))
        attributes["_args"] = (*args[: at - 1], carried(lane, args[at - 1]), *args[at:])
    else:
        lane = _spawn_threaded(label(target) if target is not None else type(thread).__qualname__)
    is_own = code is not None and not is_of_package(code.co_filename)  # else it may work for whoever hands it something
    run = carried(lane, thread.run, on_thread=is_own)

    def restore() -> None:
        attributes.pop("run", None)
        if own is not None:
            attributes["run"] = own

    def run_and_tell() -> None:
        restore()  # no cycle is left behind
        try:
            program_threads.note()
            if code is _POOL_THREAD:
                program_threads.pool_thread_begins(thread)
        except Exception:
            forgive("lanes.run")
        try:
            run()
        finally:
            with suppress(Exception):
                program_threads.thread_ends(thread)
            tell_ended(lane)

    attributes["run"] = run_and_tell
    return restore


def _as_job(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Lane, tuple[Any, ...]]:
    """Give the lane of a job, and what is to be submitted in its place."""
    if at := innermost(fn, *args):  # submit(context.run, function, …), submit(first, context.run, function, …)
        lane = _spawn_threaded(label(args[at - 1]))
        first = fn if runs_in_context(fn) else carried(lane, fn)
        return lane, (first, *args[: at - 1], carried(lane, args[at - 1], job=True), *args[at:])
    lane = _spawn_threaded(label(fn))
    return lane, (carried(lane, fn, job=True), *args)


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            lane, job = _as_job(fn, args)
            lane.is_work = not lane.is_aside and is_work(fn, (*args, *kwargs.values()))
            turn = program_threads.handing_over() if lane.is_work else _BY_A_LIBRARY
        except Exception:
            forgive("lanes.submit")
            return original(self, fn, *args, **kwargs)
        with ExitStack() as stack:
            try:
                stack.enter_context(turn)
            except Exception:
                forgive("lanes.submit")
            future = original(self, *job, **kwargs)
            try:
                stack.close()
            except Exception:
                forgive("lanes.submit")
        try:
            task_births.runs(future, lane)
            if lane.is_work:
                program_threads.count_job(future)
        except Exception:
            forgive("lanes.count_job")
        if _listeners:
            future.add_done_callback(partial(tell_ended, lane))
        return future

    return submit


def _handed_over(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have a loop hear of a job before any end is told: else one that ends at once would come behind later ones."""

    @wraps(original)
    def run_in_executor(self: Any, executor: Any, func: Any, *args: Any) -> Any:
        with between_ends():
            return original(self, executor, func, *args)

    return run_in_executor


class between_ends:  # noqa: N801 - as above
    """Have no end of a job be told meanwhile."""

    __slots__ = ("_alone",)

    def __enter__(self) -> None:
        self._alone = bool(_finishers) and _resolving.acquire(timeout=_RESOLVE_S)

    def __exit__(self, *_: object) -> None:
        if self._alone:
            _resolving.release()


def _resolve(original: Callable[..., Any]) -> Callable[..., Any]:
    """Number the ends of pool jobs in the very order in which `as_completed` and callbacks see them."""

    @wraps(original)
    def resolve(self: Future[Any], value: Any) -> None:
        afar: Lane | None = vars(self).pop(task_births.JOB_ELSEWHERE, None)
        lane: Lane | None = afar or _local.ended
        if lane is None or not _finishers:
            task_births.end(self)
            original(self, value)
            return
        if afar is not None:
            in_order(afar, partial(_resolve_now, original, self, value))
            return
        _local.ended = None
        _hold(lane)
        _finish(lane, partial(_resolve_now, original, self, value))

    return resolve


def _resolve_now(original: Callable[..., Any], future: Future[Any], value: Any) -> None:
    task_births.end(future)
    original(future, value)


def _hold(lane: Lane) -> None:
    try:
        for finisher in tuple(_finishers):
            finisher.may_end(lane)
    except Exception:
        forgive("lanes.hold")


def _finish(lane: Lane, tell: Callable[[], object]) -> None:
    """Tell the end of a job to our own and then to everybody, one job at a time."""
    with between_ends():
        _tell_finishers(lane)
        tell()


def _tell_finishers(lane: Lane) -> None:
    try:
        for finisher in tuple(_finishers):
            finisher.ended(lane)
    except Exception:
        forgive("lanes.finish")


def in_order(lane: Lane, tell: Callable[[], object]) -> None:
    """Tell the end of a job that ran elsewhere, in the order of the recording where there is one.

    One thread tells the ends of a whole pool, so that it must not be held up: who has to wait does so on a thread of
    its own.
    """

    def wait_and_tell() -> None:
        _hold(lane)
        _finish(lane, tell)
        tell_ended(lane)

    if any(finisher.holds for finisher in tuple(_finishers)):
        _thread.start_new_thread(wait_and_tell, ())  # none of `threading`'s, which would be a lane
    else:
        _finish(lane, tell)


def install(patches: Patches) -> None:
    """Assign lanes from now on, until `patches` is undone."""
    patches.replace(asyncio.BaseEventLoop, "create_task", _create_task)
    patches.replace(asyncio.BaseEventLoop, "run_in_executor", _handed_over)
    patches.replace(asyncio, "as_completed", task_births.completed)
    patches.replace(concurrent.futures, "as_completed", task_births.futures_completed)
    for module in (asyncio, asyncio.futures):
        patches.replace(module, "wrap_future", task_births.handing_on)
    patches.replace(threading.Thread, "start", _thread_start)
    patches.replace(ThreadPoolExecutor, "submit", _submit)
    patches.replace(Future, "set_result", _resolve)
    patches.replace(Future, "set_exception", _resolve)
    patches.when_imported("uvloop", partial(_of_uvloop, patches))


def _of_uvloop(patches: Patches, module: Any) -> None:
    patches.replace(module.Loop, "create_task", _create_task)
    patches.replace(module.Loop, "run_in_executor", _handed_over)
