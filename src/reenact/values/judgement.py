"""What was found when two runs, or a recording and its replay, were held against each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from reenact.values.difference import Divergence
from reenact.values.json import Json

if TYPE_CHECKING:  # every replay has a result, few have assertions, which are 27 classes
    from reenact.values.assertion import Finding
    from reenact.values.file_writes import WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs, held against each other."""

    same: bool
    """There is no divergence at all."""
    same_path: bool
    """There is no structural divergence; wording may differ."""
    divergences: tuple[Divergence, ...] = ()
    """The first one first: by place in the causal order of a, then of b; how the runs ended comes last."""
    more: dict[str, tuple[Divergence, ...]] = field(default_factory=dict[str, tuple[Divergence, ...]])
    """Further fields that differ in a changed call, by the id of the call in a."""
    calls_a: int = 0
    """How many calls of a were compared."""
    calls_b: int = 0

    @property
    def first(self) -> Divergence | None:
        """The divergence that matters most."""
        return self.divergences[0] if self.divergences else None


class Strictness(StrEnum):
    """How closely what a program gives out is held against its recording."""

    EXACT = "exact"
    STRUCTURE = "structure"
    """Exit code, errors, statuses, which files were written and which fields a value has; no text and no number."""
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritesTold:
    """What a replay says of the files that the program wrote; which of them differ say the divergences."""

    compared: bool = False
    why: str = ""
    """Why they were not compared, where anything was or may have been written."""
    as_recorded: tuple[str, ...] = ()
    passed_over: tuple[dict[str, Json], ...] = ()
    """What differs by nature (`compare.volatile`): `path`, `kind`, `count`."""
    bytes_differ: tuple[str, ...] = ()
    """Files of which nothing but their bytes is known, where these differ from run to run."""
    undecided: tuple[tuple[WrittenFile, WrittenFile], ...] = ()
    """Such files, recorded and replayed, before a second replay decided on them."""
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Where what was written was taken out to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTold:
    """What a replay says of what the program printed; where it differs say the divergences."""

    compared: bool = False
    why: str = ""
    """Why it was not compared, where anything was or may have been printed."""
    as_recorded: tuple[str, ...] = ()
    """The streams that came out alike."""
    passed_over: tuple[dict[str, Json], ...] = ()
    """What differs by nature (`compare.volatile`, `compare.screen`): `stream`, `kind`, `count`."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What a replay came to. Entries are JSON objects as `reenact replay --json` shows them."""

    result: str
    """`same`; `diverged`: the program left the recording; `failed`: the recording holds a call that was asked for but
    not what could answer it, so that nothing can be said of what follows; `unjudged`: the program never joined the
    replay, there was nothing to replay, or the state that an answered tool had left could not be put back."""
    answered: dict[str, int] = field(default_factory=dict[str, int])
    """Calls answered from the recording, by kind in lower case."""
    ran_again: dict[str, int] = field(default_factory=dict[str, int])
    """Calls of found tools that ran again, since they are known to touch nothing outside the process, by kind."""
    unrestored: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Answered calls whose change of the state in memory could not be put back, although the verdict did not say so:
    `call`, `id`, `changed`, `why`. Then nothing can be said of what followed."""
    other_code: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Answered calls of functions that are written otherwise than when recorded: `call`, `id`, `name`. Nobody knows
    what they come to now."""
    live: int = 0
    """Calls that the policy let go to the outside world."""
    beyond: int = 0
    """Answers, among those counted, that came after the first divergence and are no evidence (`--after nearest`)."""
    misses: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    unconsumed: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Recorded calls that the program went past without asking for them: `id`, `call`, `kind`."""
    not_reached: int = 0
    """Recorded calls that lie behind the place where the replay stopped."""
    refused: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Side effects that were refused: `what`, `where`, `hint`."""
    ignored: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Fields that differed and say nothing to the model: `call`, `field`, `recorded`, `replay`."""
    volatile: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Where the program drew of the clock or of chance and the recording has no value: `site`, `lane`, `reason`."""
    divergences: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """The first one first: `call`, `field`, `a` (recorded), `b` (replay), `kind`, `structural`; `absent` lists the
    sides that have no value, `reason` says what no field can."""
    released_out_of_order: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Where the recorded order of releases had to be given up: `granted`, `passed`, `count`."""
    left: int = 0
    """Streams that the program read to the end when recorded and left early now."""
    writes: WritesTold = field(default_factory=WritesTold)
    """What came of the files that the program wrote."""
    printed: PrintedTold = field(default_factory=PrintedTold)
    """What came of what it printed."""
    strictness: Strictness = Strictness.EXACT
    """How closely its outcome was compared."""
    unwatched: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Native code that the program used where no kernel kept it in: `what`, perhaps `where`."""
    unwitnessed: list[str] = field(default_factory=list[str])
    """Files that changed in the copy and that no note names: native code wrote them, or a child that is no Python."""
    unlike: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Files that were not as the recorded run had found them when the replay began: `path`, `line` (what is said of
    it), `put_back` (the world had the recorded one)."""
    by_tools: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Files that tools wrote which ran since they were named (`--tool-live`), by tool. No recording holds any."""
    world: dict[str, str] = field(default_factory=dict[str, str])
    """What was done about each kind of effect on the world around (`values.effects`); empty where nothing is known."""
    level: str = "watched"
    """By what the program was kept from the world around: `namespaces`, `landlock`, or `watched` by the audit hook."""
    levels_refused: dict[str, str] = field(default_factory=dict[str, str])
    """Why each of the stronger ones could not be had."""
    ways_out: tuple[str, ...] = ()
    """The hosts, and sockets of the host's, that the policy lets the program talk to (`values.way`)."""
    reached: dict[str, int] = field(default_factory=dict[str, int])
    """How often a connection was made out of a sealed world, by host and port; those that failed are none."""
    replay: str | None = None
    """The id of the replay's own run."""
    earlier: tuple[dict[str, Json], ...] = ()
    """The earlier units that were delivered first, in order: `run`, `result`, `replay`. Where one of them left its
    recording, that is what the whole replay came to, and its divergences name it under `unit`."""
    ended_with: str | None = None
    """The label of the recorded call that was in flight when the recorded run was killed, where the replay came so
    far: there the recording ends, and nothing after it can be judged."""
    killed: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """Child processes that a signal ended in the middle of a call, as recorded: `call`, `id`, `signal`."""
    lacks: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    """What a recording lacks whose verdict is not `exact`: `call`, `field`, `lost`. A replay compares nothing of that,
    and where it diverged, that may be why."""
    outside: list[str] = field(default_factory=list[str])
    """Of a block of code that diverged: the scopes that it did not enter, in which the call was recorded."""
    redaction: dict[str, Json] | None = None
    """What the program was given that redaction had replaced: `given`, each with `call`, `field`, `classes`; where it
    diverged, whether that is the `cause` (`likely` or `possible`), `why`, and `keep`, the rules of a policy, in TOML,
    that would keep them. None where nothing was given."""
    stubs: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Functions that were to stand in the place of the agent's own (`--stub`), and how often each was called; None for
    one that the program never defined."""
    why: str = ""
    """Where it is `failed` or `unjudged`: why."""
    exit_code: int | None = None
    recorded_exit: int | None = None

    @property
    def of_scopes(self) -> str:
        """Say which scopes a block did not enter; empty where that is none."""
        what = str(self.divergences[0].get("call")) if self.divergences else "it"
        return (
            f"{what} was recorded inside of {', '.join(self.outside)}, outside of which this ran"
            if self.outside
            else ""
        )

    @property
    def of_other_code(self) -> str:
        """Say which functions were answered and are written otherwise now; empty where none is."""
        names = [*dict.fromkeys(str(each.get("name")) for each in self.other_code)]
        if not names:
            return ""
        listed, few = ", ".join(names[:3]), "" if len(names) <= 3 else f" and {len(names) - 3} more"
        verb, whose, them = ("was", "its", "it") if len(names) == 1 else ("were", "their", "them")
        run = " ".join(f"--tool-live {name}" for name in names[:3])
        return f"{listed}{few} {verb} answered and {whose} code differs; {run} runs {them}"


class Word(StrEnum):
    """What a replay says of the code, held against assertions over the recording."""

    REPRODUCED = "reproduced"
    """An assertion that fails on the recording fails in the replay too."""
    FIXED = "fixed"
    """Each that failed on the recording holds, and everything before the first divergence is the same."""
    BROKEN = "broken"
    """One that did not fail on the recording fails now, or something else changed first."""
    UNJUDGED = "unjudged"
    """The replay left the recording before the assertions could be decided, or there was none."""
    SAME = "same"
    """Nothing failed on the recording, and this is the same run, or one that differs in wording alone."""
    HOLDS = "holds"
    """Nothing failed on the recording; this is another run, and every assertion holds in it."""


class Basis(StrEnum):
    """What decided."""

    RECORDED = "recorded"
    """What the code did with recorded answers to questions that are the same."""
    LIVE = "live"
    """What it did with live answers of a model, which may say something else next time."""
    NEAREST = "nearest"
    """What it did with the recorded answers to other questions. True only if the model answers as it did."""
    WRITES = "writes"
    """What it did after it wrote something else to a database. True only if it is taken as what was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixJudgement:
    """What a replay says of a fix. `recorded` and `replay` hold the findings on both runs, one for one."""

    word: Word
    why: str
    """One or two sentences of evidence."""
    recorded: tuple[Finding, ...] = ()
    replay: tuple[Finding, ...] = ()
    first: dict[str, Json] | None = None
    """The first divergence, as in `ReplayResult.divergences`; None where the two are the same run."""
    same_structure: bool = False
    """The replay came to its end, and nothing but wording differs."""
    basis: Basis = Basis.RECORDED
    bases: tuple[Basis | None, ...] = ()
    """What decided each finding on the replay; None where none did."""

    @property
    def exit_code(self) -> int:
        """0 where nothing is wrong, 1 where an assertion fails, 125 where nobody can say (`git bisect` skips it)."""
        match self.word:
            case Word.FIXED | Word.SAME | Word.HOLDS:
                return 0
            case Word.REPRODUCED:
                return 1
            case Word.BROKEN if any(each.layer != "prose" and each.standing.value == "fails" for each in self.replay):
                return 1
            case _:
                return 125
