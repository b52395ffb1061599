"""The plan of a replay: a file by which the parent tells the replaying processes what to answer, and how."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reenact.values.run import Run


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
    history: list[str] = field(default_factory=list[str])
    """Ids of the earlier units that are delivered before the run, in the order in which they came in."""
    overlap: bool = False
    """Some of them, or the run itself, were under way at the same time."""
    starts: bool = False
    """What the selected run says of how its application is made may be used (`Found.starts`)."""
    own: list[str] = field(default_factory=list[str])
    """Ids of the roots that are the user's own."""
    writes: str = "refuse"
    children: str = "answer"
    after: str = "writes"
    """What happens after the first divergence (`replay.policy.After`)."""
    hosts: list[str] = field(default_factory=list[str])
    """What the user lets anything talk to (`values.way`)."""
    live_tools: list[str] = field(default_factory=list[str])
    """Names of tools that run in the sealed world."""
    stubs: list[str] = field(default_factory=list[str])
    """Functions that have other bodies (`replay.substitutes`)."""
    lifespan: bool = True
    """An application's start-up and shutdown are run around a request."""
    ways: list[str] | None = None
    """What calls that go live may reach; None for whatever there is."""
    changes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What is changed in the recorded calls before they answer: each a `values.change.Change` as JSON."""
    signal: list[float] = field(default_factory=list[float])
    """The number of the signal that ended the recorded program, and after how many seconds the replay sends it."""
    branch: dict[str, Any] | None = None
    """Where the run is forked (`find.altering.Branch` as JSON); None where this is a replay."""

    def write(self, path: Path) -> None:
        """Write the plan down."""
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Plan:
        """Read a plan."""
        return Plan(**json.loads(path.read_text()))

    def runs(self) -> list[Run]:
        """Build the runs that answer, the user's own marked as such, each span's salt put back."""
        from reenact.graph.build import build  # the parent writes a plan, and builds nothing from it
        from reenact.keep.bundles import whole
        from reenact.pipeline import keyring
        from reenact.read.open import open_spans
        from reenact.values.span import SpanRecord

        own = frozenset(self.own)
        spans = whole(open_spans(Path(self.spans)), Path(self.spans))
        marked = (
            keyring.process_keyring().back(replace(span, own=True) if span.span_id in own else span)
            for span in spans
            if isinstance(span, SpanRecord)
        )
        return build(marked)
