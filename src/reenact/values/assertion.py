"""What can be asserted of a run, as data, and what was found when it was.

Every assertion has one spelling in the language of `docs/assertions.md`; `assess.language` reads and writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from reenact.errors import AssertionsFailed
from reenact.values.json import Json


class Op(StrEnum):
    """How a value is held against another, as it is spelled."""

    EQUAL = "="
    DIFFERENT = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    LACKS = "does not contain"
    MATCHES = "matches"
    MISMATCHES = "does not match"
    IN = "in"
    NOT_IN = "not in"
    EXISTS = "exists"
    ABSENT = "does not exist"


class Part(StrEnum):
    """What of a call a condition looks at."""

    ARGUMENTS = "arguments"
    """A function's arguments by name; the request body of a model call or of plain HTTP."""
    RESULT = "result"
    """What a function returned; the reply body of a model call or of plain HTTP."""
    RAISED = "raised"
    """The exception: its class, or `raised.message`."""
    CALL = "call"
    """`call.status`, `call.model`, `call.url`, `call.method`."""


Step: TypeAlias = str | int | None
"""A key, a place in a list (negative from its end), or None for any item or member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that must be true of a call. A path with `[*]` holds where any of the values it leads to does."""

    part: Part = Part.ARGUMENTS
    path: tuple[Step, ...] = ()
    op: Op = Op.EQUAL
    value: Json = None
    """What is compared with; None for EXISTS and ABSENT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Which calls are meant."""

    kind: str = ""
    """`llm`, `tool`, `retriever`, `http`, … (`Call.word`); empty for any but `agent`, `chain` and `prompt`."""
    name: str = "*"
    """A name in which `*` stands for any characters and `?` for one."""
    where: tuple[Condition, ...] = ()
    """All must be true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """So many calls were made. `least` 0 and `most` 0 is `never called`."""

    calls: Calls
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Both were called, and the first call of `first` was answered before the first call of `then` was made."""

    first: Calls
    then: Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyAfter:
    """Before each call of `calls`, some call of `after` was answered. Holds where there is none of `calls`."""

    calls: Calls
    after: Calls


