"""Services over one SQLite file that declare nothing: each of many requests at once replays, and writes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from escapes.servers import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("fastapi", "sqlalchemy", "aiosqlite", "django", "gunicorn", "flask"))),
        reason="a library is not here",
    ),
]
USERS = 12

ASYNC = """
import asyncio, datetime, uuid
from contextlib import asynccontextmanager
from fastapi import BackgroundTasks, FastAPI
from pydantic import BaseModel
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
import reenact

engine = create_async_engine("sqlite+aiosqlite:///shop.db", connect_args={"timeout": 30})
session = async_sessionmaker(engine, expire_on_commit=False)

class Base(DeclarativeBase):
    pass

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    who: Mapped[str]
    cents: Mapped[int]
    ref: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)
    at: Mapped[datetime.datetime] = mapped_column(default=datetime.datetime.now)

class Bill(BaseModel):
    cents: int

@asynccontextmanager
async def lifespan(app):
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield

app = FastAPI(lifespan=lifespan)

@reenact.tool
async def rate(who):
    await asyncio.sleep(0.05)
    return 119

async def audit(order):
    async with session.begin() as database:
        await database.execute(update(Order).where(Order.id == order).values(cents=Order.cents + 1))

@app.post("/bill/{who}")
async def bill(who: str, asked: Bill, tasks: BackgroundTasks):
    async with session() as database:
        before = await database.scalar(select(func.count()).select_from(Order))
        order = Order(who=who, cents=asked.cents * await rate(who))
        database.add(order)
        await database.commit()
    tasks.add_task(audit, order.id)
    return {"id": order.id, "before": before, "ref": str(order.ref), "at": order.at.isoformat()}
"""

DJANGO = """
import json, time, django
from django.conf import settings
settings.configure(
    SECRET_KEY="none", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], USE_TZ=True,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db",
                           "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"}}},
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import IntegrityError, connection, transaction
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
import reenact

call_command("migrate", verbosity=0)

@reenact.tool
def rate(who):
    time.sleep(0.05)
    return 119

@csrf_exempt
def bill(request, who):
    before = User.objects.count()
    with transaction.atomic():
        user, made = User.objects.get_or_create(username=who, defaults={"email": f"{who}@example.org"})
        user.last_name = str(json.loads(request.body)["cents"] * rate(who))
        user.save()
        try:
            with transaction.atomic():
                User.objects.create_user(who)
        except IntegrityError as error:
            failed = str(error)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), max(id) FROM auth_user WHERE username <= %s", [who])
        row = cursor.fetchone()
    users = [user.username for user in User.objects.order_by("id").iterator(chunk_size=2)]
    return JsonResponse({"before": before, "made": made, "id": user.id, "failed": failed, "row": row, "users": users})

urlpatterns = [path("bill/<who>", bill)]
app = get_wsgi_application()
"""

FLASK = """
import sqlite3
from flask import Flask, g, jsonify, request
import reenact

app = Flask(__name__)

def connection():
    if "connection" not in g:
        g.connection = sqlite3.connect("shop.db", timeout=30)
        g.connection.execute("PRAGMA foreign_keys = on")
        g.connection.row_factory = sqlite3.Row
    return g.connection

@app.teardown_appcontext
def close(error):
    if "connection" in g:
        g.pop("connection").close()

with sqlite3.connect("shop.db", timeout=30) as database:
    columns = "id INTEGER PRIMARY KEY, who, cents, at DEFAULT current_timestamp"
    database.execute(f"CREATE TABLE IF NOT EXISTS orders ({columns})")

@reenact.tool
def rate(who):
    return 119

@app.post("/bill/<who>")
def bill(who):
    before = connection().execute("SELECT count(*) AS n FROM orders").fetchone()["n"]
    cents = request.get_json()["cents"] * rate(who)
    with connection() as database:
        made = database.execute("INSERT INTO orders (who, cents) VALUES (?, ?)", (who, cents))
    row = dict(connection().execute("SELECT * FROM orders WHERE id = ?", (made.lastrowid,)).fetchone())
    return jsonify({"before": before, "row": row})
"""

SERVICES = {
    "aiosqlite under SQLAlchemy and uvicorn": (
        ASYNC,
        "uvicorn shop:app --port PORT",
        "asked.cents * await",
        "asked.cents + await",
    ),
    "Django under threads": (
        DJANGO,
        "gunicorn -b 127.0.0.1:PORT --threads 6 shop:app",
        "count(*), max(id)",
        "count(*), min(id)",
    ),
    "sqlite3 under two workers": (
        FLASK,
        "gunicorn -b 127.0.0.1:PORT -w 2 --threads 4 shop:app",
        '["cents"] *',
        '["cents"] +',
    ),
}
"""By what it is: the program, how it is served, and a change of it."""


def _reenact(project: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=project, check=False, timeout=180)


def _state(project: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in project.glob("shop.db*")}


def _served(project: Path, environ: dict[str, str], served: str) -> None:
    """Record a service that is asked by all users at once."""
    port = free_port()
    words = [sys.executable, "-m", *served.replace("PORT", str(port)).split()]
    with (project / "log").open("w") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "reenact", "run", "-q", "--", *words],
            cwd=project,
            env=environ,
            stdout=log,
            stderr=log,
            process_group=0,
        )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.1)

    def ask(number: int) -> dict[str, Any]:
        body = json.dumps({"cents": 100 + number}).encode()
        url = f"http://127.0.0.1:{port}/bill/u{number}"
        asked = urllib.request.Request(url, data=body, method="POST", headers={"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    try:
        with ThreadPoolExecutor(USERS) as pool:
            assert len(list(pool.map(ask, range(USERS)))) == USERS
    finally:
        os.kill(service.pid, signal.SIGINT if "uvicorn" in served else signal.SIGTERM)
        service.wait(60)


@pytest.mark.parametrize("name", SERVICES)
def test_each_request_replays_and_writes_nothing(name: str, tmp_path: Path) -> None:
    program, served, before, after = SERVICES[name]
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text(program)
    environ = {**os.environ, "REENACT_STORE": str(project / ".reenact")}
    _served(project, environ, served)
    listed = json.loads(_reenact(project, environ, "ls", "--json", "-n", "0").stdout)["runs"]
    requests = [run for run in listed if run["name"].startswith("POST")]
    assert Counter(run["verdict"] for run in requests) == {"exact": USERS}, (project / "log").read_text()[-2000:]
    answered = [run for run in requests if "database " in _reenact(project, environ, "show", run["id"]).stdout]
    assert len(answered) > USERS // 2
    state = _state(project)
    for run in [*answered[:4], answered[-1]]:
        done = _reenact(project, environ, "replay", run["id"])
        assert done.returncode == 0, done.stdout + done.stderr
    (project / "shop.py").write_text(program.replace(before, after))
    done = _reenact(project, environ, "replay", answered[0]["id"])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "database " in done.stderr.partition("diverged: ")[2].partition("\n")[0]
    assert _state(project) == state
