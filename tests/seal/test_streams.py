"""The standard streams of a sealed program, and its group of processes: no way to what is outside."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from reenact.seal import begin, launch


def order(tmp_path: Path, code: str) -> list[str]:
    (tmp_path / "upper").mkdir()
    told, answer = tmp_path / "order.json", tmp_path / "answer.jsonl"
    argv = [sys.executable, "-I", "-c", code]
    world = {"upper": str(tmp_path / "upper")}
    told.write_text(json.dumps({"argv": argv, "cwd": "/", "world": world, "answer": str(answer)}))
    return launch.command(told)


def check_sealed(tmp_path: Path) -> None:
    if "refused" in (said := (tmp_path / "answer.jsonl").read_text()):
        pytest.skip(f"no sealed world can be made here: {said}")


WRITES = """
import os, sys
print(sys.stdin.read(4), flush=True)
def tried(act):
    try:
        act()
    except OSError:
        pass
for number in map(int, NUMBERS):
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        tried(lambda: os.write(os.open(f"/proc/self/fd/{number}", flags), b"SPOILT"))
    tried(lambda: os.fchmod(number, 0o777))
    tried(lambda: os.ftruncate(number, 0))
    tried(lambda: os.utime(number, (1, 1)))
    tried(lambda: os.pwrite(number, b"SPOILT", 0))
print("end", flush=True)
print(sys.stdin.read())
"""


def test_a_file_that_is_read_is_a_copy_and_one_that_is_written_is_behind_a_pipe(tmp_path: Path) -> None:
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("data and more")
    read.chmod(0o640)
    written.write_text("before\n")
    seen = read.stat()
    with read.open("r+") as stdin, written.open("a") as out:
        subprocess.run(
            order(tmp_path, WRITES.replace("NUMBERS", "'0'")), stdin=stdin, stdout=out, stderr=out, check=True
        )
    check_sealed(tmp_path)
    after = read.stat()
    assert read.read_text() == "data and more"
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (seen.st_mode, seen.st_mtime_ns, seen.st_ino)
    assert written.read_text().startswith("before\ndata\nend\n")


def test_what_was_written_before_is_out_of_reach(tmp_path: Path) -> None:
    written = tmp_path / "out.txt"
    written.write_text("before\n")
    seen = written.stat()
    with written.open("a") as out:
        subprocess.run(
            order(tmp_path, WRITES.replace("NUMBERS", "'12'")), input="data", text=True, stdout=out, check=True
        )
    check_sealed(tmp_path)
    after = written.stat()
    assert written.read_text().startswith("before\ndata\n")
    assert (after.st_mode, after.st_ino) == (seen.st_mode, seen.st_ino)
    assert after.st_mtime != 1


def test_both_streams_in_one_file_keep_their_order(tmp_path: Path) -> None:
    code = "import os\nfor n in range(200):\n    os.write(1 + n % 2, b'%d\\n' % n)"
    written = tmp_path / "out.txt"
    with written.open("w") as out:
        done = subprocess.run(order(tmp_path, code), stdout=out, stderr=out, check=False)
    check_sealed(tmp_path)
    assert done.returncode == 0
    assert written.read_text() == "".join(f"{n}\n" for n in range(200))


def test_a_signal_to_the_programs_own_group_reaches_nobody_outside(tmp_path: Path) -> None:
    code = (
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('heard', flush=True))\n"
        "os.kill(0, signal.SIGUSR1); os.killpg(os.getpgrp(), signal.SIGUSR1); os.setpriority(os.PRIO_PGRP, 0, 19)"
    )
    with subprocess.Popen(["sleep", "60"], process_group=0) as victim:
        before = os.getpriority(os.PRIO_PROCESS, victim.pid)
        try:
            done = subprocess.run(
                order(tmp_path, code), capture_output=True, text=True, process_group=victim.pid, check=False
            )
            check_sealed(tmp_path)
            assert (done.returncode, done.stdout) == (0, "heard\nheard\n"), done.stderr
            assert victim.poll() is None
            assert os.getpriority(os.PRIO_PROCESS, victim.pid) == before
        finally:
            victim.kill()


def test_an_interrupt_reaches_the_program(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)"
    )
    with subprocess.Popen(order(tmp_path, code), stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            check_sealed(tmp_path)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    assert process.returncode == 0


def test_a_terminal_is_set_as_it_was_before(tmp_path: Path) -> None:
    code = (
        "import termios\nnow = termios.tcgetattr(0); now[3] &= ~termios.ECHO\n"
        "termios.tcsetattr(0, termios.TCSANOW, now); termios.tcsetwinsize(0, (7, 9)); print('set')\n"
        "import fcntl; fcntl.ioctl(0, termios.TIOCSETD, (27).to_bytes(4, 'little'))"  # N_NULL: nothing goes through
    )
    outside, inside = os.openpty()
    termios.tcsetwinsize(inside, (24, 80))
    before = termios.tcgetattr(inside)
    done = subprocess.run(order(tmp_path, code), stdin=inside, capture_output=True, text=True, check=False)
    check_sealed(tmp_path)
    assert (done.returncode, done.stdout) == (0, "set\n"), done.stderr
    assert termios.tcgetattr(inside) == before
    assert termios.tcgetwinsize(inside) == (24, 80)
    os.close(outside)
    os.close(inside)


FULL = Path("/dev/full")
CHANGES = """
import fcntl, os
def tried(act):
    try:
        act()
    except OSError:
        pass
