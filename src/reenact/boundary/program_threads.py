"""The threads of this process: their ids, as `threading.get_ident` gives them, and what they work on.

On Linux an id is the address of the thread's descriptor (pthread_self(3)): a number of 12 digits and more that is
another in each run, and that log lines in JSON often hold.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from reenact.boundary.own_code import is_own_code

_MOST: Final = 2_000
_PLAIN: Final = (str, bytes, int, float, tuple, type(None))
_NUMBER: Final = re.compile(r"(?<!\d)\d{12,16}(?!\d)")
_ids: deque[int] = deque(maxlen=_MOST)
"""Those of threads other than the main one, the newest last."""


def note() -> None:
    """Note the id of the thread that is running."""
    _ids.append(threading.get_ident())


def among(text: str) -> list[int]:
    """Give the ids that a text holds, in their order as numbers."""
    numbers = {int(each) for each in _NUMBER.findall(text)}
    return sorted(numbers.intersection({*_ids, threading.main_thread().ident}))


# who is at work

_begun = [0]
"""How many threads were started here, and jobs handed to pools, whose work is no library's."""
_any: list[bool] = []
"""Not empty once there was one."""
_NOTHING: Final = nullcontext()
_turns: list[Callable[[], AbstractContextManager[object]]] = []
"""What has a job be handed over in its turn, where anything does."""
_jobs: dict[int, bool] = {}
"""Jobs of the program's that are not over, by the identities of their futures: whether no event loop awaits them."""
_of_pools: dict[int, None] = {}
"""The threads of pools, by their identities."""


def begun() -> int:
    """Count the threads and the jobs of pools that were begun here; those that a library does its own work on aside."""
    return _begun[0]


def others_work() -> bool:
    """Tell whether more than one thread is at work; one of a pool that has no job of the program's rests.

    A single job that a loop has handed over is none beside others: the task that awaits it goes on when it has ended.
    """
    return len(_jobs) > 1 or any(_jobs.values()) or threading.active_count() - len(_of_pools) > 1


def are_there() -> bool:
    """Tell whether the program has begun any thread, or handed a job to a pool, which may be over."""
    return bool(_any)


def restart() -> None:
    """Begin afresh: at the start of a recording or replay, and in a fork."""
    _any[:] = [True] if threading.active_count() > 1 else []


def count_thread() -> None:
    """Count a thread that is about to be started."""
    _begun[0] += 1
    _note_any()


def handing_over() -> AbstractContextManager[object]:
    """Hear that a job is about to be handed to a pool, where it may begin at once; gives what to do so in."""
    _note_any()
    return _turns[-1]() if _turns else _NOTHING


def hand_over_in(turn: Callable[[], AbstractContextManager[object]] | None) -> None:
    """Have jobs be handed over in what `turn` gives, from now on; None for nothing."""
    _turns[:] = [turn] if turn is not None else []


def _note_any() -> None:
    if not _any:
        _any.append(True)


def count_job(future: Future[Any]) -> None:
    """Count a job of a pool, until it is over."""
    is_beside = asyncio._get_running_loop() is None  # noqa: SLF001 - `get_running_loop` raises where there is none
    _begun[0] += is_beside or bool(_jobs)
    _jobs[id(future)] = is_beside
    future.add_done_callback(lambda over: _jobs.pop(id(over), None))


def pool_thread_begins(thread: threading.Thread) -> None:
    """Hear that a thread of a pool runs."""
    _of_pools[id(thread)] = None


def thread_ends(thread: threading.Thread) -> None:
    """Hear that a thread, of a pool or not, has run."""
    _of_pools.pop(id(thread), None)


def runs_in_context(function: object) -> bool:
    """Tell whether `function` is `run` of a context, which hides our variables from what it runs."""
    return type(function) is BuiltinMethodType and isinstance(function.__self__, contextvars.Context)


def innermost(*words: object) -> int:
    """Say which word is the function that the last of several contexts runs, `(a.run, b.run, function)`; 0 for none."""
    return max((at for at, each in enumerate(words[:-1], 1) if runs_in_context(each)), default=0)


def is_work(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Tell whether a job of a pool is work of the program's.

    One that a library does by itself is none: it looks a host up, or asks which system it is. Such a function is the
    library's own, and is handed plain values.
    """
    words = (fn.func, *fn.args, *fn.keywords.values(), *args) if isinstance(fn, partial) else (fn, *args)
    work, *values = words[innermost(*words) :]
    if isinstance(work, FunctionType) and all(isinstance(each, _PLAIN) for each in values):
        work = inspect.unwrap(work)
        return isinstance(work, FunctionType) and is_own_code(work.__code__, work.__globals__)
    return True
