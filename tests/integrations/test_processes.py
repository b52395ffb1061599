from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reenact
from desk import Desk
from held import Held
from reenact.boundary import children
from reenact.boundary.children import Descent
from reenact.errors import SideEffectRefused
from reenact.integrations.processes import program
from reenact.values.lane import sequence

pytestmark = pytest.mark.sample(2)

TOOLS = '''
import asyncio, multiprocessing, os, random, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

import reenact

@reenact.tool
def throw(what: str) -> str:
    """Give something that no two runs agree on, after some time."""
    time.sleep(random.SystemRandom().uniform(0, 0.02))
    return f"{what}:{random.SystemRandom().randrange(10**6)}"

@reenact.agent
def member(what: str) -> str:
    return throw(what) + " " + throw(what)

def pair(a: int, b: int) -> str:
    return throw(f"{a}{b}")

def send(what: str, out) -> None:
    out.send(member(what))
'''
FAMILY = """
def main(method, few):
    context = multiprocessing.get_context(method)
    for what in ("p", "q"):
        ours, theirs = context.Pipe()
        process = context.Process(target=send, args=(what, theirs))
        process.start()
        print(ours.recv())
        process.join()
    if few:
        return
    with context.Pool(2, maxtasksperchild=2) as pool:
        print(pool.map(throw, ["m"] * 5), pool.starmap(pair, [(1, 2), (3, 4)]))
        print(list(pool.imap_unordered(throw, ["u"] * 6)))
        told = []
        results = [pool.apply_async(throw, ("a",), callback=told.append) for _ in range(4)]
        for result in results:
            result.wait()
        print(told)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for future in as_completed([pool.submit(throw, "same") for _ in range(5)]):
            print(future.result())
        print(list(pool.map(throw, ["e", "f"])))

if __name__ == "__main__":
    main(sys.argv[1], few="few" in sys.argv)
    print(throw("end"))
"""
THREADS = """
import concurrent.futures, queue, threading

def serve(asked, answered):
    while (what := asked.get()) is not None:
        with reenact.run("message", input=what):
            answered.put((what, throw(what)))

async def aside():
    loop = asyncio.get_running_loop()
    told = []
    async def note(coro):
        told.append(await coro)
    async with asyncio.TaskGroup() as group:
        for what in "xyz":
            group.create_task(note(asyncio.to_thread(throw, what)))
            group.create_task(note(loop.run_in_executor(None, throw, what)))
    return told

with ThreadPool(3) as pool:
    print(pool.map(throw, ["t"] * 6), pool.apply(throw, ("s",)))
    print(list(pool.imap_unordered(throw, ["u"] * 6)), list(pool.imap(throw, ["i"] * 4)))
print(asyncio.run(aside()))
asked, answered = queue.Queue(), queue.Queue()
threads = [threading.Thread(target=serve, args=(asked, answered)) for _ in range(3)]
for thread in threads:
    thread.start()
for what in ["k", "k", "l", "m", "n"] + [None] * 3:
    asked.put(what)
for thread in threads:
    thread.join()
print(sorted(answered.get() for _ in range(5)))
"""
BY_HAND = """
def read(pipe):
    with os.fdopen(pipe) as stream:
        return stream.read()

out, into = os.pipe()
child = os.fork()
if child == 0:
    os.write(into, member("forked").encode())
    os._exit(3)
os.close(into)
print(read(out), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
code = "from tools import throw; print(throw('spawned'))"
out, into = os.pipe()
actions = [(os.POSIX_SPAWN_DUP2, into, 1)]
child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], dict(PATH="/usr/bin"), file_actions=actions)
os.close(into)
print(read(out), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

async def both():
    started = [await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=-1, env={}) for _ in range(2)]
    return [(await each.communicate())[0].decode() for each in started]

print(asyncio.run(both()))
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=os.getpid).stdout)
print(throw("end"))
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.write("tools.py", TOOLS)
    return made


def recorded(desk: Desk, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """Record a program; gives what it printed and its only run."""
    live = desk.reenact("run", "-q", "--", "python", *words)
    assert live.returncode == 0, live.stderr
    runs = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return live.stdout, runs


def same(desk: Desk, live: str, times: int) -> None:
    for _ in range(times):
        done = desk.reenact("replay", "last", "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["result"]) == (0, "same"), done.stderr
        assert live in done.stderr
        assert (told["misses"], told["unconsumed"], told["released_out_of_order"]) == ([], [], [])


DEAF = """
import multiprocessing, signal, threading, time
import reenact

@reenact.tool
def said(text):
    return text

def work(ready, never):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # the other thread gets it
    said("begun")
    ready.release()
    never.acquire()

