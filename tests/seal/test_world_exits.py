"""The ways out of a sealed world: what is let out is reached by every client as outside, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reenact.seal import launch
from seal import servers

LIMIT_S = 60
Way = dict[str, Any]
Run = Callable[..., subprocess.CompletedProcess[str]]


class World:
    """A sealed world with ways out, and what its relay told."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._upper = folder, folder / "upper"
        self.told = folder / "told.jsonl"

    def run(
        self, argv: list[str], ways: list[Way], *, environ: dict[str, str] | None = None, sockets: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program there."""
        self._upper.mkdir()
        order, answer = self._folder / "order.json", self._folder / "answer.jsonl"
        world = {"upper": str(self._upper), "sockets": [*sockets]}
        said = {"argv": argv, "cwd": "/", "world": world, "answer": str(answer), "ways": ways, "told": str(self.told)}
        order.write_text(json.dumps(said))
        done = subprocess.run(
            launch.command(order),
            env={**os.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        told = [json.loads(line) for line in answer.read_text().splitlines()]
        if refused := [each["refused"] for each in told if "refused" in each]:
            pytest.skip(f"no sealed world can be made here: {refused[0]}")
        return done

    def entries(self) -> list[dict[str, Any]]:
        """Give what the relay told."""
        return [json.loads(line) for line in self.told.read_text().splitlines()] if self.told.exists() else []

    def close(self) -> None:
        """Let it go."""
        subprocess.run(["chmod", "-R", "u+rwx", str(self._upper)], check=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


def to(port: int, host: str = "127.0.0.1", **more: Any) -> Way:
    return {"host": host, "port": port, **more}


CLIENTS = {
    "requests": "import requests; print(requests.get(URL, verify=CA).text)",
    "httpx over HTTP/2": (
        "import httpx\n"
        "answer = httpx.Client(http2=True, verify=CA).get(URL)\n"
        "assert answer.http_version == 'HTTP/2', answer.http_version\nprint(answer.text)"
    ),
    "aiohttp": (
        "import aiohttp, asyncio, ssl\n"
        "async def main():\n"
        "    async with aiohttp.ClientSession() as session:\n"
        "        async with session.get(URL, ssl=ssl.create_default_context(cafile=CA)) as answer:\n"
        "            print(await answer.text())\n"
        "asyncio.run(main())"
    ),
    "urllib": (
        "import ssl, urllib.request as u\n"
        "print(u.urlopen(URL, context=ssl.create_default_context(cafile=CA)).read().decode())"
    ),
    "curl": "import subprocess; subprocess.run(['curl', '-sS', '--cacert', CA, URL], check=True)",
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_named_host_is_reached_over_tls_by_every_client(world: World, tmp_path: Path, name: str) -> None:
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    host = socket.gethostname().lower()
    with suppress(OSError):
        socket.getaddrinfo(host, 1)
        made, key = servers.certificate(tmp_path, host)
        with servers.server(servers.over_tls(made, key), "0.0.0.0") as (port, heard):
            code = f"URL, CA = 'https://{host}:{port}/', {str(made)!r}\n{CLIENTS[name]}"
            done = world.run(python(code), [to(port, host)])
        assert (done.returncode, done.stdout.strip()) == (0, "two" if "2" in name or name == "curl" else "http"), done
        assert len(heard) == len(world.entries()) == 1
        assert world.entries()[0].items() >= {"t": "reached", "host": host, "port": port}.items()
        return
    pytest.skip("this machine does not find itself by its name")


REFUSED = """
import ctypes, socket, struct
def tried(address, family=socket.AF_INET):
    with socket.socket(family) as talk:
        talk.settimeout(5)
        try:
            talk.connect(address)
        except OSError as error:
            return error.errno
def native(port):
    libc = ctypes.CDLL(None, use_errno=True)
    told = (2).to_bytes(2, "little") + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
    return libc.connect(libc.socket(2, 1, 0), told, 16) and ctypes.get_errno()
print(tried(("127.0.0.1", OTHER)), native(OTHER), tried(("10.255.0.1", 80)), tried(("::1", OTHER), socket.AF_INET6))
try:
    socket.getaddrinfo("a-host-of-somebody.example", 443)
except socket.gaierror:
    print("unknown")
print(socket.create_connection(("127.0.0.1", PORT)).recv(9))
"""


def test_what_is_not_let_out_hears_nothing(world: World) -> None:
    with servers.server(servers.greet) as (port, heard), servers.server(servers.nothing) as (other, unheard):
        done = world.run(python(f"PORT, OTHER = {port}, {other}\n{REFUSED}"), [to(port)])
        alone = world.entries()
    refused, unreachable = 111, {"101", "111", "113"}
    first, second, third, fourth = done.stdout.splitlines()[0].split()
    assert (int(first), int(second)) == (refused, refused), done.stderr
    assert {third, fourth} <= unreachable | {"99", "97"}
    assert done.stdout.splitlines()[1:] == ["unknown", "b'hello'"]
    assert (len(heard), unheard) == (1, [])
    assert [(each["host"], each["port"]) for each in alone] == [("127.0.0.1", port)]


STREAMS = """
import concurrent.futures, httpx
with httpx.Client(limits=httpx.Limits(max_connections=50), timeout=30) as client:
    def read(number):
        with client.stream("GET", f"http://127.0.0.1:{PORT}/stream/{number}") as answer:
            return [*answer.iter_lines()] == [f"/stream/{number} {each}" for each in range(50)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        print(sum(pool.map(read, range(20))))
"""


def test_twenty_streams_at_once_come_whole(world: World) -> None:
    with servers.web() as port:
        done = world.run(python(f"PORT = {port}\n{STREAMS}"), [to(port)])
    assert done.stdout == "20\n", done.stderr


BACK = """
import hashlib, os, socket, threading
data = os.urandom(1 << 16) * 320
talk = socket.create_connection(("127.0.0.1", PORT))
def send():
    talk.sendall(data)
    talk.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = b"".join(iter(lambda: talk.recv(1 << 18), b""))
print(hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), len(got))
"""


def test_the_end_of_one_direction_leaves_the_other_and_twenty_megabytes_come_back(world: World) -> None:
    with servers.server(servers.everything_back) as (port, _):
        done = world.run(python(f"PORT = {port}\n{BACK}"), [to(port)])
    assert done.stdout == f"True {320 << 16}\n", done.stderr


def test_a_sender_is_held_up_where_nobody_reads(world: World) -> None:
    waits = threading.Event()
    code = (
        "import socket; talk = socket.create_connection(('127.0.0.1', PORT)); talk.settimeout(1); sent = 0\n"
        "try:\n    while True: sent += talk.send(bytes(1 << 16))\n"
        "except TimeoutError: print(sent < 64 << 20)"
    )
    with servers.server(lambda _: waits.wait(LIMIT_S) and None) as (port, _):
        done = world.run(python(f"PORT = {port}\n{code}"), [to(port)])
        waits.set()
    assert done.stdout == "True\n", done.stderr


def reset(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_reset_is_a_reset_and_a_host_that_is_gone_is_no_answer(world: World) -> None:
    code = (
        "import socket\n"
        "for port in PORTS:\n"
        "    talk = socket.create_connection(('127.0.0.1', port))\n"
        "    try: talk.sendall(b'x'); print(talk.recv(9))\n"
        "    except ConnectionError as error: print(type(error).__name__)"
    )
    with servers.server(reset) as (port, _):
        with servers.server(servers.nothing) as (gone, _):
            pass
        done = world.run(python(f"PORTS = {port}, {gone}\n{code}"), [to(port), to(gone)])
    assert done.stdout == "ConnectionResetError\nConnectionResetError\n", done.stderr
    assert [each.get("error") for each in world.entries()] == [None, "Connection refused"]


def test_what_a_program_sent_before_it_ended_is_delivered(world: World) -> None:
    got: list[bytes] = []
    whole = threading.Event()

    def read(connection: socket.socket) -> None:
        got.append(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
        whole.set()

    code = "import os, socket; socket.create_connection(('127.0.0.1', PORT)).sendall(b'last words'); os._exit(3)"
    with servers.server(read) as (port, _):
        done = world.run(python(f"PORT = {port}\n{code}"), [to(port)])
        assert whole.wait(LIMIT_S)
    assert (done.returncode, got) == (3, [b"last words"])


def test_a_unix_socket_that_is_named_is_reached_and_its_neighbour_is_not(world: World, tmp_path: Path) -> None:
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX) as let_out, socket.socket(socket.AF_UNIX) as other:
        for talk, name in ((let_out, "let-out"), (other, "other")):
            talk.bind(str(tmp_path / name))
            talk.listen()

            def serve(talk: socket.socket = talk, name: str = name) -> None:
                with suppress(OSError):
                    while True:
                        talk.accept()[0].close()
                        heard.append(name)

            threading.Thread(target=serve, daemon=True).start()
        code = (
            "import os, socket\n"
            "for name in ('let-out', 'other'):\n"
            "    print(socket.socket(socket.AF_UNIX).connect_ex(os.path.join(FOLDER, name)))"
        )
        done = world.run(python(f"FOLDER = {str(tmp_path)!r}\n{code}"), [], sockets=(str(tmp_path / "let-out"),))
        for talk in (let_out, other):
            talk.shutdown(socket.SHUT_RDWR)
    assert done.stdout == "0\n111\n", done.stderr
    assert heard == ["let-out"]


def tunnel(connection: socket.socket) -> None:
    """Be a proxy that opens every tunnel."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    servers.greet(connection)


PROXIED = """
import socket
for line in LINES:
    talk = socket.create_connection(("127.0.0.1", PORT))
    talk.sendall(line.encode() + b"\\r\\n\\r\\n")
    got = b"".join(iter(lambda: talk.recv(99), b""))
    print(got.split(b" ")[1].decode(), got.endswith(b"hello"))
"""


def test_a_proxy_of_the_environment_opens_tunnels_to_allowed_hosts_alone(world: World) -> None:
    lines = [
        "CONNECT api.example.com:443 HTTP/1.1",
        "CONNECT other.example.com:443 HTTP/1.1",
        "CONNECT api.example.com:22 HTTP/1.1",
        "GET http://other.example.com/ HTTP/1.1",
    ]
    with servers.server(tunnel) as (port, heard):
        way = to(port, only=[["api.example.com", 443]])
        done = world.run(python(f"PORT, LINES = {port}, {lines}\n{PROXIED}"), [way])
    assert done.stdout.splitlines() == ["200 True", "403 False", "403 False", "403 False"], done.stderr
    assert len(heard) == 1
    assert [each["t"] for each in world.entries()] == ["reached", "kept in", "kept in", "kept in"]


def test_the_relay_is_gone_when_the_world_is_killed(tmp_path: Path) -> None:
    with servers.server(servers.greet) as (port, _):
        (tmp_path / "upper").mkdir()
        order, answer = tmp_path / "order.json", tmp_path / "answer.jsonl"
        world = {"upper": str(tmp_path / "upper")}
        argv = ["/bin/sh", "-c", "echo started; sleep 300"]
        said = {
            "argv": argv,
            "cwd": "/",
            "world": world,
            "answer": str(answer),
            "ways": [to(port)],
            "told": "/dev/null",
        }
        order.write_text(json.dumps(said))
        with subprocess.Popen(launch.command(order), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if process.stdout.readline() != "started\n":
                pytest.skip(f"no sealed world can be made here: {answer.read_text()}")
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert len(children) == 2, "process 1 of the world, and the relay"
            process.kill()
            process.wait()
        for child in children:
            subprocess.run(["tail", f"--pid={child}", "-f", "/dev/null"], check=True, timeout=LIMIT_S)
    subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path / "upper")], check=False)