class PathMode(StrEnum):
    """How a run's path is held against a list of calls."""

    IS = "is"
    CONTAINS = "contains"
    """In this order; others may stand between."""
    STARTS = "starts with"
    ENDS = "ends with"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathIs:
    """The path: calls of tools and retrievers in the order they were made, and of any kind that `steps` name."""

    mode: PathMode = PathMode.IS
    steps: tuple[Calls, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A JSON type by name: `string`, `number`, `integer`, `boolean`, `null`, `object`, `list` or `any`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactly:
    """One value: a string, a number or a boolean."""

    value: str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list of which every item fits."""

    item: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """Any of two or more."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A member of an object."""

    name: str
    shape: Shape
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An object with these members; `more` allows others."""

    fields: tuple[Field, ...] = ()
    more: bool = False


Shape: TypeAlias = "Simple | Exactly | ListOf | OneOf | Record"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsAre:
    """The arguments of each of these calls have this shape."""

    calls: Calls
    shape: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsFit:
    """The arguments of each of these calls are valid by the schema that the model was shown for that tool."""

    calls: Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Of each of these calls all conditions are true. Holds where there is none."""

    calls: Calls
    has: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneAfter:
    """None of these calls was made after a refusal, or after the first of other calls."""

    calls: Calls = field(default_factory=Calls)
    after: Calls | None = None
    """None for a refusal by the model: its finish reason, stop reason, or refusal part."""


class Subject(StrEnum):
    """What the run said at its end."""

    ANSWER = "answer"
    """The text of the last model call; with a path, the JSON in it."""
    RESPONSE = "response"
    """What a service or job answered: the body of its HTTP answer, or the job's result."""
    STATUS = "status"
    """The status of its HTTP answer."""
    STDOUT = "stdout"
    """What the program printed on its standard output."""
    STDERR = "stderr"
    RETURNS = "returns"
    """What the last agent or chain at the top returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What the run said at its end is so."""

    subject: Subject = Subject.ANSWER
    path: tuple[Step, ...] = ()
    op: Op = Op.EQUAL
    value: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """The program wrote a file, or none, whose name fits: its path below the program's folder, or its last part."""

    path: str = "*"
    never: bool = False


class Measure(StrEnum):
    """What is added up over calls."""

    TOKENS = "tokens"
    INPUT_TOKENS = "input tokens"
    OUTPUT_TOKENS = "output tokens"
    COST = "cost"
    """In US dollars: what the trace says, or else tokens by the prices that stand beside the assertion."""
    DURATION = "duration"
    """In seconds: of the run, from its first start to its last end, or of the calls named, added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A measure over a run's calls keeps a bound."""

    measure: Measure
    bound: float
    upper: bool = True
    """`at most`; else `at least`."""
    calls: Calls | None = None
    """None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIs:
    """Every model call asked one of these models, or was answered by one. `*` and `?` as in names."""

    names: tuple[str, ...]
    answered: bool = False


class Ending(StrEnum):
    """How a run may end."""

    OK = "ok"
    RAISED = "raised"
    EXIT_CODE = "exit code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The run ended so."""

    ending: Ending = Ending.OK
    exception: str = ""
    """For RAISED: the class, by its name, or `module.name`; `*` and `?` as in names."""
    code: int = 0
    """For EXIT_CODE; negative for a signal."""


class Ground(StrEnum):
    """What an answer must be grounded in."""

    DOCUMENTS = "the retrieved documents"
    RESULTS = "the tool results"
    BOTH = "the retrieved documents and tool results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounded:
    """Every number, quotation, identifier and address in the answer occurs in the ground."""

    ground: Ground = Ground.DOCUMENTS


class Asks(StrEnum):
    """What is asked of a judge."""

    SAYS = "says"
    LIKE = "is like"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Layer two: a judge is asked about the wording. Its verdict never counts as structure."""

    asks: Asks = Asks.SAYS
    text: str
    least: float | None = None
    """The score, 0 to 1, from which on it holds; None leaves that to the judge."""
    judge: str = ""
    """`module:function`, `model`, `similarity` or `overlap`; empty for the one that the check was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Asserts nothing: what models whose name fits cost, in US dollars for a million tokens."""

    model: str
    input: float
    output: float
    cached: float | None = None
    """For input tokens read from the provider's cache; None where they cost as others do."""
    written: float | None = None
    """For input tokens written to the provider's cache, where that has a price of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a judge says of an answer. It has said whether, or how much, or neither."""

    holds: bool | None = None
    score: float | None = None
    """From 0, not at all, to 1, entirely."""
    reason: str = ""
    by: str = ""
    """Who says so."""


Judge: TypeAlias = "Callable[[Prose, str], Opinion]"
"""Given what is asked and the answer, says what it thinks of it."""


Structural: TypeAlias = (
    Called
    | Before
    | OnlyAfter
    | PathIs
    | ArgumentsAre
    | ArgumentsFit
    | Every
    | NoneAfter
    | Says
    | Wrote
    | Total
    | ModelIs
    | Ends
    | Grounded
)
Assertion: TypeAlias = Structural | Prose | Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An assertion and where it was written."""

    assertion: Assertion
    place: str = ""
    """`file:line`, or empty for one that was given in code or on the command line."""


class Standing(StrEnum):
    """Whether an assertion is true of a run."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of one assertion."""

    assertion: str
    """As spelled by the language."""
    standing: Standing
    because: str
    """One sentence of evidence: the call, the field, the value."""
    nodes: tuple[str, ...] = ()
    """The ids of the calls that decide it."""
    layer: str = "structure"
    """`structure` or `prose`."""
    place: str = ""
    """`file:line` where it was written, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The findings of a check. True where every structural assertion holds; prose does not count."""

    findings: tuple[Finding, ...] = ()
    run: str = ""
    """The id of the run."""

    def __bool__(self) -> bool:
        return all(each.standing is Standing.HOLDS for each in self.structure)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def structure(self) -> tuple[Finding, ...]:
        """The findings that count."""
        return tuple(each for each in self.findings if each.layer == "structure")

    @property
    def prose(self) -> tuple[Finding, ...]:
        """The verdicts of judges, which do not."""
        return tuple(each for each in self.findings if each.layer == "prose")

    def standing(self, *, prose: bool = False) -> Standing:
        """Say what all come to: one that fails outweighs any undecided. With `prose`, judges' verdicts count too."""
        standings = {each.standing for each in (self.findings if prose else self.structure)}
        return next((each for each in (Standing.FAILS, Standing.UNDECIDED) if each in standings), Standing.HOLDS)

    def raise_for_failures(self, *, prose: bool = False) -> None:
        """Raise `errors.AssertionsFailed`, an `AssertionError` too, unless every assertion holds.

        One that is undecided raises as well: nobody has shown that it holds. With `prose`, judges' verdicts count.
        """
        counted = self.findings if prose else self.structure
        failed = [each for each in counted if each.standing is not Standing.HOLDS]
        if failed:
            raise AssertionsFailed(self.run, [(each.standing.value, each.assertion, each.because) for each in failed])
