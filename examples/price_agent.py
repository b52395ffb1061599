"""The 3 PM price.

At 3 PM everybody asks for prices, and the pricing service answers 429 with a JSON body that is cut in half. The pricing
tool takes what it can from any body it gets and so returns a quote without a price; the model, asked for a price, makes
one up. By the time somebody looks, the service is well again. The half body is in the recording, byte for byte.

    python -m reenact.demo.provider -- reenact run -- python examples/price_agent.py   # record; every other one fails
    reenact replay last                                                                # it is 3 PM again, offline
    reenact replay last -- python examples/price_agent.py --guarded                    # would the fix have stopped it?

With `--slip 1` before the first `--` it fails at once. `--guarded`, or PRICE_GUARD=1, is the fixed agent: a quote
without a price never reaches the model. PRICING_URL says where the service is, by default beside OPENAI_BASE_URL.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from openai import OpenAI

import reenact

MODEL = os.environ.get("MODEL", "stand-in-price")
SKU = {"type": "string", "enum": ["KETTLE-2L", "TOASTER-4", "BLENDER-X"]}
SCHEMA: Any = {
    "type": "function",
    "function": {
        "name": "current_price",
        "description": "Quote the current price of an article.",
        "parameters": {"type": "object", "properties": {"sku": SKU}, "required": ["sku"]},
    },
}


@reenact.tool
def current_price(sku: str) -> dict[str, str | None]:
    """Quote the current price of an article."""
    beside = urllib.parse.urljoin(os.environ.get("OPENAI_BASE_URL", ""), "/pricing")
    url = f"{os.environ.get('PRICING_URL', beside)}/quote?sku={sku}"
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            text = reply.read().decode()
    except urllib.error.HTTPError as error:
        text = error.read().decode()  # "errors are JSON too"
    fields = dict(re.findall(r'"(\w+)":"?([^",}]*)', text))
    return {"sku": sku, "currency": fields.get("currency"), "price": fields.get("price")}


@reenact.agent
def answer(question: str) -> str:
    """Answer a customer's question about a price."""
    system = "You are a shop assistant. Answer with the price, to the cent."
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    client = OpenAI()
    while True:
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[SCHEMA], temperature=1.0)
        message = reply.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            quote = current_price(**json.loads(call.function.arguments))
            print(f"  current_price {quote}")
            if os.environ.get("PRICE_GUARD") and quote["price"] is None:
                return "I cannot see today's price at the moment. Please ask again in a minute."
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(quote)})


def main() -> None:
    """Ask once."""
    parser = argparse.ArgumentParser(description="A shop assistant.")
    parser.add_argument("question", nargs="?", default="What does the kettle cost right now?")
    parser.add_argument("--guarded", action="store_true", help="say so when there is no price")
    options = parser.parse_args()
    if options.guarded:
        os.environ["PRICE_GUARD"] = "1"
    print(f"customer:  {options.question}")
    with reenact.run("price", user="u-17", session="s-3", tenant="acme"):
        print(f"assistant: {answer(options.question)}")


if __name__ == "__main__":
    main()
