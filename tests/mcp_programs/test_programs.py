"""Programs on the MCP SDK and on fastmcp, recorded, then replayed without their servers: none is started."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_programs.model import CITIES, standing
from mcp_programs.standing import PROGRAMS, Place

if find_spec("fastmcp") is None:
    pytest.skip("fastmcp lives in an environment of its own: make test-mcp", allow_module_level=True)

TIMES = 3
FRAMEWORKS = {"openai_agents": "agents", "langchain": "langchain_mcp_adapters", "pydantic_ai": "pydantic_ai"}
"""Frameworks, and what is installed with them."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def replayed(place: Place, stdout: str, **environ: str) -> None:
    """Replay the last run without its server, and look from outside whether anything happened."""
    place.without_server()
    for number in range(TIMES):
        trace = place.folder / f"strace.{number}" if number == 0 and shutil.which("strace") else None
        again = place.reenact("replay", "last", strace=trace, **environ)
        assert (again.returncode, again.stdout) == (0, stdout), again.stderr
        assert "same: " in again.stderr
        assert place.done() == []
        if trace is not None and "not permitted" not in again.stderr:
            started = [line for line in trace.read_text().splitlines() if "server.py" in line or "served.py" in line]
            assert started == []


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("program", ["client.py", "asked.py"])
def test_a_program_replays_without_its_server(place: Place, program: str, over: str) -> None:
    words = ["server.py"] if program == "client.py" else ["served.py", "serve"]
    if over == "http":
        with place.serving(*words) as address:
            done = place.reenact("run", "--", "python", program, address)
    else:
        done = place.reenact("run", "--", "python", program, CRASH="1")
    assert done.returncode == 0, done.stderr
    assert "replayable: exact" in done.stderr
    assert place.done()[0] == "start"
    replayed(place, done.stdout, **({} if over == "http" else {"CRASH": "1"}))


@pytest.mark.parametrize(("framework", "needs"), FRAMEWORKS.items())
def test_a_framework_over_mcp_replays_without_its_server(place: Place, framework: str, needs: str) -> None:
    if find_spec(needs) is None:
        pytest.skip(f"{framework} stands on the SDK's version 1")
    place.environ["FRAMEWORK"] = framework
    with standing() as url:
        place.environ["MODEL_URL"] = url
        done = place.reenact("run", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    assert all(city in done.stdout for city in CITIES)
    assert "replayable: exact" in done.stderr
    assert sum(each.startswith("get_weather") for each in place.done()) == 2
    calls = json.loads(place.reenact("show", "last", "--json").stdout)["calls"]
    asked = [each["request"] for each in calls if each["kind"] == "tool"]
    assert len(asked) == 2, asked
    replayed(place, done.stdout)


def test_a_request_to_a_service_replays_over_the_session_of_its_process(place: Place) -> None:
    if find_spec("fastapi") is None:
        pytest.skip("fastapi is not installed")
    shutil.copy(PROGRAMS / "service.py", place.folder / "service.py")
    done = place.reenact("run", "--", "python", "service.py")
    assert done.returncode == 0, done.stderr
    runs = json.loads(place.reenact("ls", "--json").stdout)["runs"]
    units = [each["id"] for each in runs if each["name"].startswith("GET")]
    assert len(units) == 3, runs
    place.without_server()
    for unit in units:
        again = place.reenact("replay", unit)
        assert (again.returncode, "same: " in again.stderr) == (0, True), again.stderr
    assert place.done() == []


def test_another_argument_and_another_tool_diverge_at_their_call(place: Place) -> None:
    assert place.reenact("run", "-q", "--", "python", "client.py").returncode == 0
    place.without_server()
    for changed, field, a, b in (("CITY", "arguments.city", "Oslo", "Rome"), ("TOOL", "call", None, None)):
        value = "Rome" if changed == "CITY" else "slow"
        environ = {changed: value}
        other = place.reenact("replay", "last", "--json", "--", "python", "client.py", **environ)
        first = json.loads(other.stdout)["divergences"][0]
        assert other.returncode == 1
        assert "get_weather" in first["call"] or "slow" in first["call"], first
        if a is not None:
            assert (first["field"], first["a"], first["b"]) == (field, a, b)
    assert place.done() == []


def test_another_answer_to_the_server_diverges(place: Place) -> None:
    done = place.reenact("run", "--", "python", "asked.py")
    if "sampling think of" not in done.stdout:
        pytest.skip("servers of this version of fastmcp do not ask back")
    place.without_server()
    other = place.reenact("replay", "last", "--", "python", "asked.py", ANSWER="shallow")
    assert other.returncode == 1
    assert "sampling/createMessage answer" in other.stderr
    assert "shallow" in other.stderr
