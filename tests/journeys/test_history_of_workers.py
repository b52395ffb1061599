"""The last request to Flask, and the last task of Celery, behind those on which they stand: their list grows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from desk import Desk

FLASK = """
import random, sys, threading, urllib.request
import flask, reenact
from werkzeug.serving import make_server

SAID = []
app = flask.Flask(__name__)

@reenact.tool
def answer(text):
    return text.upper() + str(random.random())

@app.get("/say/<text>")
def say(text):
    SAID.append(text)
    SAID.append(answer(" ".join(SAID)))
    return flask.jsonify(SAID)

if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for text in "abc":
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/say/{text}") as reply:
            said = reply.read().decode()
    server.shutdown()
    print(said)
"""
CELERY = """
import random
from celery import Celery
import reenact

SAID = []
app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.update(worker_hijack_root_logger=False)

@reenact.tool
def answer(text):
    return text.upper() + str(random.random())

@app.task
def say(text):
    SAID.append(text)
    SAID.append(answer(" ".join(SAID)))
    return list(SAID)
"""
WORKER = """
import json
from celery.contrib.testing.worker import start_worker
from shop import app, say

with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
    for text in "abc":
        said = say.delay(text).get(timeout=60)
print(json.dumps(said))
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("files", "program"),
    [
        pytest.param({"shop.py": FLASK}, "shop.py", id="flask"),
        pytest.param({"shop.py": CELERY, "worker.py": WORKER}, "worker.py", id="celery"),
    ],
)
def test_the_last_one_is_the_same_behind_all_earlier_ones(desk: Desk, files: dict[str, str], program: str) -> None:
    for name, text in files.items():
        desk.write(name, text)
    live = desk.reenact("run", "-q", "--", "python", program)
    assert live.returncode == 0, live.stderr
    listed: list[dict[str, Any]] = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    units = sorted((run for run in listed if "say" in run["name"]), key=lambda run: run["started"])
    assert [run["verdict"] for run in units] == ["exact"] * 3
    done = desk.reenact("replay", units[-1]["id"])
    assert done.stderr.startswith("same: 1 tool calls answered"), done.stderr
    assert f"behind the earlier units on which it stands: {units[0]['id'][:12]}, {units[1]['id'][:12]}" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(live.stdout)
