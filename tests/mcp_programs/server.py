"""An MCP server for tests, on whichever SDK is installed: over stdio, or over HTTP at the port that it is given.

Each thing that it does for a client is a line in the file that EFFECTS names, and all that it says is drawn anew.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import sys
from typing import Any

try:
    from mcp.server.fastmcp import Context, FastMCP, Image

    first = True
except ImportError:
    from mcp.server import MCPServer as FastMCP
    from mcp.server.mcpserver import Context, Image

    first = False

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server: Any = FastMCP("weather", **({"port": PORT, "log_level": "ERROR"} if first else {}))


def effect(what: str) -> None:
    with open(os.environ["EFFECTS"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool()
def get_weather(city: str) -> str:
    effect(f"get_weather {city}")
    return f"{city}: {random.randint(-1000, 1000)}"


@server.tool()
def add(a: int, b: int) -> dict[str, float]:
    effect("add")
    return {"sum": a + b, "salt": random.random()}


@server.tool()
def draw() -> Image:
    effect("draw")
    return Image(data=random.randbytes(64), format="png")


@server.tool()
def fail(why: str) -> str:
    effect("fail")
    raise ValueError(f"{why} {random.random()}")


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:
    effect("slow")
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {random.random()}")
        await asyncio.sleep(seconds / 3)
    await ctx.info(f"log {random.random()}")
    return f"slept {random.random()}"


@server.tool()
def crash() -> str:
    effect("crash")
    os._exit(3)


@server.resource("note://{name}")
def note(name: str) -> str:
    effect("note")
    return f"{name} {random.random()}"


@server.prompt()
def ask(topic: str) -> str:
    effect("ask")
    return f"Tell me of {topic} {random.random()}"


if __name__ == "__main__":
    effect("start")
    if not PORT:
        server.run()
    elif "port" in inspect.signature(server.run_streamable_http_async).parameters:
        server.run("streamable-http", port=PORT)
    else:
        server.run("streamable-http")
