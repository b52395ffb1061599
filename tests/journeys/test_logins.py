"""Logins by plain HTTP: cookies, tokens and challenges that a program reads, sends and prints."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from desk import Desk

SECRETS: list[str] = []


class _Door(BaseHTTPRequestHandler):
    """A server that lets in who sends what it gave."""

    protocol_version = "HTTP/1.1"

    def reply(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/login":
            SECRETS[:] = session, form, token = [*(os.urandom(20).hex() for _ in range(2)), str(uuid.uuid4())]
            cookies = [f"session=s%3A{session}; Path=/; HttpOnly", f"form={form}; Path=/", "theme=dark; Path=/"]
            self.reply(200, b"{}", *(("Set-Cookie", cookie) for cookie in cookies), ("X-Auth-Token", token))
        elif self.path == "/digest" and not self.headers.get("Authorization"):
            challenge = f'Digest realm="desk", qop="auth", nonce="{os.urandom(8).hex()}", opaque="5c"'
            self.reply(401, b"", ("WWW-Authenticate", challenge))
        else:
            self.reply(200, f"{self.path} {'Cookie' in self.headers}".encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(200, b"welcome" if SECRETS[1].encode() in body or SECRETS[2].encode() in body else b"go away")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server calls it
        pass


@pytest.fixture
def door() -> Generator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


REQUESTS = """
import sys, uuid, requests
address, session = sys.argv[1], requests.Session()
reply = session.get(address + "/login")
token = reply.headers["X-Auth-Token"]
assert uuid.UUID(token).version == 4
print(reply.cookies["form"], session.cookies.get_dict())
print(session.post(address + "/in", data={"form": session.cookies["form"], "of": session.cookies["session"]}).text)
print(session.get(address + "/me", params={"t": token}, headers={"X-Auth-Token": token}).text)
print(requests.get(address + "/digest", auth=requests.auth.HTTPDigestAuth("user", "word")).status_code)
"""
HTTPX = """
import sys, httpx
with httpx.Client(base_url=sys.argv[1]) as client:
    reply = client.get("/login")
    print(reply.cookies["form"], dict(client.cookies))
    print(client.post("/in", json={"form": client.cookies["form"]}).text)
    with client.stream("GET", "/me?token=" + reply.headers["x-auth-token"]) as me:
        print(me.read().decode())
    print(client.get("/digest", auth=httpx.DigestAuth("user", "word")).status_code)
"""
AIOHTTP = """
import asyncio, sys, aiohttp
async def main(address):
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(address + "/login") as reply:
            token = reply.headers["X-Auth-Token"]
            print(reply.cookies["form"].value, sorted(cookie.key for cookie in session.cookie_jar))
        async with session.post(address + "/in", json={"form": token}) as reply:
            print(await reply.text())
        async with session.get(address + "/me?token=" + token) as reply:
            print(await reply.text())
asyncio.run(main(sys.argv[1]))
"""
URLLIB = """
import http.cookiejar, sys, urllib.parse, urllib.request
address, jar = sys.argv[1], http.cookiejar.CookieJar()
client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
client.open(address + "/login").read()
cookies = {cookie.name: cookie.value for cookie in jar}
print(cookies)
print(client.open(address + "/in", data=urllib.parse.urlencode(cookies).encode()).read())
print(client.open(address + "/me").read())
"""


@pytest.mark.parametrize("program", [REQUESTS, HTTPX, AIOHTTP, URLLIB], ids=["requests", "httpx", "aiohttp", "urllib"])
def test_a_program_reads_sends_and_prints_what_a_login_gave_it(
    desk: Desk, door: ThreadingHTTPServer, program: str
) -> None:
    for library in ("requests", "aiohttp"):
        if f"import {library}" in program or f", {library}" in program:
            pytest.importorskip(library)
    desk.write("agent.py", program)
    live = desk.reenact("run", "--", "python", "agent.py", f"http://127.0.0.1:{door.server_port}")
    assert "welcome" in live.stdout
    assert "True" in live.stdout
    assert "replayable: exact" in live.stderr
    door.shutdown()
    door.server_close()
    again = desk.reenact("replay", "last")
    assert again.returncode == 0, again.stderr
    assert "same: " in again.stderr
    assert "theme" in again.stdout
    kept = b"".join(path.read_bytes() for path in desk.folder.rglob("*") if path.is_file())
    assert SECRETS
    assert not [secret for secret in SECRETS if secret.encode() in kept or secret in again.stdout]
