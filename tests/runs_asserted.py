"""Runs that assertions are held against, in several tests."""

from __future__ import annotations

from made import Made, user
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import Run

TARGET: Json = {"type": "string", "enum": ["staging", "production"]}
SCHEMA: Json = {
    "type": "object",
    "properties": {"target": TARGET, "account_ids": {"type": "array", "items": {"type": "string"}}},
    "required": ["target", "account_ids"],
    "additionalProperties": False,
}
TOOLS: Json = [{"type": "function", "function": {"name": "delete_accounts", "parameters": SCHEMA}}]
ASKED = user("Clean up the inactive accounts in staging.")


def incident(answer: str = "All clean: I removed 3 accounts from staging, a-104 among them.") -> Made:
    """The clean-up that went to production, call by call."""
    made = Made()
    made.tool(
        "runbook",
        {"query": "staging"},
        [{"id": "rb-12", "text": "STAGING ONLY, see policy.pdf"}],
        kind=CallKind.RETRIEVER,
    )
    made.llm([ASKED], tools=[("list_accounts", {"target": "staging"})], body={"tools": TOOLS})
    made.tool("list_accounts", {"target": "staging"}, [{"id": "a-104", "idle_days": 410}])
    deletes: Json = {"target": "production", "account_ids": ["a-104"]}
    made.llm([ASKED], tools=[("delete_accounts", deletes)], body={"tools": TOOLS})
    made.tool("delete_accounts", deletes, {"ok": True, "deleted": ["Acme Corp"]})
    made.llm([ASKED], answer)
    return made


INCIDENT: Run = incident().run()


def damaged() -> Made:
    """A run of which much was lost: redacted arguments, a call without an end, a killed process."""
    token = "REDACTED_known_secret_0123456789abcdef0123"
    made = Made(1)
    made.tool("check", {"key": token, "to": ["acme", token]}, {"ok": token})
    made.llm([ASKED], None, stream=True)
    made.tool("pay", {"key": "open", "amount": 7}, unfinished=True)
    made.tool("pay", {"key": token, "amount": 8}, raised=ValueError(f"no {token}"))
    made.tool("check", {"key": "open"}, {"ok": True})
    made.llm([ASKED], f"Paid with {token}.", tools=[("refund", {"key": token})])
    made.tool("search", {}, unfinished=True, kind=CallKind.RETRIEVER)
    return made


def beginnings(made: Made) -> list[Run]:
    """The run after each of its calls."""
    spans, found = made.spans, list[Run]()
    for count in range(len(spans) + 1):
        made.spans = spans[:count]
        found.append(made.run(exit_code=None))
    return found


DAMAGED: Run = damaged().run(exit_code=None, cut_off=True)
BEGINNINGS = [beginnings(incident()), beginnings(damaged())]
