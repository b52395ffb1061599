"""A program on fastmcp whose server asks back: it has the client think, and the user answer.

python asked.py                      the server is started, over stdio
python asked.py http://HOST:PORT/mcp
python asked.py serve [PORT]         is the server
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any

from fastmcp import Client, Context, FastMCP

server = FastMCP("desk")
ANSWER = os.environ.get("ANSWER", "deep")


def effect(what: str) -> None:
    with open(os.environ["EFFECTS"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool
def get_weather(city: str) -> str:
    effect(f"get_weather {city}")
    return f"{city} {random.random()}"


@server.tool
async def think(about: str, ctx: Context) -> str:
    effect("think")
    said: Any = await ctx.sample(f"think of {about} {random.random()}")
    return f"thought: {said.text} {random.random()}"


@server.tool
async def decide(about: str, ctx: Context) -> str:
    effect("decide")
    said = await ctx.elicit(f"{about} {random.random()}", response_type=str)
    return f"{said.action} {getattr(said, 'data', None)}"


async def sampling(messages: Any, _params: Any, _context: Any) -> str:
    print("sampling", messages[0].content.text)
    return ANSWER


async def elicitation(message: str, _type: Any, _params: Any, _context: Any) -> dict[str, str]:
    print("elicitation", message)
    return {"value": "yes"}


async def main() -> None:
    if len(sys.argv) > 1:
        reached: Any = sys.argv[1]
    else:
        reached = {"mcpServers": {"desk": {"command": sys.executable, "args": [str(Path("served.py")), "serve"]}}}
        reached["mcpServers"]["desk"]["env"] = dict(os.environ)
    async with Client(reached, sampling_handler=sampling, elicitation_handler=elicitation) as client:
        print(*[tool.name for tool in await client.list_tools()])
        for name, about in (("get_weather", "city"), ("think", "about"), ("decide", "about"), ("none", "about")):
            try:
                print((await client.call_tool(name, {about: "Oslo"})).data)
            except Exception as error:
                print(type(error).__name__, error)


if sys.argv[1:2] == ["serve"]:
    effect("start")
    if len(sys.argv) > 2:
        server.run(transport="http", port=int(sys.argv[2]), show_banner=False)
    else:
        server.run(show_banner=False)
else:
    asyncio.run(main())
    print("done")
