"""Somebody else's order.

A customer asks "where is my order?". The model calls `lookup_order("my order")` and leaves the optional user_id out, so
the tool finds every open order, and the model takes the most recent one: #4421, which belongs to somebody else. The
customer reads a stranger's goods and address. The tool did what it was told; the missing argument is in the recording.

    python -m reenact.demo.provider -- reenact run -- python examples/order_desk.py    # record; about every other slips
    reenact replay last                                                                # the same answer, offline
    reenact replay last -- python examples/order_desk.py --guarded                     # where does the fix step in?

With `--slip 1` before the first `--` it slips at once. `--guarded`, or ORDER_GUARD=1, is the fixed agent: its tool
layer fills in who is asking.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from openai import OpenAI

import reenact

MODEL = os.environ.get("MODEL", "stand-in-order-desk")
ORDERS = [
    {"order_id": "4417", "user_id": "u-09", "updated": "2026-11-18", "goods": "a desk lamp", "address": "Elm Road 3"},
    {"order_id": "4421", "user_id": "u-23", "updated": "2026-11-20", "goods": "a wedding ring", "address": "Hill St 8"},
    {"order_id": "4430", "user_id": "u-17", "updated": "2026-11-19", "goods": "two bookshelves", "address": "Quay 41"},
]


@reenact.tool
def lookup_order(query: str, user_id: str | None = None) -> list[dict[str, str]]:
    """Find open orders; give a user_id to find only that customer's."""
    found = [order for order in ORDERS if user_id in (None, order["user_id"])]
    return [{key: order[key] for key in ("order_id", "updated")} for order in found if query]


@reenact.tool
def order_status(order_id: str) -> dict[str, str]:
    """Tell what is in an order and where it goes."""
    return next(order for order in ORDERS if order["order_id"] == order_id)


TOOLS = {"lookup_order": lookup_order, "order_status": order_status}
PARAMETERS = {"lookup_order": ("query", "user_id"), "order_status": ("order_id",)}


def schema(name: str) -> Any:
    """Describe a tool to the model; the first parameter is required."""
    properties = {parameter: {"type": "string"} for parameter in PARAMETERS[name]}
    parameters = {"type": "object", "properties": properties, "required": [PARAMETERS[name][0]]}
    return {
        "type": "function",
        "function": {"name": name, "description": TOOLS[name].__doc__, "parameters": parameters},
    }


@reenact.agent
def answer(question: str, user: str) -> str:
    """Answer a customer's question."""
    system = f"You are the order desk. You are talking to the customer {user}."
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    tools, client = [schema(name) for name in TOOLS], OpenAI()
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            name, arguments = call.function.name, json.loads(call.function.arguments)
            if name == "lookup_order" and os.environ.get("ORDER_GUARD"):
                arguments["user_id"] = user
            result = TOOLS[name](**arguments)
            print(f"  {name} {arguments} -> {result}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def main() -> None:
    """Ask once."""
    parser = argparse.ArgumentParser(description="The order desk.")
    parser.add_argument("question", nargs="?", default="Where is my order?")
    parser.add_argument("--user", default="u-17", help="the customer who asks")
    parser.add_argument("--guarded", action="store_true", help="always look up as the customer who asks")
    options = parser.parse_args()
    if options.guarded:
        os.environ["ORDER_GUARD"] = "1"
    print(f"{options.user}: {options.question}")
    with reenact.run("order desk", user=options.user, session="s-2", tenant="acme"):
        print(f"desk: {answer(options.question, options.user)}")


if __name__ == "__main__":
    main()
