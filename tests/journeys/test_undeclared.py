"""I/O that nobody declared: plain HTTP is answered from the recording, writes and children are refused by policy."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from desk import Desk
from outside import Outside

READS = """
import asyncio, json, sys, urllib.error, urllib.request
import aiohttp, httpx, httpx2, requests, urllib3

base = sys.argv[1]

def tell(name, act):
    try:
        print(name, act())
    except Exception as error:
        print(name, type(error).__name__, error)

def rest():
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(
        max_retries=urllib3.Retry(5, status_forcelist=[503], backoff_factor=0)))
    return session.get(base + "/busy").json(), session.get(base + "/moved").url, session.get(base + "/ticket").json()

def failure():
    try:
        urllib.request.urlopen(base + "/nowhere")
    except urllib.error.HTTPError as error:
        return error.code, error.reason, json.load(error)

def pieces():
    with httpx2.stream("GET", base + "/pieces") as reply:
        return list(reply.iter_lines())

async def several():
    async with aiohttp.ClientSession() as session:
        async def one(number):
            async with session.get(f"{base}/ticket?{number}") as reply:
                return await reply.json()
        return [await done for done in asyncio.as_completed([one(number % 2) for number in range(6)])]

tell("requests", rest)
tell("half", lambda: requests.get(base + "/half"))
tell("urllib", failure)
tell("httpx", lambda: httpx.post(base + "/echo", json={"a": 1}).json())
tell("httpx2", pieces)
tell("aiohttp", lambda: asyncio.run(several()))
"""


@pytest.mark.slow
def test_a_program_that_reads_the_web_runs_again_without_it(
    desk: Desk, sockets: Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]
) -> None:
    program = desk.write("reads.py", READS)
    with Outside() as outside:
        recorded = desk.reenact("run", "--", "python", program, outside.url)
        asked = sum(outside.asked.values())
    assert recorded.returncode == 0, recorded.stderr
    assert asked == 16
    assert f"({asked} http); replayable: exact" in recorded.stderr
    _, made_by_importing = sockets(
        [sys.executable, "-c", "import urllib3"], desk.bare()
    )  # it tries whether IPv6 is there
    replayed, opened = sockets([sys.executable, "-m", "reenact", "replay", "last"], desk.bare())
    assert (replayed.stdout, opened) == (recorded.stdout, made_by_importing)
    assert replayed.returncode == 0
    assert f"same: {asked} http calls answered from the recording, 0 live" in replayed.stderr
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert shown["run"]["calls"] == {"http": asked}
    assert {call["kind"] for call in shown["calls"][1:]} == {"http"}


WRITES = """
import subprocess, sys, urllib.request, reenact

@reenact.tool
def save(line):
    with open("declared.txt", "a") as file:
        file.write(line)

save("one\\n")
if "write" in sys.argv:
    with open("report.txt", "a") as file:
        file.write("line\\n")
if "child" in sys.argv:
    subprocess.run(["touch", "touched"], check=True)
print("done")
"""


def digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.txt")}


@pytest.mark.parametrize(("act", "line", "what"), [("write", 11, "write report.txt")])
def test_what_nobody_declared_is_refused_and_named_where_no_world_is_sealed(
    desk: Desk, act: str, line: int, what: str
) -> None:
    program = desk.write("writes.py", WRITES)
    assert desk.reenact("run", "--", "python", program, act).returncode == 0
    before = digest(desk.folder)
    done = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": "off"}, cold=True)
    assert done.returncode == 125
    assert (
        f"unjudged: {what} at {desk.folder}/writes.py:{line} was refused, and the recorded run did it too"
        in done.stderr
    )
    assert (
        f"refused: {what} at {desk.folder}/writes.py:{line}; declare the function around it with @reenact.tool"
        in done.stderr
    )
    assert "outside world: watched: files" in done.stderr
    assert "next: declare the function around it" in done.stderr
    assert digest(desk.folder) == before
    desk.write("writes.py", WRITES.replace('"report.txt"', '"other.txt"'))
    done = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": "off"}, cold=True)
    assert done.returncode == 1
    assert f"diverged: run: write other.txt at {desk.folder}/writes.py:{line} was refused" in done.stderr


def test_what_is_written_lowers_no_verdict(desk: Desk) -> None:
    program = desk.write("writes.py", WRITES)
    recorded = desk.reenact("run", "--", "python", program, "child", "write")
    assert "(1 tool, 1 child); replayable: exact\n" in recorded.stderr
    assert "report.txt" not in recorded.stderr


def test_writes_are_let_through_on_purpose(desk: Desk) -> None:
    program = desk.write("writes.py", WRITES)
    assert desk.reenact("run", "--", "python", program, "write").returncode == 0
    declared = (desk.folder / "declared.txt").read_text()
    done = desk.reenact("replay", "last", "--writes", "allow")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert (desk.folder / "report.txt").read_text() == "line\nline\n"
    assert (desk.folder / "declared.txt").read_text() == declared


BY_THREADS = """
import asyncio, atexit, concurrent.futures, os, threading, time
import reenact

@reenact.tool
def look():
    return 1

look()
thread = threading.Thread(target=os.remove, args=["0.txt"])
thread.start()  # of a thread
thread.join()
with concurrent.futures.ThreadPoolExecutor() as pool:
    list(pool.map(os.remove, ["1.txt", "2.txt"]))  # of a pool
timer = threading.Timer(0, os.remove, ["3.txt"])
timer.start()  # of a timer
timer.join()
async def main():
    await asyncio.to_thread(os.remove, "4.txt")  # of asyncio
    await asyncio.get_running_loop().run_in_executor(None, os.remove, "5.txt")  # of an executor
asyncio.run(main())
atexit.register(os.remove, "last.txt")
"""


def test_what_a_builtin_does_on_a_thread_is_noted_at_the_line_that_started_it(desk: Desk) -> None:
    program = desk.write("threads.py", BY_THREADS)
    for name in ("0", "1", "2", "3", "4", "5", "last"):
        (desk.folder / f"{name}.txt").write_text("x")
    done = desk.reenact("run", "--", sys.executable, program, cold=True)  # the end of an interpreter is part of it
    assert done.returncode == 0, done.stderr
    assert "replayable: exact" in done.stderr
    attributes = json.loads(desk.reenact("show", "last", "--json").stdout)["calls"][0]["attributes"]
    told = {Path(each["path"]).name: each for each in json.loads(attributes["reenact.written"])["files"]}
    assert all(each["before"]["text"] == "x" and each["after"] is None for each in told.values())
    lines = {text.partition("  # ")[2]: at for at, text in enumerate(BY_THREADS.splitlines(), 1) if "  # of " in text}
    file = desk.folder / program
    for name, kind in enumerate(["a thread", "a pool", "a pool", "a timer", "asyncio", "an executor"]):
        assert told[f"{name}.txt"]["at"] == f"{file}:{lines[f'of {kind}']}", kind
    assert told["last.txt"]["at"] == "a line of no file"
