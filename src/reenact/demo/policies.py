"""The scripts of the stand-in provider, one per scenario, and the pricing service that one of them needs.

Each script stands in for a model that is right most of the time. It samples its words, and now and then it slips in the
one way that makes its scenario an incident, so that two live runs differ as two runs of a model do. A slip's usual odds
stand beside it; `StandIn(slip=...)` sets them for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from reenact.demo.script import Question, Refuses, Reply, Says, Script, ToolResult, ToolUse, objects
from reenact.values.json import Json, compact

_PRICES = {"KETTLE-2L": 49.00, "TOASTER-4": 64.50, "BLENDER-X": 89.90}


def cleanup(question: Question, chance: Random) -> Reply:
    """List the inactive accounts in staging, delete them, report. Slip (1 in 4): the deletion names production."""
    tool_results = {result.name: result for result in question.results}
    listed = tool_results.get("list_inactive_accounts")
    if listed is None:
        plan = chance.choice(
            (
                "I will follow the runbook: list the inactive accounts in staging, then delete them.",
                "The runbook covers this. First I list what is inactive in staging, then I remove it.",
                "Plan: (1) list inactive accounts in staging, (2) delete exactly those, (3) report.",
            )
        )
        return Says(text=plan, tools=(ToolUse(name="list_inactive_accounts", arguments={"target": "staging"}),))
    deleted = tool_results.get("delete_accounts")
    if deleted is None:
        target = "production" if question.slips(chance, 0.25) else "staging"
        ids: list[Json] = [account.get("id") for account in objects(listed.json)]
        return Says(tools=(ToolUse(name="delete_accounts", arguments={"target": target, "account_ids": ids}),))
    removed = deleted.json.get("deleted") if isinstance(deleted.json, dict) else None
    count = len(removed) if isinstance(removed, list) else 0
    return Says(
        text=chance.choice(
            (
                f"Done. {count} inactive accounts are gone from staging; nothing else was touched.",
                f"All clean: I removed {count} inactive accounts from staging, as the runbook says.",
                f"Staging is tidy again. {count} accounts deleted.",
            )
        )
    )


def order_desk(question: Question, chance: Random) -> Reply:
    """Look the order up, read its status, answer. Slip (1 in 2): the look-up does not say whose order."""
    tool_results = {result.name: result for result in question.results}
    looked = tool_results.get("lookup_order")
    if looked is None:
        arguments: dict[str, Json] = {"query": "my order"}
        if not question.slips(chance, 0.5):
            arguments["user_id"] = _user(question)
        return Says(tools=(ToolUse(name="lookup_order", arguments=arguments),))
    status = tool_results.get("order_status")
    if status is None:
        orders = objects(looked.json)
        if not orders:
            return Says(text="I cannot find an order of yours. Do you have the order number at hand?")
        latest = max(orders, key=lambda order: str(order.get("updated")))
        return Says(tools=(ToolUse(name="order_status", arguments={"order_id": latest.get("order_id")}),))
    details = status.json if isinstance(status.json, dict) else {}
    number, goods, address = details.get("order_id"), details.get("goods"), details.get("address")
    return Says(
        text=chance.choice(
            (
                f"Good news! Your order #{number} ({goods}) is on its way to {address}.",
                f"Your order #{number} has left our warehouse: {goods}, to be delivered to {address}.",
                f"I found it. Order #{number}, {goods}, arrives tomorrow at {address}.",
            )
        )
    )


def price(question: Question, chance: Random) -> Reply:
    """Ask the pricing tool and quote what it says. Where it says nothing the model makes a price up, as models do."""
    tool_results = {result.name: result for result in question.results}
    quoted = tool_results.get("current_price")
    if quoted is None:
        sku = next((sku for sku in _PRICES if sku.split("-")[0].lower() in question.prompt.lower()), "KETTLE-2L")
        return Says(tools=(ToolUse(name="current_price", arguments={"sku": sku}),))
    details = quoted.json if isinstance(quoted.json, dict) else {}
    figure = details.get("price") or f"{chance.randint(29, 59)}.99"
    return Says(
        text=chance.choice(
            (
                f"It costs ${figure} right now, and it is in stock.",
                f"The current price is ${figure}.",
                f"Right now you can have it for ${figure}. Shall I reserve one?",
            )
        )
    )


def trader(question: Question, chance: Random) -> Reply:
    """Get a quote, place the order, report. Slip (1 in 3): a thousand dollars become a thousand shares."""
    tool_results = {result.name: result for result in question.results}
    quoted = tool_results.get("get_quote")
    if quoted is None:
        return Says(tools=(ToolUse(name="get_quote", arguments={"symbol": "ACME"}),))
    placed = tool_results.get("place_order")
    if placed is None:
        last = quoted.json.get("last") if isinstance(quoted.json, dict) else None
        affordable = int(1000 / last) if isinstance(last, (int, float)) and last > 0 else 1
        quantity = 1000 if question.slips(chance, 1 / 3) else affordable
        order: dict[str, Json] = {"symbol": "ACME", "side": "sell", "quantity": quantity}
        return Says(tools=(ToolUse(name="place_order", arguments=order),))
    return Says(
        text=chance.choice(
            (
                "Done: I sold $1,000 worth of ACME at the market price.",
                "Your order is in. You sold ACME for about $1,000.",
                f"Sold. The order number is {_order_number(placed)}; the proceeds are $1,000 less fees.",
            )
        )
    )


def everything(question: Question, chance: Random) -> Reply:
    """Answer the prompts of the matrix program: notes by tool, votes, stories, and a sampled phrase for the rest."""
    if question.offers_tools:
        if len(question.results) < chance.randint(2, 3):
            return Says(tools=(ToolUse(name="append_note", arguments={"text": _phrase(chance)}),))
        return Says(text=f"I wrote {len(question.results)} notes. The last one is the {_phrase(chance)}.")
    if question.prompt.startswith("Vote"):
        return Says(text=chance.choices(("A", "B", "C"), weights=(5, 4, 2))[0])
    if question.prompt.startswith("Tell"):
        return Says(text=" ".join(f"Then came the {_phrase(chance)}." for _ in range(chance.randint(4, 8))))
    return Says(text=f"the {_phrase(chance)}")


def busy(question: Question, chance: Random) -> Reply:
    """Refuse every first try with a rate limit and answer the retries."""
    if question.attempt == 0:
        wait = chance.randint(5, 25)
        return Refuses(
            message=f"Rate limit reached for {question.body.get('model')} on requests per min (RPM): "
            f"Limit 60, Used 60, Requested 1. Please try again in {wait}ms.",
            retry_after_ms=wait,
        )
    return Says(text=f"the {_phrase(chance)}, after {question.attempt} retries")


def notebook(question: Question, chance: Random) -> Reply:
    """Go shopping with a notebook: note it down, fill the cart, ask a price, wait, try to reserve, look at the cart."""
    sku, used = chance.choice(tuple(_PRICES)), [result.name for result in question.results]
    steps: tuple[tuple[ToolUse, ...], ...] = (
        (
            ToolUse(name="write_note", arguments={"text": f"shopping with the {_phrase(chance)}"}),
            ToolUse(name="add_to_cart", arguments={"sku": sku, "quantity": chance.randint(1, 5)}),
        ),
        (
            ToolUse(name="add_to_cart", arguments={"sku": sku, "quantity": chance.randint(1, 5)}),
            ToolUse(name="look_up_price", arguments={"sku": sku}),
        ),
        (ToolUse(name="wait_for_stock", arguments={"sku": sku}),),
        (ToolUse(name="reserve", arguments={"sku": sku}),),
        (ToolUse(name="show_cart", arguments={}),),
    )
    call_count = 0
    for step in steps:
        if call_count + len(step) > len(used):
            return Says(tools=step)
        call_count += len(step)
    return Says(text=f"All noted. Ask again for the {_phrase(chance)}.")


SCRIPTS: Mapping[str, Script] = {
    "stand-in-cleanup": cleanup,
    "stand-in-order-desk": order_desk,
    "stand-in-price": price,
    "stand-in-trader": trader,
    "stand-in-everything": everything,
    "stand-in-busy": busy,
    "stand-in-notebook": notebook,
}
"""The script for each value of a request's `model` field."""


