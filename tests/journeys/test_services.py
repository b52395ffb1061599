"""Services: recorded with no change to them, found by user and time, one request delivered again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from desk import EXAMPLES, Desk
from reenact.demo.policies import order_desk
from reenact.demo.provider import StandIn
from reenact.demo.script import Question, Reply, text_of

get = partial(httpx.get, timeout=60)
post = partial(httpx.post, timeout=60)

pytestmark = pytest.mark.sample(2)

UNLUCKY = "u-17"
UVICORN = ("uvicorn", "--app-dir", str(EXAMPLES), "support_service:app", "--port", "PORT")
WORKERS = ("-w2", "-kuvicorn.workers.UvicornWorker")
GUNICORN = ("gunicorn", *WORKERS, "--chdir", str(EXAMPLES), "-b127.0.0.1:PORT", "support_service:app")
PATHS = ("/ask", "/ask/threaded", "/ask/stream")
Count = Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]


def slips_for_one(question: Question, chance: Random) -> Reply:
    """Be right for everybody but one."""
    system = text_of(question.messages[0].get("content"))
    return order_desk(replace(question, slip=1.0 if UNLUCKY in system else 0.0), chance)


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with StandIn(max_delay_ms=40, scripts={"stand-in-order-desk": slips_for_one}) as standing:
        yield standing


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Service:
    """A service under `reenact run`, and what it came to."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url, self.process = url, process
        self.said = ""

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send `reenact run` a signal, and give the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.said = self.process.communicate(timeout=100)[1]
        return self.process.returncode


@contextmanager
def serving(desk: Desk, *argv: str, environ: dict[str, str] | None = None, recorded: bool = True) -> Iterator[Service]:
    """Start a service, `PORT` in its command line being a free one, and wait until it answers."""
    port = str(free_port())
    words = [word.replace("PORT", port) for word in argv]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("REENACT_", "OTEL_", "OPENAI_"))}
    settings = {**inherited, "PORT": port, "REENACT_USER_HEADER": "x-user-id", **desk.environ, **(environ or {})}
    settings["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{settings['PATH']}"
    command = [sys.executable, "-m", "reenact", "run", "--", *words] if recorded else words
    with (desk.folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=desk.folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
        )
    service = Service(f"http://127.0.0.1:{port}", process)
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{service.url}/health").close()
                break
            except urllib.error.HTTPError:
                break  # it answers
            except OSError:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.05)
        yield service
    finally:
        service.stop()


def ask_at_once(url: str, users: int) -> dict[str, str]:
    """Have so many users ask at the same time; gives what each was answered."""

    async def ask() -> list[tuple[str, str]]:
        limits = httpx.Limits(max_connections=users)
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:

            async def one(number: int) -> tuple[str, str]:
                user = f"u-{number:02}"
                asked = {"question": "Where is my order?"}
                reply = await client.post(PATHS[number % 3], json=asked, headers={"x-user-id": user})
                assert reply.status_code == 200, reply.text
                return user, reply.text

            return await asyncio.gather(*(one(number) for number in range(users)))

    return dict(asyncio.run(ask()))


def runs_of(desk: Desk, *words: str) -> list[dict[str, Any]]:
    return json.loads(desk.reenact("ls", "--json", "-n", "0", *words).stdout)["runs"]


def answered_again(done: subprocess.CompletedProcess[str]) -> str:
    """Take the body out of what a replay printed."""
    status, _, body = done.stdout.partition("\n\n")
    assert status == "200 OK", done.stderr
    return body


