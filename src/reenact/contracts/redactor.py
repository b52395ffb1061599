"""What redaction promises to those who write things down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands in a span. What is not known is empty."""

    attribute: str = ""
    """Name of the attribute; `name`, `status`, `event` and `link` stand for these parts of a span."""
    path: tuple[str | int, ...] = ()
    """Keys and indexes that lead to the value in the JSON that the attribute holds, through JSON inside of strings."""
    tool: str = ""
    """Name of the tool that was called."""
    kind: str = ""
    """Kind of the span, as in `openinference.span.kind`."""
    boundary: str = ""
    """`http` or `function`, as in `reenact.boundary`."""
    inside: int = 0
    """How much of `path` leads to a text whose JSON the rest leads into; 0 for none but the attribute's own."""


NOWHERE: Final = Place()
"""A place of which nothing is known."""


class Redactor(Protocol):
    """Scrubs text before it is written. Idempotent: what it gave, it gives back unchanged."""

    @property
    def policy_digest(self) -> str:
        """Names the policy in force, in hex."""
        ...

    @property
    def salt(self) -> str:
        """Keys the tokens of this run where no project key is configured, in hex; empty otherwise."""
        ...

    @property
    def replaced(self) -> Mapping[str, int]:
        """How many values were replaced so far, by class."""
        ...

    def text(self, text: str) -> str:
        """Scrub one text."""
        ...

    def pieces(self, pieces: Sequence[bytes], *, place: Place = NOWHERE) -> list[bytes]:
        """Scrub the pieces of a stream as one text: a secret may begin in one and end in another."""
        ...

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Scrub every string of a span's attributes: keys, values of any depth, JSON inside strings."""
        ...
