"""Agents that work with personal data: recorded redacted, replayed here, elsewhere, again, forked and promoted."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

pytestmark = pytest.mark.sample(4)

DESK = """
import base64, json, os, re
import reenact

CUSTOMER = {
    "id": 7, "email": "ann@vip-club.com", "phone": "+14155550143", "card": "4539 1488 0343 6467", "tier": "gold",
    "session": "%s",
}

@reenact.tool
def lookup(customer: int) -> dict:
    return CUSTOMER if os.environ.get("LIVE") else {}

@reenact.tool
def write_to(address: str, text: str) -> str:
    return f"sent to {address}"

@reenact.tool
def give(kind: str) -> str:
    return "given"

with reenact.run("desk", user="u-1"):
    ann = lookup(7)
    way = os.environ.get("WAY", "whole")
    if way == "whole":
        print(write_to(ann["email"], f"Hello {ann['email']}, we call you at {ann['phone']}").startswith("sent"))
    elif way == "domain":
        give("a gift" if ann["email"].endswith("@vip-club.com") else "nothing")
    elif way == "domain named":
        give(ann["email"].split("@")[1])
    elif way == "last four":
        give(f"card ending in {ann['card'][-4:]}")
    elif way == "number":
        give(f"extension {int(ann['phone'][-4:])}")
    elif way == "length":
        give(f"{len(ann['card'])} characters")
    elif way == "token":
        body = ann["session"].split(".")[1]
        give(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) %% 4)))["role"])
    elif way == "later":
        give("first")
        give("second")
        give("a gift" if ann["email"].endswith("@vip-club.com") else "nothing")
    elif way == "pattern":
        give("valid" if re.fullmatch(r"[^@ ]+@[^@ ]+\\\\.[a-z]+", ann["email"]) else "invalid")
"""
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI3Iiwicm9sZSI6ImFkbWluIn0.c2lnbmF0dXJlLW9mLXRoZS1zZXNzaW9uLXRva2Vu"
)
VALUES = ("ann@vip-club.com", "+14155550143", "4539 1488 0343 6467", JWT)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path / "here")
    made.folder.mkdir()
    made.write("desk.py", DESK % JWT)
    return made


def recorded(desk: Desk, way: str, program: str = "desk.py", *words: str) -> None:
    done = desk.reenact("run", "-q", "--", "python", program, *words, environ={**desk.bare(), "WAY": way, "LIVE": "1"})
    assert done.returncode == 0, done.stderr


def replayed(desk: Desk, way: str = "", source: str = "last", *words: str, **environ: str) -> dict[str, Any]:
    done = desk.reenact("replay", source, "--json", *words, environ={**desk.bare(), "WAY": way, **environ})
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (folder / ".reenact").rglob("*") if path.is_file())


def test_what_is_taken_as_it_is_goes_the_same_way_and_is_said(desk: Desk) -> None:
    recorded(desk, "whole")
    kept = stored(desk.folder)
    assert [value for value in VALUES if value.encode() in kept] == []
    told = replayed(desk, "whole")
    assert (told["result"], told["misses"], told["ignored"]) == ("same", [], [])
    (given,) = [each for each in told["redaction"]["given"] if each["call"].startswith("tool lookup")]
    assert given["field"] == "result"
    assert given["classes"]["e_mail"] == 1
    assert sum(given["classes"].values()) == 4
    doctor = desk.reenact("doctor", "last", environ=desk.bare()).stdout
    assert "exact, up to redaction" in doctor
    assert "tool lookup #" in doctor
    assert "1 e_mail" in doctor
    said = json.loads(desk.reenact("doctor", "last", "--json", environ=desk.bare()).stdout)
    assert given in said["verdict"]["given"]


def test_an_address_stays_one_for_those_who_check_it(desk: Desk) -> None:
    recorded(desk, "pattern")
    assert replayed(desk, "pattern")["result"] == "same"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("way", "evidence"),
    [
        ("domain", "right before it tool lookup #"),
        pytest.param("domain named", "arguments.kind was made of 1 redacted value (1 e_mail)", marks=pytest.mark.slow),
        ("last four", "arguments.kind was made of 1 redacted value"),
        pytest.param("number", "", marks=pytest.mark.slow),
        pytest.param("length", "arguments.kind was made of", marks=pytest.mark.slow),
        ("token", ""),
    ],
)
def test_a_branch_on_a_redacted_value_names_redaction(desk: Desk, way: str, evidence: str) -> None:
    recorded(desk, way)
    told = replayed(desk, way)
    assert told["result"] == "diverged"
    assert told["redaction"]["cause"] == "likely", told["redaction"]
    assert evidence in told["redaction"]["why"]
    assert 'tool = "lookup"\ndo = "keep"' in told["redaction"]["keep"]
    (desk.folder / "keep.toml").write_text(told["redaction"]["keep"])
    again = {**desk.bare(), "WAY": way, "LIVE": "1", "REENACT_REDACTION_POLICY": "keep.toml"}
    assert desk.reenact("run", "-q", "--", "python", "desk.py", environ=again).returncode == 0
    assert replayed(desk, way)["result"] == "same"
    recorded(desk, way)
    text = desk.reenact("replay", "last", environ={**desk.bare(), "WAY": way}).stderr
    assert "redaction is likely why: " in text
    assert "in the policy" in text


def test_a_branch_that_comes_later_is_a_possible_one(desk: Desk) -> None:
    recorded(desk, "later")
    told = replayed(desk, "later")
    assert (told["result"], told["redaction"]["cause"]) == ("diverged", "possible")
    assert "e_mail" in told["redaction"]["why"]


HELD = """
import reenact, sys

