"""Calling a task or a unit again with its recorded arguments: no broker, no worker, no loop."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial, wraps
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from reenact.boundary import jobs
from reenact.boundary.patching import Patches
from reenact.deliver.applications import Making
from reenact.deliver.turns_on_threads import one_by_one
from reenact.deliver.unit_turns import Turns
from reenact.errors import CannotJudge
from reenact.integrations.celery_tasks import is_in_memory
from reenact.integrations.units import DECLARED, declared
from reenact.values import alarms, typed, unit
from reenact.values.run import Run
from reenact.values.terminal import tell
from reenact.values.unit import Job

_IMPORTED = "__mp_main__"
"""What multiprocessing calls a program that it imports."""
_HINT = "name it: `reenact replay RUN --app module:attribute`"


def deliver(making: Making, turns: Turns) -> Any:
    """Do a recorded job again, behind those on which it stands, and give what it returned.

    Raises what the job raises, and `CannotJudge` where its function, or that of an earlier one, cannot be had.
    """
    making.search()
    entry = _job_function(making)
    asked_for = turns.asked_for
    works = {run.id: _work(entry, run, _beside(run, making), only_declared=True) for run in turns.earlier}
    works[asked_for.id] = _work(entry, asked_for, making)
    if any(map(inspect.iscoroutinefunction, (work.func for work in works.values()))):
        return asyncio.run(_in_one_loop(works, turns))

    def earlier(run: Run) -> None:
        with turns.does(run):
            works[run.id]()

    if one_by_one(turns, earlier):
        raise CannotJudge("an earlier unit left its recording")
    with turns.does(asked_for):
        return works[asked_for.id]()


def _work(entry: Any, run: Run, making: Making, *, only_declared: bool = False) -> partial[Any]:
    """Make what does a recorded job again; it may give a coroutine.

    With `only_declared` what a recording names has to be a unit.
    """
    job = unit.job_of(run)
    if job is None:
        raise CannotJudge(f"run {run.id[:12]} is of no job")
    if job.interface == "celery":
        return partial(_traced, entry, _task(entry, job, making), job)
    args, kwargs = _arguments(job)
    function = _job_function(making)
    if only_declared and not getattr(function, DECLARED, False):
        raise CannotJudge(f"{making.name}, on which run {run.id[:12]} stands, is no @reenact.unit")
    return partial(function, *args, **kwargs)


def _beside(run: Run, making: Making) -> Making:
    """Say how the function of an earlier job is found: as recorded, where it stands in the same module or program.

    Nothing else that a recording names is imported.
    """
    recorded = Making.of(run)
    if not recorded.name or making.name.partition(":")[0] != recorded.name.partition(":")[0]:
        return making
    return replace(making, name=recorded.name)


async def _in_one_loop(works: Mapping[str, partial[Any]], turns: Turns) -> Any:
    """Do coroutines in one loop, as they were done when they were under way at the same time."""

    async def earlier(run: Run) -> None:
        await turns.begin_async(run)
        if turns.stopped:
            return
        try:
            with turns.does(run):
                result = works[run.id]()
                await result if inspect.isawaitable(result) else result
        except asyncio.CancelledError:
            raise
        except BaseException:  # noqa: BLE001 - a worker goes on; what left the recording is in the ledger
            alarms.pass_on()
        await turns.end_async(run)

    beside = [asyncio.ensure_future(earlier(run)) for run in turns.earlier]
    for each in beside if not turns.overlap else ():
        await each
    await turns.begin_async(turns.asked_for)
    try:
        if turns.stopped:
            raise CannotJudge("an earlier unit left its recording")
        with turns.does(turns.asked_for):
            result = works[turns.asked_for.id]()
            return await result if inspect.isawaitable(result) else result
    finally:
        for each in beside:
            each.cancel()


def _arguments(job: Job) -> tuple[list[Any], dict[str, Any]]:
    try:
        args = [typed.decode(each) for each in job.args]
        return args, {name: typed.decode(value) for name, value in job.kwargs.items()}
    except typed.Unhydratable as error:
        raise CannotJudge(f"the arguments of {job.name} cannot be rebuilt: {error.message}") from error


def _job_function(making: Making) -> Any:
    name, file = making.name, making.file
    module_name, _, path = name.partition(":")
    if not path:
        raise CannotJudge("the recording does not say where the job's function is", hint=_HINT)
    try:
        target: Any = _program(Path(file)) if file else importlib.import_module(module_name)
    except ImportError as error:
        raise CannotJudge(f"{name} cannot be imported: {error}", hint=_HINT) from error
    if (work_unit := declared(f"{_IMPORTED if file else module_name}:{path}")) is not None:
        return work_unit
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError as error:
            raise CannotJudge(f"there is no {name}: {error}", hint=_HINT) from error
    return target


@cache
def _program(file: Path) -> ModuleType:
    """Import a program without running what stands below `if __name__ == "__main__"`, as multiprocessing does.

    Where nothing stands above its loop, it runs up to its first unit: what comes later was not there either.
    """
    spec = spec_from_file_location(_IMPORTED, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise CannotJudge(f"there is no {file}", hint=_HINT)
    module = module_from_spec(spec)
    sys.modules["__main__"] = sys.modules[_IMPORTED] = module
    sys.path.insert(0, str(file.parent))
    os.environ["MP_MAIN_FILE"] = str(file)  # by which Celery names the tasks of a program as they were named
    with jobs.up_to_the_first():
        spec.loader.exec_module(module)
    _name_as_recorded(module)
    return module


def _name_as_recorded(module: ModuleType) -> None:
    """Have an imported program be called what it is called when it runs: its draws and its state are told by that."""
    vars(module)["__name__"] = "__main__"
    left: list[Any] = [*vars(module).values()]
    while left:
        value = left.pop()
        if isinstance(value, type | FunctionType) and value.__module__ == _IMPORTED:
            value.__module__ = "__main__"
            namespace = vars(value)
            left += [*namespace.values()] if isinstance(value, type) else [namespace.get("__wrapped__")]


def _task(app: Any, job: Job, making: Making) -> Any:
    """Find the task in its application."""
    app.loader.import_default_modules()
    app.finalize()
    for module in making.modules:
        if job.name not in app.tasks:
            importlib.import_module(module)
    if job.name not in app.tasks:
        raise CannotJudge(f"the application {app.main or ''} has no task {job.name}", hint=_HINT)
    return app.tasks[job.name]


def _traced(app: Any, task: Any, job: Job) -> Any:
    """Run a task's own tracer with the recorded request. What it sends on is not sent."""
    from celery.app import trace

    args, kwargs = _arguments(job)
    request = {name: typed.decode(value) for name, value in job.request.items() if value is not None}
    identifier = str(request.get("id") or "replay")
    build = cast("Callable[..., Any]", vars(trace)["build_tracer"])
    tracer = build(task.name, task, eager=True, propagate=True, app=app)
    came_by = cast("dict[str, Any]", request.get("delivery_info") or {})
    patches = Patches()
    patches.replace(type(app), "send_task", _unsent)
    try:
        return tracer(identifier, args, kwargs, {**request, "delivery_info": {**came_by, "is_eager": False}}).retval
    finally:
        patches.undo()


def _unsent(original: Any) -> Any:
    @wraps(original)
    def send_task(self: Any, name: str, *args: Any, task_id: str | None = None, **options: Any) -> Any:
        from celery.utils import uuid

        if not is_in_memory(self):
            return original(self, name, *args, task_id=task_id, **options)  # it is a call, which is answered
        tell(f"task {name} is not sent in a replay")
        return self.AsyncResult(task_id or uuid())

    return send_task
