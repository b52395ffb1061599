"""Programs that call from everywhere: threads, pools, tasks, generators, finalizers, signal handlers, children.

    python structured.py ROW [shown]

Every call is marked; `HANGS` says under which other mark each is to hang, "" for the root, "*" where that may
be anywhere. `shown` gives the program a tracer provider of its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import reenact

# ruff: noqa: ARG001 - a mark is for who looks at the recording


@reenact.tool
def tool(mark: str) -> str:
    return mark


@reenact.tool
async def async_tool(mark: str) -> str:
    await asyncio.sleep(0)
    return mark


@reenact.tool
async def slow_tool(mark: str) -> str:
    await asyncio.sleep(30)
    return mark


@reenact.tool
def inside(mark: str, inner: str) -> str:
    return tool(inner)


@reenact.retriever
def stream(mark: str) -> Iterator[int]:
    for number in range(3):
        tool(f"{mark}-{number}")
        yield number


@reenact.retriever
async def async_stream(mark: str) -> AsyncIterator[int]:
    for number in range(3):
        await async_tool(f"{mark}-{number}")
        yield number


@reenact.chain
def chain(mark: str, work: Callable[[], Any]) -> Any:
    return work()


@reenact.chain
async def async_chain(mark: str, work: Callable[[], Any]) -> Any:
    return await work()


ROWS: dict[str, Callable[[], Any]] = {}
HANGS: dict[str, dict[str, str]] = {}


def row(**hangs: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Name a row by its function, with what hangs where: marks are spelled with `_` for what is no name."""

    def add(work: Callable[[], Any]) -> Callable[[], Any]:
        ROWS[work.__name__] = work
        HANGS[work.__name__] = hangs
        return work

    return add


# threads


@row(c="", a="c", b="c", late="")
def threads() -> None:
    def work() -> None:
        made = [threading.Thread(target=tool, args=(mark,)) for mark in "ab"]
        for thread in made:
            thread.start()
        for thread in made:
            thread.join()

    chain("c", work)
    thread = threading.Thread(target=tool, args=("late",))
    thread.start()
    thread.join()


@row(c="", a="c", b="c", i="c", j="i")
def thread_pool() -> None:
    with ThreadPoolExecutor(2) as pool:  # older than the call that uses it

        def work() -> None:
            list(pool.map(tool, "ab"))
            pool.submit(inside, "i", "j").result()

        chain("c", work)


@row(c="", d="c", a="d", e="c", b="e")
def executors_and_to_thread() -> None:
    async def one() -> None:
        await asyncio.get_running_loop().run_in_executor(None, tool, "a")

    async def two() -> None:
        await asyncio.to_thread(tool, "b")

    async def both() -> None:
        await asyncio.gather(async_chain("d", one), async_chain("e", two))

    asyncio.run(async_chain("c", both))


@row(c="", a="c", t="")
def timer_and_outliving_thread() -> None:
    go = threading.Event()

    def outlives() -> None:
        go.wait()
        tool("a")

    made: list[threading.Thread] = []

    def work() -> None:
        made.append(threading.Thread(target=outlives))
        made[0].start()

    chain("c", work)
    tool("t")
    go.set()
    made[0].join()


# tasks


@row(c="", a="c", b="c", g="c", h="g")
def tasks_groups_gather() -> None:
    async def grouped() -> None:
        await async_tool("h")

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(async_tool("a"))
            group.create_task(async_chain("g", grouped))
        await asyncio.gather(async_tool("b"))

    asyncio.run(async_chain("c", work))


@row(c="", s="c", x="c", y="c", after="c", last="")
def cancelled_and_timed_out() -> None:
    async def work() -> None:
        task = asyncio.create_task(slow_tool("s"))
        await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(TimeoutError):
            await asyncio.wait_for(slow_tool("x"), 0.01)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await slow_tool("y")
        await async_tool("after")

    asyncio.run(async_chain("c", work))
    tool("last")


@row(c="", s="c", after="")
def loop_stopped() -> None:
    loop = asyncio.new_event_loop()

    async def work() -> None:
        loop.call_later(0.01, loop.stop)
        await slow_tool("s")

    task = loop.create_task(async_chain("c", work))
    loop.run_forever()
    tool("after")
    task.get_loop()


@row(c="", s="c", after="")
def coroutine_dropped() -> None:
    class Never:
        def __await__(self) -> Generator[None]:
            yield

    @reenact.tool
    async def waits(mark: str) -> None:
        await Never()

    async def work() -> None:
        await waits("s")

    steps: Any = async_chain("c", work)
    steps.send(None)
    del steps
    gc.collect()
    tool("after")


# generators


@row(c="", g="c", g_0="g", g_1="g", after="c", last="", k="", k_0="k", m="", m_0="m", m_1="m", m_2="m")
def generators_closed_early() -> None:
    def work() -> None:
        for number in stream("g"):
            if number == 1:
                break
        tool("after")

    chain("c", work)
    tool("last")
    kept: Any = stream("k")
    next(kept)
    list(stream("m"))
    kept.close()