@pytest.mark.always
@pytest.mark.parametrize(
    ("argv", "users"),
    [
        pytest.param(UVICORN, 20, id="uvicorn"),
        pytest.param(UVICORN, 50, id="uvicorn, many users", marks=pytest.mark.slow),
        pytest.param(GUNICORN, 50, id="gunicorn with 2 workers", marks=pytest.mark.slow),
        pytest.param(("python", str(EXAMPLES / "support_service.py")), 50, id="python", marks=pytest.mark.slow),
    ],
)
def test_the_one_of_many_users_who_met_the_bug_is_replayed_alone(
    desk: Desk,
    provider: StandIn,
    sockets: Count,
    record_property: Callable[[str, object], None],
    argv: tuple[str, ...],
    users: int,
) -> None:
    desk.environ.update(provider.environment)
    with serving(desk, *argv) as service:
        seen = ask_at_once(service.url, users)
        code = service.stop()
    assert code in {0, 128 + signal.SIGTERM}, service.said
    runs = runs_of(desk)
    assert len(runs) == users, "health checks and workers are no runs"
    assert {run["user"] for run in runs} == set(seen)
    assert {run["verdict"] for run in runs} == {"exact"}
    assert {run["status"] for run in runs} == {"ok"}
    asked = provider.served.requests
    (hers,) = runs_of(desk, "--user", UNLUCKY, "--at", runs[0]["started"])
    desk.environ.clear()

    done, inet = sockets([sys.executable, "-m", "reenact", "replay", hers["id"]], desk.bare())
    assert (done.returncode, inet) == (0, 0), done.stderr
    assert answered_again(done).strip() == seen[UNLUCKY].strip()
    assert UNLUCKY.removeprefix("u-") not in "".join(filter(str.isdigit, seen[UNLUCKY])), "it is somebody else's order"
    told = json.loads(desk.reenact("replay", hers["id"], "--json", environ=desk.bare()).stdout)
    assert (told["result"], told["live"], told["refused"]) == ("same", 0, [])
    assert told["answered"] == hers["calls"]
    assert provider.served.requests == asked
    record_property(
        "figure",
        f"{argv[0]} {argv[1]}: {users} users at once, {len(runs)} runs, 1 found by user and time; its replay: "
        f"{told['answered']} answered, {inet} sockets, {provider.served.requests - asked} requests to the provider",
    )

    fixed = desk.reenact("replay", hers["id"], environ={**desk.bare(), "ORDER_GUARD": "1"})
    assert fixed.returncode == 1
    assert f'arguments.user_id: recorded null, replay "{UNLUCKY}"' in fixed.stderr


SMALL = """
import os, time, uuid
from contextlib import asynccontextmanager
from fastapi import FastAPI
import reenact
@reenact.tool
def load(name):
    return [name, time.time()]
@reenact.tool
def work(name):
    return {"made": name, "pid": os.getpid(), "odd": str(uuid.uuid4())}
IMPORTED = load("import")
@asynccontextmanager
async def lifespan(app):
    app.state.started = load("start")
    yield
    load("stop")
app = FastAPI(lifespan=lifespan)
def make():
    return app
@app.get("/health")
def health():
    return "ok"
@app.get("/work")
def working(name: str):
    made = work(f"{name} {uuid.uuid4()}")
    return [IMPORTED, app.state.started, made, os.environ.get("TWIST")]
@app.get("/fails")
def fails():
    raise LookupError(work("x")["made"])
@app.get("/dies")
def dies():
    work("x")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    "argv",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("small:app", "small:make --factory")),
        "small:app --workers 2",
    ],
)
def test_start_up_chance_and_failures_come_again(desk: Desk, argv: str) -> None:
    desk.write("small.py", SMALL)
    with serving(desk, "uvicorn", *argv.split(), "--port", "PORT") as service:
        seen = get(f"{service.url}/work?name=tea").text
        assert get(f"{service.url}/fails").status_code == 500
        service.stop()
    runs = runs_of(desk)
    works, fails = (next(run for run in runs if run["name"] == f"GET {path}") for path in ("/work", "/fails"))
    assert (works["status"], fails["status"]) == ("ok", "error")
    processes = [run for run in runs if not run["name"].startswith("GET")]
    assert {run["status"] for run in processes} == {"ok"}, "a deploy interrupts no run"
    told = json.loads(desk.reenact("doctor", processes[0]["id"], "--json").stdout)["verdict"]["reasons"]
    assert [each["lost"] for each in told if each["field"] == "end"] == [
        "SIGTERM stopped the server; what it does at its own end is not recorded"
    ]
    done = desk.reenact("replay", works["id"])
    assert done.returncode == 0, done.stderr
    assert answered_again(done) == f"{seen}\n"
    done = desk.reenact("replay", fails["id"])
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "500 Internal Server Error"), done.stderr
    assert "LookupError" in done.stderr
    twisted = desk.reenact("replay", works["id"], environ={**os.environ, "TWIST": "1"})
    assert twisted.returncode == 1
    assert 'run: answer.body[3]: recorded null, replay "1"' in twisted.stderr


@pytest.mark.slow
def test_a_killed_worker_leaves_its_run_behind(desk: Desk) -> None:
    desk.write("small.py", SMALL)
    with serving(
        desk, "gunicorn", "-w1", "-kuvicorn.workers.UvicornWorker", "-b127.0.0.1:PORT", "small:app"
    ) as service:
        with pytest.raises(httpx.TransportError):
            get(f"{service.url}/dies")
        for _ in range(600):  # the master starts another worker
            try:
                get(f"{service.url}/work?name=tea")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert service.stop() == 0
    runs = {run["name"]: run for run in runs_of(desk)}
    assert runs["GET /dies"]["status"] == "interrupted"
    assert runs["GET /work"]["status"] == "ok"


FLASK = """
import flask, reenact, uuid
@reenact.tool
def work(name):
    return f"{name} {uuid.uuid4()}"
