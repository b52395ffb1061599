"""A thousand dollars, a thousand shares.

A customer says "sell $1,000 worth of ACME". At some two hundred dollars a share that is four shares. Now and then the
model writes quantity=1000, the tool places the order, and the model reports $1,000 worth as sold. The order book knows
better, and so does the recording.

    python -m reenact.demo.provider -- reenact run -- python examples/trader_agent.py    # record; repeat until it slips
    reenact replay last                                                     # the same run offline; no order is placed
    reenact replay last -- python examples/trader_agent.py --guarded        # would the fix have stopped it?

With `--slip 1` before the first `--` it slips at once. `--orders`, or TRADER_ORDERS, is the order book, a file of JSON
lines (by default a scratch file). `--guarded`, or TRADER_GUARD=1, is the fixed agent: no order above $2,000 unasked.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

from openai import OpenAI

import reenact

MODEL = os.environ.get("MODEL", "stand-in-trader")
LIMIT = 2_000.00
TEXT, NUMBER, SIDE = {"type": "string"}, {"type": "integer"}, {"type": "string", "enum": ["buy", "sell"]}
PARAMETERS: dict[str, dict[str, Any]] = {
    "get_quote": {"symbol": TEXT},
    "place_order": {"symbol": TEXT, "side": SIDE, "quantity": NUMBER},
}


@functools.cache
def order_book() -> Path:
    """The file that orders are appended to."""
    return Path(os.environ.get("TRADER_ORDERS") or Path(tempfile.mkdtemp(prefix="trader-")) / "orders.jsonl")


@reenact.tool
def get_quote(symbol: str) -> dict[str, Any]:
    """Give the last price of a share, in dollars."""
    return {"symbol": symbol, "last": round(random.gauss(208.40, 1.5), 2)}


@reenact.tool
def place_order(symbol: str, side: str, quantity: int) -> dict[str, Any]:
    """Place a market order; the quantity is a number of shares."""
    order = {"order": f"o-{random.randrange(10**6):06}", "symbol": symbol, "side": side, "quantity": quantity}
    with order_book().open("a") as book:
        book.write(json.dumps(order) + "\n")
    return order | {"status": "filled"}


TOOLS = {"get_quote": get_quote, "place_order": place_order}


def schema(name: str) -> Any:
    """Describe a tool to the model."""
    parameters = {"type": "object", "properties": PARAMETERS[name], "required": [*PARAMETERS[name]]}
    return {
        "type": "function",
        "function": {"name": name, "description": TOOLS[name].__doc__, "parameters": parameters},
    }


@reenact.agent
def trade(request: str) -> str:
    """Carry out a customer's request."""
    messages: list[Any] = [{"role": "system", "content": "You are a trader."}, {"role": "user", "content": request}]
    tools, client, last = [schema(name) for name in TOOLS], OpenAI(), 0.0
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            name, arguments = call.function.name, json.loads(call.function.arguments)
            worth = arguments.get("quantity", 0) * last
            if os.environ.get("TRADER_GUARD") and worth > LIMIT:
                return f"I stopped before placing {arguments}: that is ${worth:,.2f}. Please confirm."
            result = TOOLS[name](**arguments)
            last = result.get("last", last)
            print(f"  {name} {result}" + (f" = ${worth:,.2f}" if worth else ""))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def main() -> None:
    """Trade once."""
    parser = argparse.ArgumentParser(description="A trading desk.")
    parser.add_argument("request", nargs="?", default="Sell $1,000 worth of ACME.")
    parser.add_argument("--orders", default=os.environ.get("TRADER_ORDERS", ""), help="file to append orders to")
    parser.add_argument("--guarded", action="store_true", help="ask before an order above the limit")
    options = parser.parse_args()
    os.environ.update({"TRADER_ORDERS": options.orders} | ({"TRADER_GUARD": "1"} if options.guarded else {}))
    print(f"customer: {options.request}")
    with reenact.run("trade", user="u-17", session="s-4", tenant="acme"):
        print(f"trader:   {trade(options.request)}")


if __name__ == "__main__":
    main()
