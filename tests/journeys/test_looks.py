"""Who looks whether another thread or process is done finds it as often at work as when recorded."""

from __future__ import annotations

import pytest

from desk import Desk

BEGIN = """
import hashlib, multiprocessing, os, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import reenact

@reenact.tool
def note() -> int:
    return 1

CHILD = "import os, time; time.sleep(float(os.environ['PACE'])); print('said')"

def python():
    return subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)

def work():
    time.sleep(float(os.environ["PACE"]))

def send(wire):
    for number in range(3):
        work()
        wire.send(number)

def compute(then=lambda: None):
    for _ in range(int(float(os.environ["PACE"]) * 1000)):
        hashlib.sha256(b"x" * 1_000_000)
    then()

def put(items):
    work()
    items.put(1)
"""

PROGRAMS = {
    "poll": """
child = python()
while child.poll() is None:
    print("at work")
    time.sleep(0.05)
print(child.returncode, child.stdout.read())
""",
    "wait": """
child = python()
while True:
    try:
        print(child.wait(timeout=0.05))
        break
    except subprocess.TimeoutExpired:
        print("at work")
""",
    "communicate": """
child = python()
while True:
    try:
        print(child.communicate(timeout=0.05))
        break
    except subprocess.TimeoutExpired:
        print("at work")
""",
    "run": """
try:
    print(subprocess.run([sys.executable, "-c", CHILD], timeout=0.2, capture_output=True, text=True).stdout)
except subprocess.TimeoutExpired:
    print("too late")
""",
    "is_alive": """
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
while child.is_alive():
    print("at work")
    time.sleep(0.05)
print(child.exitcode)
""",
    "join and exitcode": """
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
while child.exitcode is None:
    print("at work")
    child.join(0.05)
print(child.exitcode)
""",
    "poll of a pipe": """
here, there = multiprocessing.Pipe()
child = multiprocessing.get_context("fork").Process(target=send, args=(there,))
child.start()
items = []
while len(items) < 3:
    if here.poll(0.05):
        items.append(here.recv())
        print(items)
    else:
        print("nothing yet")
child.join()
""",
    "empty": """
items = multiprocessing.get_context("fork").Queue()
child = multiprocessing.get_context("fork").Process(target=put, args=(items,))
child.start()
while items.empty():
    print("nothing yet")
    time.sleep(0.05)
print(items.get())
child.join()
""",
}

PROGRAMS |= {
    "done": """
with ThreadPoolExecutor(1) as pool:
    job = pool.submit(compute)
    while not job.done():
        print("at work")
        time.sleep(0.05)
""",
    "is_alive of a thread": """
thread = threading.Thread(target=compute)
thread.start()
while thread.is_alive():
    print("at work")
    time.sleep(0.05)
""",
    "is_set": """
over = threading.Event()
threading.Thread(target=compute, args=(over.set,)).start()
while not over.is_set():
    print("at work")
    time.sleep(0.05)
""",
    "acquire": """
lock = threading.Lock()
lock.acquire()
threading.Thread(target=compute, args=(lock.release,)).start()
while not lock.acquire(blocking=False):
    print("at work")
    time.sleep(0.05)
""",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("how", PROGRAMS)
@pytest.mark.parametrize(("recorded", "now"), [("0.4", "0.05"), ("0.05", "0.4")])
def test_others_are_found_at_work_as_often_as_when_recorded(desk: Desk, how: str, recorded: str, now: str) -> None:
    script = desk.write("looks.py", f"{BEGIN}\nif __name__ == '__main__':\n    note()\n{_indented(PROGRAMS[how])}")
    live = desk.reenact("run", "--", "python", script, environ={**desk.environ, "PACE": recorded})
    assert "replayable: exact" in live.stderr, live.stderr
    replay = desk.reenact("replay", "last", environ={**desk.bare(), "PACE": now})
    assert replay.stdout == live.stdout, replay.stderr
    assert replay.returncode == 0, replay.stderr


def _indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.strip().splitlines())


KNOWN = {
    "joined": ("thread = threading.Thread(target=work)\nthread.start()\n", "thread.join()\n", "thread.is_alive()"),
    "waited for": ("job = ThreadPoolExecutor(1).submit(work)\n", "job.result()\n", "not job.done()"),
    "set": (
        "over = threading.Event()\nthreading.Thread(target=lambda: (work(), over.set())).start()\n",
        "over.set()\n",
        "not over.is_set()",
    ),
    "a child": ("child = python()\n", "child.wait()\n", "child.poll() is None"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", KNOWN)
def test_changed_code_that_knows_the_end_is_not_told_that_others_are_at_work(desk: Desk, how: str) -> None:
    begin, learn, look = KNOWN[how]
    loop = f"while {look}:\n    print('at work')\n    time.sleep(0.05)\n"
    environ = {**desk.environ, "PACE": "0.3"}
    script = desk.write("looks.py", f"{BEGIN}\nif __name__ == '__main__':\n    note()\n{_indented(begin + loop)}")
    live = desk.reenact("run", "--", "python", script, environ=environ)
    assert "at work" in live.stdout
    desk.write("looks.py", f"{BEGIN}\nif __name__ == '__main__':\n    note()\n{_indented(begin + learn + loop)}")
    replay = desk.reenact("replay", "last", environ={**desk.bare(), "PACE": "0.3"})
    assert "at work" not in replay.stdout
    assert replay.returncode == 1, replay.stderr
