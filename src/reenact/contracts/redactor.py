"""What redaction promises to those who write things down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


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

    def pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Scrub the pieces of a stream as one text: a secret may begin in one and end in another."""
        ...

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Scrub every string of a span's attributes: keys, values of any depth, JSON inside strings."""
        ...