def main(method, how):
    context = multiprocessing.get_context(method)
    ready, never = context.Semaphore(0), context.Semaphore(0)
    process = context.Process(target=work, args=(ready, never))
    process.start()
    ready.acquire()
    time.sleep(0.2)
    process.terminate()
    if how == "looks":
        while process.is_alive():
            time.sleep(0.01)
    process.join(None if how == "waits" else 60)
    print(process.exitcode)

if __name__ == "__main__":
    import sys
    main(*sys.argv[1:])
"""


@pytest.mark.parametrize("how", ["waits", "waits a minute", "looks"])
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_worker_that_a_signal_does_not_wake_up_ends_all_the_same(desk: Desk, method: str, how: str) -> None:
    desk.write("agent.py", DEAF)
    done = desk.reenact("run", "--", sys.executable, "agent.py", method, how)
    assert (done.returncode, done.stdout.strip()) == (0, str(-signal.SIGTERM)), done.stderr


METHODS = [
    pytest.param("fork", id="fork"),
    pytest.param("spawn few", id="spawn, no pools"),  # each of its processes imports everything anew
    *(pytest.param(each, marks=pytest.mark.slow, id=each) for each in ("spawn", "forkserver")),
]


@pytest.mark.parametrize("how", METHODS)
def test_processes_and_pools_of_them_are_one_run_and_replay_the_same(desk: Desk, how: str) -> None:
    desk.write("agent.py", f"{TOOLS}\n{FAMILY}")
    live, (run,) = recorded(desk, "agent.py", *how.split())
    shown = json.loads(desk.reenact("show", run["id"], "--json").stdout)
    assert not any(call["orphan"] for call in shown["calls"])
    lanes = {call["attributes"]["reenact.lane"] for call in shown["calls"] if call["name"] == "throw"}
    pools = set[str]() if "few" in how else {"main/pool throw#0/p:4", "main/p:throw#4"}
    assert {"main/p:send#0", "main/p:send#1", "main"} | pools <= lanes
    same(desk, live, 2 if how == "fork" else 1)


def test_threads_of_every_kind_are_on_the_same_lanes_again(desk: Desk) -> None:
    desk.write("agent.py", f"{TOOLS}\n{THREADS}")
    live, _ = recorded(desk, "agent.py")
    same(desk, live, 2)


@pytest.mark.slow
def test_children_made_by_hand_join_whatever_their_environment(desk: Desk) -> None:
    desk.write("agent.py", f"{TOOLS}\n{BY_HAND}")
    live, (run,) = recorded(desk, "agent.py")
    shown = json.loads(desk.reenact("show", run["id"], "--json").stdout)
    lanes = {call["attributes"]["reenact.lane"] for call in shown["calls"]}
    assert {"main/p:fork#0", "main/p:-c#0", "main/p:-c#1"} <= lanes
    assert not any(call["orphan"] for call in shown["calls"])
    same(desk, live, 1)


def test_a_forked_child_leaves_the_parent_s_run_to_the_parent(held: Held) -> None:
    made = held.start()
    try:
        with reenact_run(made) as run:
            child = os.fork()
            if child == 0:
                look_up("child")
                os._exit(0)
            os.waitpid(child, 0)
            look_up("parent")
    finally:
        runs = held.finish(made)
    (found,) = runs
    assert found.id == run.id
    assert found.root is not None
    assert not found.root.span.attributes.get("reenact.incomplete")
    (process,) = [node for node in found.nodes if node.span.attributes.get("reenact.process.root")]
    (call,) = [node for node in found.nodes if node.parent == process.id]
    assert (process.call.name, process.lane, call.lane) == ("fork", "main/p:fork#0", "main/p:fork#0")
    assert process.parent == found.root.id
    assert process.span.end_ns > 0
    assert not process.span.attributes.get("reenact.incomplete")


def _late(_signal: int, _frame: object) -> None:
    raise TimeoutError


class _Alarmed:
    """A host whose closing a signal handler of the program's interrupts."""

    def close(self, _status: int) -> None:
        signal.signal(signal.SIGALRM, _late)
        signal.raise_signal(signal.SIGALRM)


