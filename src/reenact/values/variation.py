"""A variation: one small way in which the world around a recorded run could have been another, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reenact.values.call import Outcome
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json
from reenact.values.span import Attribute


class Group(StrEnum):
    """What a variation touches; `--only` chooses by it."""

    PROMPTS = "prompts"
    """The user's input, as it was given at the entry."""
    TOOLS = "tools"
    """What tools and plain HTTP answered."""
    CHUNKS = "chunks"
    """What was retrieved."""
    MODELS = "models"
    """How a model's reply came, or did not; never what an honest model would have said instead."""
    TIMING = "timing"
    """When things came: the order of parallel calls, the pieces of a stream, where it was cut."""
    KEYS = "keys"
    """Fields that calls are not recognised by, and that should therefore change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is different in one recorded call."""

    node: str
    """The id of its span."""
    outcome: Outcome | None = None
    """What it comes to now; None where that stays."""
    repeats: int = 0
    """So many further times it comes to the same, for a client that tries again."""
    before: bool = False
    """It comes to `outcome` first, and to what was recorded when it is tried again."""
    head_order: int | None = None
    end_order: int | None = None
    end_ns: int | None = None
    """When its answer was there, which a replay holds to the pace of the others; None where that stays."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """Attributes of the span that are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One difference, small enough to be told in a line."""

    kind: str
    """The name of the perturbation that made it."""
    group: Group
    call: str
    """The label of the call, or `entry`."""
    node: str = ""
    """The id of the call; empty for the entry and for what touches many calls."""
    path: str = ""
    """What of the call, as `reenact fork --set` spells it; empty where that has no word for it."""
    before: Json | Absent = ABSENT
    after: Json | Absent = ABSENT
    description: str
    """What was done, in a few words."""
    size: int = 1
    """How much was changed; of two that do the same harm the smaller one is told."""
    edits: tuple[Edit, ...] = ()
    argv: tuple[str, ...] | None = None
    """The command line, where that is what differs."""
    renames: tuple[tuple[str, str], ...] = ()
    """Texts that are replaced wherever the recording holds them, requests included."""
    marks: tuple[str, ...] = ()
    """Values, spelled as JSON, that were put in and by which they are known again where they turn up."""
    fails: bool = False
    """It takes an answer away or says that there is none, which a program should notice."""
    smaller: tuple[Variation, ...] = ()
    """Lesser forms of it, the least one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of the program with one variation, or with several at once."""

    number: int
    """Its place in the list that a seed gives, from 1."""
    variations: tuple[Variation, ...]

    @property
    def size(self) -> int:
        """How much is different in all."""
        return sum(each.size for each in self.variations)

    @property
    def group(self) -> Group:
        """What it touches; of several variations what the first one does."""
        return self.variations[0].group


class Harm(StrEnum):
    """What a variation brought to light."""

    ASSERTION = "assertion"
    """An assertion that held does not hold any more."""
    CRASH = "crash"
    """An exception that the recording did not have."""
    HANG = "hang"
    """The program did not end in time."""
    SWALLOWED = "swallowed"
    """An answer failed or was cut, and the program went on and ended as if it had not."""
    TOOL = "tool"
    """A tool was called with a value that the variation had put in."""


class Basis(StrEnum):
    """How far what was seen is evidence."""

    EVIDENCE = "evidence"
    """Everything up to there came from the recording and the variation alone."""
    NEAREST = "nearest"
    """A request that nobody recorded was answered before it with the nearest recorded answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """One thing that was found, whichever cases found it."""

    harm: Harm
    what: str
    """In one sentence: the exception, the assertion, the tool and its argument."""
    where: str = ""
    """`file:line` of the agent's own code, where one is known."""
    basis: Basis
    because: str = ""
    """The evidence for it, in one sentence."""
    outcome: str
    """What makes two discoveries one."""
    case: Case
    """The smallest case that shows it."""
    also: tuple[str, ...] = ()
    """What else the same lack comes to, where a service fails in another way."""
    seen: int = 1
    """In how many cases."""
    run: str = ""
    """The id of the run in the store that shows it; empty where the store holds none."""
    replays: bool = False
    """That run can be replayed by its id; one that crashed before its first call has nothing that could answer."""
    steady: bool = True
    """It was seen again when the case was run once more."""


class Honesty(StrEnum):
    """What varying an ignored field did."""

    SAME = "same"
    ALTERED = "altered"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyField:
    """An ignored field, and whether the program heeds it all the same."""

    field: str
    """Where it stands: `reply.id`, `request.user`, `tool_calls[].id`, …"""
    calls: int
    """In how many calls."""
    path: Honesty
    first: str = ""
    """The first divergence, in one line."""
    run: str = ""
    """The id of the run in the store that shows it."""
