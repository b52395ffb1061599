"""A function that reaches out past every boundary stands still in a replay: the user says what it gave."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from desk import Desk

RATES = """
import socket

def ask(word):
    with socket.create_connection(("127.0.0.1", PORT), timeout=5) as line:  # a protocol of its own: no boundary
        line.sendall(word.encode() + b"\\n")
        return line.makefile().readline().strip()

class Desk:
    @staticmethod
    def rate(currency):
        return ask(currency)

async def region():
    return ask("region")
"""
PROGRAM = """
import asyncio
import reenact
import rates

@reenact.tool
def stock(item):
    return 7

def shelf():
    return rates.ask("shelf")

def main():
    print("stock", stock("tea"), "on", shelf())
    print("rate", rates.Desk.rate("eur"), "in", asyncio.run(rates.region()))

if __name__ == "__main__":
    main()
"""
SERVICE = """
from contextlib import asynccontextmanager
import rates
import reenact
from fastapi import FastAPI

@reenact.tool
def stock(item):
    return 7

@asynccontextmanager
async def lifespan(app):
    app.state.shelf = rates.ask("shelf")
    yield

app = FastAPI(lifespan=lifespan)

@app.get("/stock")
def answer():
    return {"stock": stock("tea")}
"""
STUBS = ("rates:Desk.rate=@fakes.py:rate", 'rates:region="eu"')


class Echo:
    """A server that says what it hears, and counts who came."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            with line, line.makefile("rw") as text:
                self.asked.append(text.readline().strip())
                text.write(f"{self.asked[-1]}!\n")
                text.flush()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    standing = Echo()
    yield standing
    standing.close()


