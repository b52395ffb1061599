"""An agent whose one tool is an MCP server's, in the framework that FRAMEWORK names, against a model at MODEL_URL."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

SERVER: Any = {"command": sys.executable, "args": ["server.py"], "env": {"EFFECTS": os.environ["EFFECTS"]}}
QUESTION = "How is the weather in Oslo and Bergen?"


async def openai_agents() -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("stand-in", AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="none"))
    async with MCPServerStdio(params=SERVER, client_session_timeout_seconds=60) as server:
        agent = Agent(name="weather", instructions="Tell.", model=model, mcp_servers=[server])
        return (await Runner.run(agent, QUESTION)).final_output


async def langchain() -> Any:
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_openai import ChatOpenAI

    client: Any = MultiServerMCPClient({"weather": {**SERVER, "transport": "stdio"}})
    model = ChatOpenAI(model="stand-in", base_url=os.environ["MODEL_URL"], api_key="none")
    agent: Any = create_agent(model, await client.get_tools())
    done = await agent.ainvoke({"messages": [("user", QUESTION)]})
    return done["messages"][-1].content


async def pydantic_ai() -> Any:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("stand-in", provider=OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="none"))
    server: Any = MCPToolset(StdioTransport(SERVER["command"], SERVER["args"], env=SERVER["env"]))
    agent = Agent(model, toolsets=[server])
    return (await agent.run(QUESTION)).output


print(asyncio.run(globals()[os.environ["FRAMEWORK"]]()))