@row(c="", g="c", g_0="g", g_1="g", t="c", after="c", k="c", k_0="k", u="c", last="")
def async_generators_abandoned() -> None:
    async def work() -> None:
        async for number in async_stream("g"):
            if number == 1:
                break
        await async_tool("t")  # the generator is still open here
        gc.collect()
        await asyncio.sleep(0)
        await async_tool("after")
        kept = async_stream("k")
        await anext(kept)
        await async_tool("u")  # it is open, and referenced

    asyncio.run(async_chain("c", work))
    tool("last")


@row(c="", g="c", g_0="g", g_1="g", d="", after="d")
def async_generator_closed_by_another_task() -> None:
    async def work() -> None:
        held: list[Any] = []

        async def begin() -> None:
            held.append(async_stream("g"))
            await anext(held[0])
            await anext(held[0])

        await async_chain("c", lambda: asyncio.create_task(begin()))
        await asyncio.create_task(held[0].aclose())
        await async_chain("d", lambda: async_tool("after"))

    asyncio.run(work())


@row(a="", a_0="a", b="", b_0="b", a_1="a", b_1="b", a_2="a", b_2="b", between="")
def generators_interleaved() -> None:
    one, two = stream("a"), stream("b")
    for number, _ in enumerate(zip(one, two, strict=True)):
        if number == 0:
            tool("between")


# re-entrancy


@row(a="", b="a", again="", again_1="again", again_2="again_1")
def re_entrancy() -> None:
    inside("a", "b")

    @reenact.tool
    def recurse(mark: str, deep: int) -> int:
        return recurse(f"again-{4 - deep}", deep - 1) if deep > 1 else deep

    recurse("again", 3)


@row(**{f"n_{number}": "" for number in range(300)})
def finalizers_that_call() -> None:
    class Last:
        def __init__(self, number: int) -> None:
            self.number, self.me = number, self

        def __del__(self) -> None:
            tool(f"n-{self.number}")

    gc.set_threshold(20, 2, 2)  # at any allocation, in the middle of the recorder's work
    for number in range(300):
        Last(number)
    gc.collect()


@row(**{f"w_{number}": "*" if number < 100 else "" for number in range(200)})
def signal_handlers_that_call() -> None:
    waiting, running = list(range(100)), list[int]()

    def handler(*_: object) -> None:
        running.append(0)
        if len(running) < 4:  # handlers interrupt handlers, and no slow machine makes a recursion without end of them
            signal.setitimer(signal.ITIMER_REAL, 0.005)
        if waiting:
            tool(f"w-{waiting.pop()}")
        running.pop()
        signal.setitimer(signal.ITIMER_REAL, 0.005)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    for number in range(100, 200):
        tool(f"w-{number}")
    until = time.monotonic() + 60
    while waiting and time.monotonic() < until:
        time.sleep(0.001)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


# children


def _job(mark: str) -> str:
    return tool(mark)


@row(c="", a="c", b="c", p="c")
def fork_by_hand() -> None:
    def work() -> None:
        tool("p")
        first = os.fork()
        if first == 0:
            tool("a")
            os._exit(0)
        os.waitpid(first, 0)
        second = os.fork()
        if second == 0:
            tool("b")
            sys.exit(0)
        os.waitpid(second, 0)

    chain("c", work)


def _with(method: str) -> None:
    context: Any = multiprocessing.get_context(method)

    def work() -> None:
        made = [context.Process(target=_job, args=(mark,)) for mark in "ab"]
        for process in made:
            process.start()
        for process in made:
            process.join()
        with context.Pool(2, maxtasksperchild=2) as pool:
            pool.map(_job, ["p0", "p1", "p2", "p3", "p4"], chunksize=1)
            pool.apply(_job, ("q",))

    chain("c", work)


_POOLED = {"c": "", "a": "c", "b": "c", "q": "c", **{f"p{number}": "c" for number in range(5)}}


@row(**_POOLED)
def multiprocessing_fork() -> None:
    _with("fork")


@row(**_POOLED)
def multiprocessing_spawn() -> None:
    _with("spawn")


@row(**_POOLED)
def multiprocessing_forkserver() -> None:
    _with("forkserver")


def _in_processes(method: str, **limits: Any) -> None:
    def work() -> None:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method), **limits) as pool:
            for mark in ("p0", "p1", "p2", "p3", "p4"):
                pool.submit(_job, mark).result()

    chain("c", work)


_FIVE = {"c": "", **{f"p{number}": "c" for number in range(5)}}


@row(**_FIVE)
def process_pool_fork() -> None:
    _in_processes("fork")


@row(**_FIVE)
def process_pool_spawn() -> None:
    _in_processes("spawn")


@row(**_FIVE)
def process_pool_max_tasks_per_child() -> None:
    _in_processes("spawn", max_tasks_per_child=2)


@row(c="", x="c", a="c")
def files_closed_by_the_agent() -> None:
    """A daemon closes every file that it did not open."""

    def work() -> None:
        tool("x")
        os.closerange(3, 2048)
        tool("a")

    chain("c", work)


def main() -> None:
    """Run one row."""
    if "shown" in sys.argv:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
    ROWS[sys.argv[1]]()
    sys.stdout.write("done\n")
    concurrent.futures.wait([])


if __name__ == "__main__":
    main()
