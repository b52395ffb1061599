"""Files that a program only reads: a replay reads what the recording read, and says so where that differs now."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from desk import Desk

PROMPTED = """
import json, pathlib
import reenact

@reenact.tool
def ask(prompt):
    return len(prompt)

settings = json.load(open("settings.json")) if pathlib.Path("settings.json").exists() else {"name": "nobody"}
print(ask(pathlib.Path("prompt.txt").read_text().format(**settings)))
"""
SERVICE = """
import json, os
from flask import Flask, jsonify
import reenact

app = Flask(__name__)
greeting = open("greeting.txt").read()

@reenact.tool
def price_of(item):
    return len(item)

def items():
    return json.load(open("items.json")) if os.path.exists("items.json") else []

@app.get("/list")
def show():
    price_of("all")
    return jsonify([greeting, *items()])

@app.post("/add/<item>")
def add(item):
    added = [*items(), [item, price_of(item)]]
    with open("items.json", "w") as file:
        json.dump(added, file)
    return jsonify(len(added))
"""
ASKED = """
from agent import app

client = app.test_client()
for method, path in (("GET", "/list"), ("POST", "/add/tea"), ("GET", "/list"), ("POST", "/add/milk"), ("GET", "/list")):
    print(client.open(path, method=method).text)
"""


@pytest.mark.parametrize("level", ["", "landlock"])
def test_a_replay_reads_what_the_recording_read(desk: Desk, level: str) -> None:
    environ = desk.settings() | {"REENACT_ENFORCE": level}
    desk.write("agent.py", PROMPTED)
    desk.write("prompt.txt", "hello {name}")
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr
    same = desk.reenact("replay", "last", environ=environ)
    assert (same.returncode, same.stdout) == (0, live.stdout)
    assert "recorded run read" not in same.stderr
    desk.write("prompt.txt", "good morning {name}")
    desk.write("settings.json", '{"name": "Ann"}')
    done = desk.reenact("replay", "last", environ=environ)
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    for name in ("prompt.txt", "settings.json"):
        assert f"reenact: {name} is not what the recorded run read: a sealed replay reads that" in done.stderr
    assert (desk.folder / "prompt.txt").read_text() == "good morning {name}"
    told = json.loads(desk.reenact("replay", "last", "--json", environ=environ).stdout)["unlike"]
    assert sorted((each["path"], each["put_back"]) for each in told) == [("prompt.txt", True), ("settings.json", True)]
    present = desk.reenact("replay", "last", "--reads", "present", environ=environ)
    assert present.returncode == 1
    assert 'recorded "hello nobody", replay "good morning Ann"' in present.stderr
    assert "prompt.txt is not what the recorded run read: the replay reads it as it is now" in present.stderr


LISTING = """
import os, pathlib
import reenact

@reenact.tool
def read(name, text):
    return f"{name}: {text}"

for path in sorted(pathlib.Path("docs").iterdir()):
    if path.is_file():
        print(read(path.name, path.read_text()))
