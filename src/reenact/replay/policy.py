"""What may happen when a replay meets a call: apart for models and for tools."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reenact.values.call import CallKind


class Source(StrEnum):
    """Where answers come from."""

    RECORDED = "recorded"
    LIVE = "live"
    RECORDED_OR_LIVE = "recorded-or-live"


class Writes(StrEnum):
    """What becomes of files and databases that the agent writes outside every declared boundary."""

    REFUSE = "refuse"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Where answers come from, by kind of call."""

    models: Source = Source.RECORDED
    """Model and embedding calls."""
    tools: Source = Source.RECORDED
    """Tools, retrievers and whatever else is no model."""
    writes: Writes = Writes.REFUSE

    def source(self, kind: CallKind) -> Source:
        """Say where the answers to calls of `kind` come from."""
        return self.models if kind in {CallKind.LLM, CallKind.EMBEDDING} else self.tools

    @property
    def closed(self) -> bool:
        """Nothing may go live."""
        return self.models is Source.RECORDED and self.tools is Source.RECORDED
