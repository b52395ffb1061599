"""What a dialect promises: calls to span attributes, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reenact.values.call import Call, Outcome
from reenact.values.span import Attribute, SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a dialect that we record with is written.

    `decode` of a span that carries what `encode_call` and `encode_outcome` gave gives back the same call and outcome.
    """

    encode_call: Callable[[Call], dict[str, Attribute]]
    """Spell what was asked, exactly. Parses no body: this runs before the agent's request goes out."""
    split_call: Callable[[Call], tuple[Mapping[str, Attribute], dict[str, Attribute]]]
    """The same in two parts: what calls like this one share, one object for all of them, and what is its own."""
    encode_outcome: Callable[[Call, Outcome], dict[str, Attribute]]
    """Spell what came of it, exactly. Parses no body: this runs before the agent gets its answer."""
    encode_reply: Callable[[Call, int, tuple[tuple[str, str], ...], bytes], dict[str, Attribute]]
    """The same of a whole reply over HTTP, told by its status, headers and body."""
    flatten: Callable[[Call, Outcome], dict[str, Attribute]]
    """Spell the view for readers: messages, tools, usage. Done on export; never read back where the exact is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One spelling of calls in span attributes. Each module of `reenact.dialects` declares one as `DIALECT`."""

    name: str
    """What reports call it, such as `openinference`."""
    recognises: Callable[[SpanRecord], float]
    """How sure this dialect is, 0 to 1, that the span speaks it. The surest one decodes."""
    decode: Callable[[SpanRecord], tuple[Call, Outcome]]
    """Read a span. Never raises: what is not understood stays among the call's attributes."""
    writing: Writing | None = None
    """How it is written, where we record with it; None for a dialect that is only read."""
    parts: Callable[[SpanRecord], tuple[SpanRecord, ...]] | None = None
    """Give a span for each call that a span stands for beside itself, below it and with ids that are always the same.

    The same dialect decodes them. None, and nothing given, where every span is one call. Never raises.
    """
