"""What no audit event of Python's own tells of: code at an address, a ring, pipes and descriptors of others."""

from __future__ import annotations

import json
import os

import pytest

from desk import Desk

HEAD = """
import ctypes, fcntl, mmap, os, subprocess, sys, threading, termios
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
"""
ADDRESS = "ctypes.CFUNCTYPE(ctypes.c_int)(int(os.environ.get('NO_SUCH', '4096')))"
CAST = "ctypes.cast(4096, ctypes.PYFUNCTYPE(ctypes.c_int))"
TYPED = """
try:
    fcntl.ioctl(os.openpty()[1], termios.TIOCSTI, b"x")
except OSError:
    pass
"""
PIPED = "os.write(os.open('pipe', os.O_WRONLY | os.O_NONBLOCK), b'x')"
OWN_PIPE = """
os.mkfifo("own")
heard = []
reader = threading.Thread(target=lambda: heard.append(open("own").read()))
reader.start()
with open("own", "w") as pipe:
    pipe.write("tea")
reader.join()
os.remove("own")
print(heard)
"""
LENT = """
file = os.open("kept.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
subprocess.run(["sh", "-c", f"echo x >&{file}"], pass_fds=[file], check=True)
"""
ONLY_LENT = LENT.replace("echo x >&{file}", "true")
RING = """
ring = ctypes.CDLL(None, use_errno=True).syscall(425, 8, ctypes.create_string_buffer(120))
print(ring > 2)
"""


def recorded(desk: Desk, code: str) -> tuple[str, str]:
    """Record a program; gives the grade of its verdict, and what that says."""
    desk.write("agent.py", HEAD + code)
    done = desk.reenact("run", "-q", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    verdict = json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]
    return verdict["grade"], " ".join(reason["lost"] for reason in verdict["reasons"])


def watched(desk: Desk) -> dict[str, object]:
    done = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    told: dict[str, object] = json.loads(done.stdout)
    return told


def test_machine_code_that_is_called_by_its_address_is_named(desk: Desk) -> None:
    for code in (ADDRESS, CAST):
        grade, said = recorded(desk, code)
        assert (grade, "a function at an address by ctypes" in said) == ("partial", True), said
        told = watched(desk)
        assert told["result"] == "same"
        assert "a function at an address by ctypes" in json.dumps(told["unwatched"])


def test_a_function_of_python_s_that_is_handed_out_is_no_code_at_an_address(desk: Desk) -> None:
    assert recorded(desk, "ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)") == ("exact", "")


def test_a_ring_of_io_uring_is_named_for_what_it_is(desk: Desk) -> None:
    recorded(desk, RING)
    if "True" not in desk.reenact("run", "--", "python", "agent.py").stdout:
        return  # this kernel gives none
    assert "native code: io_uring" in json.dumps(watched(desk)["unwatched"])


def test_typing_into_a_terminal_lowers_the_verdict_and_is_refused(desk: Desk) -> None:
    grade, said = recorded(desk, TYPED)
    assert (grade, "type into a terminal" in said) == ("partial", True), said
    assert "type into a terminal" in json.dumps(watched(desk)["refused"])


@pytest.mark.slow
def test_a_pipe_that_somebody_else_reads_lowers_the_verdict_and_nothing_gets_there(desk: Desk) -> None:
    os.mkfifo(desk.folder / "pipe")
    reader = os.open(desk.folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        grade, said = recorded(desk, PIPED)
        assert (grade, "speak into the pipe" in said) == ("partial", True), said
        assert os.read(reader, 9) == b"x"
        told = watched(desk)
        assert "speak into the pipe" in json.dumps(told["refused"]), told
        for level in ("namespaces", "landlock"):
            environ = {**desk.settings(), "REENACT_ENFORCE": level}
            sealed = json.loads(desk.reenact("replay", "last", "--json", environ=environ).stdout)
            assert (sealed["result"], "speak into the pipe" in json.dumps(sealed["refused"])) == ("unjudged", True)
        os.set_blocking(reader, False)
        assert heard(reader) == b""
    finally:
        os.close(reader)


def heard(reader: int) -> bytes:
    try:
        return os.read(reader, 9)
    except BlockingIOError:
        return b""


def test_a_pipe_of_the_program_s_own_is_none(desk: Desk) -> None:
    assert recorded(desk, OWN_PIPE) == ("exact", "")
    told = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert told["result"] == "same", told


def test_a_program_that_writes_into_a_file_it_was_handed_is_not_given_back(desk: Desk) -> None:
    grade, said = recorded(desk, LENT)
    assert (grade, "a descriptor that it was handed" in said) == ("partial", True), said
    assert recorded(desk, ONLY_LENT) == ("exact", "")
