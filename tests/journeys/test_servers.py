"""The run of a server's own process says that it is none to replay, and names one that is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from desk import Desk
from journeys.test_services import runs_of, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who connected")

CALLS = """
import time
import reenact

@reenact.tool
def look(word):
    return f"{word} {time.time_ns()}"

look("start-up")
"""
ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "http" and scope["path"] != "/health":
        look(scope["path"])
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})
"""
WSGI = """
def app(environ, start_response):
    if environ["PATH_INFO"] != "/health":
        look(environ["PATH_INFO"])
    start_response("200 OK", [])
    return [b"done"]
"""
PLAIN = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/health":
            look(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *said):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
for _ in range(3):
    server.handle_request()
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("code", "argv", "number"),
    [
        pytest.param(ASGI, ("uvicorn", "service:app", "--port", "PORT"), signal.SIGINT, id="uvicorn"),
        pytest.param(WSGI, ("gunicorn", "-b127.0.0.1:PORT", "service:app"), signal.SIGTERM, id="gunicorn"),
        pytest.param(
            ASGI,
            ("uvicorn", "service:app", "--port", "PORT"),
            signal.SIGTERM,
            marks=pytest.mark.slow,
            id="uvicorn that is stopped",
        ),
    ],
)
def test_the_process_of_a_server_is_no_run_to_replay(desk: Desk, code: str, argv: tuple[str, ...], number: int) -> None:
    desk.write("service.py", CALLS + code)
    with serving(desk, *argv, environ={"PYTHONPATH": str(desk.folder)}) as service:
        for path in ("/a", "/b"):
            urllib.request.urlopen(service.url + path).close()
        service.stop(number)
    runs = runs_of(desk)
    units = [run for run in runs if run["name"].startswith("GET")]
    [process] = [run for run in runs if run not in units]
    assert ([run["verdict"] for run in units], process["verdict"]) == (["exact", "exact"], "partial")
    done = desk.reenact("replay", process["id"])
    assert done.returncode == 125
    assert "a server's own process" in done.stderr
    assert f"of the 2 units that came in the last is `reenact replay {units[0]['id'][:12]}`" in done.stderr
    assert desk.reenact("show", "last").stdout.startswith(f"run {units[0]['id'][:12]} ")
    suite = desk.reenact("replay", "--all", ".reenact", "--json")
    told = json.loads(suite.stdout)
    assert (suite.returncode, told["summary"]) == (0, {"same": 2, "skipped": 1}), suite.stdout
    assert [each["run"] for each in told["runs"] if each["word"] == "skipped"] == [process["id"]]


def test_a_server_that_nobody_knows_is_one_where_others_connect(desk: Desk) -> None:
    desk.write("service.py", CALLS + PLAIN)
    with serving(desk, "python", "service.py", "PORT") as service:
        for path in ("/a", "/b"):
            urllib.request.urlopen(service.url + path).close()
        service.process.wait(60)
    [process] = runs_of(desk)
    assert process["verdict"] == "partial"
    done = desk.reenact("replay", "last")
    assert done.returncode == 125
    assert "declare the function that does with @reenact.unit" in done.stderr


@pytest.mark.always
def test_a_server_that_nobody_knows_is_one_where_a_signal_ends_it_unheard(desk: Desk) -> None:
    """No code of ours runs at its end."""
    desk.write("service.py", CALLS + PLAIN.partition("for _ in")[0] + "server.serve_forever()\n")
    with serving(desk, "python", "service.py", "PORT") as service:
        for path in ("/a", "/b"):
            urllib.request.urlopen(service.url + path).close()
        service.stop(signal.SIGTERM)
    done = desk.reenact("replay", "last")
    assert done.returncode == 125
    assert "declare the function that does with @reenact.unit" in done.stderr


SHOP = """
from celery import Celery

app = Celery("shop", broker="filesystem://")
app.conf.update(
    broker_transport_options={"data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"},
    worker_hijack_root_logger=False,
)

@app.task
def order(number):
    return look(f"order {number}")
"""


@pytest.mark.slow
def test_the_process_of_a_worker_is_no_run_to_replay(desk: Desk) -> None:
    pytest.importorskip("celery")
    desk.write("shop.py", CALLS + SHOP)
    (desk.folder / "queue").mkdir()
    words = [
        sys.executable,
        "-m",
        "reenact",
        "run",
        "--",
        sys.executable,
        "-m",
        "celery",
        "-A",
        "shop",
        "worker",
        "-P",
        "solo",
    ]
    with subprocess.Popen([*words, "--without-gossip"], cwd=desk.folder, env=desk.settings()) as worker:
        try:
            asked = "from shop import order; [order.delay(number) for number in (1, 2)]"
            subprocess.run([sys.executable, "-c", asked], cwd=desk.folder, env=desk.settings(), check=True)
            ends = time.monotonic() + 60
            while len(runs_of(desk)) < 2 and time.monotonic() < ends:
                time.sleep(0.2)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(60)
    runs = runs_of(desk)
    units = [run for run in runs if run["name"] == "shop.order"]
    assert [run["verdict"] for run in units] == ["exact", "exact"]
    for process in (run for run in runs if run not in units):
        done = desk.reenact("replay", process["id"])
        assert (done.returncode, "a server's own process" in done.stderr) == (125, True), done.stderr
    assert desk.reenact("show", "last").stdout.startswith(f"run {units[0]['id'][:12]} ")
