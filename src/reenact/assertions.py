"""Assertions over runs in Python, as data: what the language of `docs/assertions.md` says, line for line.

    from reenact.assertions import arg, called, calls, never_called

    reenact.check(run, never_called("delete_accounts", arg("target") == "production"))
    reenact.check(run, called(calls("delete_*", arg("target") == "staging", kind="tool"), at_most=1))

Whatever is named by a string is named as in the language (`*` and `?` stand for other characters); `calls` adds a kind
and conditions. Each function gives a frozen dataclass of `reenact.values.assertion`; `spell` gives its line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

from reenact.values import assertion as a
from reenact.values import typed
from reenact.values.assertion import (
    Assertion,
    Calls,
    Checked,
    Condition,
    Finding,
    Ground,
    Measure,
    Op,
    Part,
    PathMode,
    Placed,
    Price,
    Shape,
    Standing,
    Step,
    Subject,
)
from reenact.values.json import Json

Named: TypeAlias = "str | Calls"

string, number, integer, boolean, null, obj, any_list, anything = (
    a.Simple(name=name) for name in ("string", "number", "integer", "boolean", "null", "object", "list", "any")
)
"""The types by name, for `arguments_are`."""

REFUSAL: Final = None
"""For `no_call_after`: a refusal by the model."""


class Value:
    """Something of a call or of a run's end, to be compared: each comparison gives a condition."""

    def __init__(self, part: Part, path: Iterable[Step] = ()) -> None:
        self._part, self._path = part, tuple(path)

    def __getitem__(self, step: str | int | slice) -> Value:
        """Go down to a key or a place; `[:]` is any item."""
        return Value(self._part, (*self._path, None if isinstance(step, slice) else step))

    def _condition(self, op: Op, value: object = None) -> Condition:
        return Condition(part=self._part, path=self._path, op=op, value=_json(value))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]  # a comparison makes a condition
        return self._condition(Op.EQUAL, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]  # a comparison makes a condition
        return self._condition(Op.DIFFERENT, other)

    __hash__ = None  # type: ignore[assignment]  # a condition in the making is in no set

    def __lt__(self, other: float | str) -> Condition:
        return self._condition(Op.LESS, other)

    def __le__(self, other: float | str) -> Condition:
        return self._condition(Op.AT_MOST, other)

    def __gt__(self, other: float | str) -> Condition:
        return self._condition(Op.MORE, other)

    def __ge__(self, other: float | str) -> Condition:
        return self._condition(Op.AT_LEAST, other)

    def equals(self, value: object) -> Condition:
        """`=`, for a linter that dislikes `== True`."""
        return self._condition(Op.EQUAL, value)

    def contains(self, value: object) -> Condition:
        """A text has this within, a list this item, an object these members or this key."""
        return self._condition(Op.CONTAINS, value)

    def lacks(self, value: object) -> Condition:
        """`does not contain`."""
        return self._condition(Op.LACKS, value)

    def matches(self, pattern: str) -> Condition:
        """The regular expression is found in the text."""
        return self._condition(Op.MATCHES, pattern)

    def mismatches(self, pattern: str) -> Condition:
        """`does not match`."""
        return self._condition(Op.MISMATCHES, pattern)

    def one_of(self, *values: object) -> Condition:
        """`in [...]`."""
        return self._condition(Op.IN, list(values))

    def none_of(self, *values: object) -> Condition:
        """`not in [...]`."""
        return self._condition(Op.NOT_IN, list(values))

    def exists(self) -> Condition:
        """It is there, if only as null."""
        return self._condition(Op.EXISTS)

    def absent(self) -> Condition:
        """`does not exist`."""
        return self._condition(Op.ABSENT)


def arg(*path: Step) -> Value:
    """Give an argument of a call: `arg("target")`, `arg("ids", 0)`, `arg("rows", None, "id")` for any row's."""
    return Value(Part.ARGUMENTS, path)


def result(*path: Step) -> Value:
    """Give the result of a call, or what is at a path in it."""
    return Value(Part.RESULT, path)


