"""Celery's own worker on an in-memory broker: each task is a run, and the bad one is done again alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

SHOP = '''
import random
from celery import Celery
import reenact

app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.update(task_always_eager=False, worker_hijack_root_logger=False)

@reenact.tool
def look_up(user: str) -> str:
    """Give an answer that no two runs agree on."""
    return f"{user}:{random.SystemRandom().randrange(10**6)}"

@app.task(bind=True, max_retries=1)
def answer(self, user, amounts, *, note=""):
    amounts.append(0)
    found = look_up(f"{user} {self.request.id} {note}")
    if user == "u-13":
        raise ValueError(f"no order for {user}: {found}")
    if user == "u-7" and not self.request.retries:
        raise self.retry(countdown=0)
    return {"found": found, "amounts": tuple(amounts)}

@app.task
def idle():
    return 1
'''
WORKER = """
import sys
from celery.contrib.testing.worker import start_worker
from shop import answer, app, idle

with start_worker(app, pool=sys.argv[1], concurrency=4, perform_ping_check=False, loglevel="CRITICAL"):
    asked = [answer.delay(f"u-{number}", [number], note="n") for number in range(20)]
    idle.delay().get(timeout=30)
    for each in asked:
        try:
            print(each.get(timeout=30)["found"])
        except ValueError as error:
            print(error)
"""
EAGER = """
from shop import answer, app
app.conf.task_always_eager = True
for number in (12, 13):
    print(answer.delay(f"u-{number}", [number]).state)
print(answer("u-1", []))
"""

SENDS = """
import os
from celery import Celery

for name in ("sent", "control"):
    os.makedirs(name, exist_ok=True)
app = Celery("post", broker="filesystem://")
folders = {"data_folder_in": "sent", "data_folder_out": "sent", "control_folder": "control"}
app.conf.update(broker_transport_options=folders)

@app.task
def label(order, *, copies):
    return order

print(label.apply_async(args=["o-1"], kwargs={"copies": 2}, countdown=5).id)
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.write("shop.py", SHOP)
    made.write("worker.py", WORKER)
    made.write("eager.py", EAGER)
    return made


def runs(desk: Desk, *filters: str) -> list[dict[str, Any]]:
    return json.loads(desk.reenact("ls", "--json", "-n", "0", *filters).stdout)["runs"]


def replayed(desk: Desk, run: str) -> tuple[int, str, dict[str, Any], str]:
    done = desk.reenact("replay", run, "--json", environ=desk.bare())
    return done.returncode, done.stdout, json.loads(done.stdout), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_of_many_tasks_the_bad_one_alone_is_done_again(desk: Desk, pool: str) -> None:
    live = desk.reenact("run", "-q", "--", "python", "worker.py", pool)
    assert live.returncode == 0, live.stderr
    found = runs(desk)
    assert {run["name"] for run in found} == {"shop.answer"}
    assert len(found) == 21  # one was tried again; a task that asked nobody is no run
    bad = [run for run in found if run["status"] == "error"]
    assert len(bad) == 2
    (failed,) = [run for run in bad if "no order" in desk.reenact("show", run["id"], "--json").stdout]
    code, _, told, said = replayed(desk, failed["id"])
    assert (code, told["result"], told["answered"], told["live"]) == (0, "same", {"tool": 1}, 0), said
    (line,) = [line for line in live.stdout.splitlines() if line.startswith("no order")]
    assert f"ValueError: {line}" in said
    (retried,) = [run for run in bad if run is not failed]
    code, _, told, said = replayed(desk, retried["id"])
    assert (code, told["result"]) == (0, "same"), said
    assert "task shop.answer is not sent in a replay" in said
    good = next(run for run in found if run["status"] == "ok")
    assert replayed(desk, good["id"])[2]["result"] == "same"

    (desk.folder / "shop.py").write_text(SHOP.replace('user == "u-13"', 'user == "nobody"'))
    code, _, told, said = replayed(desk, failed["id"])
    assert (code, told["divergences"][0]["field"], told["divergences"][0]["b"]) == (1, "outcome", "ended"), said
    (desk.folder / "shop.py").write_text(SHOP.replace("tuple(amounts)", "tuple(amounts * 2)"))
    code, _, told, said = replayed(desk, good["id"])
    assert code == 1
    assert told["divergences"][0]["field"].startswith("result.amounts"), told


def test_eager_tasks_are_runs_and_a_plain_call_is_part_of_its_caller(desk: Desk) -> None:
    live = desk.reenact("run", "-q", "--", "python", "eager.py")
    assert live.stdout.splitlines()[:2] == ["SUCCESS", "FAILURE"]
    named = {run["name"]: run for run in runs(desk)}
    assert set(named) == {"shop.answer", "eager.py"}
    (failed,) = [run for run in runs(desk) if run["status"] == "error"]
    code, _, told, said = replayed(desk, failed["id"])
    assert (code, told["result"]) == (0, "same"), said


def test_a_task_that_is_gone_cannot_be_judged(desk: Desk) -> None:
    assert desk.reenact("run", "-q", "--", "python", "eager.py").returncode == 0
    (failed,) = [run for run in runs(desk) if run["status"] == "error"]
    (desk.folder / "shop.py").write_text(SHOP.replace("def answer(", "def renamed("))
    code, _, told, said = replayed(desk, failed["id"])
    assert (code, told["result"]) == (125, "unjudged"), said
    assert "no task shop.answer" in told["why"]


def test_a_task_that_is_sent_is_a_call_which_is_answered_and_not_sent_again(desk: Desk) -> None:
    live = desk.reenact("run", "-q", "--", "python", desk.write("sends.py", SENDS))
    assert live.returncode == 0, live.stderr
    (run,) = runs(desk)
    assert (run["calls"], run["verdict"]) == ({"database": 1}, "exact")
    sent = [*(desk.folder / "sent").iterdir()]
    code, _, told, said = replayed(desk, "last")
    assert (code, told["result"]) == (0, "same"), said
    assert live.stdout in said
    assert [*(desk.folder / "sent").iterdir()] == sent

    desk.write("sends.py", SENDS.replace('"copies": 2', '"copies": 3'))
    code, _, told, _ = replayed(desk, "last")
    assert (code, told["divergences"][0]["field"]) == (1, "arguments.parameters[2].copies")