@reenact.tool
def lookup(address: str) -> dict:
    return {"id": 7, "address": address}

@reenact.tool
def write_to(address: str, number: int) -> str:
    return "sent"

with reenact.run("own", user="u-1"):
    for address in sys.argv[1:] or ["ann@vip-club.com"]:
        found = lookup(address)
        print(write_to(found["address"], found["id"]))
"""


@pytest.fixture
def elsewhere(desk: Desk) -> Desk:
    """A colleague's machine: the program and the exported trace, no store and no key."""
    other = Desk(desk.folder.parent / "there")
    other.folder.mkdir()
    return other


def carried(desk: Desk, elsewhere: Desk, program: str = "held.py") -> None:
    done = desk.reenact("export", "last", "-o", str(elsewhere.folder / "run.jsonl"), environ=desk.bare())
    assert done.returncode == 0, done.stderr
    shutil.copy(desk.folder / program, elsewhere.folder / program)


@pytest.mark.slow
def test_a_trace_replays_without_its_key_and_says_so(desk: Desk, elsewhere: Desk) -> None:
    desk.write("held.py", HELD)
    recorded(desk, "", "held.py")
    assert replayed(desk)["ignored"] == []
    carried(desk, elsewhere)
    told = replayed(elsewhere, "", "run.jsonl", "--", sys.executable, "held.py")
    assert (told["result"], told["misses"]) == ("same", []), told
    fields = [(each["field"], each["call"].split(" #")[0]) for each in told["ignored"]]
    assert fields == [("redaction key", "tool lookup")]  # the other was given the recording's own token
    assert "matched by renaming, without the recording's key: 1 e_mail" in told["ignored"][0]["reason"]
    text = elsewhere.reenact("replay", "run.jsonl", "--", sys.executable, "held.py", environ=elsewhere.bare()).stderr
    assert "1 call matched by renaming, without the recording's key " in text


def test_what_only_the_key_can_tell_is_a_miss_that_names_it(desk: Desk, elsewhere: Desk) -> None:
    desk.write("held.py", HELD.replace('["ann@vip-club.com"]', '["ann@vip-club.com", "bob@vip-club.com"]'))
    recorded(desk, "", "held.py")
    assert replayed(desk)["result"] == "same"
    carried(desk, elsewhere)
    told = replayed(elsewhere, "", "run.jsonl", "--", sys.executable, "held.py")
    assert told["result"] == "diverged"
    assert "2 recorded calls fit by renaming; only the recording's key" in told["misses"][0]["hint"]
    key = bytes.fromhex((desk.folder / ".reenact" / "redaction.key").read_text().strip())
    assert key not in (elsewhere.folder / "run.jsonl").read_bytes()


def test_the_command_line_tells_which_is_which(desk: Desk, elsewhere: Desk) -> None:
    desk.write("held.py", HELD)
    words = ("ann@vip-club.com", "bob@vip-club.com")
    recorded(desk, "", "held.py", *words)
    carried(desk, elsewhere)
    told = replayed(elsewhere, "", "run.jsonl", "--", sys.executable, "held.py", *words)
    assert (told["result"], told["misses"]) == ("same", []), told


def test_a_configured_key_is_the_same_everywhere(desk: Desk, elsewhere: Desk) -> None:
    desk.write("held.py", HELD.replace('["ann@vip-club.com"]', '["ann@vip-club.com", "bob@vip-club.com"]'))
    key = {"REENACT_REDACTION_KEY": "the key of the project, 32 bytes or more"}
    environ = {**desk.bare(), **key}
    assert desk.reenact("run", "-q", "--", "python", "held.py", environ=environ).returncode == 0
    carried(desk, elsewhere)
    told = replayed(elsewhere, "", "run.jsonl", "--", sys.executable, "held.py", **key)
    assert (told["result"], told["ignored"]) == ("same", []), told


@pytest.mark.slow
def test_a_replay_of_a_replay_is_a_replay(desk: Desk) -> None:
    recorded(desk, "whole")
    first = replayed(desk, "whole")
    second = replayed(desk, "whole", first["replay"])
    third = replayed(desk, "whole", second["replay"])
    assert [told["result"] for told in (first, second, third)] == ["same"] * 3
    assert second["misses"] == third["misses"] == []


def test_a_redacted_run_is_forked(desk: Desk) -> None:
    recorded(desk, "whole")
    words = ("fork", "last", "--at", "#2", "--set", 'result.tier="silver"', "--json")
    done = desk.reenact(*words, environ={**desk.bare(), "WAY": "whole"})
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    assert (told["result"], told["replay"]["misses"]) == ("forked", []), told


@pytest.mark.slow
def test_a_promoted_test_runs_on_a_machine_without_the_key(desk: Desk, elsewhere: Desk) -> None:
    desk.write("held.py", HELD)
    (desk.folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    recorded(desk, "", "held.py")
    done = desk.reenact("promote", "last", "--name", "ann", environ=desk.bare())
    assert done.returncode == 0, done.stderr + done.stdout
    shutil.rmtree(desk.folder / ".reenact")
    shutil.copytree(desk.folder, elsewhere.folder, dirs_exist_ok=True)
    assert not list(elsewhere.folder.rglob("redaction.key"))
    environ = {**elsewhere.bare(), "PATH": str(Path(sys.executable).parent)}
    ran = elsewhere.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], environ)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    assert "renam" in ran.stdout, ran.stdout
