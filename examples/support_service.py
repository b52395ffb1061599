"""Somebody else's order, as a service.

The order desk of `order_desk.py` behind FastAPI, for many customers at a time. The model leaves the optional user_id
out of `lookup_order` now and then, and one customer reads a stranger's address. Each request is a run of its own.

    export REENACT_USER_HEADER=x-user-id            # who a request is for, as your own gateway says it
    python -m reenact.demo.provider -- reenact run -- uvicorn --app-dir examples support_service:app
    curl --json '{"question": "Where is my order?"}' -H 'x-user-id: u-17' http://127.0.0.1:8000/ask
    reenact ls --user u-17                          # find her run
    reenact replay RUN                              # her request alone, delivered again: no port, no worker, no network

`python examples/support_service.py` serves as well; ORDER_GUARD=1 is the fixed service.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

import reenact

MODEL = os.environ.get("MODEL", "stand-in-order-desk")
ORDERS = [
    {"order_id": f"44{number:02}", "user_id": f"u-{number:02}", "updated": f"2026-11-{number % 27 + 1:02}"}
    for number in range(60)
]
PARAMETERS = {"lookup_order": ("query", "user_id"), "order_status": ("order_id",)}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": "string"} for parameter in parameters},
                "required": [parameters[0]],
            },
        },
    }
    for name, parameters in PARAMETERS.items()
]


class Question(BaseModel):
    """What a customer asks."""

    question: str = "Where is my order?"


@reenact.tool
def lookup_order(query: str, user_id: str | None = None) -> list[dict[str, str]]:
    """Find open orders; give a user_id to find only that customer's."""
    return [order for order in ORDERS if query and user_id in (None, order["user_id"])]


@reenact.tool
def order_status(order_id: str) -> dict[str, str]:
    """Tell what is in an order and where it goes."""
    order = next(order for order in ORDERS if order["order_id"] == order_id)
    return {**order, "goods": f"parcel {order_id}", "address": f"Quay {int(order_id) % 100}"}


def use(name: str, arguments: dict[str, Any], user: str) -> Any:
    """Use a tool for the model."""
    if name == "lookup_order" and os.environ.get("ORDER_GUARD"):
        arguments["user_id"] = user
    return {"lookup_order": lookup_order, "order_status": order_status}[name](**arguments)


def opening(question: str, user: str) -> list[Any]:
    """Begin a conversation."""
    system = f"You are the order desk. You are talking to the customer {user}."
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def results(message: Any, user: str) -> list[Any]:
    """Do what the model asked for."""
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    return [
        {"role": "tool", "tool_call_id": call_id, "content": json.dumps(use(name, arguments, user))}
        for call_id, name, arguments in calls
    ]


async def answer(question: str, user: str) -> tuple[str, list[Any]]:
    """Answer a customer's question; gives the conversation too."""
    messages = opening(question, user)
    while True:
        reply = await app.state.client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or "", messages
        messages += results(message, user)


@asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncIterator[None]:
    """Keep one client for all requests."""
    service.state.client = AsyncOpenAI()
    yield
    await service.state.client.close()


app = FastAPI(lifespan=lifespan)
User = Annotated[str, Header(alias="x-user-id")]


@app.get("/health")
async def health() -> dict[str, str]:
    """Say that the service is up; nobody is asked, so this is no run."""
    return {"status": "ok"}


@app.post("/ask")
async def ask(asked: Question, user: User) -> dict[str, str]:
    """Answer in one piece."""
    said, _ = await answer(asked.question, user)
    return {"user": user, "answer": said}


@app.post("/ask/threaded")
def ask_threaded(asked: Question, user: User) -> dict[str, str]:
    """Answer from a thread of the pool, with the synchronous client."""
    messages, client = opening(asked.question, user), OpenAI()
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return {"user": user, "answer": message.content or ""}
        messages += results(message, user)


@app.post("/ask/stream")
async def ask_stream(asked: Question, user: User) -> StreamingResponse:
    """Answer word by word, as server-sent events."""

    async def events() -> AsyncIterator[str]:
        _, messages = await answer(asked.question, user)
        stream = await app.state.client.chat.completions.create(model=MODEL, messages=messages[:-1], stream=True)
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                yield f"data: {json.dumps(chunk.choices[0].delta.content)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
