"""What came of a fork of a run: what was changed, and what followed from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reenact.values.difference import Divergence
from reenact.values.json import Json

if TYPE_CHECKING:  # every start reads the names below, and assertions are 27 classes
    from reenact.values.assertion import Finding
    from reenact.values.judgement import Basis, ReplayResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """One fork."""

    result: str
    """`forked`; `diverged`: the program left the recording before it came to the change; `failed`, `unjudged` as of a
    replay."""
    parent: str
    run: str | None
    """The id of the fork's own run; None where it made none."""
    at: str
    """Label of the call at which it was forked; empty for the beginning."""
    changes: tuple[dict[str, Json], ...]
    """`call`, `id`, `path`, `from` (absent where there was nothing) and `to`."""
    parameters: dict[str, Json]
    consequences: tuple[Divergence, ...]
    """What differs between the parent and the fork less the change itself, the first one first."""
    recorded_path: tuple[str, ...]
    path: tuple[str, ...]
    """The calls that were made, in order: `llm`, and tools with their arguments."""
    stopped: str = ""
    """The call that ended it, since nobody recorded an answer and the policy allows no other; else empty."""
    died: str = ""
    """What the program died of by itself, as `Class: message`, or the code with which it ended; else empty."""
    notes: tuple[str, ...] = ()
    """What did not go as it was said: a parameter without a place, a value that redaction replaced."""
    replay: ReplayResult
    findings: tuple[Finding, ...] = ()
    """Of the assertions that were held against it."""
    bases: tuple[Basis | None, ...] = ()
    """What decided each; None where it is undecided."""

    @property
    def same_path(self) -> bool:
        """It made the calls that were recorded, on what was recorded, to the end."""
        return not self.stopped and self.path == self.recorded_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Several forks of one run, made alike."""

    forks: tuple[Forked, ...]
    same_path: int
    """How many took the recorded path."""
    paths: tuple[tuple[tuple[str, ...], int], ...]
    """The distinct paths and how many took each, the most frequent first; one that was stopped ends in `…`."""
    tools: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    """By tool: how often it was called in all, in how many forks, and how often in the recorded run."""
    findings: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """By assertion: in how many forks it holds, fails, is undecided."""
