"""Programs that write: a replay writes to a copy, begins where the recording began, and compares what was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from reenact.values.effects import COPIED_IN, Seal

REPORTS = """
import csv, json, logging, logging.handlers, os, sqlite3, sys, tempfile, threading
import reenact
from rich.progress import track

@reenact.tool
def look_up(item):
    return f"{item} is there"

log = logging.getLogger("agent")
log.setLevel(logging.INFO)
by_size = logging.handlers.RotatingFileHandler("agent.log", maxBytes=400, backupCount=3)
by_size.setFormatter(logging.Formatter("%(asctime)s %(process)d %(thread)d %(relativeCreated)d %(message)s"))
log.addHandler(by_size)
log.addHandler(logging.handlers.TimedRotatingFileHandler("timed.log", when="S", backupCount=99))
database = sqlite3.connect("state.db")
database.execute("pragma journal_mode=wal")
database.execute("create table if not exists checkpoint(number integer, said text, at text default current_timestamp)")
rows = []
for number in track(range(6)):
    said = look_up(f"tea {number}")
    log.info("looked up %s: %s", number, said)
    database.execute("insert into checkpoint(number, said) values(?, ?)", (number, said))
    database.commit()
    rows.append((number, said))
with tempfile.TemporaryDirectory() as folder:
    open(os.path.join(folder, "x"), "w").close()
with open("threads.txt", "w") as file:
    lock = threading.Lock()
    def work(name):
        for number in range(20):
            with lock:
                file.write(f"{name} {number}\\n")
    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    [each.start() for each in threads]
    [each.join() for each in threads]
with open("report.csv", "w", newline="") as file:
    csv.writer(file).writerows([("number", "said"), *rows])
