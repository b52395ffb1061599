"""A program in a sealed world looks for keys wherever it can look, and so does its child: there are none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from desk import Desk
from reenact.find.sources import find
from reenact.stores.directory import DirectoryStore
from reenact.values.effects import Seal

SEEKS = """
import os, subprocess, sys
import reenact

OURS = ("REENACT_KEY", "REENACT_ORIGIN", "REENACT_REDACTION_KEY", "REENACT_SALT", "REENACT_RUN_KEY")
wanted = {name: text[::-1].encode() for name, text in (each.split("=") for each in sys.argv[1].split(","))}

def look(place, data):
    for name, value in wanted.items():
        if value in data or bytes.fromhex(value.decode()) in data:
            print(f"FOUND {name} in {place}", flush=True)

def read(path):
    try:
        with open(path, "rb") as file:
            look(path, file.read(1 << 22))
    except (OSError, ValueError):
        pass

@reenact.tool
def write_to(address):
    return f"written to {address}"

print(write_to("ann@example.org"))
for name, value in os.environ.items():
    look(name, value.encode())
    if "REENACT_REPLAY" in os.environ and name in OURS:
        print(f"FOUND {name}")
for process in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        if name == "environ" or process != str(os.getpid()):
            read(f"/proc/{process}/{name}")
held = [number for number in os.listdir("/proc/self/fd") if int(number) > 2]
for number in held:
    try:
        if "memfd" in os.readlink(f"/proc/self/fd/{number}"):
            print("FOUND a descriptor")
        look(f"descriptor {number}", os.pread(int(number), 1 << 20, 0))
    except OSError:
        pass
for top in sys.argv[2].split(":"):
    for folder, _, names in os.walk(top):
        for name in names:
            if os.path.isfile(f"{folder}/{name}"):
                read(f"{folder}/{name}")
if len(sys.argv) == 3:
    sys.exit(subprocess.run([sys.executable, __file__, *sys.argv[1:], "child"]).returncode)
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("key", ["of the store", "configured"])
def test_a_sealed_program_finds_no_key_and_redacts_as_it_did(desk: Desk, key: str) -> None:
    configured = "c0ffee" * 8
    further = {"REENACT_REDACTION_KEY": configured} if key == "configured" else {}
    environ = {**desk.settings(), **further, "TMPDIR": str(desk.folder / "tmp")}
    (desk.folder / "tmp").mkdir()
    program = desk.write("seeks.py", SEEKS)
    done = desk.reenact("run", "-q", "--", "python", program, "a=ffff", "/nowhere", environ=environ)
    assert done.returncode == 0, done.stderr
    store = DirectoryStore(desk.folder / ".reenact")
    found = find("last", store)
    secrets = {"user": Path(os.environ["XDG_CONFIG_HOME"], "reenact", "key").read_text().strip()}
    if key == "configured":
        secrets["redaction"] = configured.encode().hex()
    else:
        secrets |= {"salt": found.run.salt, "redaction": (store.folder / "redaction.key").read_text().strip()}
    assert all(len(value) >= 32 for value in secrets.values())
    wanted = ",".join(f"{name}={value[::-1]}" for name, value in secrets.items())
    places = f"{desk.folder}:{os.environ['XDG_CONFIG_HOME']}:/run:/dev/shm"
    words = ("replay", "last", "--json", "--", "python", program, wanted, places)
    done = desk.reenact(*words, environ=environ, cold=True)
    said = json.loads(done.stdout)
    if said["world"]["files"] != Seal.COPIED:
        pytest.skip("no sealed world can be made here: tests/seal says why")
    assert "FOUND" not in done.stderr, done.stderr
    assert done.stderr.count("written to") == 2
    assert (said["result"], said["answered"], said["ignored"]) == ("same", {"tool": 2}, []), said
    again = find(said["replay"], store)
    assert again.run.own, "whoever started the replay proved it"
    assert again.run.salt == found.run.salt
    told = [str(node.span.attributes.get("input.value")) for node in again.run.nodes if node.call.name == "write_to"]
    assert told == [
        str(node.span.attributes.get("input.value")) for node in found.run.nodes if node.call.name == "write_to"
    ]
    assert all("REDACTED_" in each for each in told)


FORGES = """
import os, sys
import reenact

@reenact.tool
def look_up(item):
    return item

if "FORGE" in os.environ:
    sys.orig_argv[:] = ["python", "-c", "print('anything')"]
look_up("tea")
"""


def test_a_replay_that_says_it_was_started_otherwise_is_nobodys(desk: Desk) -> None:
    desk.reenact("run", "-q", "--", "python", desk.write("agent.py", FORGES))
    for environ, own in (({}, True), ({"FORGE": "1"}, False)):
        said = json.loads(desk.reenact("replay", "last", "--json", environ={**desk.settings(), **environ}).stdout)
        assert find(said["replay"], DirectoryStore(desk.folder / ".reenact")).run.own is own
