"""An agent that nobody prepared for being recorded: its tools are plain functions in a dict.

It goes shopping with a notebook. One tool appends to a file, one asks a service for a price, one keeps a cart in
memory, one waits for a random time, one raises an exception of the agent's own. Nothing here knows of recording: the
tools are found by the names in the schemas that the model is sent.

    python -m reenact.demo.provider -- reenact run -- python examples/notebook_agent.py    # record
    reenact show last                                                      # which tool touched what
    reenact replay last          # the same output; the file stays as it is, the cart is filled again

In a sealed replay the tools whose code reaches nothing outside the process run again (cart, refusal). The others (the
note, the price, the random time) are answered from the recording.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from openai import OpenAI

MODEL = os.environ.get("MODEL", "stand-in-notebook")
PRICING = os.environ.get("PRICING_URL", "http://127.0.0.1:8817/pricing")
CART: dict[str, int] = {}


class OutOfStock(Exception):
    """There is not enough of it."""

    def __init__(self, sku: str, left: int) -> None:
        super().__init__(f"only {left} of {sku} left")
        self.sku, self.left = sku, left


def write_note(text: str) -> str:
    """Append a line to the notebook."""
    with Path(NOTEBOOK).open("a", encoding="utf-8") as notebook:
        notebook.write(f"{text}\n")
    return f"noted: {text}"


def add_to_cart(sku: str, quantity: int = 1) -> dict[str, int]:
    """Put something into the cart."""
    CART[sku] = CART.get(sku, 0) + quantity
    return dict(CART)


def look_up_price(sku: str) -> dict[str, Any]:
    """Ask the pricing service."""
    try:
        with urllib.request.urlopen(f"{PRICING}/quote?sku={sku}", timeout=10) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as refused:
        return {"error": f"the service said {refused.code}"}


def wait_for_stock(sku: str) -> str:
    """Wait until the shelf is filled."""
    time.sleep(random.uniform(0.01, 0.2))
    return f"{sku} is back"


def reserve(sku: str) -> str:
    """Reserve what is in the cart."""
    raise OutOfStock(sku, left=CART.get(sku, 0) // 2)


def show_cart() -> dict[str, int]:
    """Show the cart."""
    return dict(sorted(CART.items()))


TOOLS = {
    "write_note": write_note,
    "add_to_cart": add_to_cart,
    "look_up_price": look_up_price,
    "wait_for_stock": wait_for_stock,
    "reserve": reserve,
    "show_cart": show_cart,
}
PARAMETERS = {
    "write_note": {"text": "string"},
    "add_to_cart": {"sku": "string", "quantity": "integer"},
    "look_up_price": {"sku": "string"},
    "wait_for_stock": {"sku": "string"},
    "reserve": {"sku": "string"},
    "show_cart": {},
}


def schema(name: str) -> Any:
    """Describe a tool to the model."""
    properties = {parameter: {"type": kind} for parameter, kind in PARAMETERS[name].items()}
    parameters = {"type": "object", "properties": properties}
    description = TOOLS[name].__doc__
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def use(name: str, arguments: dict[str, Any]) -> str:
    """Run a tool as the model asked for it, and spell what came of it."""
    try:
        result = TOOLS[name](**arguments)
    except OutOfStock as refused:
        print(f"  {name} {arguments} failed: {refused} ({refused.left})")
        return json.dumps({"error": str(refused), "left": refused.left})
    print(f"  {name} {arguments} -> {result}")
    return json.dumps(result)


def main() -> None:
    """Talk to the model until it is done."""
    messages: list[Any] = [{"role": "user", "content": "Go shopping, and keep the notebook."}]
    tools, client = [schema(name) for name in TOOLS], OpenAI()
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            content = use(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    print(message.content)
    print(f"in the cart: {CART}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notebook", default="notebook.txt", help="the file to append to")
    NOTEBOOK = parser.parse_args().notebook
    main()
