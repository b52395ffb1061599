"""A program that talks to servers of its own does nothing outside: it is recorded as exact, and talks to them again."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from pathlib import Path

import pytest

from desk import Desk

PROGRAM = Path(__file__).with_name("own_servers.py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells whose a socket is")


@pytest.mark.sample(3)
@pytest.mark.parametrize("level", ["namespaces", "landlock", "watched"])
def test_a_program_s_own_servers_are_reached(desk: Desk, level: str) -> None:
    shutil.copyfile(PROGRAM, desk.folder / "agent.py")
    words = ["network"] if level == "namespaces" else []
    recorded = desk.reenact("run", "--", "python", "agent.py", *words)
    assert recorded.returncode == 0, recorded.stderr
    lines = [line for line in recorded.stderr.splitlines() if "agent.py" in line]
    assert lines[0].endswith("replayable: exact"), recorded.stderr
    run = lines[0].partition(" as ")[2].split()[0]
    settings = {**desk.settings(), "REENACT_ENFORCE": level}
    done = desk.reenact("replay", run, "--json", environ=settings, cold=level == "landlock")  # `tempfile` is told where
    told = json.loads(done.stdout)
    if level == "watched":  # the child that it started would not stand there
        assert "the program connected to it" in told["refused"][0]["hint"]
        return
    if told["world"]["network"] != "enforced" or told["world"]["unix sockets"] != "enforced":
        pytest.skip("no world can be sealed so here")
    assert (done.returncode, told["result"], done.stderr) == (0, "same", recorded.stdout), done.stderr
    assert told["ran_again"] == {"child": 2 if words else 1}


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_server_of_somebody_else_is_none_of_the_program_s(desk: Desk, kind: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as server:
        server.bind(str(tmp_path / "s.sock") if kind == "unix" else ("127.0.0.1", 0))
        server.listen()
        made = f"socket.socket(socket.{'AF_UNIX' if kind == 'unix' else 'AF_INET'})"
        lines = f"import socket, reenact\n@reenact.tool\ndef note():\n    return 1\nnote()\ntalk = {made}\n"
        desk.write("agent.py", f"{lines}talk.connect({server.getsockname()!r})\n")
        recorded = desk.reenact("run", "--", "python", "agent.py")
        assert recorded.returncode == 0, recorded.stderr
        assert "side effect: connect to" in recorded.stderr
        server.accept()[0].close()
        server.setblocking(False)
        for level in ("namespaces", "landlock", "watched", "off"):
            settings = {**desk.settings(), "REENACT_ENFORCE": level}
            done = desk.reenact("replay", "last", "--json", environ=settings, cold=level == "landlock")  # as above
            assert json.loads(done.stdout)["result"] == "unjudged", (level, done.stderr)
            with pytest.raises(BlockingIOError):
                server.accept()