def raised(field: str = "") -> Value:
    """Give the class of the exception that a call raised, or with `"message"` its message."""
    return Value(Part.RAISED, (field,) if field else ())


def fact(name: str) -> Value:
    """Give a fact of the call itself: `status`, `model`, `url` or `method`."""
    return Value(Part.CALL, (name,))


def calls(name: str = "*", *where: Condition, kind: str = "") -> Calls:
    """Say which calls are meant: by name, by kind (`tool`, `llm`, `retriever`, `http`, …), by conditions."""
    return Calls(kind=kind, name=name, where=where)


def called(
    what: Named, *where: Condition, times: int | None = None, at_least: int | None = None, at_most: int | None = None
) -> a.Called:
    """These calls were made: at least once, or as often as is said. Raises `ValueError` where that cannot be."""
    if times is not None:
        at_least = at_most = times
    least = (1 if at_most is None else 0) if at_least is None else at_least
    if least < 0 or (at_most is not None and at_most < least) or (least == 0 and at_most is None):
        raise ValueError(f"called between {least} and {at_most} times says nothing, or can never be")
    return a.Called(calls=_calls(what, where), least=least, most=at_most)


def never_called(what: Named, *where: Condition) -> a.Called:
    """None of these calls was made."""
    return a.Called(calls=_calls(what, where), least=0, most=0)


def called_before(first: Named, then: Named) -> a.Before:
    """Both were called, and `first` was answered before `then` was first made."""
    return a.Before(first=_calls(first), then=_calls(then))


def called_only_after(what: Named, after: Named) -> a.OnlyAfter:
    """Before each of these calls, some call of `after` was answered."""
    return a.OnlyAfter(calls=_calls(what), after=_calls(after))


def path_is(*steps: Named) -> a.PathIs:
    """The path of the run is these calls and no others."""
    return _path(PathMode.IS, steps)


def path_contains(*steps: Named) -> a.PathIs:
    """The path has these calls in this order; others may stand between."""
    return _path(PathMode.CONTAINS, steps)


def path_starts_with(*steps: Named) -> a.PathIs:
    """The path begins with these calls."""
    return _path(PathMode.STARTS, steps)


def path_ends_with(*steps: Named) -> a.PathIs:
    """The path ends with these calls."""
    return _path(PathMode.ENDS, steps)


def optional(shape: Shape | str | float | bool) -> tuple[Shape]:  # noqa: FBT001 - a value that stands for itself
    """For `arguments_are` and `record`: the argument may be missing."""
    return (_shape(shape),)


def list_of(item: Shape | str | float | bool) -> a.ListOf:  # noqa: FBT001 - a value to find, not a switch
    """A list of which every item fits."""
    return a.ListOf(item=_shape(item))


def one_of(*options: Shape | str | float | bool) -> a.OneOf:
    """Any of these. Raises `ValueError` for fewer than two."""
    if len(options) < 2:
        raise ValueError("one_of takes two or more")
    return a.OneOf(options=tuple(map(_shape, options)))


def record(fields: dict[str, Any] | None = None, *, more: bool = False) -> a.Record:
    """An object with these members; `more` allows others. A plain value stands for itself."""
    members: list[a.Field] = []
    for name, shape in (fields or {}).items():
        maybe = isinstance(shape, tuple)
        member_shape: Any = cast("tuple[Any]", shape)[0] if maybe else shape
        members.append(a.Field(name=name, shape=_shape(member_shape), optional=maybe))
    return a.Record(fields=tuple(members), more=more)


def arguments_are(what: Named, fields: dict[str, Any], *, more: bool = False) -> a.ArgumentsAre:
    """The arguments of each of these calls have this shape: `{"target": one_of("a", "b"), "ids": list_of(string)}`."""
    return a.ArgumentsAre(calls=_calls(what), shape=record(fields, more=more))


def arguments_fit_schema(what: Named) -> a.ArgumentsFit:
    """The arguments of each of these calls are valid by the schema that the model was shown."""
    return a.ArgumentsFit(calls=_calls(what))


def every(what: Named, *has: Condition) -> a.Every:
    """Of each of these calls all conditions are true. Raises `ValueError` where there is none."""
    if not has:
        raise ValueError("every takes at least one condition")
    return a.Every(calls=_calls(what), has=has)


