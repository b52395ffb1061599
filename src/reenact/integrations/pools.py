"""`multiprocessing.pool`, of processes and of threads: each job is on a lane of its own, whichever worker takes it.

A job of `map` and its kin is one item, however the pool cuts them into batches, which depends on how many processors
there are. Jobs are told apart by their number in the call that submitted them. Results reach the program, by callback
or `imap_unordered`, in the recorded order.

A worker dies of what is no `Exception`, and whoever waits for its job waits for ever. Where a replay stops in a job,
its stop is therefore carried out of it as one, and raised where the result is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial, wraps
from typing import Any, cast

from reenact.boundary import children, lanes, place
from reenact.boundary.children import Descent, Job
from reenact.boundary.lanes import Lane, Reel
from reenact.contracts.integration import Integration, PatchSet
from reenact.errors import ReplayStopped
from reenact.values import alarms
from reenact.values.lane import MARK

_ENDS = "_reenact_ends"
"""Under which name a result keeps the jobs whose ends it is told."""


class _Stop(Exception):
    """Carries the stop of a replay out of a job. Picklable as that is."""

    def __init__(self, stopped: ReplayStopped) -> None:
        super().__init__(stopped)
        self.stopped = stopped


class Jobs:
    """The jobs of one call on a pool. Picklable; in another process they hang where they were submitted."""

    __slots__ = ("_carried", "_descent", "_reel", "_threads")

    def __init__(self, descent: Descent, reel: Reel, *, threads: bool) -> None:
        """Hang jobs where `descent` says; `reel` is the one of who submits them."""
        self._descent, self._reel, self._threads = descent, reel, threads
        self._carried = lanes.carried(Lane(descent.lane, reel), _on_lane)

    def __getstate__(self) -> Descent:
        return self._descent

    def __setstate__(self, descent: Descent) -> None:
        self._descent, self._threads = descent, False

    def end(self, number: int) -> Lane:
        """Give a lane that stands for the end of a task, which may be a batch of jobs."""
        lane = Lane(f"{self._descent.lane}/end#{number}", self._reel)
        lane.used, lane.root = True, self._descent.root
        return lane

    def tell(self, lane: Lane, function: Callable[..., Any], args: Iterable[Any]) -> None:
        """Tell an end on its lane: what callbacks do hangs there, whichever thread tells it."""
        self._carried(lane, function, args, {})

    def call(self, number: int, function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """Do one job on its lane. Raises `_Stop` where a replay stops."""
        try:
            if not self._threads:
                lane = f"{self._descent.lane}/{MARK}{number}"
                return Job(function, replace(self._descent, lane=lane))(*args, **kwargs)
            return self._carried(Lane(f"{self._descent.lane}/{number}", self._reel), function, args, kwargs)
        except ReplayStopped as stopped:
            raise _Stop(stopped) from None


def _on_lane(lane: Lane, function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    with lanes.on(lane):
        return function(*args, **kwargs)


class Numbered:
    """A function that is called with a job's number and its item. Picklable as the function is."""

    __slots__ = ("function", "jobs", "starred")

    def __init__(self, function: Callable[..., Any], jobs: Jobs, *, starred: bool) -> None:
        self.function, self.jobs, self.starred = function, jobs, starred

    def __call__(self, job: tuple[int, Any]) -> Any:
        """Do one job."""
        number, item = job
        return self.jobs.call(number, self.function, item if self.starred else (item,), {})


class Single:
    """A function that is called once. Picklable as the function is."""

    __slots__ = ("function", "jobs")

    def __init__(self, function: Callable[..., Any], jobs: Jobs) -> None:
        self.function, self.jobs = function, jobs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the job."""
        return self.jobs.call(0, self.function, args, kwargs)


class _Submitting(threading.local):
    """The jobs that are being submitted on one thread."""

    jobs: Jobs | None = None


_submitting = _Submitting()


def _jobs(pool: Any, function: Any) -> Jobs | None:
    """Describe a call on a pool; None where nobody is in charge."""
    from multiprocessing.pool import ThreadPool

    host = children.host()
    if host is None:
        return None
    try:
        label = lanes.label(function)
        lane = lanes.current().spawn(f"pool {label}")
        descent = host.descent(label, lane.path)
        return Jobs(descent, lane.reel, threads=isinstance(pool, ThreadPool)) if descent is not None else None
    except Exception:
        alarms.pass_on()
        return None


def _apply_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def apply_async(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        jobs = _jobs(self, func)
        if jobs is None:
            return original(self, func, *args, **kwargs)
        _submitting.jobs = jobs
        try:
            return original(self, Single(func, jobs), *args, **kwargs)
        finally:
            _submitting.jobs = None

    return apply_async


def _map_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def map_async(self: Any, func: Any, iterable: Any, mapper: Any, *args: Any, **kwargs: Any) -> Any:
        from multiprocessing import pool

        jobs = _jobs(self, func)
        stars: dict[Any, bool] = {vars(pool).get("mapstar"): False, vars(pool).get("starmapstar"): True}
        if jobs is None or mapper not in stars:
            return original(self, func, iterable, mapper, *args, **kwargs)
        numbered = Numbered(func, jobs, starred=stars[mapper])
        plain = next(each for each, starred in stars.items() if not starred)
        return original(self, numbered, list(_numbered(iterable)), plain, *args, **kwargs)

    return map_async


def _imap(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def imap(self: Any, func: Any, iterable: Any, *args: Any, **kwargs: Any) -> Any:
        jobs = _jobs(self, func)
        if jobs is None:
            return original(self, func, iterable, *args, **kwargs)
        _submitting.jobs = jobs
        try:
            return original(self, Numbered(func, jobs, starred=False), _numbered(iterable), *args, **kwargs)
        finally:
            _submitting.jobs = None

    return imap


def _numbered(iterable: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    yield from enumerate(iterable)


def _result(original: Callable[..., None]) -> Callable[..., None]:
    """Tie a result to its jobs before anybody can tell it their ends."""

    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that method
        here = place.current()
        if (jobs := _submitting.jobs) is not None and not (here is not None and here.whole):
            vars(self)[_ENDS] = jobs
        original(self, *args, **kwargs)

    return __init__


def _set(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def set_result(self: Any, i: int, obj: Any) -> None:
        jobs = cast("Jobs | None", vars(self).get(_ENDS))
        if isinstance(obj, tuple) and isinstance(obj[-1], _Stop):
            obj = False, obj[-1].stopped
        if jobs is None:
            original(self, i, obj)
        else:
            lane = jobs.end(i)
            lanes.in_order(lane, partial(jobs.tell, lane, original, (self, i, obj)))

    return set_result


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        pool: Any = module.Pool
        patches.replace(pool, "apply_async", _apply_async)
        patches.replace(pool, "_map_async", _map_async)
        for name in ("imap", "imap_unordered"):
            patches.replace(pool, name, _imap)
        for result in (module.ApplyResult, module.MapResult, module.IMapIterator, module.IMapUnorderedIterator):
            patches.replace(result, "_set", _set)
        for result in (module.ApplyResult, module.IMapUnorderedIterator):
            patches.replace(result, "__init__", _result)

    patches.when_imported("multiprocessing.pool", cut)


INTEGRATION = Integration(
    name="pools", libraries=("multiprocessing.pool",), install=_install, hooks=("multiprocessing.pool",)
)
