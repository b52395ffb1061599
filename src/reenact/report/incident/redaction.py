"""What redaction did, counted from the trace itself: no more is claimed than can be seen in it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from reenact.values.run import Run

_TOKEN = re.compile(r"REDACTED_([a-z0-9_]+)_([0-9a-f]{20})")
_ATTRIBUTES = ("reenact.redaction.policy", "reenact.redaction.count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What redaction left in a run."""

    policy: str | None
    """Digest of the policy that was in force while recording, in hex; None where the trace names none."""
    counted: int | None
    """How many values the recorder says it replaced."""
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often a token stands in the trace, by class."""
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many different values those were, by class."""
    failed: int = 0
    """Calls whose values were removed whole, since they could not be scrubbed."""


def redaction(run: Run) -> Redaction:
    """Count the tokens in every attribute of a run's spans."""
    places: Counter[str] = Counter()
    values: defaultdict[str, set[str]] = defaultdict(set)
    failed = 0
    for node in run.nodes:
        failed += bool(node.span.attributes.get("reenact.redaction.failed"))
        for text in _texts(node.span.attributes):
            if "REDACTED_" in text:
                for name, mark in _TOKEN.findall(text):
                    places[name] += 1
                    values[name].add(mark)
    policy, counted = (run.root.span.attributes.get(name) if run.root else None for name in _ATTRIBUTES)
    return Redaction(
        policy=policy if isinstance(policy, str) else None,
        counted=int(counted) if isinstance(counted, int | float) else None,
        places=dict(places),
        values={name: len(marks) for name, marks in values.items()},
        failed=failed,
    )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _texts(item)
