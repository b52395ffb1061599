"""What came of looking around a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, field

from reenact.values.variation import Discovery, KeyField


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    """One search, as `reenact fuzz` tells it."""

    run: str
    """The id of the recorded run."""
    name: str
    named: str
    """How commands name it: the beginning of its id, or the file that it was read from."""
    command: tuple[str, ...] = ()
    """What was run in place of the recorded command; empty for that."""
    seed: int
    cases: int
    """How many variations, or pairs of them, were tried."""
    tried: dict[str, int] = field(default_factory=dict[str, int])
    """The same by group."""
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    """How often each perturbation was tried."""
    runs: int = 0
    """How often the program ran in all, with those to make cases smaller and to show them again."""
    seconds: float = 0.0
    jobs: int = 1
    unjudged: int = 0
    """Cases of which nothing can be said: the program could not be given the varied answer."""
    exhausted: bool = False
    """There was nothing left to vary."""
    before: str = "same"
    """What the program came to with no variation: `same`, or `diverged` where it is not the code that was recorded."""
    before_first: str = ""
    """Its first divergence then, in one line."""
    after: str = "nearest"
    """What happened after a request that nobody recorded."""
    ready: bool = False
    """Cases ran in copies of a Python that had imported the libraries; what was found ran in one of its own."""
    discoveries: tuple[Discovery, ...] = ()
    """Those on evidence first."""
    keys: tuple[KeyField, ...] = ()
    """Ignored fields, those that altered the path first."""
    groups: tuple[str, ...] = ()
    """What was to be varied."""
    untouched: dict[str, str] = field(default_factory=dict[str, str])
    """Groups of which nothing could be tried, and why."""

    stopped: str = ""
    """The name of the signal that ended the search; empty where none did."""

    @property
    def nothing_tried(self) -> bool:
        """No case was tried, so that finding nothing says nothing."""
        return not self.cases

    @property
    def found(self) -> bool:
        """Something was found."""
        return bool(self.discoveries) or any(each.path == "altered" for each in self.keys)
