"""From the incident to a test that stays: recorded, promoted, fails on the code that had the bug, passes on the fix."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn


@dataclass(frozen=True)
class Incident:
    """One example: how it is run, how it is mended, what must never happen again."""

    example: str
    options: tuple[str, ...]
    guard: str
    never: str

    @property
    def program(self) -> str:
        return f"{self.example}.py"


INCIDENTS = (
    Incident(
        "cleanup_agent",
        ("--data", "files"),
        "CLEANUP_GUARD",
        'never called tool delete_accounts where target = "production"',
    ),
    Incident("order_desk", (), "ORDER_GUARD", "never called tool lookup_order where user_id = null"),
    Incident("price_agent", (), "PRICE_GUARD", 'answer does not contain "$"'),
    Incident(
        "trader_agent",
        ("--orders", "files/orders.jsonl"),
        "TRADER_GUARD",
        "never called tool place_order where quantity > 100",
    ),
)


@pytest.fixture
def unshare() -> list[str]:
    """Give the words before a command that close the network, or skip where the system does not let us."""
    tool = shutil.which("unshare")
    if tool is None or subprocess.run([tool, "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("unshare -rn is not to be had, so nothing can close the network from outside")
    return [tool, "-rn"]


def project(desk: Desk, *incidents: Incident) -> dict[str, str]:
    """Make a project that holds the agents, record the incidents in it, and give an environment without any key."""
    (desk.folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (desk.folder / "files").mkdir()
    with StandIn(slip=1.0) as provider:
        for incident in incidents:
            shutil.copy(EXAMPLES / f"{incident.example}.py", desk.folder / incident.program)
            words = ("run", "-q", "--", "python", incident.program, *incident.options)
            done = desk.reenact(*words, environ=desk.bare() | provider.environment)
            assert done.returncode == 0, done.stderr
    return desk.bare() | {"PATH": str(Path(sys.executable).parent)}


def ids(desk: Desk, environ: dict[str, str]) -> list[str]:
    """Give the ids of the recorded runs, oldest first."""
    runs = json.loads(desk.reenact("ls", "--json", environ=environ).stdout)["runs"]
    return [run["id"] for run in reversed(runs)]


def pytest_in(desk: Desk, environ: dict[str, str], *words: str, before: list[str] | None = None) -> str:
    done = desk.run([*(before or []), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words], environ)
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def fix(desk: Desk, incident: Incident) -> None:
    """Mend the agent as a person does: in its file."""
    agent = desk.folder / incident.program
    agent.write_text(agent.read_text().replace(f'os.environ.get("{incident.guard}")', "True"))


@pytest.mark.always
@pytest.mark.parametrize("incidents", [INCIDENTS[:1], pytest.param(INCIDENTS, marks=pytest.mark.slow)], ids=len)
def test_promoted_incidents_fail_until_they_are_mended(
    desk: Desk, unshare: list[str], incidents: Sequence[Incident]
) -> None:
    environ = project(desk, *incidents)
    for run, incident in zip(ids(desk, environ), incidents, strict=True):
        words = ("promote", run, "--assert", incident.never, "--name", incident.example)
        done = desk.reenact(*words, environ=environ)
        assert done.returncode == 0, done.stderr
        assert "on the code as it is now it fails" in done.stdout
    shutil.rmtree(desk.folder / ".reenact")
    before = pytest_in(desk, environ, before=unshare)
    assert before.startswith("exit 1"), before
    assert f"{len(incidents)} failed" in before
    assert before.count("reproduced: the code still does what was recorded") == len(incidents)
    for incident in incidents:
        assert f"  fails     {incident.never}" in before
        fix(desk, incident)
    after = pytest_in(desk, environ)
    assert f"{len(incidents)} passed" in after, after


@pytest.mark.slow
def test_what_is_written_names_no_folder_of_this_machine(desk: Desk) -> None:
    environ = project(desk, INCIDENTS[0])
    done = desk.reenact("promote", "last", "--json", "--name", "clean up", environ=environ)
    told = json.loads(done.stdout)
    test, fixture = Path(told["test"]), Path(told["fixture"])
    assert (test.relative_to(desk.folder), told["name"]) == (Path("tests/test_clean_up.py"), "test_clean_up")
    assert (told["now"], told["why"], told["warnings"]) == ("same", None, [])
    written = test.read_text() + fixture.read_text()
    for folder in (str(desk.folder), sys.prefix, str(Path.home())):
        assert folder not in written
    assert len(fixture.read_text().splitlines()) == 8  # a line a call, so that a diff can be read
    assert "# outcome.holds(" in test.read_text()
    assert pytest_in(desk, environ).startswith("exit 0")
    unknown = ("--name", "typo", "--assert", "never called isue_refund")
    (warning,) = json.loads(desk.reenact("promote", "last", "--json", *unknown, environ=environ).stdout)["warnings"]
    assert warning.startswith("`never called isue_refund` is undecided on the recording: ")
    again = desk.reenact("promote", "last", "--name", "clean up", environ=environ)
    assert (again.returncode, "is there already" in again.stderr) == (3, True)
    shown = desk.reenact("replay", "--trust", str(fixture), environ=environ)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.always
def test_a_fixture_is_replayed_by_hand_in_every_world(desk: Desk) -> None:
    """It says `.` for the folder that it is replayed in, and a world may begin in another one."""
    desk.write("agent.py", "import reenact\n@reenact.tool\ndef add(a, b):\n    return a + b\nprint(add(1, 2))\n")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    fixture = json.loads(desk.reenact("promote", "last", "--json").stdout)["fixture"]
    for level in ("", "landlock", "off"):
        environ = {**desk.settings(), "REENACT_ENFORCE": level}
        done = desk.reenact("replay", "--trust", str(fixture), environ=environ, cold=True)
        assert (done.returncode, done.stdout) == (0, "3\n"), (level, done.stderr)
        assert "same: 1 tool calls answered" in done.stderr


@pytest.mark.slow
def test_a_promoted_project_can_be_moved(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    environ = project(desk, INCIDENTS[0])
    assert desk.reenact("promote", "last", "-o", "checks", environ=environ).returncode == 0
    elsewhere = Desk(tmp_path_factory.mktemp("elsewhere") / "shop")
    shutil.copytree(desk.folder, elsewhere.folder, ignore=shutil.ignore_patterns(".reenact", "empty-home"))
    shutil.rmtree(desk.folder)
    assert pytest_in(elsewhere, elsewhere.bare(), "checks").startswith("exit 0")


@pytest.mark.slow
def test_a_secret_that_redaction_missed_is_caught_on_the_way_out(desk: Desk) -> None:
    environ = project(desk, INCIDENTS[0])
    known = "Quarterly-clean-up"  # what the run holds, named a secret only afterwards
    agent = desk.folder / INCIDENTS[0].program
    agent.write_text(agent.read_text().replace("Quarterly clean-up: delete accounts", f"{known}123456 accounts"))
    with StandIn(slip=1.0) as provider:
        desk.reenact("run", "-q", "--", "python", INCIDENTS[0].program, environ=desk.bare() | provider.environment)
    environ["DESK_API_KEY"] = f"{known}123456"
    done = desk.reenact("promote", "last", "--json", "--name", "x", environ=environ)
    told = json.loads(done.stdout)
    assert told["redacted"]["known_secret"] > 0
    assert known not in Path(told["fixture"]).read_text()
    assert pytest_in(desk, environ).startswith("exit 0")


SERVED = """
import json, os, threading, time, urllib.request
import uvicorn
from support_service import app