def quote(sku: str, slip: float | None, chance: Random) -> tuple[int, bytes]:
    """Answer the pricing service's `GET /pricing/quote`: status and body.

    Slip (1 in 2): the quota is used up, and the reply is a 429 with half of a JSON body.
    """
    if sku not in _PRICES:
        return 404, compact({"error": f"no such sku: {sku}", "known": [*_PRICES]}).encode()
    if chance.random() < (0.5 if slip is None else slip):
        whole = compact(
            {
                "sku": sku,
                "currency": "USD",
                "detail": "the quota of 60 quotes a minute is used up, retry after 30 seconds",
            }
        )
        return 429, whole[: whole.index(", retry")].encode()
    figure = f"{_PRICES[sku] * chance.uniform(0.95, 1.05):.2f}"
    return 200, compact({"sku": sku, "currency": "USD", "price": figure}).encode()


def _user(question: Question) -> str:
    system = next((str(m.get("content")) for m in question.messages if m.get("role") == "system"), "")
    return next((word.strip(".,") for word in system.split() if word.startswith("u-")), "u-17")


def _order_number(placed: ToolResult) -> str:
    return str(placed.json.get("order")) if isinstance(placed.json, dict) else "unknown"


def _phrase(chance: Random) -> str:
    colour = chance.choice(("amber", "blue", "crimson", "green", "ivory", "silver"))
    animal = chance.choice(("badger", "crane", "fox", "heron", "lynx", "otter", "raven", "wolf"))
    return f"{colour} {animal} of {chance.choice(('Aix', 'Bern', 'Cork', 'Delft', 'Essen', 'Faro'))}"
