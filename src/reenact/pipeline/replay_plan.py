"""The plan of a replay: a file by which the parent tells the replaying processes what to answer, and how."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a replaying process is told."""

    run: str
    """The id of the run that is replayed."""
    spans: str
    """Path of a file with its spans, and those of its siblings."""
    ledger: str
    models: str
    tools: str
    store: str
    writes: str = "refuse"
    after: str = "stop"
    """What happens after the first divergence (`replay.policy.After`)."""
    changes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What is changed in the recorded calls before they answer: each a `values.change.Change` as JSON."""
    branch: dict[str, Any] | None = None
    """Where the run is forked (`pipeline.altering.Branch` as JSON); None where this is a replay."""

    def write(self, path: Path) -> None:
        """Write the plan down."""
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Plan:
        """Read a plan."""
        return Plan(**json.loads(path.read_text()))
