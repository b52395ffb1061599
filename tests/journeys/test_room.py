"""What a replay writes to its copy has a bound, and where the program is ended at it the result says so."""

from __future__ import annotations

import json

import pytest

from desk import Desk

AGENT = """
import os, time, reenact

@reenact.tool
def note():
    return 1

note()
for number in range({count}):
    with open(f"part{{number}}", "wb") as file:
        file.write(bytes(1 << 20))
    os.remove(f"part{{number - 1}}") if number and {removes} else None
if not {removes}:
    time.sleep(20 if "REENACT_REPLAY" in os.environ else 0)
print("done")
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_a_program_that_writes_too_much_is_ended_and_the_option_is_named(desk: Desk, level: str) -> None:
    desk.write("agent.py", AGENT.format(count=40, removes=False))
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    for part in desk.folder.glob("part*"):
        part.unlink()
    settings = {**desk.settings(), "REENACT_ENFORCE": level, "REENACT_COPY_ROOM_MB": "20"}
    done = desk.reenact("replay", "last", "--json", environ=settings)
    told = json.loads(done.stdout)
    if told["level"] != level:
        pytest.skip(f"no world can be sealed so here: {told['levels_refused']}")
    assert (done.returncode, told["result"], told["exit_code"]["replay"]) == (1, "diverged", -9)
    assert told["refused"][0]["what"] == "write more than 20 MB to its copy"
    assert "REENACT_COPY_ROOM_MB" in told["refused"][0]["hint"]
    assert not [*desk.folder.glob("part*")]


def test_what_is_removed_again_takes_no_room(desk: Desk) -> None:
    desk.write("agent.py", AGENT.format(count=40, removes=True))
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    done = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_COPY_ROOM_MB": "20"})
    told = json.loads(done.stdout)
    assert (told["result"], told["refused"]) == ("same", [])


def test_a_bound_that_is_no_number_is_told(desk: Desk) -> None:
    desk.write("agent.py", AGENT.format(count=0, removes=True))
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_COPY_ROOM_MB": "much"})
    assert done.returncode == 2
    assert "REENACT_COPY_ROOM_MB=much is no number" in done.stderr