def no_call_after(after: Named | None = REFUSAL, *, of: Named = "*") -> a.NoneAfter:
    """None of these calls was made after a refusal, or after the first call of `after`."""
    return a.NoneAfter(calls=_calls(of), after=None if after is None else _calls(after))


class Said:
    """What a run said at its end; each comparison gives an assertion."""

    def __init__(self, subject: Subject, path: Iterable[Step] = ()) -> None:
        self._subject, self._path = subject, tuple(path)

    def __getitem__(self, step: str | int | slice) -> Said:
        """Go down to a key or a place of the JSON that was said; `[:]` is any item."""
        return Said(self._subject, (*self._path, None if isinstance(step, slice) else step))

    def _says(self, op: Op, value: object = None) -> a.Says:
        return a.Says(subject=self._subject, path=self._path, op=op, value=_json(value))

    def __eq__(self, other: object) -> a.Says:  # type: ignore[override]  # a comparison makes a condition
        return self._says(Op.EQUAL, other)

    def __ne__(self, other: object) -> a.Says:  # type: ignore[override]  # a comparison makes a condition
        return self._says(Op.DIFFERENT, other)

    __hash__ = None  # type: ignore[assignment]  # a condition in the making is in no set

    def equals(self, value: object) -> a.Says:
        """`is`, for a linter that dislikes `== True`."""
        return self._says(Op.EQUAL, value)

    def contains(self, value: object) -> a.Says:
        """The text has this within."""
        return self._says(Op.CONTAINS, value)

    def lacks(self, value: object) -> a.Says:
        """`does not contain`."""
        return self._says(Op.LACKS, value)

    def matches(self, pattern: str) -> a.Says:
        """The regular expression is found in the text."""
        return self._says(Op.MATCHES, pattern)

    def mismatches(self, pattern: str) -> a.Says:
        """`does not match`."""
        return self._says(Op.MISMATCHES, pattern)

    def one_of(self, *values: object) -> a.Says:
        """`in [...]`."""
        return self._says(Op.IN, list(values))

    def exists(self) -> a.Says:
        """There is one."""
        return self._says(Op.EXISTS)

    def absent(self) -> a.Says:
        """`does not exist`."""
        return self._says(Op.ABSENT)


answer = Said(Subject.ANSWER)
"""The text of the last model call; `answer["field"]` is of the JSON in it."""
response = Said(Subject.RESPONSE)
"""What a service or job answered."""
status = Said(Subject.STATUS)
"""The status of a service's HTTP answer."""
stdout = Said(Subject.STDOUT)
"""What the program printed on its standard output."""
stderr = Said(Subject.STDERR)
"""What the program printed on its standard error."""
returns = Said(Subject.RETURNS)
"""What the last agent or chain at the top returned; `returns["field"]` is of its value."""


def wrote(path: str) -> a.Wrote:
    """The program wrote a file whose name fits: its path below the program's folder, or its last part."""
    return a.Wrote(path=path)


def never_wrote(path: str) -> a.Wrote:
    """The program wrote no such file."""
    return a.Wrote(path=path, never=True)


def answer_grounded(in_: Ground | str = Ground.DOCUMENTS) -> a.Grounded:
    """Every number, quotation, identifier and address in the answer occurs in what was retrieved."""
    return a.Grounded(ground=Ground(in_))


def at_most(measure: Measure | str, bound: float, *, of: Named | None = None) -> a.Total:
    """A measure keeps a bound: `tokens`, `input tokens`, `output tokens`, `cost` in usd, `duration` in seconds."""
    return a.Total(measure=Measure(measure), bound=bound, calls=None if of is None else _calls(of))


def at_least(measure: Measure | str, bound: float, *, of: Named | None = None) -> a.Total:
    """A measure reaches a bound."""
    return a.Total(measure=Measure(measure), bound=bound, upper=False, calls=None if of is None else _calls(of))


