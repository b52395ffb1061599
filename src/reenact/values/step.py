"""A step through a run: one call, with the state of its conversation before and after it.

Ten thousand steps of one conversation have ten thousand states, each a message longer than the one before. A state is
therefore written as its last message and the state before it (`Talk`), and so are the names that a call hangs below
(`Lineage`): what all steps hold together grows with the run, and not with its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from reenact.values.message import Message
from reenact.values.run import Node


@dataclass(frozen=True, slots=True, eq=False)
class Talk:
    """A conversation: its last message, and the conversation before that."""

    message: Message
    above: Talk | None
    length: int

    def backwards(self) -> Iterator[Message]:
        """Give the messages, the last one first."""
        at: Talk | None = self
        while at is not None:
            yield at.message
            at = at.above


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """The labels of the structure that a call hangs below: the innermost, and those around it."""

    label: str
    above: Lineage | None
    depth: int


def length(talk: Talk | None) -> int:
    """Count the messages of a conversation; None is an empty one."""
    return talk.length if talk is not None else 0


def last(talk: Talk | None, most: int) -> tuple[Message, ...]:
    """Give the last messages of a conversation, in their order; `most` of them at most."""
    messages = [] if talk is None else [*islice(talk.backwards(), max(0, most))]
    return tuple(reversed(messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call in its place, and what had been said when it was made."""

    number: int
    """From 1, in causal order."""
    node: Node
    lineage: Lineage | None = None
    """The structure that it hangs below."""
    caused_by: str = ""
    """Label of the model call that asked for it."""
    talk: Talk | None = None
    """The conversation so far."""
    new: int = 0
    """How many messages at the end of `before` no earlier step had."""
    added: tuple[Message, ...] = ()
    """What this step adds to the conversation."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model was offered."""

    @property
    def known(self) -> int:
        """How many messages the conversation so far has."""
        return length(self.talk)

    @property
    def before(self) -> tuple[Message, ...]:
        """The conversation so far, whole."""
        return last(self.talk, self.known)

    @property
    def after(self) -> tuple[Message, ...]:
        """The conversation when the step is done, whole."""
        return self.before + self.added

    def under(self, most: int = 100) -> tuple[str, ...]:
        """Give the labels that it hangs below, outermost first: the innermost `most`, and how many are left out."""
        labels: list[str] = []
        at = self.lineage
        while at is not None and len(labels) < most:
            labels.append(at.label)
            at = at.above
        if at is not None:
            labels.append(f"… {at.depth} more")
        return tuple(reversed(labels))