pathlib.Path("docs", "index.html").write_text(" ".join(sorted(os.listdir("docs"))))
print(pathlib.Path("docs", "index.html").read_text())
"""


@pytest.mark.parametrize("level", ["", "landlock"])
def test_a_replay_lists_what_the_recording_listed(desk: Desk, level: str) -> None:
    environ = desk.settings() | {"REENACT_ENFORCE": level}
    desk.write("agent.py", LISTING)
    (desk.folder / "docs").mkdir()
    for name in ("a.md", "b.md", "c.md"):
        desk.write(f"docs/{name}", name * 3)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr
    same = desk.reenact("replay", "last", environ=environ)
    assert (same.returncode, same.stdout) == (0, live.stdout), same.stderr
    assert "recorded run did not see" not in same.stderr
    desk.write("docs/d.md", "new")
    (desk.folder / "docs" / "b.md").unlink()
    (desk.folder / "docs" / "old").mkdir()
    done = desk.reenact("replay", "last", environ=environ)
    assert (done.returncode, done.stdout) == (1, live.stdout.replace("b.md c.md\n", "b.md c.md old\n")), done.stderr
    assert (
        "reenact: docs holds d.md now, which the recorded run did not see: a sealed replay leaves that" in done.stderr
    )
    assert "reenact: docs holds old now, which the recorded run did not see: the replay sees it" in done.stderr
    assert "gone" not in done.stderr  # what was read is put back
    (desk.folder / "docs" / "old").rmdir()
    done = desk.reenact("replay", "last", environ=environ)
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    assert (desk.folder / "docs" / "d.md").read_text() == "new"
    there = desk.reenact("replay", "last", "--reads", "present", environ=environ)
    assert there.returncode == 1
    assert "reenact: docs holds d.md now, which the recorded run did not see: the replay sees it" in there.stderr
    assert "reenact: docs held b.md, which is gone and was not kept: the replay goes without it" in there.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("level", "put_back"), [("namespaces", True), ("landlock", False)])
def test_a_path_outside_the_folder_is_said_to_be_put_back_only_where_it_is(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, level: str, *, put_back: bool
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a").write_text("a")
    lines = f"import os, reenact\nnote = reenact.tool(lambda name: name)\nfolder = {str(elsewhere)!r}\n"
    desk.write("agent.py", lines + "print([note(name) for name in sorted(os.listdir(folder))])\n")
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr
    (elsewhere / "b").write_text("b")
    done = desk.reenact("replay", "last", "--json", environ=desk.settings() | {"REENACT_ENFORCE": level})
    told = json.loads(done.stdout)
    if told["level"] != level:
        pytest.skip(f"no world can be sealed by {level} here")
    (unlike,) = told["unlike"]
    assert (unlike["path"], unlike["put_back"]) == (str(elsewhere), put_back)
    assert "a replay that namespaces seal leaves that out" in unlike["line"]
    assert told["result"] == ("same" if put_back else "diverged")


def test_a_commit_is_judged_with_its_own_files_while_git_bisects(desk: Desk) -> None:
    desk.write("agent.py", PROMPTED)
    desk.write("prompt.txt", "hello {name}")
    desk.run(["git", "init", "-q"])
    assert desk.reenact("run", "--", "python", "agent.py").returncode == 0
    desk.write("prompt.txt", "good morning {name}")
    assert desk.reenact("replay", "last").returncode == 0
    (desk.folder / ".git" / "BISECT_START").write_text("main")
    assert desk.reenact("replay", "last").returncode == 1
    assert desk.reenact("replay", "last", "--reads", "recorded").returncode == 0


def test_what_was_not_kept_is_told(desk: Desk) -> None:
    desk.write("agent.py", PROMPTED)
    desk.write("prompt.txt", "say sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")
    assert desk.reenact("run", "--", "python", "agent.py").returncode == 0
    assert desk.reenact("replay", "last").returncode == 0
    desk.write("prompt.txt", "say nothing")
    done = desk.reenact("replay", "last")
    assert done.returncode == 1
    assert "prompt.txt is not what the recorded run read, which was not kept (redaction changes it)" in done.stderr


def test_each_request_reads_what_earlier_ones_had_written_by_then(desk: Desk) -> None:
    pytest.importorskip("flask")
    desk.write("agent.py", SERVICE)
    desk.write("greeting.txt", "good day")
    desk.write("ask.py", ASKED)
    assert desk.reenact("run", "--", "python", "ask.py").returncode == 0
    desk.write("greeting.txt", "good night")
    runs = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["exact"] * 5
    for run in runs:
        done = desk.reenact("replay", run["id"])
        assert done.returncode == 0, done.stderr


# A shell finds `python` in PATH, where it may be one that knows no reenact.
PYTHON = shlex.quote(sys.executable)
TWO = """
import sys
import reenact

@reenact.tool
def fetch(name):
    return len(name)

print(fetch(sys.argv[1]))
"""
AGAIN = """
import os, sys
import reenact

@reenact.tool
def fetch(number):
    return number * 2