app = flask.Flask(__name__)
@app.get("/health")
def health():
    return "ok"
@app.post("/work")
def working():
    return {"made": work(flask.request.get_json()["name"])}
@app.post("/streamed")
def streamed():
    name = flask.request.get_json()["name"]
    return flask.Response(f"{work(f'{name} {n}')}\\n" for n in range(3))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [("gunicorn", "-w2", "-b127.0.0.1:PORT", "small:app"), ("flask", "--app", "small", "run", "--port", "PORT")],
    ids=["gunicorn", "flask"],
)
def test_a_wsgi_request_is_delivered_again(desk: Desk, argv: tuple[str, ...]) -> None:
    desk.write("small.py", FLASK)
    with serving(desk, *argv) as service:
        asked = {"json": {"name": "tea"}, "headers": {"x-user-id": "u-1"}}
        whole = post(f"{service.url}/work", **asked).text
        pieces = post(f"{service.url}/streamed", **asked).text
        time.sleep(0.1)
        service.stop()
    runs = {run["name"]: run for run in runs_of(desk, "--user", "u-1")}
    for name, seen in (("POST /work", whole), ("POST /streamed", pieces)):
        done = desk.reenact("replay", runs[name]["id"])
        assert done.returncode == 0, done.stderr
        assert answered_again(done) == seen


LOCAL = """
import sys, reenact
from wsgiref.simple_server import make_server
@reenact.tool
def work(name):
    return f"{name}: {sys.argv[2]}"
def main():
    def app(environ, start_response):
        start_response("200 OK", [])
        return [] if environ["PATH_INFO"] == "/health" else [work("tea").encode()]
    with make_server("127.0.0.1", int(sys.argv[1]), app) as server:
        server.serve_forever()
main()
"""


@pytest.mark.slow
def test_an_application_without_a_name_is_made_by_its_program(desk: Desk) -> None:
    program = desk.write("local.py", LOCAL)
    with serving(desk, "python", program, "PORT", "milk") as service:
        assert get(f"{service.url}/x").text == "tea: milk"
        time.sleep(0.1)
        service.stop()
    done = desk.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert answered_again(done) == "tea: milk\n"
    assert "it has no name" in desk.reenact("doctor", "last").stdout
    other = desk.reenact("replay", "last", "--app", "nowhere:app")
    assert other.returncode == 125
    assert "nowhere:app cannot be imported" in other.stderr


@pytest.mark.slow
def test_a_service_that_records_itself_is_found_afterwards(desk: Desk) -> None:
    desk.write("small.py", f"import reenact\nreenact.record()\n{SMALL}")
    with serving(desk, "uvicorn", "small:app", "--port", "PORT", recorded=False) as service:
        seen = get(f"{service.url}/work?name=tea").text
        service.stop()
    (run,) = (run for run in runs_of(desk) if run["name"] == "GET /work")
    done = desk.reenact("replay", run["id"])
    assert done.returncode == 0, done.stderr
    assert answered_again(done) == f"{seen}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_a_service_as_it_would_unrecorded(desk: Desk, number: int) -> None:
    desk.write("small.py", SMALL)
    codes: list[int] = []
    for recorded in (False, True):
        with serving(desk, "uvicorn", "small:app", "--port", "PORT", recorded=recorded) as service:
            codes.append(service.stop(number))
        assert "Application shutdown complete" in service.said
    assert codes[1] == (codes[0] if codes[0] >= 0 else 128 - codes[0])


LEAVING = """
import asyncio, reenact
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
@reenact.tool
async def work(n):
    await asyncio.sleep(0.01)
    return f"word {n}"
app = FastAPI()
@app.get("/words")
async def words(request: Request):
    async def all_of_them():
        n = 0
        while not await request.is_disconnected():
            yield await work(n) + "\\n"
            n += 1
        await work("goodbye")
    return StreamingResponse(all_of_them())
"""


@pytest.mark.slow
def test_a_client_that_went_away_goes_away_again(desk: Desk) -> None:
    desk.write("small.py", LEAVING)
    with serving(desk, "uvicorn", "small:app", "--port", "PORT") as service:
        with httpx.stream("GET", f"{service.url}/words") as reply:
            text = next(reply.iter_text())
        time.sleep(0.3)
        service.stop()
    (run,) = runs_of(desk)
    done = desk.reenact("replay", run["id"], "--json")
    told = json.loads(done.stdout)
    assert (told["result"], told["answered"]) == ("same", run["calls"]), done.stderr
    assert text in done.stderr  # with --json the answer goes there
    shown = json.loads(desk.reenact("show", run["id"], "--json").stdout)
    left_after = shown["calls"][0]["attributes"]["reenact.inbound.left_after"]
    assert len(text) <= left_after <= len("word 9999\n") * run["calls"]["tool"]


