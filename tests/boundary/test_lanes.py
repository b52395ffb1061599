from __future__ import annotations

import asyncio
import contextvars
import platform
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from reenact.boundary import lanes, place, program_threads
from reenact.boundary.patching import Patches
from reenact.boundary.place import Place

CUT = (
    (asyncio, "as_completed"),
    (futures, "as_completed"),
    (asyncio.BaseEventLoop, "create_task"),
    (threading.Thread, "start"),
    (ThreadPoolExecutor, "submit"),
    (Future, "set_result"),
    (Future, "set_exception"),
)


@pytest.fixture(autouse=True)
def _cut() -> Iterator[None]:
    """Assign lanes for the length of one test."""
    before = [vars(owner)[name] for owner, name in CUT]
    patches = Patches()
    lanes.restart()
    lanes.install(patches)
    yield
    patches.undo()
    lanes.restart()
    assert [vars(owner)[name] for owner, name in CUT] == before


class Seen:
    """Collects which lane did which piece of work."""

    def __init__(self) -> None:
        self.lanes: dict[object, str] = {}

    def note(self, what: object) -> None:
        self.lanes[what] = lanes.current().path


async def doze() -> None:
    await asyncio.sleep(random.uniform(0, 0.004))


def snooze() -> None:
    time.sleep(random.uniform(0, 0.004))


# every way to start a line of execution; each notes its work under the same names in every run


def with_tasks(seen: Seen) -> None:
    async def leaf(name: str) -> None:
        await doze()
        seen.note(name)

    async def branch(number: int) -> None:
        await doze()
        await asyncio.gather(*(leaf(f"{number}.{each}") for each in range(3)))

    async def main() -> None:
        await asyncio.gather(*(branch(number) for number in range(3)))

    asyncio.run(main())


def with_task_groups(seen: Seen) -> None:
    async def leaf(name: int) -> None:
        await doze()
        seen.note(name)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(leaf(number))

    asyncio.run(main())


def with_as_completed_and_wait_for(seen: Seen) -> None:
    async def leaf(name: int) -> None:
        await doze()
        seen.note(name)

    async def main() -> None:
        for done in asyncio.as_completed([asyncio.wait_for(leaf(number), 5) for number in range(4)]):
            await done

    asyncio.run(main())


def with_to_thread(seen: Seen) -> None:
    def work(name: int) -> None:
        snooze()
        seen.note(name)

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(4)))

    asyncio.run(main())


def with_executors(seen: Seen) -> None:
    def work(name: int) -> None:
        snooze()
        seen.note(name)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(3) as pool:
            await asyncio.gather(*(loop.run_in_executor(pool, work, number) for number in range(4)))
            await asyncio.gather(*(loop.run_in_executor(None, partial(work, name=number)) for number in (7, 8)))

    asyncio.run(main())


def with_threads(seen: Seen) -> None:
    def work(name: str, *, deeper: bool) -> None:
        snooze()
        seen.note(name)
        if deeper:
            below = [threading.Thread(target=work, args=(f"{name}.{each}",), kwargs={"deeper": False}) for each in "ab"]
            for thread in below:
                thread.start()
            for thread in below:
                thread.join()

    threads = [threading.Thread(target=work, args=(str(number),), kwargs={"deeper": True}) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def with_thread_subclasses_and_timers(seen: Seen) -> None:
    class Worker(threading.Thread):
        def run(self) -> None:
            snooze()
            seen.note("worker")

    started = [Worker(), threading.Timer(0.001, seen.note, ("timer",))]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def with_pools(seen: Seen) -> None:
    def work(name: int) -> None:
        snooze()
        seen.note(name)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(5)))
        for future in [pool.submit(work, number) for number in range(10, 15)]:
            future.result()