def ask():
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    body = json.dumps({"question": "Where is my order?"}).encode()
    headers = {"content-type": "application/json", "x-user-id": "u-17"}
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/ask", body, headers)).read()
    server.should_exit = True

server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
threading.Thread(target=ask).start()
server.run()
"""


@pytest.mark.slow
def test_what_becomes_of_writes_and_programs_is_said_by_the_marker(desk: Desk) -> None:
    desk.write("pyproject.toml", "")
    code = "import subprocess, reenact\n@reenact.tool\ndef note():\n    return 1\nnote()\n"
    desk.write("agent.py", f"{code}print(subprocess.check_output(['cat', 'word'], text=True))\n")
    desk.write("word", "first")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    desk.write("word", "second")
    words = ["promote", "last", "--name", "plain", "--json", "--", "python", "agent.py"]
    assert json.loads(desk.reenact(*words).stdout)["now"] == "same"
    words[3:4] = ["again", "--children", "run", "--writes", "refuse"]
    done = desk.reenact(*words)
    told = json.loads(done.stdout)
    assert 'again.jsonl", writes="refuse", children="run")' in Path(told["test"]).read_text()
    if "not sealed" not in (told["why"] or ""):
        assert told["now"] == "diverged"
        assert "second" in told["why"]
    assert desk.reenact("promote", "last", "--name", "no", "--children", "some").returncode == 2


@pytest.mark.slow
def test_a_request_of_a_service_is_promoted(desk: Desk, unshare: list[str]) -> None:
    (desk.folder / "pyproject.toml").write_text("")
    shutil.copy(EXAMPLES / "support_service.py", desk.folder)
    desk.write("serve.py", SERVED)
    with StandIn(slip=1.0) as provider:
        settings = desk.bare() | provider.environment | {"REENACT_USER_HEADER": "x-user-id"}
        done = desk.reenact("run", "-q", "--", "python", "serve.py", environ=settings)
    assert done.returncode == 0, done.stderr
    environ = desk.bare() | {"PATH": str(Path(sys.executable).parent)}
    runs = json.loads(desk.reenact("ls", "--user", "u-17", "--json", environ=environ).stdout)["runs"]
    words = ("--assert", INCIDENTS[1].never, "--name", "served", "--app", "support_service:app", "--json")
    told = json.loads(desk.reenact("promote", runs[0]["id"], *words, environ=environ).stdout)
    assert (told["now"], told["warnings"]) == ("reproduced", [])
    assert str(desk.folder) not in Path(told["fixture"]).read_text()
    assert "1 failed" in pytest_in(desk, environ, before=unshare)
    mended = pytest_in(desk, environ | {"ORDER_GUARD": "1"}, before=unshare)
    assert "1 passed" in mended, mended


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.example)
def test_a_promoted_test_passes_many_times_and_in_four_workers(
    desk: Desk, unshare: list[str], incident: Incident
) -> None:
    times = 100 if incident is INCIDENTS[0] else 25
    environ = project(desk, incident)
    assert desk.reenact("promote", "last", "--assert", incident.never, "--name", "it", environ=environ).returncode == 0
    fix(desk, incident)
    test = desk.folder / "tests" / "test_it.py"
    source = test.read_text()
    test.write_text(
        source.replace("def test_it(", f"@pytest.mark.parametrize('time', range({times}))\ndef test_it(time, ")
    )
    for words in ((), ("-n", "4")):
        said = subprocess.run(
            [*unshare, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=desk.folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        assert f"{times} passed" in said, said[-3000:]
