"""Every program that goes there and back does so under each policy first: a pytest plugin, `-p matrix.under_policies`.

What came of it is appended to the file that REENACT_MATRIX_TOLD names, a line for a program and a policy.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

from matrix import passing
from matrix.passing import Passed, Program
from matrix.serving import Provider

ROOT = Path(__file__).resolve().parents[2]
POLICIES = {
    "default": "default",
    "pseudonymise everything": str(ROOT / "examples" / "policies" / "pseudonymise-everything.toml"),
}
_plain = passing.there_and_back


def _counts(ledger: list[dict[str, Any]], unconsumed: list[str]) -> dict[str, int]:
    return {"misses": sum(entry["t"] == "miss" for entry in ledger), "unconsumed": len(unconsumed)}


def there_and_back(
    program: Program, provider: Provider, folder: Path, *, again: Program | None = None, **how: Any
) -> Passed:
    """Go there and back under each policy, then as it is asked for."""
    replies = copy.deepcopy(provider._replies)
    told: list[dict[str, Any]] = []
    for number, (name, policy) in enumerate(POLICIES.items()):
        own = folder / f"policy-{number}"
        own.mkdir(parents=True, exist_ok=True)
        _, spans, _ = passing.record(program, own, policy)
        run = passing.carried(spans, own, how.get("carrier", "otlp-json"))
        _, ledger, unconsumed = passing.replay(again or program, run, own)
        calls = sum(entry["t"] == "answered" for entry in ledger)
        told.append({"policy": name, "calls": calls, **_counts(ledger, unconsumed)})
        provider._replies = copy.deepcopy(replies)
    provider.asked.clear()
    provider.connections = 0
    found = _plain(program, provider, folder, again=again, **how)
    plain = {f"plain_{word}": count for word, count in _counts(found.ledger, found.unconsumed).items()}
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    with Path(os.environ["REENACT_MATRIX_TOLD"]).open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps({"test": test, **each, **plain}) + "\n" for each in told))
    return found


if os.environ.get("REENACT_MATRIX_TOLD"):
    passing.there_and_back = there_and_back