def price(
    model: str,
    *,
    input: float,  # noqa: A002 - the field's word
    output: float,
    cached: float | None = None,
    written: float | None = None,
) -> Price:
    """Say what models whose name fits cost, in US dollars for a million tokens; it asserts nothing."""
    return Price(model=model, input=input, output=output, cached=cached, written=written)


def model_asked(*names: str) -> a.ModelIs:
    """Every model call asked one of these models."""
    return a.ModelIs(names=names)


def model_answered(*names: str) -> a.ModelIs:
    """Every model call was answered by one of these models."""
    return a.ModelIs(names=names, answered=True)


def ends_ok() -> a.Ends:
    """The run ended without exception, kill, or exit code other than 0."""
    return a.Ends()


def ends_with(exception: str | type[BaseException] | int) -> a.Ends:
    """The run ended with an exception of this class, or with an exit code."""
    if isinstance(exception, int):
        return a.Ends(ending=a.Ending.EXIT_CODE, code=exception)
    name = exception if isinstance(exception, str) else exception.__name__
    return a.Ends(ending=a.Ending.RAISED, exception=name)


def prose_says(statement: str, *, by: str = "", least: float | None = None) -> a.Prose:
    """Layer two: a judge finds that the answer says so. It never counts as structure."""
    return a.Prose(asks=a.Asks.SAYS, text=statement, judge=by, least=least)


def prose_is_like(text: str, *, by: str = "", least: float | None = None) -> a.Prose:
    """Layer two: the answer is like a text."""
    return a.Prose(asks=a.Asks.LIKE, text=text, judge=by, least=least)


def parse(text: str, *, source: str = "") -> tuple[Placed, ...]:
    """Read assertions in the language, one a line. Raises `errors.AssertionInvalid`."""
    from reenact.assess import language

    return language.parse(text, source=source)


def spell(assertion: Assertion) -> str:
    """Give the line of the language that says the same."""
    from reenact.assess import language

    return language.spell(assertion)


def _calls(what: Named, where: tuple[Condition, ...] = ()) -> Calls:
    if isinstance(what, str):
        return Calls(name=what, where=where)
    return Calls(kind=what.kind, name=what.name, where=(*what.where, *where))


def _path(mode: PathMode, steps: tuple[Named, ...]) -> a.PathIs:
    if not steps:
        raise ValueError("a path takes at least one call")
    return a.PathIs(mode=mode, steps=tuple(map(_calls, steps)))


def _shape(shape: Shape | str | float | bool) -> Shape:  # noqa: FBT001 - a value to find, not a switch
    return a.Exactly(value=shape) if isinstance(shape, str | int | float) else shape


def _json(value: object) -> Json:
    """Take a value down as JSON, so that later changes of it do not show. Raises `TypeError` where there is none."""
    from reenact.values.classes import TAGS

    spelled = typed.encode(value)
    if isinstance(spelled, dict) and TAGS.intersection(spelled) and not isinstance(value, dict):
        raise TypeError(f"{value!r} is no JSON; compare with a string, number, boolean, None, list or dict")
    return spelled


__all__ = [
    "REFUSAL",
    "Assertion",
    "Calls",
    "Checked",
    "Condition",
    "Finding",
    "Ground",
    "Measure",
    "Placed",
    "Price",
    "Said",
    "Standing",
    "Value",
    "answer",
    "answer_grounded",
    "any_list",
    "anything",
    "arg",
    "arguments_are",
    "arguments_fit_schema",
    "at_least",
    "at_most",
    "boolean",
    "called",
    "called_before",
    "called_only_after",
    "calls",
    "ends_ok",
    "ends_with",
    "every",
    "fact",
    "integer",
    "list_of",
    "model_answered",
    "model_asked",
    "never_called",
    "never_wrote",
    "no_call_after",
    "null",
    "number",
    "obj",
    "one_of",
    "optional",
    "parse",
    "path_contains",
    "path_ends_with",
    "path_is",
    "path_starts_with",
    "price",
    "prose_is_like",
    "prose_says",
    "raised",
    "record",
    "response",
    "result",
    "returns",
    "spell",
    "status",
    "stderr",
    "stdout",
    "string",
    "wrote",
]
