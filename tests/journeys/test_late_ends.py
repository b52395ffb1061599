"""A reply whose end comes by itself, later than its last piece: in a replay, too, who reads on hears of it then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from desk import Desk

pytest.importorskip("aiohttp")

SERVER = """
import asyncio

async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    is_long = head.startswith(b"GET /long")
    writer.write(b"HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n4\\r\\nwait\\r\\n")
    await writer.drain()
    await asyncio.sleep(0.6 if is_long else 0.2)
    writer.write(b"0\\r\\n\\r\\n")
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
AGENT = """
import asyncio, os
import aiohttp

async def read(session, name):
    async with session.get(f"http://127.0.0.1:{os.environ['PORT']}/{name}") as reply:
        async for piece in reply.content.iter_any():
            print(name, piece)
        print(name, "is over")

async def main():
    async with aiohttp.ClientSession() as session:
        first = asyncio.create_task(read(session, "long"))
        await asyncio.sleep(0.1)
        await asyncio.gather(first, read(session, "short"))

asyncio.run(main())
"""


@pytest.fixture
def server(desk: Desk) -> Iterator[subprocess.Popen[str]]:
    desk.write("server.py", SERVER)
    argv = [sys.executable, "server.py"]
    with subprocess.Popen(argv, cwd=desk.folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        desk.environ["PORT"] = server.stdout.readline().strip()
        yield server
        server.kill()


@pytest.mark.always
def test_an_end_that_came_by_itself_has_its_recorded_place(desk: Desk, server: subprocess.Popen[str]) -> None:
    desk.write("agent.py", AGENT)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.stdout.splitlines()[-2:] == ["short is over", "long is over"], live.stderr
    server.kill()
    server.wait()
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
