"""A script that serves itself on a thread: what its service was asked replays without the script's own questions."""

from __future__ import annotations

import pytest

from desk import Desk
from stories import free_port

WSGI = """
import threading
import requests
from wsgiref.simple_server import make_server
import reenact

@reenact.tool
def price(name: str) -> int:
    return len(name)

def app(environ, start_response):
    start_response("200 OK", [("content-type", "text/plain")])
    return [str(price(environ["PATH_INFO"])).encode()]

server = make_server("127.0.0.1", 0, app)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(requests.get(f"http://127.0.0.1:{server.server_port}/tea").text)
server.shutdown()
"""

UVICORN = """
import threading, time, urllib.request
import uvicorn
from fastapi import FastAPI
import reenact

app = FastAPI()

@reenact.tool
def price(name: str) -> int:
    return len(name)

@app.get("/tea")
def tea() -> int:
    return price("/tea")

server = uvicorn.Server(uvicorn.Config(app, port=PORT, log_level="error"))
thread = threading.Thread(target=server.run, daemon=True)
thread.start()
while not server.started:
    time.sleep(0.02)
print(urllib.request.urlopen("http://127.0.0.1:PORT/tea").read().decode())
server.should_exit = True
thread.join()
"""


@pytest.mark.parametrize(("code", "module"), [(WSGI, "requests"), (UVICORN, "uvicorn")], ids=["wsgiref", "uvicorn"])
def test_what_a_script_served_on_a_thread_replays(desk: Desk, code: str, module: str) -> None:
    pytest.importorskip(module)
    code = code.replace("PORT", str(free_port()))
    desk.write("agent.py", code)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "recorded GET /tea" in live.stderr, live.stderr
    replay = desk.reenact("replay", "last", environ=desk.bare())
    assert "same: 1 tool calls answered" in replay.stderr, replay.stderr
    assert replay.returncode == 0
    desk.write("agent.py", code.replace("return price(", "return 1 + price(").replace("str(price(", "str(1 + price("))
    assert desk.reenact("replay", "last", environ=desk.bare()).returncode == 1
