"""A replay whose world the kernel seals: what Python does not see lands in a copy, and the result says what holds."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from desk import Desk
from reenact.values.effects import EFFECTS, Seal, seals

NATIVE = """
import ctypes, os, sys
import reenact

libc = ctypes.CDLL(None, use_errno=True)

@reenact.tool
def look_up(item):
    return f"{item} is there"

print(look_up("tea"))
file = libc.open(b"report.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
libc.write(file, b"a line\\n", 7)
libc.close(file)
print(open("report.txt").read().count("a line"))
address = (1).to_bytes(2, "little") + sys.argv[1].encode() + b"\\0"
libc.connect(libc.socket(1, 1, 0), address, len(address))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[None]]]:
    """A server on a unix socket, and an entry for each connection."""
    path, heard = str(tmp_path / "s"), list[None]()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()
                    heard.append(None)

        threading.Thread(target=serve, daemon=True).start()
        yield path, heard
        listening.shutdown(socket.SHUT_RDWR)


def test_native_code_writes_to_a_copy_and_meets_no_server(desk: Desk, server: tuple[str, list[None]]) -> None:
    path, heard = server
    report = desk.folder / "report.txt"
    report.write_text("a line\n")
    done = desk.reenact("run", "-q", "--", "python", desk.write("agent.py", NATIVE), path)
    assert (done.returncode, done.stdout) == (0, "tea is there\n2\n"), done.stderr
    assert len(heard) == 1
    report.write_text("a line\n")
    said = json.loads(desk.reenact("replay", "last", "--json").stdout)
    if said["world"]["files"] != Seal.COPIED:
        pytest.skip("no sealed world can be made here: tests/seal says why")
    assert said["result"] == "same"
    assert said["world"] == seals(Seal.COPIED, Seal.ENFORCED, Seal.ENFORCED)
    assert report.read_text() == "a line\n", "the copy was written to"
    assert len(heard) == 1, "nobody was met"
    told = desk.reenact("replay", "last").stderr
    assert f"outside world: copied: files; enforced: {', '.join(EFFECTS[1:])}\n" in told


NUMBERED = """
import hashlib, os, threading
import reenact

@reenact.tool
def look_up(item):
    return f"{item} is there"

print(look_up("tea"), hashlib.sha256(str(os.getpid()).encode()).hexdigest(), threading.get_native_id() == os.getpid())
"""


@pytest.mark.always
def test_a_program_has_the_number_of_the_recorded_process(desk: Desk) -> None:
    desk.reenact("run", "-q", "--", "python", desk.write("agent.py", NUMBERED))
    said = json.loads(desk.reenact("replay", "last", "--json").stdout)
    if said["level"] != "namespaces":
        pytest.skip("no world of namespaces can be made here: tests/seal says why")
    assert said["result"] == "same", said


@pytest.mark.sample(2)
@pytest.mark.parametrize("why", ["it is switched off", "the temporary folder is none that can be copied"])
def test_where_there_is_no_sealed_world_no_stronger_word_is_said(desk: Desk, why: str) -> None:
    desk.reenact("run", "-q", "--", "python", desk.write("agent.py", NATIVE), "/nowhere")
    environ = {"REENACT_ENFORCE": "off"} if "off" in why else {"TMPDIR": "/dev/shm"}
    said = json.loads(desk.reenact("replay", "last", "--json", environ={**os.environ, **environ}, cold=True).stdout)
    assert said["result"] == "same"
    assert (said["world"]["files"], said["world"]["unix sockets"]) == (Seal.WATCHED, Seal.WATCHED)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("option", "files", "network"),
    [(("--models", "live", "--writes", "allow"), Seal.OPEN, Seal.OPEN), (("--writes", "allow"), Seal.OPEN, None)],
)
def test_what_the_policy_lets_out_is_said_to_be_open(
    desk: Desk, option: tuple[str, ...], files: Seal, network: Seal | None
) -> None:
    desk.reenact("run", "-q", "--", "python", desk.write("agent.py", NATIVE), "/nowhere")
    said = json.loads(desk.reenact("replay", "last", "--json", *option).stdout)
    assert said["world"]["files"] == files
    assert network is None or said["world"]["network"] == network


