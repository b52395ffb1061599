"""Delivering a recorded request again: `python -m reenact.deliver.delivering`, in a process that has joined a replay.

The application is made as it was recorded, and called as a server would call it: its start-up, the one request, its
shutdown. No port is opened and no worker started. What it answers goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import cast

from reenact.deliver import applications, delivery_asgi, delivery_jobs, delivery_wsgi
from reenact.deliver.answers import Answer
from reenact.deliver.unit_turns import Turns
from reenact.errors import CannotJudge, ReplayStopped
from reenact.pipeline.replay_plan import Plan
from reenact.replay.ledger import Ledger
from reenact.values import typed, unit
from reenact.values.json import compact
from reenact.values.run import Run


def main(arguments: Sequence[str] | None = None) -> int:
    """Deliver the request of the run that this process replays; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reenact.deliver.delivering", description=__doc__)
    parser.add_argument("--app", help="the application, module:attribute, in place of the recorded one")
    parser.add_argument("--path", action="append", default=[], help="a folder to find its modules in")
    parser.add_argument("--import", action="append", default=[], dest="modules", help="a module to import with it")
    options = parser.parse_args(arguments)
    plan = Plan.read(Path(os.environ["REENACT_REPLAY"]))
    runs = {run.id: run for run in plan.runs()}
    run, earlier = runs[plan.run], [runs[each] for each in plan.history]
    ledger = Ledger(Path(plan.ledger))
    making = applications.Making.of(run) if plan.starts else applications.Making()
    application = making.with_given(options.app, options.path, options.modules)
    try:
        turns = partial(Turns, earlier, run, overlap=plan.overlap)
        deliver(run, application, lambda: ledger.note("delivered"), turns, lifespan=plan.lifespan)
    except CannotJudge as error:
        ledger.note("undelivered", why="; ".join(filter(None, (error.message, error.hint))))
        return CannotJudge.exit_code
    return 0


def deliver(
    run: Run,
    making: applications.Making,
    delivered: Callable[[], None],
    turns: Callable[[], Turns],
    *,
    lifespan: bool = True,
) -> None:
    """Make the application and deliver the request of a run to it; `delivered` is called when that is over.

    `turns` are made once the application is: what earlier units print is not shown from then on, and what it prints is.
    An ASGI application is started up and shut down around it where `lifespan` says so. Raises `CannotJudge` where
    anything of it cannot be had.
    """
    if unit.job_of(run) is not None:
        _do(making, turns())
        return
    request = unit.request_of(run)
    if request is None or request.body is None:
        raise CannotJudge(f"the request of run {run.id[:12]} was not kept")
    answer = Answer(delivered=delivered)
    try:
        app = applications.make_application(making)
        if request.interface == "wsgi":
            delivery_wsgi.deliver(app, request, answer, turns())
        else:
            delivery_asgi.deliver(app, request, answer, turns(), lifespan=lifespan)
    except (CannotJudge, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - a server would say it and go on
        if not _is_ours(error):
            traceback.print_exception(error)
    if answer.status is not None:
        _show(answer)


def _do(making: applications.Making, turns: Turns) -> None:
    """Do a job again and print what it returned."""
    try:
        result = delivery_jobs.deliver(making, turns)
    except (CannotJudge, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - a worker would say it and go on
        if not _is_ours(error):
            traceback.print_exception(error)
        return
    sys.stdout.write(f"{compact(typed.encode(result))}\n")
    sys.stdout.flush()


def _show(answer: Answer) -> None:
    """Print what was answered: the status line, then the body, unpacked."""
    code = answer.status or 0
    phrase = HTTPStatus(code).phrase if code in set(HTTPStatus) else ""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{code} {phrase}".rstrip().encode() + b"\n\n" + answer.body)
    sys.stdout.buffer.write(b"" if answer.body.endswith(b"\n") else b"\n")
    sys.stdout.buffer.flush()


def _is_ours(error: BaseException) -> bool:
    """Tell whether all that came out was thrown in to stop the agent: the replay's own report tells it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_ours(each) for each in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    return isinstance(error, ReplayStopped)


if __name__ == "__main__":
    sys.exit(main())