@pytest.fixture
def recorded(desk: Desk, echo: Echo) -> Desk:
    """Record the program; what it asked went past every boundary."""
    desk.write("rates.py", RATES.replace("PORT", str(echo.port)))
    desk.write("fakes.py", "def rate(currency):\n    return {'eur': 'eur!'}[currency]\n")
    (desk.folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    live = desk.reenact("run", "--", "python", desk.write("agent.py", PROGRAM))
    assert live.stdout == "stock 7 on shelf!\nrate eur! in region!\n", live.stderr
    assert "replayable: partial" in live.stderr
    assert echo.asked == ["shelf", "eur", "region"]
    echo.asked.clear()
    return desk


def words(*stubs: str) -> list[str]:
    return [word for stub in stubs for word in ("--stub", stub)]


@pytest.mark.always
def test_what_a_function_gave_past_every_boundary_is_what_the_user_says(recorded: Desk, echo: Echo) -> None:
    refused = recorded.reenact("replay", "last")
    assert refused.returncode == 125
    assert "or say what it gave with --stub rates:ask=VALUE" in refused.stderr
    assert "or replay this recording with --stub MODULE:FUNCTION=VALUE" in recorded.reenact("doctor", "last").stdout
    every = words('agent:shelf="shelf!"', STUBS[0], 'rates:region="region!"')
    done = recorded.reenact("replay", "last", *every)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stock 7 on shelf!\nrate eur! in region!\n"
    assert "stubbed: agent:shelf was not the agent's own; it was called 1 time\n" in done.stderr
    told = json.loads(recorded.reenact("replay", "last", "--json", *words('rates:ask="shelf!"')).stdout)
    assert (told["result"], told["stubs"]) == ("diverged", {"rates:ask": 3})
    assert "line 2" in json.dumps(told["divergences"])
    assert echo.asked == []


@pytest.mark.always
@pytest.mark.parametrize(
    ("stub", "says"),
    [
        ("__main__:shelve=1", "the program's script defines no shelve"),
        ("rates:asks=1", "module rates has no asks"),
        ("rates:Desk.rated=1", "AttributeError: rated"),
        ("rates:ask=@fakes.py:ask", "has no attribute 'ask'"),
    ],
)
def test_a_stub_that_fits_nowhere_leaves_a_replay_unjudged(recorded: Desk, stub: str, says: str) -> None:
    done = recorded.reenact("replay", "last", *words(stub))
    assert done.returncode == 125
    assert f"unjudged: --stub {stub.partition('=')[0]} cannot stand in its place" in done.stderr
    assert says in done.stderr


def test_a_stub_of_a_module_that_nobody_imports_is_told(recorded: Desk) -> None:
    done = recorded.reenact("replay", "last", *words("rate:ask=1"))
    assert done.returncode == 125
    assert "not stubbed: rate:ask was never defined" in done.stderr


@pytest.mark.parametrize(
    ("stub", "says"),
    [
        ("rates:ask=eu", """a text is spelled '"eu"'"""),
        ("rates.ask=1", "names no function of a module"),
        ("rates:ask", "names no function of a module"),
        ("rates:ask=@none.py:ask", "there is no file"),
        ("rates:ask=@fakes.py", "names nothing in a file"),
    ],
)
def test_a_stub_that_cannot_be_read_is_an_error_of_its_own(desk: Desk, stub: str, says: str) -> None:
    done = desk.reenact("replay", "last", *words(stub))
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.always
def test_a_promoted_test_keeps_what_functions_gave(recorded: Desk, echo: Echo) -> None:
    stubs = words('__main__:shelf="shelf!"', STUBS[0], 'rates:region="region!"')
    done = recorded.reenact("promote", "last", "--name", "stock", *stubs)
    assert "on the code as it is now it passes: same" in done.stdout, done.stdout + done.stderr
    text = (recorded.folder / "tests" / "test_stock.py").read_text()
    assert '"rates:Desk.rate=@fakes.py:rate"' in text

    def judged() -> subprocess.CompletedProcess[str]:
        return recorded.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_stock.py"])

    passed = judged()
    assert passed.returncode == 0, passed.stdout
    recorded.write("agent.py", PROGRAM.replace('print("rate"', 'print("Rate"'))
    failed = judged()
    assert failed.returncode == 1
    assert "Rate eur! in region!" in failed.stdout
    assert echo.asked == []


def test_a_promoted_test_names_no_file_outside_the_project(
    recorded: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fakes = tmp_path_factory.mktemp("elsewhere") / "fakes.py"
    fakes.write_text("def rate(currency):\n    return 'eur!'\n")
    done = recorded.reenact("promote", "last", *words(f"rates:Desk.rate=@{fakes}:rate"))
    assert done.returncode == 2
    assert f"{fakes} is not in the project" in done.stderr


@pytest.mark.always
def test_a_request_is_delivered_to_an_application_that_is_not_started_up(desk: Desk, echo: Echo) -> None:
    pytest.importorskip("fastapi")
    desk.write("rates.py", RATES.replace("PORT", str(echo.port)))
    desk.write("service.py", SERVICE)
    asking = (
        "import asyncio\nfrom starlette.testclient import TestClient\nimport service\n"
        "with TestClient(service.app) as client:\n    print(client.get('/stock').text)\n"
    )
    live = desk.reenact("run", "-q", "--", "python", desk.write("ask.py", asking))
    assert live.stdout == '{"stock":7}\n', live.stderr
    assert echo.asked == ["shelf"]
    runs = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    (unit,) = [run["id"] for run in runs if run["name"] == "GET /stock"]
    refused = desk.reenact("replay", unit, "--app", "service:app")
    assert refused.returncode != 0
    done = desk.reenact("replay", unit, "--app", "service:app", "--no-lifespan")
    assert done.returncode == 0, done.stderr
    assert '{"stock":7}' in done.stdout
    assert echo.asked == ["shelf"]


UNIT = """
import rates
import reenact

@reenact.tool
def stock(item):
    return 7

def shelf():
    return rates.ask("shelf")

@reenact.unit
def order(item):
    return [stock(item), shelf()]

if __name__ == "__main__":
    print(order("tea"))
"""


@pytest.mark.always
def test_a_function_of_the_script_is_stubbed_where_a_unit_of_it_is_called_again(desk: Desk, echo: Echo) -> None:
    desk.write("rates.py", RATES.replace("PORT", str(echo.port)))
    live = desk.reenact("run", "-q", "--", "python", desk.write("worker.py", UNIT))
    assert live.stdout == "[7, 'shelf!']\n", live.stderr
    (unit,) = [run["id"] for run in json.loads(desk.reenact("ls", "--json").stdout)["runs"] if run["name"] == "order"]
    done = desk.reenact("replay", unit, *words('__main__:shelf="shelf!"'))
    assert done.returncode == 0, done.stderr
    assert "stubbed: __main__:shelf was not the agent's own; it was called 1 time" in done.stderr
    assert echo.asked == ["shelf"]