def test_a_program_cannot_have_itself_run_outside(desk: Desk) -> None:
    program, temporary = desk.write("agent.py", SEEKS), desk.folder / "tmp"
    temporary.mkdir()
    apart = {**desk.bare(), "TMPDIR": str(temporary)}  # what it spoils is its own: other tests replay meanwhile
    desk.reenact("run", "-q", "--", "python", program, environ=apart, cold=True)
    (desk.folder / "times").unlink()
    done = desk.reenact("replay", "last", environ=apart, cold=True)
    assert done.returncode == 0, done.stderr
    assert not (desk.folder / "times").exists() or "copied: files" not in done.stderr


SEEKS = """
import ctypes, glob, os
import reenact

TEMPORARY = os.environ["TMPDIR"]
libc = ctypes.CDLL(None)

def write(path, text, flags):
    file = libc.open(path.encode(), flags, 0o600)
    libc.write(file, text, len(text))
    libc.close(file)

@reenact.tool
def look_up(item):
    return item

look_up("tea")
write("times", b".", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for answer in [each for name in ("answer.jsonl", "order.json") for each in glob.glob(f"{TEMPORARY}/reenact-*/{name}")]:
    write(answer, b'{"refused": "so that it is run again, outside"}', os.O_WRONLY | os.O_TRUNC)
"""


@pytest.mark.slow
def test_why_a_world_was_not_sealed_is_said(desk: Desk) -> None:
    desk.write("agent.py", "import reenact\n@reenact.tool\ndef note():\n    return 1\nnote()\n")
    (desk.folder / "more").mkdir()
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    settings = {**desk.settings(), "REENACT_ENFORCE": "landlock", "REENACT_COPY_FILES": "1"}
    told = json.loads(desk.reenact("replay", "last", "--json", environ=settings).stdout)
    assert told["level"] == "watched"
    assert told["levels_refused"]["namespaces"] == "REENACT_ENFORCE=landlock"
    printed = desk.reenact("replay", "last", environ=settings).stderr
    assert f"not sealed by namespaces (REENACT_ENFORCE=landlock); nor by landlock ({desk.folder}: it holds" in printed
    settings["REENACT_ENFORCE"] = "off"
    assert (
        "not sealed by namespaces or landlock (REENACT_ENFORCE=off)"
        in desk.reenact("replay", "last", environ=settings).stderr
    )


@pytest.mark.parametrize("top", ["/run", "/dev/shm"])
def test_a_working_folder_in_a_place_that_is_made_anew_is_a_copy(top: str) -> None:
    if not os.access(top, os.W_OK):
        pytest.skip(f"{top} cannot be written to")
    with tempfile.TemporaryDirectory(dir=top) as folder:
        there = Desk(Path(folder))
        code = "import os, reenact\n@reenact.tool\ndef note():\n    return 1\nnote()\n"
        there.write("agent.py", f"{code}open('made', 'w').write('x')\nprint(os.getcwd(), sorted(os.listdir('.')))\n")
        recorded = there.reenact("run", "--", "python", "agent.py")
        assert recorded.returncode == 0, recorded.stderr
        (Path(folder) / "made").unlink()
        done = there.reenact("replay", "last", "--json", environ={**there.settings(), "REENACT_ENFORCE": "namespaces"})
        told = json.loads(done.stdout)
        if told["level"] != "namespaces":
            pytest.skip(f"no world can be sealed here: {told['levels_refused']}")
        assert (told["result"], told["world"]["files"], done.stderr) == ("same", "copied", recorded.stdout)
        assert not (Path(folder) / "made").exists()