def test_a_forked_child_ends_whatever_a_signal_handler_raises_meanwhile(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held.start()
    try:
        child = os.fork()
        if child == 0:
            monkeypatch.setattr(children, "host", _Alarmed)
            try:
                os._exit(5)
            finally:  # it would go on as a second test run
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    finally:
        held.finish(made)


def test_a_replay_in_code_answers_what_is_forked_off(held: Held) -> None:
    def forks() -> str:
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(into, look_up("child").encode())
            os._exit(0)
        os.close(into)
        os.waitpid(child, 0)
        with os.fdopen(out) as stream:
            return look_up("parent") + stream.read()

    did = held.record(forks)
    again = held.replay(did, forks)
    assert again.error is None
    assert again.value == did.value == "parent is therechild is there"
    assert again.result is not None
    assert (again.result.result, again.result.answered) == ("same", {"tool": 2})


@pytest.mark.slow
def test_a_script_with_a_drawn_name_is_found_again(desk: Desk) -> None:
    lines = """
import os, subprocess, sys, tempfile
import reenact

@reenact.tool
def note():
    return 1

note()
with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
    file.write("import agent_tools; print(6 * 7, agent_tools.ask())")
environ = {**os.environ, "PYTHONPATH": os.getcwd() + os.pathsep + os.environ.get("PYTHONPATH", "")}
print(subprocess.run([sys.executable, file.name], capture_output=True, text=True, env=environ).stdout)
os.unlink(file.name)
"""
    desk.write("agent_tools.py", "import reenact\n@reenact.tool\ndef ask():\n    return 'there'\n")
    done = desk.reenact("run", "--", "python", desk.write("agent.py", lines))
    assert "42 there" in done.stdout
    again = desk.reenact("replay", "last", "--json")
    assert (again.returncode, json.loads(again.stdout)["result"]) == (0, "same"), again.stdout


def test_a_recording_in_code_takes_its_children_along(held: Held) -> None:
    code = "import reenact\n@reenact.tool\ndef f(n: int) -> int: return n\nprint(f(7))"
    did = held.record(lambda: subprocess.check_output([sys.executable, "-c", code], env={}, text=True))
    assert did.value == "7\n"
    (run,) = did.runs
    assert [node.call.name for node in run.nodes if node.parent is not None] == ["-c", "f"]


def test_a_replay_in_code_refuses_children_that_would_run_for_real(held: Held) -> None:
    import multiprocessing

    did = held.record(lambda: look_up("tea"))

    def starts() -> None:
        look_up("tea")
        multiprocessing.get_context("spawn").Process(target=look_up, args=("x",)).start()

    again = held.replay(did, starts)
    assert isinstance(again.error, SideEffectRefused)
    assert again.result is not None
    assert again.result.result == "diverged"

    def runs() -> None:
        look_up("tea")
        subprocess.run([sys.executable, "-c", "1"], check=True)

    again = held.replay(did, runs)
    assert isinstance(again.error, SideEffectRefused)


def test_nothing_is_put_into_the_environment_of_other_programs(held: Held) -> None:
    did = held.record(lambda: subprocess.check_output(["/usr/bin/env"], env={"A": "1"}, text=True))
    assert did.value == "A=1\n"
    (run,) = did.runs
    assert [node.label for node in run.nodes if node is not run.root] == ["child env #2"]


def test_without_a_recording_children_get_what_they_were_given() -> None:
    words = [sys.executable, "-c", "import os; print('REENACT_PARENT' in os.environ)"]
    assert subprocess.check_output(words, env={}, text=True) == "False\n"
    assert children.host() is None


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "agents/child.py", "--x"], "child.py"),
        (["/usr/bin/python3.11", "-u", "-W", "error", "child.py"], "child.py"),
        (["python3", "-m", "crew.child", "a"], "crew.child"),
        (["python3", "-X", "dev", "-c", "pass"], "-c"),
        (["python3"], "python"),
        (["bash", "child.py"], None),
        ([], None),
    ],
)
def test_a_program_is_named_by_what_python_runs(words: list[str], name: str | None) -> None:
    assert program(words) == name


def test_where_a_child_hangs_comes_through_the_environment() -> None:
    descent = Descent(
        trace_id=0xAB, span_id=0xCD, lane="main/p:ü#0", name="ü", identity={"user.id": "u-1"}, within=True
    )
    spelled = descent.spelled()
    assert f'"traceparent":"00-{0xAB:032x}-{0xCD:016x}-01"' in spelled
    assert children.read(spelled) == descent


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"traceparent": "00-x-y-01", "lane": "main"}', '{"lane": 3}'])
def test_what_is_no_descent_is_none(text: str) -> None:
    assert children.read(text) is None


@pytest.mark.parametrize(
    ("lane", "numbered"),
    [
        ("main", "P"),
        ("main/work#0", "P"),
        ("main/p:child.py#0", "P main/p:child.py#0"),
        ("main/p:child.py#0/ask#1", "P main/p:child.py#0"),
        ("main/p:child.py#0/pool ask#0/p:3/x#0", "P main/p:child.py#0/pool ask#0/p:3"),
    ],
)
def test_each_process_and_each_job_in_one_numbers_for_itself(lane: str, numbered: str) -> None:
    assert sequence(lane, "P") == numbered


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def reenact_run(made: Any) -> Any:
    return made.unit("unit")