print(database.execute("select count(*) from checkpoint").fetchone()[0])
"""


def sums(folder: Path) -> dict[str, str]:
    """Digest every file below a folder, the store aside."""
    files = [each for each in folder.rglob("*") if each.is_file() and ".reenact" not in each.parts]
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def replayed(desk: Desk, *words: str) -> dict[str, Any]:
    """Replay, and give the document. Skips where no sealed world can be made."""
    asked = words if "--json" in words else (*words, "--json")
    said: dict[str, Any] = json.loads(desk.reenact("replay", *asked).stdout)
    if said["world"]["files"] != Seal.COPIED:
        pytest.skip("no sealed world can be made here: tests/seal says why")
    return said


def recorded(desk: Desk, program: str, *words: str, grade: str = "exact") -> str:
    done = desk.reenact("run", "--", "python", program, *words, cold=True)
    assert done.returncode == 0, done.stderr
    assert f"replayable: {grade}" in done.stderr, done.stderr
    return done.stdout


@pytest.mark.always
def test_a_script_that_writes_everything_replays_with_no_option(desk: Desk) -> None:
    program = desk.write("agent.py", REPORTS)
    recorded(desk, program)
    before = sums(desk.folder)
    said = replayed(desk, "last")
    assert said["result"] == "same", said["divergences"]
    assert {"agent.log", "state.db", "report.csv", "timed.log", "threads.txt"} <= set(said["writes"]["as_recorded"])
    kinds = {(each["path"], each["kind"]) for each in said["writes"]["passed_over"]}
    assert {("agent.log", kind) for kind in ("times", "thread ids", "relative times")} <= kinds
    assert (("agent.log", "process ids") in kinds) == (said["level"] != "namespaces"), (
        "there it has the number that it had"
    )
    assert said["unwitnessed"] == []
    recorded(desk, program)  # a second run begins with what the first one left, and its threads may go another way
    between = sums(desk.folder)
    again = replayed(desk, "last", "--writes", "keep", "kept")
    assert again["result"] == "same", again["divergences"]
    assert (desk.folder / "kept" / "report.csv").read_bytes() == (desk.folder / "report.csv").read_bytes()
    shutil.rmtree(desk.folder / "kept")
    assert sums(desk.folder) == between
    changed = {name for name, digest in between.items() if before.get(name) != digest}
    assert "report.csv" not in changed
    assert not {name for name in changed if not name.startswith(("agent.log", "timed.log", "state.db", "threads.txt"))}


@pytest.mark.slow
def test_it_replays_the_same_twenty_times(desk: Desk) -> None:
    recorded(desk, desk.write("agent.py", REPORTS))
    before = sums(desk.folder)
    assert [replayed(desk, "last")["result"] for _ in range(20)] == ["same"] * 20
    assert sums(desk.folder) == before


def test_one_changed_line_of_the_report_diverges_at_that_file_and_line(desk: Desk) -> None:
    recorded(desk, desk.write("agent.py", REPORTS))
    desk.write("agent.py", REPORTS.replace('"number", "said")', '"number", "answer")'))
    said = replayed(desk, "last")
    assert [(each["path"], each["line"], each["a"], each["b"]) for each in said["divergences"]] == [
        ("report.csv", 1, "number,said\r", "number,answer\r")
    ]
    line = next(at for at, text in enumerate(REPORTS.splitlines(), 1) if "report.csv" in text)
    assert said["divergences"][0]["where"] == f"{desk.folder}/agent.py:{line}"
    done = desk.reenact("replay", "last")
    assert done.returncode == 1
    assert 'diverged: run: wrote report.csv, line 1: recorded "number,said\\r"' in done.stderr
    assert f"written at {desk.folder}/agent.py:{line}" in done.stderr


def test_it_replays_in_a_copy_of_the_folder_where_landlock_is_all_there_is(desk: Desk) -> None:
    recorded(desk, desk.write("agent.py", REPORTS))
    before, environ = sums(desk.folder), {**desk.settings(), "REENACT_ENFORCE": "landlock"}
    said = json.loads(desk.reenact("replay", "last", "--json", "--writes", "keep", "kept", environ=environ).stdout)
    if COPIED_IN not in said["world"]:
        pytest.skip("no cell can be made here: tests/seal says why")
    assert said["result"] == "same", said["divergences"]
    assert {"agent.log", "state.db", "report.csv", "timed.log", "threads.txt"} <= set(said["writes"]["as_recorded"])
    assert said["unwitnessed"] == []
    assert (desk.folder / "kept" / "report.csv").read_bytes() == (desk.folder / "report.csv").read_bytes()
    shutil.rmtree(desk.folder / "kept")
    assert sums(desk.folder) == before
    desk.write("agent.py", REPORTS.replace('"number", "said")', '"number", "answer")'))
    said = json.loads(desk.reenact("replay", "last", "--json", environ=environ).stdout)
    assert [(each["path"], each["line"]) for each in said["divergences"]] == [("report.csv", 1)]


ACTS = """
import bz2, gzip, json, mmap, os, pathlib, pickle, shutil, sys, tarfile, tempfile, zipfile
import reenact

P = pathlib.Path

@reenact.tool
def look_up(item):
    return f"{item} is there"

said = [look_up(f"tea {number}") for number in range(3)]
with open("append.txt", "a") as file:
    file.write("\\n".join(said) + "\\n")
os.makedirs("a/b", exist_ok=True)
P("a/b/c.txt").write_text(said[0])
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
    file.write("atomic " + said[0])
os.replace(file.name, "atomic.txt")
state = json.loads(P("state.json").read_text()) if P("state.json").exists() else {"runs": 0}
state["runs"] += 1
P("state.json").write_text(json.dumps(state))
with zipfile.ZipFile("r.zip", "w") as archive:
    archive.writestr("x.txt", said[1])
    archive.write("state.json")
with gzip.open("r.gz", "wt") as file:
    file.write(said[2])
P("r.bz2").write_bytes(bz2.compress(b"bz"))
with tarfile.open("r.tar.gz", "w:gz") as archive:
    archive.add("state.json")
