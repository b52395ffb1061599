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


FLASK = """
from flask import Flask
import reenact

@reenact.tool
def price(name: str) -> int:
    return len(name)

def made() -> Flask:
    app = Flask(__name__)
    app.get("/<name>")(lambda name: str(price(name)))
    return app

client = made().test_client()
print(price("milk"), client.get("/tea").text, price("bread"), client.get("/coffee").text)
"""

STARLETTE = """
import asyncio
import httpx
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
import reenact

@reenact.tool
def price(name: str) -> int:
    return len(name)

async def tea(request):
    return PlainTextResponse(str(price(request.path_params["name"])))

app = Starlette(routes=[Route("/{name}", tea)])

async def main():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        print(price("milk"), *(each.text for each in await asyncio.gather(client.get("/tea"), client.get("/coffee"))))

if __name__ == "__main__":
    asyncio.run(main())
    print(TestClient(app).get("/bread").text)
"""


PORTS = """
import asyncio, http.server, socket, threading, urllib.request
import reenact

@reenact.tool
def note(address):
    return len(address)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/agent.py"
print(address, note(address), len(urllib.request.urlopen(address).read()))
server.shutdown()

async def main():
    listener = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(port, note(f"port {port}"))
    listener.close()

asyncio.run(main())
with socket.create_server(("", 0)) as listener:
    print(note(str(listener.getsockname())))
"""


def test_a_port_that_the_kernel_chose_is_the_same_in_a_replay(desk: Desk) -> None:
    desk.write("agent.py", PORTS)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
    assert "same: 3 tool calls answered" in again.stderr


@pytest.mark.parametrize(("code", "module"), [(FLASK, "flask"), (STARLETTE, "starlette")], ids=["wsgi", "asgi"])
def test_a_script_that_asks_its_own_application_by_a_test_client_is_one_run(desk: Desk, code: str, module: str) -> None:
    pytest.importorskip(module)
    desk.write("agent.py", code)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "recorded agent.py" in live.stderr, live.stderr
    replay = desk.reenact("replay", "last", environ=desk.bare())
    assert (replay.returncode, replay.stdout) == (0, live.stdout), replay.stderr
    assert "same: 4 tool calls answered" in replay.stderr
    desk.write("agent.py", code.replace("str(price(", "str(1 + price("))
    assert desk.reenact("replay", "last", environ=desk.bare()).returncode == 1