def with_contexts_of_their_own(seen: Seen) -> None:
    """The idioms that carry a context into a pool or a thread by hand."""

    def work(name: str) -> None:
        snooze()
        seen.note(name)

    def copied() -> contextvars.Context:
        return contextvars.copy_context()

    def later(run: Callable[..., None], *args: object) -> None:
        run(*args)

    with ThreadPoolExecutor(3) as pool:
        for number in range(3):
            pool.submit(copied().run, work, f"submit {number}")
            pool.submit(partial(copied().run, work, f"partial {number}"))
            pool.submit(copied().run, partial(work, f"both {number}"))
            pool.submit(partial(copied().run, copied().run, work, f"twice {number}"))  # as LangGraph does
            pool.submit(later, copied().run, work, f"later {number}")
    threads = [threading.Thread(target=copied().run, args=(work, f"thread {number}")) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def with_everything_nested(seen: Seen) -> None:
    def work(name: str) -> None:
        snooze()
        seen.note(name)
        asyncio.run(inner(name))

    async def inner(name: str) -> None:
        async def leaf(each: int) -> None:
            await doze()
            seen.note(f"{name}.{each}")

        await asyncio.gather(leaf(0), leaf(1))

    async def main() -> None:
        with ThreadPoolExecutor(2) as pool:
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(loop.run_in_executor(pool, work, f"job {number}") for number in range(3)))

    asyncio.run(main())


