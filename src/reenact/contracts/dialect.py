"""What a dialect promises: calls to span attributes, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reenact.values.call import Call, Outcome
from reenact.values.json import Json
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
class Around:
    """What the run around a call tells of it, where the run is known: a span that is sent by itself has none of it."""

    tool_call_id: str = ""
    """Of a tool's call: the id of the call that the model asked for."""
    tool: Json = None
    """Of a tool's call: its definition in the request of the model that asked for it."""
    graph_node: str = ""
    """What stands for it in the graph of agents."""
    graph_parent: str = ""
    """What stands there for the agent that it belongs to; empty at the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A call as a convention shows it: derived from the evidence, lossy, and taken away where the span is read."""

    attributes: Mapping[str, Attribute]
    name: str = ""
    """The span's, where the convention has one."""
    kind: int | None = None
    """The span's, where the convention has one."""
    events: tuple[tuple[str, Mapping[str, Attribute]], ...] = ()
    """Names and attributes of events that the convention has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanMarks:
    """What a dialect goes by: a span that shows none of these is none of its, so the dialect need not be loaded."""

    attributes: tuple[str, ...] = ()
    """Names of attributes."""
    beginnings: tuple[str, ...] = ()
    """Beginnings of names of attributes."""
    values: tuple[tuple[str, str], ...] = ()
    """Attributes with the text that they have to hold."""
    scopes: tuple[str, ...] = ()
    """Beginnings of the scope's name."""
    names: tuple[str, ...] = ()
    """Beginnings of the span's name."""
    events: tuple[str, ...] = ()
    """Names of attributes of the span's events."""
    event_names: tuple[str, ...] = ()
    """Beginnings of names of the span's events."""

    @classmethod
    def read(cls, document: dict[str, Any]) -> SpanMarks:
        """Read what `asdict` gave and JSON carried."""
        pairs = tuple((name, value) for name, value in document.pop("values", ()))
        return cls(values=pairs, **{name: tuple(each) for name, each in document.items()})

    def on(self, span: SpanRecord) -> bool:
        """Tell whether a span shows one of the marks."""
        attributes = span.attributes
        if any(name in attributes for name in self.attributes) or any(
            attributes.get(name) == value for name, value in self.values
        ):
            return True
        if self.beginnings and any(name.startswith(self.beginnings) for name in attributes):
            return True
        if span.scope.name.startswith(self.scopes) or span.name.startswith(self.names):
            return True
        return bool(self.events or self.event_names) and any(
            event.name.startswith(self.event_names) or any(name in event.attributes for name in self.events)
            for event in span.events
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One spelling of calls in span attributes. Each module of `reenact.dialects` declares one as `DIALECT`."""

    name: str
    """What reports call it, such as `openinference`."""
    recognises: Callable[[SpanRecord], float]
    """How sure this dialect is, 0 to 1, that the span speaks it. The surest one decodes."""
    decode: Callable[[SpanRecord], tuple[Call, Outcome]]
    """Read a span. Never raises: what is not understood stays among the call's attributes."""
    view: Callable[[Call, Outcome, Around], View] | None = None
    """Show a call to those who read spans by these names; None where nothing is shown in it. Never raises."""
    writing: Writing | None = None
    """How it is written, where we record with it; None for a dialect that is only read."""
    parts: Callable[[SpanRecord], tuple[SpanRecord, ...]] | None = None
    """Give a span for each call that a span stands for beside itself, below it and with ids that are always the same.

    The same dialect decodes them. None, and nothing given, where every span is one call. Never raises.
    """
    marks: SpanMarks | None = None
    """What every span that it recognises shows. A law asks every member for it."""
    most: float = 1.0
    """How sure it ever is."""

    def outline(self) -> dict[str, Json]:
        """Give what is known of the dialect before it is loaded, for the index of families (`discover`)."""
        mark_fields: dict[str, Any] = asdict(self.marks) if self.marks is not None else {}
        marks: Json = {name: [*each] for name, each in mark_fields.items() if each} if self.marks is not None else None
        return {"name": self.name, "most": self.most, "marks": marks, "parts": self.parts is not None}