@pytest.mark.slow
def test_a_request_replays_from_its_file_alone(desk: Desk) -> None:
    desk.write("small.py", SMALL)
    with serving(desk, "uvicorn", "small:app", "--port", "PORT") as service:
        secret = {"authorization": "Bearer " + "x1" * 20}
        seen = [get(f"{service.url}/work?name={name}", headers=secret).text for name in ("tea", "milk")]
        service.stop()
    (run,) = (run for run in runs_of(desk) if "tea" in desk.reenact("show", run["id"]).stdout)
    exported = desk.reenact("export", run["id"], "-o", "incident.jsonl")
    assert exported.returncode == 0, exported.stderr
    written = (desk.folder / "incident.jsonl").read_text()
    assert "x1x1x1" not in written
    assert "milk" not in written, "other requests of the service are nobody's business"
    shutil.rmtree(desk.folder / ".reenact")
    done = desk.reenact("replay", "--trust", "incident.jsonl", environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert answered_again(done) == f"{seen[0]}\n"


def test_a_script_that_is_stopped_is_interrupted(desk: Desk) -> None:
    program = desk.write(
        "script.py", "import reenact, time\n@reenact.tool\ndef f(): print(1, flush=True)\nf()\ntime.sleep(60)"
    )
    words = [sys.executable, "-m", "reenact", "run", "--", sys.executable, program]
    with subprocess.Popen(words, cwd=desk.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    (run,) = runs_of(desk)
    assert (run["name"], run["status"]) == ("script.py", "interrupted")


@pytest.mark.slow
def test_a_fork_of_a_request_is_one_run_with_its_user(desk: Desk) -> None:
    desk.write("small.py", SMALL)
    with serving(desk, "uvicorn", "small:app", "--port", "PORT") as service:
        get(f"{service.url}/work?name=tea", headers={"x-user-id": "u-7"})
        service.stop()
    (hers,) = runs_of(desk, "--user", "u-7")
    before = {run["id"] for run in runs_of(desk)}
    done = desk.reenact("fork", hers["id"], "--at", "tool work", "--set", 'result={"made": "x"}')
    assert done.returncode == 0, done.stderr
    (made,) = [run for run in runs_of(desk) if run["id"] not in before]
    assert (made["name"], made["user"], made["fork_of"]) == ("GET /work", "u-7", hers["id"])


TENANTS = """
import reenact
from fastapi import FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
@reenact.tool
def work(name):
    return name
app = FastAPI()
app.add_middleware(GZipMiddleware, minimum_size=1)
@app.get("/health")
def health():
    return "ok"
@app.get("/work")
def working(request: Request):
    shown = {name: value for name, value in sorted(request.headers.items()) if name != "host"}
    return [work(request.headers["x-tenant"]), request.headers.get("x-tier"), shown]
"""


@pytest.mark.slow
def test_a_request_has_its_headers_again(desk: Desk) -> None:
    desk.write("tenants.py", TENANTS)
    with serving(desk, "uvicorn", "tenants:app", "--port", "PORT") as service:
        headers = {"x-tenant": "a", "X-Tier": "gold", "accept-encoding": "gzip", "te": "trailers"}
        reply = get(f"{service.url}/work", headers=headers)
        assert reply.headers["content-encoding"] == "gzip"
        time.sleep(0.1)
        service.stop()
    done = desk.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert answered_again(done).strip() == reply.text


LENGTHS = """
import flask, reenact
@reenact.tool
def work(name):
    return name
app = flask.Flask(__name__)
@app.route("/health")
def health():
    return "ok"
@app.route("/work", methods=["GET", "PUT", "POST"])
def working():
    asked = flask.request
    work(asked.method)
    read = asked.get_json() if asked.method == "POST" else None
    return [asked.content_length, "CONTENT_LENGTH" in asked.environ, read, sorted(asked.headers.keys())]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [("gunicorn", "-b127.0.0.1:PORT", "lengths:app"), ("flask", "--app", "lengths", "run", "--port", "PORT")],
    ids=["gunicorn", "flask"],
)
def test_a_wsgi_request_tells_its_length_again(desk: Desk, argv: tuple[str, ...]) -> None:
    desk.write("lengths.py", LENGTHS)
    with serving(desk, *argv) as service:
        url = f"{service.url}/work"
        seen = {
            "GET /work": get(url).text,
            "PUT /work": httpx.put(url, content=b"{}").text,
            "POST /work": post(url, json={"a": 1}).text,
        }
        time.sleep(0.1)
        service.stop()
    runs = {run["name"]: run for run in runs_of(desk)}
    for name, text in seen.items():
        done = desk.reenact("replay", runs[name]["id"])
        assert done.returncode == 0, done.stderr
        assert answered_again(done) == text