WAYS = [
    with_tasks,
    with_task_groups,
    with_as_completed_and_wait_for,
    with_to_thread,
    with_executors,
    with_threads,
    with_thread_subclasses_and_timers,
    with_pools,
    with_contexts_of_their_own,
    with_everything_nested,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_lanes_have_the_same_names_in_every_run_and_tell_all_work_apart(way: Callable[[Seen], None]) -> None:
    runs: list[dict[object, str]] = []
    for _ in range(4):
        seen = Seen()
        lanes.restart()
        way(seen)
        runs.append(seen.lanes)
    assert all(run == runs[0] for run in runs)
    assert len(set(runs[0].values())) == len(runs[0])
    assert all(path.startswith("main/") and "0x" not in path for path in runs[0].values())


def test_a_lane_says_who_started_it_and_as_which() -> None:
    seen = Seen()
    with_threads(seen)
    name = "with_threads.<locals>.work"
    assert seen.lanes["1"] == f"main/{name}#1"
    assert seen.lanes["1.b"] == f"main/{name}#1/{name}#1"


def test_what_a_real_call_spawns_takes_no_numbers_of_the_agent() -> None:
    paths: list[str] = []

    async def connect() -> None:
        paths.append(lanes.current().path)

    async def main() -> None:
        with lanes.aside():
            await asyncio.create_task(connect())
        await asyncio.create_task(connect())

    asyncio.run(main())
    aside, own = paths
    assert "/~/" in aside
    assert own.endswith("connect#0")


def test_tasks_that_share_an_entered_context_run_as_without_us() -> None:
    """The documented use of `context=`: a task that lets others see its variables."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def child() -> None:
        variable.set(7)

    async def parent(context: contextvars.Context) -> int:
        await asyncio.create_task(child(), context=context)
        return variable.get()

    async def main() -> int:
        context = contextvars.copy_context()
        return await asyncio.create_task(parent(context), context=context)

    assert asyncio.run(main()) == 7


def test_a_task_in_a_context_of_its_own_has_its_own_lane() -> None:
    async def path() -> str:
        await asyncio.sleep(0)
        return lanes.current().path

    async def main() -> list[str]:
        context = contextvars.copy_context
        return await asyncio.gather(*(asyncio.create_task(path(), context=context()) for _ in range(2)))

    first, second = asyncio.run(main())
    assert (first[-2:], second[-2:]) == ("#0", "#1")


def test_task_factories_of_the_host_are_asked_as_ever() -> None:
    made: list[str] = []

    class Own(asyncio.Task[Any]):
        pass

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Own:
        made.append(coro.__name__)
        return Own(coro, loop=loop, **options)

    async def leaf() -> tuple[type, str]:
        return type(asyncio.current_task()), lanes.current().path

    async def main() -> tuple[type, str]:
        asyncio.get_running_loop().set_task_factory(factory)
        return await asyncio.create_task(leaf(), name="mine")

    kind, path = asyncio.run(main())
    assert (kind, made[0]) == (Own, "leaf")
    assert path.endswith("leaf#0")


def test_the_names_of_tasks_are_the_host_s() -> None:
    async def main() -> str:
        task = asyncio.create_task(asyncio.sleep(0), name="mine")
        await task
        return task.get_name()

    assert asyncio.run(main()) == "mine"


def test_variables_of_the_application_do_not_leak_into_threads_and_pools() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("the application's")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(variable.get).result() == "unset"
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(variable.get()))
    thread.start()
    thread.join()
    assert seen == ["unset"]


def test_place_and_chosen_variables_go_along_and_are_taken_back() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    stop = lanes.carry(variable)
    here = Place(trace_id=1, span_id=2)

    def seen() -> tuple[Place | None, str]:
        return place.current(), variable.get()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(seen).result() == (None, "unset")
        place.move(here)
        variable.set("set")
        assert pool.submit(seen).result() == (here, "set")
        stop()
        assert pool.submit(seen).result() == (here, "unset")
        place.move(None)
        assert pool.submit(seen).result() == (None, "unset")


def test_exceptions_pass_through_jobs_tasks_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("mine")

    async def fail_too() -> None:
        raise ValueError("mine")

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="mine"):
        pool.submit(fail).result()
    with pytest.raises(ValueError, match="mine"):
        asyncio.run(fail_too())
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert [str(args.exc_value) for args in told] == ["mine"]


def test_a_thread_is_as_it_was_when_it_is_done() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert "run" not in vars(thread)
    with pytest.raises(RuntimeError, match="once"):
        thread.start()
    assert "run" not in vars(thread)


def test_a_thread_that_cannot_start_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "_start_new_thread", refuse)
    thread = threading.Thread(target=lambda: None)
    with pytest.raises(RuntimeError, match="can't start"):
        thread.start()
    assert "run" not in vars(thread)


def test_work_whose_name_cannot_be_read_is_named_by_its_class() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("working outside of the application's context")

        def __call__(self) -> str:
            return lanes.current().path

    with ThreadPoolExecutor(1) as pool:
        assert "Proxy#0" in pool.submit(Proxy()).result()


def test_a_task_that_starts_its_successor_for_ever_keeps_a_short_name() -> None:
    def longest(generations: int) -> str:
        lane = lanes.current()
        for _ in range(generations):
            lane = lane.spawn("tick")
        return lane.path

    assert len(longest(5000)) < 2000
    lanes.restart()
    once, further = longest(5000), longest(5001)
    lanes.restart()
    assert longest(5000) == once != further


class Numbers:
    """A finisher that takes down the ends of jobs."""

    def __init__(self) -> None:
        self.ended_lanes: list[str] = []

    def may_end(self, lane: lanes.Lane) -> None:
        del lane

    def ended(self, lane: lanes.Lane) -> None:
        self.ended_lanes.append(lane.path)


@pytest.fixture
def numbers() -> Iterator[Numbers]:
    finisher = Numbers()
    stop = lanes.finish_with(finisher)
    yield finisher
    stop()


def test_ends_of_jobs_are_numbered_in_the_order_in_which_callbacks_see_them(numbers: Numbers) -> None:
    begun = threading.Event()

    def work() -> str:
        begun.wait(5)
        snooze()
        lanes.current().used = True
        return lanes.current().path

    seen: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for _ in range(40)]:
            future.add_done_callback(lambda done: seen.append(done.result()))
        begun.set()
    assert len(seen) == 40
    assert numbers.ended_lanes == seen


def test_as_completed_gives_jobs_in_the_order_in_which_they_ended() -> None:
    """Those that had ended before it was asked come first, in their order and not in that of their addresses."""
    for _ in range(20):
        gates = [threading.Event() for _ in range(12)]
        with ThreadPoolExecutor(12) as pool:
            jobs = [pool.submit(gate.wait, 5) for gate in gates]
            order = random.sample(range(12), 12)
            for number in order[:8]:
                gates[number].set()
                jobs[number].result()
            given = futures.as_completed([*jobs, jobs[0]])
            seen = [next(given) for _ in range(8)]
            for number in order[8:]:
                gates[number].set()
                seen.append(next(given))
            assert [jobs.index(job) for job in seen] == order
            assert list(given) == []


def test_as_completed_keeps_its_promises() -> None:
    never: Future[int] = Future()
    cancelled: Future[int] = Future()
    cancelled.cancel()
    failed: Future[int] = Future()
    failed.set_exception(ValueError("mine"))
    assert list(futures.as_completed([])) == []
    given = futures.as_completed([never, cancelled, failed], timeout=0.02)
    assert {next(given), next(given)} == {cancelled, failed}
    with pytest.raises(TimeoutError, match=r"1 \(of 3\) futures unfinished"):
        next(given)


def test_jobs_are_numbered_that_a_library_does_not_do_by_itself(numbers: Numbers) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(platform.system).result()
        pool.submit(len, ()).result()
    assert numbers.ended_lanes == ["main/len#0"]


def test_a_callback_that_waits_for_another_job_does_not_hang(numbers: Numbers) -> None:
    def work(result: int) -> int:
        lanes.current().used = True
        return result

    waited: list[int] = []
    with ThreadPoolExecutor(1) as second, ThreadPoolExecutor(1) as first:
        begun = threading.Event()

        def outer() -> int:
            begun.wait(5)
            return work(1)

        future = first.submit(outer)
        future.add_done_callback(lambda _: waited.append(second.submit(work, 2).result(timeout=5)))
        begun.set()
    assert waited == [2]
    assert len(numbers.ended_lanes) == 2


class Hears:
    """A listener that takes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def lane_spawned(self, lane: lanes.Lane) -> None:
        self.heard.append(f"{lane.path} spawned")

    def lane_ended(self, lane: lanes.Lane) -> None:
        self.heard.append(f"{lane.path} ended")


def test_a_listener_hears_of_threads_and_of_ends() -> None:
    listener = Hears()
    stop = lanes.listen(listener)

    def work() -> None:
        pass

    async def main() -> None:
        pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    asyncio.run(main())
    stop()
    threading.Thread(target=work).start()
    prefix = "test_a_listener_hears_of_threads_and_of_ends.<locals>"
    assert listener.heard[:3] == ["main spawned", f"main/{prefix}.work#0 ended", f"main/{prefix}.main#0 ended"]
    assert not any("work#1" in line for line in listener.heard)


def test_a_pool_rests_when_its_jobs_are_over_and_a_job_of_a_library_s_own_is_none() -> None:
    before, go_on = program_threads.begun(), threading.Event()
    seen: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(platform.node).result()
        seen.append(program_threads.others_work())
        assert program_threads.begun() == before
        job = pool.submit(go_on.wait)
        seen.append(program_threads.others_work())
        go_on.set()
        job.result()
    seen.append(program_threads.others_work())
    assert seen == [False, True, False]
    assert program_threads.begun() == before + 1


@pytest.mark.parametrize("work", [lambda: None, partial(map, str), partial(len, ())], ids=["own", "calls back", "C"])
def test_a_job_that_may_run_code_of_the_program_counts(work: Callable[[], object]) -> None:
    before = program_threads.begun()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
    assert program_threads.begun() == before + 1


def test_what_asyncio_does_on_threads_for_a_look_up_is_no_work_of_the_program() -> None:
    before = program_threads.begun()

    async def look_up() -> bool:
        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
        return program_threads.others_work()

    assert asyncio.run(look_up()) is False
    assert program_threads.begun() == before


def test_a_job_that_runs_its_function_in_a_context_of_before_has_its_own_lane() -> None:
    """As `map` of LangChain's executor does, whose threads run copies of the context in which it was called."""
    names: dict[int, str] = {}

    def read(number: int) -> None:
        names[number] = lanes.current().path
        with lanes.on(here):
            assert lanes.current() is here
        with lanes.aside():
            assert lanes.current().path == f"{names[number]}/~"

    here, contexts = lanes.current(), [contextvars.copy_context() for _ in range(3)]

    def in_context(number: int) -> None:
        contexts.pop().run(read, number)
        names[-number] = lanes.current().path

    with ThreadPoolExecutor(2) as pool:
        deque(pool.map(in_context, range(1, 4)), maxlen=0)
    job = "main/test_a_job_that_runs_its_function_in_a_context_of_before_has_its_own_lane.<locals>.in_context"
    assert names == {sign * number: f"{job}#{number - 1}" for number in (1, 2, 3) for sign in (1, -1)}
    assert lanes.current() is here


def test_a_thread_that_runs_its_function_in_a_context_of_before_has_its_own_lane() -> None:
    names: list[str] = []
    context = contextvars.copy_context()
    for _ in range(2):
        thread = threading.Thread(target=lambda: context.run(lambda: names.append(lanes.current().path)))
        thread.start()
        thread.join()
    label = "main/test_a_thread_that_runs_its_function_in_a_context_of_before_has_its_own_lane.<locals>.<lambda>"
    assert names == [f"{label}#0", f"{label}#1"]


def test_a_task_that_a_job_starts_is_told_by_its_context() -> None:
    names: list[str] = []
    context = contextvars.copy_context()

    async def read() -> None:
        await asyncio.sleep(0)
        names.append(lanes.current().path)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: context.run(lambda: asyncio.run(read()))).result()
    (name,) = names
    assert name.startswith("main/test_a_task_that_a_job_starts_is_told_by_its_context.<locals>.<lambda>#0/")
