"""A step through a run: one call, with the state of its conversation before and after it."""

from __future__ import annotations

from dataclasses import dataclass

from reenact.values.message import Message
from reenact.values.run import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call in its place, and what had been said when it was made."""

    number: int
    """From 1, in causal order."""
    node: Node
    under: tuple[str, ...] = ()
    """Labels of the structure that it hangs below, outermost first."""
    caused_by: str = ""
    """Label of the model call that asked for it."""
    before: tuple[Message, ...] = ()
    """The conversation so far."""
    new: int = 0
    """How many messages at the end of `before` no earlier step had."""
    added: tuple[Message, ...] = ()
    """What this step adds to the conversation."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model was offered."""

    @property
    def after(self) -> tuple[Message, ...]:
        """The conversation when the step is done."""
        return self.before + self.added
