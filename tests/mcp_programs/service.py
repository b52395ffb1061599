"""A service that opens a session with a server when it starts, and asks itself for the weather of three cities."""

from __future__ import annotations

import os
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

COMMAND = StdioServerParameters(command=sys.executable, args=["server.py"], env={"EFFECTS": os.environ["EFFECTS"]})


@asynccontextmanager
async def opened(started: FastAPI) -> AsyncIterator[None]:
    async with stdio_client(COMMAND) as streams, ClientSession(*streams) as session:
        await session.initialize()
        started.state.session = session
        yield


app = FastAPI(lifespan=opened)


@app.get("/weather/{city}")
async def weather(city: str) -> str:
    return (await app.state.session.call_tool("get_weather", {"city": city})).content[0].text


def ask(server: uvicorn.Server) -> None:
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    for city in ("Oslo", "Bergen", "Oslo"):
        print(urllib.request.urlopen(f"http://127.0.0.1:{port}/weather/{city}").read().decode())
    server.should_exit = True


if __name__ == "__main__":
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    threading.Thread(target=ask, args=(server,), daemon=True).start()
    server.run()
