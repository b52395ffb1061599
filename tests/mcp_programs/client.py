"""A program on the MCP SDK, of either version, that does all that a session can do with `server.py`.

python client.py                     the server is started, over stdio
python client.py http://HOST:PORT/mcp
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import sys
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client

CITY = os.environ.get("CITY", "Oslo")
TOOL = os.environ.get("TOOL", "get_weather")
first = hasattr(streamable_http, "streamablehttp_client")


@asynccontextmanager
async def streams() -> Any:
    if len(sys.argv) > 1:
        async with streamable_http.streamable_http_client(sys.argv[1]) as given:
            yield given
    else:
        command = StdioServerParameters(command=sys.executable, args=["server.py"], env=dict(os.environ))
        async with stdio_client(command) as given:
            yield given


async def progress(done: float, total: float | None, message: str | None) -> None:
    print("progress", done, total, message)


async def log(params: Any) -> None:
    print("log", params.level, params.data)


async def tried(doing: Any) -> None:
    try:
        print(await doing)
    except Exception as error:
        print(type(error).__name__, error)


async def main() -> None:
    async with streams() as given, ClientSession(*given[:2], logging_callback=log) as session:
        print((await session.initialize()).model_dump_json())
        if len(given) > 2:
            print(given[2]())
        print(*sorted(tool.name for tool in (await session.list_tools()).tools))
        print((await session.call_tool(TOOL, {"city": CITY})).content)
        for name, arguments in {"add": {"a": 1, "b": 2}, "draw": {}, "fail": {"why": "no"}, "none": {}}.items():
            await tried(session.call_tool(name, arguments))
        print(await session.call_tool("slow", {"seconds": 0.3}, progress_callback=progress))
        side_by_side = (session.call_tool("get_weather", {"city": city}) for city in ("Bergen", "Bodø", "Bodø"))
        print(*[result.content for result in await asyncio.gather(*side_by_side)], sep="\n")
        await tried(session.read_resource("note://mine"))
        await tried(session.read_resource("bad://mine"))
        await tried(session.get_prompt("ask", {"topic": "rain"}))
        soon: Any = dt.timedelta(seconds=0.3) if first else 0.3
        await tried(session.call_tool("slow", {"seconds": 60}, read_timeout_seconds=soon))
        given_up = asyncio.create_task(session.call_tool("slow", {"seconds": 60}))
        await asyncio.sleep(0.2)
        given_up.cancel()
        print(await asyncio.gather(given_up, return_exceptions=True))
        if os.environ.get("CRASH"):
            await tried(session.call_tool("crash", {}))
            await tried(session.call_tool("get_weather", {"city": "Oslo"}))


asyncio.run(main())
print("done")
