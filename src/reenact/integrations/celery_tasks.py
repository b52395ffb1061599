"""Celery: each execution of a task is a run, in any pool (prefork, threads, solo, eager).

Cut at the task's own function, where the tracer calls it: the broker and the result backend are the worker's business,
not the task's. A task that is called like a plain function is part of whatever calls it. Workers that are forked hang
below nobody, as each of their tasks is a run of its own.

That code sends a task, or waits for what came of one, is a call by itself, of whatever code it is. What goes to the
broker and to the result backend for that is none: connections, queues and subscriptions are made at first need, by the
unit of a process that happens to come first. A broker in the memory of the process is not outside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from typing import Any

from reenact.boundary import children, databases, door, inbound, inbound_clients, jobs, origins
from reenact.boundary.origins import Origin
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms, typed
from reenact.values.json import Json
from reenact.values.lenient import as_text
from reenact.values.query import Query

INTERFACE = "celery"
_CUT = "_reenact_cut"
_KEPT = ("id", "root_id", "parent_id", "retries", "correlation_id", "hostname", "eta", "expires", "delivery_info")
"""What a task may read of its own request."""
_WHEN = ("countdown", "eta", "expires", "queue", "priority", "retries")
"""What of a task that is sent is compared, besides its name and arguments."""


def _build_tracer(patches: PatchSet, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def build_tracer(name: str, task: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if not getattr(task.run, _CUT, False):
                patches.replace(task, "run", partial(_run, task))
        except Exception:  # a task class of the host's own making
            alarms.pass_on()
            return original(name, task, *args, **kwargs)
        return original(name, task, *args, **kwargs)

    return build_tracer


def _run(task: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if door.doorman() is None or task.request.called_directly or inbound.under_way():
            return original(*args, **kwargs)
        arguments = jobs.arguments(args, kwargs)
        unit = jobs.unit(
            task.name, arguments, _facts(task), lambda: jobs.said_of(_origin(task), INTERFACE), handed=_is_handed(task)
        )
        unit.entry = original
        try:
            with inbound.inside(unit):
                result = original(*args, **kwargs)
        except BaseException as error:
            unit.end(jobs.nothing, error)
            raise
        unit.end(jobs.answered(result))
        return result

    setattr(run, _CUT, True)
    return run


def _is_handed(task: Any) -> bool:
    """Tell whether another process asked for the task: an eager one is asked for by the program itself."""
    return not (task.request.is_eager or str(task.request.origin).startswith(f"gen{os.getpid()}@"))


def _origin(task: Any) -> Origin | None:
    """Say where the application is: where the task is declared, in preference to a program that imported it."""
    module = type(task).__module__
    app = task.app
    if module not in {"__main__", "__mp_main__"}:
        for attribute, value in tuple(vars(sys.modules.get(module, object)).items()):
            if value is app and attribute.isidentifier():
                return Origin(name=f"{module}:{attribute}")
    return origins.of(app)


def _facts(task: Any) -> dict[str, Json]:
    """Describe the execution."""
    request = {name: typed.encode(getattr(task.request, name, None)) for name in _KEPT}
    return {"interface": INTERFACE, "name": task.name, "module": type(task).__module__, "request": request}


def _apart(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def start(self: Any) -> Any:
        inbound_clients.workers_started()
        with children.apart():
            return original(self)

    return start


def _send_task(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def send_task(self: Any, name: str, args: Any = None, kwargs: Any = None, *further: Any, **options: Any) -> Any:
        if door.doorman() is None or is_in_memory(self):
            return original(self, name, args, kwargs, *further, **options)
        arguments = jobs.arguments(tuple(args or ()), kwargs or {})
        chosen: dict[str, Json] = {each: typed.encode(options[each]) for each in _WHEN if options.get(each)}
        parameters: list[Json] = [name, arguments["args"], arguments["kwargs"], *([chosen] if chosen else [])]
        result_class = options.get("result_cls") or self.AsyncResult
        return databases.through(
            Query(system=INTERFACE, operation="command", text="SEND", target=name, parameters=parameters),
            lambda: original(self, name, args, kwargs, *further, **options),
            lambda result: str(result.id),
            lambda identifier: result_class(as_text(identifier)),
        )

    return send_task


def is_in_memory(app: Any) -> bool:
    """Tell whether the broker of a Celery application lies in the memory of its process."""
    return str(app.conf.broker_write_url or app.conf.broker_url or "").startswith("memory")


def _get(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        if door.doorman() is None or self.ignored or is_in_memory(self.app):
            return original(self, *args, **kwargs)
        return databases.through(
            Query(system=INTERFACE, operation="command", text="RESULT", parameters=[str(self.id)]),
            lambda: original(self, *args, **kwargs),
            typed.encode,
            typed.decode,
        )

    return get


def _redirecting(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have a worker put two streams that log in the places of the standard ones, not one: what is printed is told."""

    @wraps(original)
    def redirect_stdouts_to_logger(*args: Any, **kwargs: Any) -> Any:
        stream = original(*args, **kwargs)
        if stream is sys.stdout is sys.stderr:
            sys.stderr = copy(stream)
        return stream

    return redirect_stdouts_to_logger


def _install(patches: PatchSet) -> None:
    patches.when_imported(
        "celery.app.log", lambda module: patches.replace(module.Logging, "redirect_stdouts_to_logger", _redirecting)
    )
    patches.when_imported(
        "celery.app.trace",
        lambda module: patches.replace(module, "build_tracer", partial(_build_tracer, patches)),
    )
    patches.when_imported("billiard.process", lambda module: patches.replace(module.BaseProcess, "start", _apart))
    patches.when_imported("celery.app.base", lambda module: patches.replace(module.Celery, "send_task", _send_task))
    patches.when_imported("celery.result", lambda module: patches.replace(module.AsyncResult, "get", _get))


INTEGRATION = Integration(
    name="celery",
    libraries=("celery", "billiard"),
    install=_install,
    hooks=("celery.app.base", "celery.app.log", "celery.app.trace", "celery.result", "billiard.process"),
)
