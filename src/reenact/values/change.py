"""A change of a recorded call: what a fork, or a perturbed replay, sets in it."""

from __future__ import annotations

from dataclasses import dataclass

from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text


class CannotSet(ValueError):
    """A value that a call has no place for; says in one sentence why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value set in one recorded call."""

    call: str
    """The call: its id or the beginning of it, its label, its number, or a place such as `first llm`."""
    path: str
    """What of it, in the words of `docs/fork.md`: `text`, `tool_calls[0].arguments.target`, `result.total`, …"""
    value: Json

    def to_json(self) -> dict[str, Json]:
        """Spell it as JSON."""
        return {"call": self.call, "path": self.path, "value": self.value}

    @staticmethod
    def from_json(json: Json) -> Change:
        """Read what `to_json` spelled."""
        fields = as_object(json)
        return Change(call=as_text(fields.get("call")), path=as_text(fields.get("path")), value=fields.get("value"))
