"""The clean-up that went to production.

Asked to "clean up the inactive accounts in staging", an agent reads staging in its runbook, lists staging, and once in
a while deletes in production, where the same ids are customers. Its last message says staging all the same.

    python -m reenact.demo.provider -- reenact run -- python examples/cleanup_agent.py   # record; repeat until it slips
    reenact replay last                                                     # the same run offline; nothing is deleted
    reenact replay last -- python examples/cleanup_agent.py --guarded       # would the fix have stopped it?

With `--slip 1` before the first `--` it slips at once. `--data` is the database folder. CLEANUP_GUARD=1 is `--guarded`.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from openai import OpenAI

import reenact

MODEL = os.environ.get("MODEL", "stand-in-cleanup")
RUNBOOK = [
    {"id": "rb-12", "score": 0.92, "text": "Quarterly clean-up: delete accounts inactive for a year. STAGING ONLY."},
    {"id": "rb-31", "score": 0.55, "text": "Staging is a copy of production, refreshed monthly; the ids are the same."},
]
OWNERS = {"a-101": "Miller & Sons", "a-104": "Acme Corp", "a-117": "Nordwind", "a-123": "Blue Door"}
IDLE_DAYS = {"staging": (12, 410, 388, 702), "production": (1, 0, 3, 1)}
TARGET, IDS = {"type": "string", "enum": ["staging", "production"]}, {"type": "array", "items": {"type": "string"}}
PARAMETERS = {"list_inactive_accounts": {"target": TARGET}, "delete_accounts": {"target": TARGET, "account_ids": IDS}}


@functools.cache
def database() -> Path:
    """The folder of account files, filled with fresh accounts where a file is missing."""
    folder = Path(os.environ.get("CLEANUP_DATA") or tempfile.mkdtemp(prefix="cleanup-"))
    folder.mkdir(parents=True, exist_ok=True)
    for target, days in IDLE_DAYS.items():
        rows = [{"id": key, "owner": OWNERS[key], "idle_days": idle} for key, idle in zip(OWNERS, days, strict=True)]
        if not (folder / f"{target}.json").exists():
            (folder / f"{target}.json").write_text(json.dumps(rows, indent=1))
    return folder


@reenact.retriever
def runbook(query: str) -> list[dict[str, Any]]:
    """Find the pages of the runbook that share a word with the query."""
    return [page for page in RUNBOOK if set(query.lower().split()) & set(str(page["text"]).lower().split())]


@reenact.tool
def list_inactive_accounts(target: str) -> list[dict[str, Any]]:
    """List accounts without a log-in for a year."""
    return [row for row in json.loads((database() / f"{target}.json").read_text()) if row["idle_days"] > 365]


@reenact.tool
def delete_accounts(target: str, account_ids: list[str]) -> dict[str, Any]:
    """Delete accounts for good."""
    rows = json.loads((database() / f"{target}.json").read_text())
    kept = [row for row in rows if row["id"] not in account_ids]
    (database() / f"{target}.json").write_text(json.dumps(kept, indent=1))
    return {"target": target, "deleted": [row["owner"] for row in rows if row not in kept]}


TOOLS = {"list_inactive_accounts": list_inactive_accounts, "delete_accounts": delete_accounts}


def schema(name: str) -> Any:
    """Describe a tool to the model."""
    closed = {"required": [*PARAMETERS[name]], "additionalProperties": False}
    parameters = {"type": "object", "properties": PARAMETERS[name]} | closed
    function = {"name": name, "description": TOOLS[name].__doc__, "strict": True, "parameters": parameters}
    return {"type": "function", "function": function}


@reenact.agent
def clean_up(request: str) -> None:
    """Do what the request says, one turn of the model after the other, and show what is done."""
    pages = " ".join(["The runbook says:", *(page["text"] for page in runbook("staging clean-up"))])
    messages: list[Any] = [{"role": "system", "content": pages}, {"role": "user", "content": request}]
    tools, client = [schema(name) for name in TOOLS], OpenAI()
    while messages[-1]["role"] != "assistant":
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            for event in stream:
                print(event.delta if event.type == "content.delta" else "", end="", flush=True)
            message = stream.get_final_completion().choices[0].message
        messages.append(message.to_dict())
        print("\n" if message.content else "", end="")
        for call in message.tool_calls or []:
            name, arguments = call.function.name, json.loads(call.function.arguments)
            print(f"  {name} {arguments}")
            if os.environ.get("CLEANUP_GUARD") and arguments["target"] == "production":  # before anything happens
                print(f"  REFUSED: {name} on production needs a person's yes")
                return
            result = TOOLS[name](**arguments)
            if name == "delete_accounts":
                print(f"  DELETED FROM {result['target'].upper()}: {', '.join(result['deleted']) or 'nothing'}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def main() -> None:
    """Run the agent once."""
    parser = argparse.ArgumentParser(description="Clean up inactive accounts.")
    parser.add_argument("--data", default=os.environ.get("CLEANUP_DATA", ""), help="folder of the account files")
    parser.add_argument("--guarded", action="store_true", help="refuse to touch production")
    options = parser.parse_args()
    os.environ.update({"CLEANUP_DATA": options.data} | ({"CLEANUP_GUARD": "1"} if options.guarded else {}))
    with reenact.run("cleanup", user="u-17", session="s-1", tenant="acme"):
        clean_up("Clean up the inactive accounts in staging.")


if __name__ == "__main__":
    main()
