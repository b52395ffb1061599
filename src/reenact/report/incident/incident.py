"""What an incident page is made of: values that others found, put together and not judged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reenact.values.assertion import Finding
from reenact.values.json import Json
from reenact.values.run import Run, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """The run that the incident is held against: a replay of it, or any other run."""

    run: Run | None
    """None where only what came of the replay is known."""
    word: str
    """`same`, `diverged`, `other words` (the path is the same), `failed` or `unjudged`."""
    divergences: tuple[Mapping[str, Json], ...] = ()
    """As `reenact diff --json` and `reenact replay --json` show them, the first one first."""
    more: Mapping[str, tuple[Mapping[str, Json], ...]] = field(
        default_factory=dict[str, tuple[Mapping[str, Json], ...]]
    )
    """Further fields that differ in a changed call, by the id of the call in the recording."""
    is_replay: bool = True
    status: str = ""
    """How it ended: `ok`, `error`, `interrupted`."""
    why: str = ""
    stopped: bool = False
    """It was stopped where it asked for something that nobody recorded; what it would have done then is not known."""
    not_reached: int = 0
    """How many recorded calls lie behind that place."""
    world: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was done about each kind of effect on the world around, where that is known."""
    findings: tuple[Finding, ...] = ()
    """What the assertions come to on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What a judgement of a fix came to, in its own word and with its reason."""

    word: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Everything that one page shows."""

    run: Run
    verdict: Verdict
    status: str
    title: str = ""
    """What somebody called it; empty for a headline made from the run."""
    second: Second | None = None
    findings: tuple[Finding, ...] = ()
    """What the assertions come to on the recording."""
    fix: Fix | None = None
    commits: tuple[str | None, str | None] = (None, None)
    """The recorded commit, and the one that the page was written at or the replay ran."""
    replaced: Mapping[str, int] = field(default_factory=dict[str, int])
    """Credentials that were replaced while the page was written, by class; the trace held them."""
    trace: bytes = b""
    """The recording as a file, gzip of OTLP/JSON lines, to be saved from the page; empty to leave it out."""
    written: str = ""
    """When the page was written, RFC 3339."""
