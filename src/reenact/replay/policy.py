"""What may happen when a replay meets a call: apart for models and for tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reenact.errors import UsageError
from reenact.values.call import Call, CallKind
from reenact.values.judgement import Strictness

if TYPE_CHECKING:  # most replays let nothing out
    from pathlib import Path

    from reenact.values.way import Way


class Source(StrEnum):
    """Where answers come from."""

    RECORDED = "recorded"
    LIVE = "live"
    RECORDED_OR_LIVE = "recorded-or-live"


MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})
"""Kinds of call that ask a model."""


class After(StrEnum):
    """What happens after the first divergence."""

    STOP = "stop"
    """Every further call is refused."""
    WRITES = "writes"
    """A write to a database that says something else is taken as the recorded one was; anything else stops."""
    NEAREST = "nearest"
    """A call that nobody recorded gets the answer of the one that it resembles most. Such answers are no evidence."""
    LIVE_MODELS = "live-models"
    """Model calls go to the provider where the recording does not answer them; tools stay as the policy has them."""


class Writes(StrEnum):
    """What becomes of files and databases that the agent writes outside every declared boundary."""

    COPY = "copy"
    """They go to a copy, where the world is sealed, and are compared; elsewhere they are refused."""
    KEEP = "keep"
    """As COPY; what was written is taken out into a folder."""
    REFUSE = "refuse"
    ALLOW = "allow"
    """They happen."""

    @property
    def copies(self) -> bool:
        """Tell whether they go through in a sealed world."""
        return self in {Writes.COPY, Writes.KEEP}


class Children(StrEnum):
    """What becomes of programs that the agent starts and that are none of its Pythons."""

    ANSWER = "answer"
    """What they said and how they ended is given back; none is started."""
    RUN = "run"
    """They run in the copy of a sealed world, and what comes of them is held against the recording."""
    REFUSE = "refuse"


class Reads(StrEnum):
    """Which files a program is given that it reads as data, where they are no more what they were."""

    RECORDED = "recorded"
    """What it read when it was recorded, where that was kept."""
    MISSING = "missing"
    """The same where nothing is there now, else what is."""
    PRESENT = "present"
    """What is there now: a prompt that was mended is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Where answers come from, by kind of call."""

    models: Source = Source.RECORDED
    """Model and embedding calls."""
    tools: Source = Source.RECORDED
    """Tools, retrievers and whatever else is no model."""
    writes: Writes = Writes.COPY
    keep: str = ""
    """The folder that KEEP takes them out into."""
    after: After = After.WRITES
    hosts: tuple[str, ...] = ()
    """What the user lets anything talk to (`values.way`): `--allow-host`."""
    dials: bool = False
    """The recording's own word is taken for the hosts of its calls, whoever made it: the program's tests name it."""
    ways: tuple[Way, ...] | None = None
    """What calls that go live may reach; None where nothing was made out, and they may reach whatever there is."""
    children: Children = Children.ANSWER
    reads: Reads | None = None
    """None for RECORDED, and for PRESENT while `git bisect` runs: each commit is judged with its own files."""
    outcome: Strictness = Strictness.EXACT
    live_tools: tuple[str, ...] = ()
    """Names of tools that run in the sealed world of the replay (`--tool-live`), their own calls answered."""
    stubs: tuple[str, ...] = ()
    """Functions that have other bodies (`--stub`), as `replay.substitutes` spells them."""
    lifespan: bool = True
    """The application's start-up and shutdown are run around a request that is delivered to it."""

    @staticmethod
    def named(
        choices: Mapping[str, str],
        hosts: Iterable[str] = (),
        live_tools: Iterable[str] = (),
        stubs: Iterable[str] = (),
        *,
        lifespan: bool = True,
        folder: Path | None = None,
    ) -> Policy:
        """Make one of the values of its fields, by name; those not given are the defaults.

        `writes` may be `keep=FOLDER`. Files of `stubs` are found in a `folder`, or from here. Raises `UsageError` where
        no folder is named, or for a stub that cannot be read.
        """
        writes, keep = read_writes(choices.get("writes") or Writes.COPY)
        return Policy(
            hosts=tuple(hosts),
            live_tools=tuple(live_tools),
            stubs=_stubs(stubs, folder),
            lifespan=lifespan,
            models=Source(choices.get("models", Source.RECORDED)),
            tools=Source(choices.get("tools", Source.RECORDED)),
            writes=writes,
            keep=keep,
            after=After(choices.get("after", After.WRITES)),
            children=Children(choices.get("children", Children.ANSWER)),
            reads=Reads(asked) if (asked := choices.get("reads")) else None,
            outcome=Strictness(choices.get("outcome", Strictness.EXACT)),
        )

    def source_of(self, call: Call) -> Source:
        """Say where the answer to a call comes from. A child is answered, or runs again, as `children` says.

        So is a query: what it is asked over is a connection that a replay never made.
        """
        return Source.RECORDED if call.is_child or call.is_query else self.source(call.kind)

    def runs(self, call: Call) -> bool:
        """Tell whether a call is of a tool that is named to run."""
        return call.name in self.live_tools and call.kind not in MODELS and not call.is_child and not call.is_structure

    def source(self, kind: CallKind) -> Source:
        """Say where the answers to calls of `kind` come from."""
        return self.models if kind in MODELS else self.tools

    @property
    def spelled_writes(self) -> str:
        """Spell what becomes of writes, as `named` reads it."""
        return f"{self.writes.value}={self.keep}" if self.writes is Writes.KEEP else self.writes.value

    @property
    def closed(self) -> bool:
        """Nothing may go live, and nothing may be talked to."""
        recorded = self.models is Source.RECORDED and self.tools is Source.RECORDED
        return recorded and self.after is not After.LIVE_MODELS and not self.hosts


def _stubs(spelled: Iterable[str], folder: Path | None) -> tuple[str, ...]:
    if not (texts := tuple(spelled)):
        return ()
    from reenact.replay.substitutes import Substitute  # most replays have none

    return tuple(Substitute.read(text, folder).spelled() for text in texts)


def read_writes(spelled: str) -> tuple[Writes, str]:
    """Read `copy`, `keep=FOLDER`, `refuse` or `allow`; give the folder too. Raises `UsageError` for anything else."""
    word, _, folder = spelled.partition("=")
    words = [each.value for each in Writes]
    if word not in words or bool(folder) != (word == Writes.KEEP):
        raise UsageError(f"writes: {spelled!r} is none of copy, keep FOLDER, refuse, allow")
    return Writes(word), folder
