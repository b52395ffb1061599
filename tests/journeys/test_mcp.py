"""An MCP server that is started over stdio: its tools are tools of the run, and a replay starts nothing."""

from __future__ import annotations

import json

import pytest

from desk import Desk

SERVER = """
import json, pathlib, random, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def called(name, arguments, token):
    with open("effects.txt", "a") as file:
        file.write(f"{name} {arguments}\\n")
    if token is not None:
        for step in range(2):
            told = {"progressToken": token, "progress": step, "message": str(random.random())}
            say(method="notifications/progress", params=told)
    return {"content": [{"type": "text", "text": f"{arguments} {random.random()}"}]}

for line in sys.stdin:
    asked = json.loads(line)
    params = asked.get("params", {})
    match asked["method"]:
        case "initialize":
            told = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
            say(id=asked["id"], result={**told, "serverInfo": {"name": "weather", "version": "1"}})
        case "tools/list":
            tool = {"name": "get_weather", "inputSchema": {"type": "object"}}
            say(id=asked["id"], result={"tools": [tool]})
        case "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            say(id=asked["id"], result=called(params["name"], params.get("arguments"), token))
        case "resources/read":
            say(id=asked["id"], error={"code": -32002, "message": f"none {random.random()}"})
"""
CLIENT = """
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def progress(done, total, message):
    print("progress", done, message)

async def main():
    command = StdioServerParameters(command=sys.executable, args=["server.py"])
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        print((await session.initialize()).server_info.name)
        print(len((await session.list_tools()).tools))
        print((await session.call_tool("get_weather", {"city": os.environ.get("CITY", "Oslo")})).content[0].text)
        print((await session.call_tool("get_weather", {"city": "Bergen"}, progress_callback=progress)).content[0].text)
        try:
            await session.read_resource("bad://mine")
        except Exception as error:
            print(type(error).__name__, error)

asyncio.run(main())
"""


@pytest.fixture
def recorded(desk: Desk) -> Desk:
    desk.write("server.py", SERVER)
    desk.write("client.py", CLIENT)
    done = desk.reenact("run", "--", "python", "client.py")
    assert done.returncode == 0, done.stderr
    assert "2 tool" in done.stderr
    assert "replayable: exact" in done.stderr
    assert (desk.folder / "effects.txt").read_text().splitlines() == [
        "get_weather {'city': 'Oslo'}",
        "get_weather {'city': 'Bergen'}",
    ]
    (desk.folder / "effects.txt").unlink()
    (desk.folder / "server.py").unlink()
    desk.write("said.txt", done.stdout)
    return desk


def test_a_session_replays_without_its_server_and_another_argument_diverges(recorded: Desk) -> None:
    again = recorded.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, (recorded.folder / "said.txt").read_text()), again.stderr
    assert "same: " in again.stderr
    calls = json.loads(recorded.reenact("show", "last", "--json").stdout)["calls"]
    tool = next(call for call in calls if call["name"] == "get_weather")
    told = tool["attributes"]
    assert (tool["kind"], told["tool.name"], told["mcp.method.name"]) == ("tool", "get_weather", "tools/call")
    assert (told["gen_ai.operation.name"], told["network.transport"]) == ("execute_tool", "pipe")
    failed = next(call for call in calls if call["name"] == "resources/read")
    assert failed["kind"] == "retriever"
    assert failed["attributes"]["mcp.resource.uri"] == "bad://mine"
    other = recorded.reenact(
        "replay", "last", "--json", "--", "python", "client.py", environ=recorded.settings() | {"CITY": "Rome"}
    )
    first = json.loads(other.stdout)["divergences"][0]
    assert (other.returncode, first["field"], first["a"], first["b"]) == (1, "arguments.city", "Oslo", "Rome")
    assert first["call"] == "tool get_weather #5"
    assert not (recorded.folder / "effects.txt").exists()


HOOKED = """
import asyncio, sys
from httpx2 import AsyncClient
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

async def look(request):
    print("asks", request.method)

async def main(hooks):
    try:
        async with AsyncClient(event_hooks=hooks, timeout=5) as client:
            async with streamable_http_client("http://127.0.0.1:9/mcp", http_client=client) as streams:
                async with ClientSession(*streams[:2]) as session:
                    await session.initialize()
    except BaseException as error:
        print("no server")

asyncio.run(main({"request": [look]} if "hooked" in sys.argv else {}))
"""


@pytest.mark.always
@pytest.mark.parametrize("word", ["hooked", "plain"])
def test_code_of_the_agent_s_inside_a_connection_is_named_beforehand(desk: Desk, word: str) -> None:
    pytest.importorskip("httpx2")
    desk.write("agent.py", HOOKED)
    done = desk.reenact("run", "--", "python", "agent.py", word)
    assert ("inside the transport (http_client)" in done.stderr) == (word == "hooked"), done.stderr
    assert ("asks POST" in done.stdout, "no server" in done.stdout) == (word == "hooked", True)
    again = desk.reenact("replay", "last")
    told = "passed over: " in again.stderr and "inside calls" in again.stderr
    assert (again.returncode, told, again.stdout != done.stdout) == (0, word == "hooked", word == "hooked")