if len(sys.argv) == 1:
    print("first", fetch(1), flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("second", fetch(10))
"""


@pytest.mark.parametrize(
    ("code", "command", "verdicts"),
    [
        (TWO, ["sh", "-c", f"{PYTHON} agent.py a; {PYTHON} agent.py bc"], ["exact", "exact"]),
        (AGAIN, ["python", "agent.py"], ["partial"]),  # what came before it took its place is not done again
    ],
    ids=["two programs of a shell", "a program that becomes another"],
)
def test_a_replay_is_owed_no_call_of_another_process(
    desk: Desk, code: str, command: list[str], verdicts: list[str]
) -> None:
    desk.write("agent.py", code)
    assert desk.reenact("run", "--", *command).returncode == 0
    newest = json.loads(desk.reenact("ls", "--json").stdout)["runs"][: len(verdicts)]
    assert [run["verdict"] for run in newest] == verdicts
    for run in newest:
        done = desk.reenact("replay", run["id"])
        assert done.returncode == 0, done.stderr
        assert "same: 1 tool calls answered" in done.stderr


WORKERS = """
import multiprocessing, sys
import reenact

@reenact.tool
def fetch(number):
    return number * 2

def work(number):
    with open(f"report{number}.txt", "w") as file:
        file.write(f"price 5, {fetch(number)}")
    with open("count.txt") as file:
        count = int(file.read()) + 1
    with open("count.txt", "w") as file:
        file.write(str(count))
    return count

def forever(event):
    work(7)
    event.set()
    while True:
        event.wait(60)

if __name__ == "__main__":
    if sys.argv[1] == "pool":
        with multiprocessing.Pool(1) as pool:
            print(pool.map(work, range(3)))
    else:
        event = multiprocessing.Event()
        process = multiprocessing.Process(target=forever, args=(event,))
        process.start()
        event.wait()
        process.terminate()
        process.join()
        print(process.exitcode)
"""


@pytest.mark.parametrize("how", ["pool", "process"])
def test_what_a_terminated_worker_wrote_is_part_of_the_run(desk: Desk, how: str) -> None:
    desk.write("agent.py", WORKERS)
    desk.write("count.txt", "5")
    live = desk.reenact("run", "--", "python", "agent.py", how)
    assert "replayable: exact" in live.stderr, live.stderr
    assert ("-15" in live.stdout) is (how == "process")
    desk.write("count.txt", "70")
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    desk.write("agent.py", WORKERS.replace("price 5", "price 6"))
    changed = desk.reenact("replay", "last")
    assert changed.returncode == 1
    assert "price 6" in changed.stderr


REWRITTEN = """
import pyarrow
import pyarrow.parquet
import reenact

@reenact.tool
def fetch():
    return 3

rows = pyarrow.parquet.read_table("stock.parquet").column("count").to_pylist()
table = pyarrow.table({"count": [*rows, fetch()]})
pyarrow.parquet.write_table(table, "stock.parquet")
print(rows)
"""
NOTED = 'pyarrow.parquet.write_table(table, "stock.parquet")'
UNNOTED = 'pyarrow.parquet.write_to_dataset(table, ".", basename_template="stock{i}.parquet")'


@pytest.fixture
def stocked(desk: Desk) -> Desk:
    """Have a table in the folder of the program, which native code will write over, and a file beside it."""
    pyarrow = pytest.importorskip("pyarrow")
    for name in ("stock.parquet", "stock0.parquet"):
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"count": [1]}), desk.folder / name)
    desk.write("beside.txt", "nobody writes here")
    return desk


@pytest.mark.always
def test_a_file_that_native_code_wrote_over_is_as_it_was_in_a_replay(stocked: Desk) -> None:
    stocked.write("agent.py", REWRITTEN)
    live = stocked.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr, live.stderr
    written = (stocked.folder / "stock.parquet").read_bytes()
    done = stocked.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, "[1]\n"), done.stderr
    assert (stocked.folder / "stock.parquet").read_bytes() == written


def test_a_file_that_native_code_wrote_over_unnoted_is_named(stocked: Desk) -> None:
    desk = stocked
    desk.write("agent.py", REWRITTEN.replace(NOTED, UNNOTED).replace('"stock.parquet"', '"stock0.parquet"'))
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in live.stderr
    assert "stock0.parquet as it was before: native code or another program wrote over it" in live.stderr
    assert "beside.txt" not in live.stderr


PRINTED = """
import time
import pyarrow
import reenact

@reenact.tool
def fetch():
    return 3

for number in range(4):
    print(number, fetch(), flush=True)
    time.sleep(0.05)
"""


def test_a_file_that_the_output_is_led_to_is_none_that_native_code_wrote(desk: Desk) -> None:
    pytest.importorskip("pyarrow")
    desk.write("agent.py", PRINTED)
    for name in ("out.txt", "tee.txt"):
        desk.write(name, "of the last time")
    run = f"{PYTHON} -m reenact run -- {PYTHON} agent.py"
    for line in (f"{run} >> out.txt", f"{run} | tee -a tee.txt"):
        assert "replayable: exact" in desk.run(["sh", "-c", line]).stderr
    assert "3 3" in (desk.folder / "out.txt").read_text()
    assert "3 3" in (desk.folder / "tee.txt").read_text()
