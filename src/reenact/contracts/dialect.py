"""What a dialect promises: calls to span attributes, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reenact.values.call import Call, Outcome
from reenact.values.span import Attribute, SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One spelling of calls in span attributes. Each module of `reenact.dialects` declares one as `DIALECT`.

    For a dialect that we record with, `decode` of a span that carries what `encode_call` and `encode_outcome` gave
    gives back the same call and outcome.
    """

    name: str
    """What reports call it, such as `openinference`."""
    recognises: Callable[[SpanRecord], float]
    """How sure this dialect is, 0 to 1, that the span speaks it. The surest one decodes."""
    encode_call: Callable[[Call], dict[str, Attribute]]
    """Spell what was asked, exactly. Parses no body: this runs before the agent's request goes out."""
    split_call: Callable[[Call], tuple[Mapping[str, Attribute], dict[str, Attribute]]]
    """The same in two parts: what calls like this one share, one object for all of them, and what is its own."""
    encode_outcome: Callable[[Call, Outcome], dict[str, Attribute]]
    """Spell what came of it, exactly. Parses no body: this runs before the agent gets its answer."""
    encode_reply: Callable[[Call, int, tuple[tuple[str, str], ...], bytes], dict[str, Attribute]]
    """The same of a whole reply over HTTP, told by its status, headers and body."""
    decode: Callable[[SpanRecord], tuple[Call, Outcome]]
    """Read a span. Never raises: what is not understood stays among the call's attributes."""
    flatten: Callable[[Call, Outcome], dict[str, Attribute]]
    """Spell the view for readers: messages, tools, usage. Done on export; never read back where the exact is there."""
