"""Redaction is never in the way of a replay: every exchange of the matrix under two policies, here and elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from matrix import cassettes
from matrix.exchange import Exchange
from matrix.redacted import IBAN, MAIL, PHONE, planted, wrong
from matrix.under_policies import POLICIES
from matrix.whole import WAYS, Way, Whole, every

pytestmark = pytest.mark.sample(8)

ROOT = Path(__file__).resolve().parents[2]
FOUND = {
    "own cases": {sdk: cassettes.golden(sdk) for sdk in ("openai", "anthropic")},
    "cassettes": {sdk: [e for e in cassettes.discovered(sdk) if not e.excluded] for sdk in ("openai", "anthropic")},
}


def judged(
    exchanges: list[Exchange],
    way: Way,
    folder: Path,
    policy: str,
    *,
    keyless: bool,
    note: Callable[[str, object], None],
) -> None:
    """Record under a policy, replay, see that nothing was missed and that what must come back came back.

    Without the key, questions of which a policy leaves only tokens are all alike: each is a program of its own.
    """
    exchanges = [each if number % 3 == 0 else planted(each) for number, each in enumerate(exchanges)]
    alone = keyless and "everything" in policy
    programs = [[each] for each in exchanges] if alone else [exchanges]
    counted: Counter[str] = Counter()
    for number, program in enumerate(programs):
        elsewhere = folder / f"elsewhere-{number}" if keyless else None
        whole = every(program, way, folder / f"store-{number}", policy=POLICIES[policy], elsewhere=elsewhere)
        counted += seen(program, whole)
    where = "without the key" if keyless else "with the key"
    note(
        "figure",
        f"redacted by {policy}, {where} ({way}): {len(exchanges)} exchanges in {len(programs)} programs, "
        f"{counted['calls']} calls, {counted['misses']} misses, {counted['renamed']} by renaming, "
        f"{counted['opaque']} opaque values equal, {counted['replaced']} values replaced",
    )
    assert counted["replaced"] > 0


def seen(program: list[Exchange], whole: Whole) -> Counter[str]:
    """See that a program went there and back, and count what it held."""
    found = {each.name: wrong(each, whole) for each in program}
    misses = [entry for entry in whole.passed.ledger if entry["t"] == "miss"]
    assert misses == []
    told = "".join(str(value) for node in whole.passed.run.nodes for value in node.span.attributes.values())
    assert [value for value in (MAIL, PHONE, IBAN) if value in told] == []
    assert unfinished(whole) == {}, whole.passed.unconsumed
    assert {name: told[0] for name, told in found.items() if told[0]} == {}
    opaque, replaced = (sum(each[place] for each in found.values()) for place in (1, 2))
    renamed = sum("by renaming" in str(entry.get("reason")) for entry in whole.passed.ledger)
    return Counter(calls=len(whole.passed.calls), misses=len(misses), renamed=renamed, opaque=opaque, replaced=replaced)


def unfinished(whole: Whole) -> dict[str, int]:
    """Count what a replay did beside answering every call once."""
    counts = Counter(whole.passed.counts)
    for harmless in ("ignored", "renamed", "left"):  # how a stream is closed is a matter of time
        counts.pop(harmless, None)
    left = counts - Counter({"answered": len(whole.passed.calls)})
    return dict(left) | ({"unconsumed": len(whole.passed.unconsumed)} if whole.passed.unconsumed else {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sdk", "policy", "keyless"),
    [
        ("anthropic", "default", True),
        ("openai", "pseudonymise everything", False),
    ],
)
def test_own_cases_replay_under_a_policy(
    tmp_path: Path, sdk: str, policy: str, record_property: Callable[[str, object], None], *, keyless: bool
) -> None:
    judged(FOUND["own cases"][sdk], WAYS[0], tmp_path, policy, keyless=keyless, note=record_property)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "keyless"),
    [(WAYS[0], False), (WAYS[3], False), (WAYS[0], True)],
    ids=lambda value: str(value) if isinstance(value, Way) else ("without the key" if value else "with the key"),
)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("source", FOUND)
def test_every_exchange_replays_under_a_policy(
    tmp_path: Path,
    source: str,
    sdk: str,
    policy: str,
    way: Way,
    record_property: Callable[[str, object], None],
    *,
    keyless: bool,
) -> None:
    if not FOUND[source][sdk]:
        pytest.skip(cassettes.ABSENT)
    judged(FOUND[source][sdk], way, tmp_path, policy, keyless=keyless, note=record_property)


@pytest.mark.slow
@pytest.mark.timeout(560)
@pytest.mark.parametrize(
    ("name", "least"),
    [("test_seam", 12), ("test_anthropic_seam", 12), ("test_failures", 8)],
    ids=str,
)
def test_every_program_of_the_seam_replays_under_a_policy(
    tmp_path: Path, name: str, least: int, record_property: Callable[[str, object], None]
) -> None:
    told = tmp_path / "told.jsonl"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "matrix.under_policies", "-n", "2", "-m", "slow or not slow"]
    environ = {**os.environ, "REENACT_MATRIX_TOLD": str(told), "PYTHONPATH": str(ROOT / "tests")}
    words.append(str(Path("tests", "matrix", f"{name}.py")))
    with contextlib.suppress(subprocess.TimeoutExpired):  # on a busy machine: what came so far is judged
        subprocess.run(words, cwd=ROOT, env=environ, check=False, capture_output=True, timeout=500)
    lines: list[dict[str, Any]] = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    counted: Counter[str] = Counter()
    for line in lines:
        counted[f"{line['policy']} programs"] += 1
        counted[f"{line['policy']} calls"] += line["calls"]
        counted[f"{line['policy']} misses"] += line["misses"] - line["plain_misses"]
    record_property("figure", f"programs of {name} under policies: {dict(counted)}")
    assert [line for line in lines if line["misses"] > line["plain_misses"]] == []
    assert [line for line in lines if line["unconsumed"] > line["plain_unconsumed"]] == []
    assert {line["policy"] for line in lines} == set(POLICIES)
    assert len(lines) >= 2 * least