for number in (0, 1, 2):
    tried(lambda: os.fchown(number, 4321, 4321))
    tried(lambda: os.fchmod(number, 0o604))
    os.set_blocking(number, False)
tried(lambda: os.chmod("/dev/full", 0o604))
tried(lambda: os.chmod("/proc/sysvipc/sem", 0o404))
"""
FRESH = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--mount-proc",
    "stat",
    "-c",
    "%a",
    "/proc/sysvipc/sem",
]
"""Asks what a file of the whole machine's has for a mode: a look that was taken before is not looked at again."""


@pytest.mark.parametrize("stdin", ["pipe", "/dev/full"])
def facts(path: Path) -> tuple[int, ...]:
    seen = path.stat()
    return seen.st_mode, seen.st_uid, seen.st_gid


@pytest.mark.parametrize("stdin", ["pipe", "/dev/full"])
def test_what_others_hold_as_well_has_its_mode_its_owner_and_its_flags_again(tmp_path: Path, stdin: str) -> None:
    paths = [tmp_path / "pipe" if stdin == "pipe" else Path(stdin), tmp_path / "said"]
    for path in paths:
        if path.parent == tmp_path:
            os.mkfifo(path, 0o640)
    reads, says = handles = [os.open(path, os.O_RDWR) for path in paths]
    whole = subprocess.run(FRESH, capture_output=True, text=True, check=False).stdout
    before = [facts(path) for path in (*paths, FULL)]
    try:
        subprocess.run(order(tmp_path, CHANGES), stdin=reads, stdout=says, stderr=says, check=True)
        check_sealed(tmp_path)
        assert [facts(path) for path in (*paths, FULL)] == before
        assert [os.get_blocking(each) for each in handles] == [True, True]
        assert subprocess.run(FRESH, capture_output=True, text=True, check=False).stdout == whole
    finally:
        if facts(FULL) != before[-1]:
            FULL.chmod(before[-1][0] & 0o7777)
            os.chown(FULL, *before[-1][1:])
        for handle in handles:
            os.close(handle)


def test_a_file_that_is_put_back_keeps_what_holds_it_open_and_leaves_its_other_names_alone(tmp_path: Path) -> None:
    """Standard input may be that file."""
    alone, linked = tmp_path / "alone", tmp_path / "linked"
    for path in (alone, linked):
        path.write_text("now")
    (tmp_path / "too").hardlink_to(linked)
    content = base64.b64encode(b"before").decode()
    with alone.open() as stream:
        entries = [{"path": str(path), "kind": "file", "content": content, "mode": 0o640} for path in (alone, linked)]
        begin.put_back(entries, [str(tmp_path)], [])
        assert os.path.samestat(os.fstat(stream.fileno()), alone.stat())
    assert [path.read_text() for path in (alone, linked, tmp_path / "too")] == ["before", "before", "now"]
    assert alone.stat().st_mode & 0o777 == 0o640