P("r.pickle").write_bytes(pickle.dumps(said))
shutil.copy("state.json", "copy.json")
shutil.move("copy.json", "moved.json")
os.makedirs("tree/x", exist_ok=True)
P("tree/x/y").write_text("y")
shutil.copytree("tree", "tree2", dirs_exist_ok=True)
shutil.rmtree("tree")
if P("folder").exists():
    os.rename("folder", "folder2")
    shutil.rmtree("folder2")
else:
    P("folder").mkdir()
    P("folder/z").write_text("z")
P("exclusive.txt").unlink(missing_ok=True)
with open("exclusive.txt", "x") as file:
    file.write("x")
with open("cut.txt", "a+") as file:
    file.write("0123456789")
    file.truncate(5)
os.truncate("cut.txt", 3)
once = P("once.txt")
once.unlink() if once.exists() else once.write_text("once")
mapped = P("mapped.bin")
if not mapped.exists():
    mapped.write_bytes(bytes(4096))
with open(mapped, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[0:1] = bytes([memory[0] + 1])
    print(memory[0])
file = os.open("raw.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
os.write(file, b"raw\\n")
os.close(file)
os.rename("raw.txt", "raw2.txt")
P("a.link").unlink(missing_ok=True)
P("a.link").symlink_to("state.json")
never = open("never.txt", "w")
never.write("closed")
print(state)
"""


def test_each_way_to_write_is_done_again_in_the_copy_from_where_it_began(desk: Desk) -> None:
    program = desk.write("acts.py", ACTS)
    first = recorded(desk, program)
    second = recorded(desk, program)
    assert (first, second) == ("1\n{'runs': 1}\n", "2\n{'runs': 2}\n")
    before = sums(desk.folder)
    runs = [each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"]]
    for run, printed in zip(runs, (second, first), strict=True):
        done = desk.reenact("replay", run)
        assert "copied: files" in done.stderr or pytest.skip("no sealed world can be made here: tests/seal says why")
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert sums(desk.folder) == before
    different = json.loads(desk.reenact("diff", runs[1], runs[0], "--json").stdout)
    assert "wrote state.json, line 1" in [each["field"] for each in different["divergences"]]
    shown = json.loads(desk.reenact("show", runs[1], "--json").stdout)["run"]["wrote"]
    assert {
        name: value
        for name, value in next(each for each in shown if each["path"] == "state.json").items()
        if name != "where"
    } == {"path": "state.json", "state": "file", "new": True, "size": 11}


@pytest.mark.slow
def test_a_program_that_goes_elsewhere_is_started_where_it_was_started(desk: Desk) -> None:
    text = "import os, reenact\nos.mkdir('out')\nos.chdir('out')\n@reenact.tool\ndef note(): return 1\nprint(note())\n"
    recorded(desk, desk.write("agent.py", text))
    said = replayed(desk, "last")
    assert (said["result"], said["exit_code"]) == ("same", {"recorded": 0, "replay": 0}), said


@pytest.mark.parametrize("level", ["", "landlock"])
def test_new_files_have_the_recorded_modes_whatever_the_umask_is_here(desk: Desk, level: str) -> None:
    text = "import os, reenact\nnote = reenact.tool(lambda: 1)\nprint(note())\nopen('a', 'w').close()\nos.mkdir('b')\n"
    program = desk.write("agent.py", f"{text}print(oct(os.stat('a').st_mode), oct(os.stat('b').st_mode))\n")
    before = os.umask(0o027)
    try:
        live = desk.reenact("run", "--", "python", program, cold=True)
        os.umask(0o002)
        (desk.folder / "a").unlink()
        (desk.folder / "b").rmdir()
        done = desk.reenact("replay", "last", environ={"REENACT_ENFORCE": level}, cold=True)
    finally:
        os.umask(before)
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    assert "0o100640 0o40750" in live.stdout


def test_what_only_one_of_two_runs_wrote_diverges(desk: Desk) -> None:
    program = desk.write(
        "late.py",
        "import pathlib, sys, reenact\n"
        "look = reenact.tool(lambda item: item)\n"
        "look('tea')\n"
        "for name in sys.argv[1:]:\n    pathlib.Path(name).write_text('x')\n",
    )
    recorded(desk, program, "a.txt")
    said = replayed(desk, "last", "--json", "--", "python", program, "b.txt")
    assert [(each["kind"], each["path"]) for each in said["divergences"]] == [("missing", "a.txt"), ("extra", "b.txt")]


BUILDS_ONCE = """
import os, pathlib, sqlite3, time
import reenact

look = reenact.tool(lambda item: item)
if not os.path.exists("copy.db"):
    sqlite3.connect("first.db").execute("vacuum into 'copy.db'")
    time.sleep(0.02)  # of what comes within a tick of the disk's clock nobody knows whether the call behind it made it
    print(look("built"))
kept = pathlib.Path(os.environ["XDG_CACHE_HOME"], "agent.txt")
kept.parent.mkdir(exist_ok=True)
number = int(kept.read_text()) if kept.exists() else 0
kept.write_text(str(number + 1))
print(look(number))
"""


@pytest.mark.slow
def test_a_replay_begins_without_what_native_code_made_and_with_a_cache_as_it_was(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = desk.write("once.py", BUILDS_ONCE)
    environ = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("user") / "cache")}
    for _ in range(2):
        done = desk.reenact("run", "--", "python", program, cold=True, environ=environ)
        assert "replayable: exact" in done.stderr, done.stderr
    runs = [each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"]]
    for run, printed in zip(runs, ("1\n", "built\n0\n"), strict=True):
        done = desk.reenact("replay", run, environ=environ)
        assert "copied: files" in done.stderr or pytest.skip("no sealed world can be made here: tests/seal says why")
        assert (done.returncode, done.stdout) == (0, printed), done.stderr


NATIVE = """
import ctypes, os, sys
import reenact

look = reenact.tool(lambda item: item)
look("tea")
libc = ctypes.CDLL(None)
file = libc.open(b"native.txt", os.O_WRONLY | os.O_CREAT, 0o644)
libc.write(file, b"x", 1)
libc.close(file)
with open("bytes.bin", "wb") as file:
    file.write(b"\\xff")
    if "drawn" in sys.argv:
        libc.getrandom.restype = ctypes.c_ssize_t
        drawn = ctypes.create_string_buffer(16)
        libc.getrandom(drawn, 16, 0)
        file.write(drawn.raw)
"""


@pytest.mark.slow
def test_what_nobody_witnessed_is_named_and_bytes_that_differ_by_nature_are_told(desk: Desk) -> None:
    program = desk.write("native.py", NATIVE)
    recorded(desk, program, "drawn", grade="partial")
    said = replayed(desk, "last")
    assert said["result"] == "same"
    assert said["writes"]["bytes_differ"] == ["bytes.bin"]
    (desk.folder / "native.txt").unlink()
    assert replayed(desk, "last")["unwitnessed"] == [f"{desk.folder}/native.txt"]


@pytest.mark.slow
def test_other_bytes_that_two_replays_agree_on_diverge(desk: Desk) -> None:
    program = desk.write("native.py", NATIVE)
    recorded(desk, program, grade="partial")
    desk.write("native.py", NATIVE.replace('b"\\xff"', 'b"\\xfe"'))
    said = replayed(desk, "last")
    assert [(each["path"], each["field"]) for each in said["divergences"]] == [("bytes.bin", "wrote bytes.bin")]
    assert "the same in two replays" in said["divergences"][0]["reason"]


LEFT_BEHIND = """
import os, tempfile
import reenact

@reenact.tool
def use(path):
    return "used"

os.makedirs("work", exist_ok=True)
inside = tempfile.mkdtemp(dir="work")
for path in (inside, tempfile.mkdtemp(prefix="run-"), tempfile.mkstemp(dir=inside, suffix=".csv")[1]):
    use(path)
with tempfile.NamedTemporaryFile(delete=False) as file:
    use(file.name)
"""


@pytest.mark.slow
def test_temporary_names_that_a_run_left_behind_are_free_again(desk: Desk) -> None:
    """A program that prints and writes nothing else tells their paths in its questions."""
    program = desk.write("left.py", LEFT_BEHIND)
    recorded(desk, program)
    for _ in range(2):
        said = replayed(desk, "last")
        assert said["result"] == "same", said


MEASURED = """
import json, logging
import reenact

class Lines(logging.Formatter):
    def format(self, record):
        return json.dumps({"after": record.relativeCreated, "text": record.getMessage()})

look = reenact.tool(lambda item: item)
handler = logging.FileHandler("app.jsonl")
handler.setFormatter(Lines())
logging.basicConfig(level=logging.INFO, handlers=[handler])
price = 12
for item in ("tea", "milk"):
    logging.info("%s for %d", look(item), price)
"""


@pytest.mark.slow
def test_numbers_that_differ_from_replay_to_replay_are_passed_over_and_those_that_agree_are_not(desk: Desk) -> None:
    program = desk.write("measured.py", MEASURED)
    recorded(desk, program)
    for _ in range(2):
        said = replayed(desk, "last")
        assert said["result"] == "same"
        (passed,) = said["writes"]["passed_over"]
        assert passed == {"path": "app.jsonl", "kind": "values that differ from replay to replay", "count": 2}
    desk.write("measured.py", MEASURED.replace("price = 12", "price = 13"))
    said = replayed(desk, "last")
    assert [each["field"] for each in said["divergences"]] == ["wrote app.jsonl, line 1"]


BY_THE_CLOCK = """
import logging, logging.handlers, os, sys, time
import reenact

look = reenact.tool(lambda item: item)
print(os.stat("timed.log").st_mtime_ns, os.path.getmtime("other.log"))
with open("other.log", "a") as file:
    file.write("more")
log = logging.getLogger("agent")
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.TimedRotatingFileHandler("timed.log", when="S", interval=int(sys.argv[1])))
for number in range(3):
    log.info(look("tea"))
print(sorted(name for name in os.listdir() if name.startswith("timed")))
"""


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("seconds", [30, 90])
def test_a_log_that_is_rotated_by_the_clock_is_rotated_again_or_not(desk: Desk, seconds: int) -> None:
    """The file was written a minute before the recording, so that one of two intervals is over."""
    program = desk.write("logs.py", BY_THE_CLOCK)
    for name, ago_s in (("timed.log", 60), ("other.log", 3600)):
        desk.write(name, "old\n")
        changed = time.time() - ago_s
        os.utime(desk.folder / name, (changed, changed))
    recorded(desk, program, str(seconds))
    said = replayed(desk, "last")
    assert said["result"] == "same", said["divergences"]
    assert len([*desk.folder.glob("timed.log.*")]) == (seconds == 30)
    assert said["printed"]["passed_over"] == []


NATIVE_AND_SLOW = """
import ctypes, time
import reenact

look = reenact.tool(lambda item: item)
look("tea")
libc = ctypes.CDLL(None)
libc.unlink(b"small.txt")
libc.close(libc.creat(b"native.txt", 0o644))
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
"""
IN_JSON = """
import json, threading
import reenact

look = reenact.tool(lambda item: item)
lock = threading.Lock()

def work(number):
    with lock, open("log.jsonl", "a") as file:
        line = {"thread": threading.get_ident(), "said": look(f"tea {number}")}
        file.write(json.dumps(line) + "\\n")
        print(json.dumps(line))

for number in range(2):
    thread = threading.Thread(target=work, args=(number,))
    thread.start()
    thread.join()
work(2)
"""


@pytest.mark.slow
def test_ids_of_threads_are_passed_over_and_told(desk: Desk) -> None:
    program = desk.write("threads.py", IN_JSON)
    recorded(desk, program)
    said = replayed(desk, "last")
    assert said["result"] == "same", said["divergences"]
    assert [(each["kind"], each["count"]) for each in said["writes"]["passed_over"]] == [("thread ids", 3)]


MOUNTED = "mount -t tmpfs none held"
OTHERS = """
while :; do
    for name in noise.txt large.bin also.txt; do date +%N > $name; done
    rm -f "gone-$n"; n=$((n+1)); : > "gone-$n"; sleep 0.02
done &
trap "kill $!" EXIT
"$@"
"""


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("level", ["namespaces", "namespaces and a volume", "landlock"])
def test_what_others_write_meanwhile_is_no_write_of_the_program(desk: Desk, level: str) -> None:
    """A folder that holds a mount is made anew, and one without namespaces copied, while the original changes."""
    program = desk.write("slow.py", NATIVE_AND_SLOW)
    desk.write("large.bin", "x" * 3_000_000)
    (desk.folder / "held").mkdir()
    desk.write("small.txt", "small")
    recorded(desk, program, grade="partial")
    desk.write("small.txt", "small")
    (desk.folder / "native.txt").unlink()
    world, _, volume = level.partition(" ")
    apart = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])] if volume else []
    if apart and desk.run([*apart, "sh", "-c", MOUNTED]).returncode:
        pytest.skip("no mount can be made here")
    words = [sys.executable, "-m", "reenact", "replay", "last", "--json"]
    done = desk.run(
        [*apart, "bash", "-c", f"{MOUNTED if volume else ''}{OTHERS}", "bash", *words],
        {**os.environ, "REENACT_ENFORCE": world},
    )
    said = json.loads(done.stdout)
    if said["world"]["files"] == Seal.WATCHED:
        pytest.skip("no such world can be made here: tests/seal says why")
    assert said["unwitnessed"] == [f"{desk.folder}/{name}" for name in ("native.txt", "small.txt")], said


AFTER = """
import reenact

look = reenact.tool(lambda item: item)
with reenact.run("unit"):
    value = look("tea")
    with open("inside.txt", "w") as file:
        file.write(value)
with open("after.txt", "w") as file:
    file.write(value)
"""


@pytest.mark.slow
def test_what_is_written_behind_the_run_is_part_of_it(desk: Desk) -> None:
    program = desk.write("after.py", AFTER)
    recorded(desk, program)
    assert sorted(replayed(desk, "last")["writes"]["as_recorded"]) == ["after.txt", "inside.txt"]
    desk.write("after.py", AFTER.replace("write(value)\n", "write(value.upper())\n"))
    said = replayed(desk, "last")
    assert sorted(each["path"] for each in said["divergences"]) == ["after.txt", "inside.txt"]


def test_what_redaction_would_change_is_not_kept_and_the_verdict_names_it(desk: Desk) -> None:
    program = desk.write(
        "state.py",
        "import json, pathlib, reenact\n"
        "look = reenact.tool(lambda item: item)\n"
        "state = json.loads(pathlib.Path('state.json').read_text())\n"
        "look('tea')\n"
        "pathlib.Path('state.json').write_text(json.dumps({**state, 'runs': 1}))\n",
    )
    secret = "sk-ant-api03-" + "Zx8Kq2Lw9Pv4Rt7Yb3Nc6Md1" * 4
    (desk.folder / "state.json").write_text(json.dumps({"key": secret}))
    done = desk.reenact("run", "--", "python", program, cold=True)
    assert "replayable: partial" in done.stderr
    assert "state.json as it was before: redaction changes it" in done.stderr
    store = b"".join(each.read_bytes() for each in (desk.folder / ".reenact").rglob("*") if each.is_file())
    assert secret.encode() not in store
    assert "state.json is not what it was when the run began" in desk.reenact("replay", "last").stderr


@pytest.mark.slow
def test_the_copy_has_no_way_to_the_real_files(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A path in the notes that leads out of the copy, through a link or into the plan, is left alone."""
    outside = tmp_path_factory.mktemp("outside")
    program = desk.write(
        "linked.py",
        "import os, pathlib, reenact\n"
        "look = reenact.tool(lambda item: item)\n"
        "look('tea')\n"
        "pathlib.Path('folder/file.txt').write_text('new')\n",
    )
    (desk.folder / "folder").mkdir()
    recorded(desk, program)
    shutil.rmtree(desk.folder / "folder")
    (outside / "file.txt").write_text("mine")
    (desk.folder / "folder").symlink_to(outside)
    replayed(desk, "last")
    assert (outside / "file.txt").read_text() == "mine"


@pytest.mark.slow
def test_where_no_world_is_sealed_the_first_write_is_refused(desk: Desk) -> None:
    recorded(desk, desk.write("agent.py", REPORTS))
    before = sums(desk.folder)
    done = desk.reenact("replay", "last", environ={**os.environ, "REENACT_ENFORCE": "off"}, cold=True)
    assert done.returncode == 125
    assert "unjudged: open database state.db" in done.stderr
    assert "was refused, and the recorded run did it too; what follows was not seen" in done.stderr
    assert "outside world: watched: files" in done.stderr
    assert sums(desk.folder) == before


def test_writes_are_refused_where_that_is_asked(desk: Desk) -> None:
    recorded(desk, desk.write("agent.py", REPORTS))
    assert "open database state.db" in replayed(desk, "last", "--writes", "refuse")["refused"][0]["what"]


NAMES = """
import os, socket
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
there = THERE
with open(there + "/a", "w") as file:
    file.write("a")
try:
    os.link(there + "/a", "linked")
    print(open("linked").read())
    os.link(there + "/a", "linked")
except OSError as error:
    print(type(error).__name__)
socket.socket(socket.AF_UNIX).bind("s")
os.mkfifo("pipe")
print(LAST)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("last", "said"), [("'made'", "made"), ("os.stat(there + '/a').st_nlink", "2")])
def test_links_sockets_and_pipes_that_the_recorded_run_left_are_made_again_and_a_link_that_is_a_copy_is_told(
    desk: Desk, last: str, said: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as there:
        if Path(there).stat().st_dev != desk.folder.stat().st_dev:
            pytest.skip("/var/tmp lies on another disk than the temporary folder")
        desk.write("names.py", NAMES.replace("THERE", repr(there)).replace("LAST", last))
        assert recorded(desk, desk.folder / "names.py") == f"a\nFileExistsError\n{said}\n"
        done = json.loads(desk.reenact("replay", "last", "--json").stdout)
    if done["level"] != "namespaces":
        pytest.skip("no world of namespaces can be made here: tests/seal says why")
    if said == "made":
        assert done["result"] == "same", done
    else:
        assert done["result"] == "unjudged", done
        assert "made a copy" in done["why"]


NUMBERED = """
import multiprocessing, os, shutil, sys
import reenact

@reenact.tool
def look(item: str) -> str:
    return item

def make(folder):
    os.makedirs(folder)

look("tea")
folder = f"{sys.argv[1]}/of process {os.getpid()}"
if sys.argv[2] == "itself":
    make(folder)
else:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(make, (folder,))
shutil.rmtree(folder)
print(look("rain"))
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("enforce", ["landlock", "off"])
@pytest.mark.parametrize("who", ["itself", "a worker"])
def test_a_folder_elsewhere_that_is_refused_says_nothing_of_the_program(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, who: str, enforce: str
) -> None:
    """It is another one in each process, and the program removes it: the recording knows it by its line."""
    outside = tmp_path_factory.mktemp("outside")
    recorded(desk, desk.write("agent.py", NUMBERED), str(outside), who)
    done = desk.reenact("replay", "last", environ={**os.environ, "REENACT_ENFORCE": enforce}, cold=True)
    assert done.returncode == 125, done.stderr
    assert "unjudged: make folder" in done.stderr
    assert list(outside.iterdir()) == []
