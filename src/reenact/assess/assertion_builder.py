"""What the rules of the grammar make: assertions as data. Imported only when a text is read."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, cast

from lark import Token, Transformer

from reenact.values import assertion as a
from reenact.values.automaton import PatternRefused, automaton
from reenact.values.json import Json, parse

_PARTS: Final = {part.value: part for part in a.Part}
_KNOWN: Final = {a.Part.RAISED: ("", "message"), a.Part.CALL: ("status", "model", "url", "method")}
"""What can be asked of these parts; the others are the program's own."""
_ALIASES: Final = {"is": "=", "is not": "!="}


class Refused(ValueError):
    """The text fits the grammar and makes no sense. `column` counts from 1."""

    def __init__(self, token: Token, problem: str) -> None:
        self.column = token.column or 1
        super().__init__(problem)


def _string(token: Token) -> str:
    text = str(token)
    if text[0] == "'":
        text = '"' + re.sub(r'\\(.)|(")', _requoted, text[1:-1]) + '"'
    try:
        return str(json.loads(text))  # orjson refuses lone surrogates
    except ValueError:
        raise Refused(token, f"{token} is no string of JSON: a backslash is written \\\\") from None


def _requoted(match: re.Match[str]) -> str:
    if match[2]:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _number(token: Token) -> int | float:
    try:
        value = parse(str(token))
    except ValueError:
        raise Refused(token, f"{token[:40]} is too large") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused(token, f"{token} is too large")
    return cast("int | float", value)


def _count(token: Token) -> int:
    value = _number(token)
    if not isinstance(value, int) or value < 0:
        raise Refused(token, f"expected a whole number, not {token}")
    return value


def _whole(token: Token) -> int:
    value = _number(token)
    if not isinstance(value, int):
        raise Refused(token, f"expected a whole number, not {token}")
    return value


def _name_of(token: Token) -> str:
    return _string(token) if token.type == "STRING" else str(token)


def _words(children: list[Any]) -> str:
    return " ".join(str(child) for child in children)


class Making(Transformer[Token, Any]):
    """Makes `values.assertion` of a parse tree."""

    def start(self, children: list[Any]) -> Any:
        """Give the one statement."""
        return children[0]

    # calls and conditions

    def name(self, children: list[Any]) -> str:
        """Read a name, bare or quoted."""
        return _name_of(children[0])

    def where(self, children: list[Any]) -> tuple[a.Condition, ...]:
        """Collect conditions."""
        return tuple(children)

    def calls_of_kind(self, children: list[Any]) -> a.Calls:
        """Read `tool NAME where …`."""
        kind, *rest = children
        name: Any = rest.pop(0) if rest and isinstance(rest[0], str) else "*"
        where: Any = rest[0] if rest else ()
        return a.Calls(kind=str(kind), name=name, where=where)

    def calls_of_name(self, children: list[Any]) -> a.Calls:
        """Read `NAME where …`."""
        name, *wheres = children
        return a.Calls(name=name, where=wheres[0] if wheres else ())

    def key(self, children: list[Any]) -> a.Step:
        """Read `.key`."""
        return _name_of(children[0])

    def index(self, children: list[Any]) -> a.Step:
        """Read `[0]`."""
        return _whole(children[0])

    def any_item(self, children: list[Any]) -> a.Step:
        """Read `[*]`."""
        del children

    def place(self, children: list[Any]) -> tuple[a.Part, tuple[a.Step, ...]]:
        """Read a path; a bare one leads into the arguments."""
        first, *steps = children
        if first.type != "STRING" and str(first) in _PARTS:
            part = _PARTS[str(first)]
            part_names = _KNOWN.get(part)
            if part_names is not None and (len(steps) > 1 or (str(steps[0]) if steps else "") not in part_names):
                raise Refused(first, f"expected {' or '.join(f'{part.value}.{name}' for name in part_names if name)}")
            return part, tuple(steps)
        return a.Part.ARGUMENTS, (_name_of(first), *steps)

    def op(self, children: list[Any]) -> tuple[a.Op, Token]:
        """Read an operator, with its place for a complaint."""
        words = _words(children)
        return a.Op(_ALIASES.get(words, words)), children[0]

    among_op = op
    exists_op = op

    def compares(self, children: list[Any]) -> a.Condition:
        """Read `path op value`."""
        (part, path), (op, token), value = children
        return a.Condition(part=part, path=path, op=op, value=_comparable(op, value, token))

    def among(self, children: list[Any]) -> a.Condition:
        """Read `path in […]`."""
        (part, path), (op, _), *values = children
        return a.Condition(part=part, path=path, op=op, value=values)

    def presence(self, children: list[Any]) -> a.Condition:
        """Read `path exists`."""
        (part, path), (op, _) = children
        return a.Condition(part=part, path=path, op=op)

    # which calls, how often, in what order

    def called(self, children: list[Any]) -> a.Called:
        """Read `called X …`."""
        calls, *counts = children
        least, most = counts[0] if counts else (1, None)
        return a.Called(calls=calls, least=least, most=most)

    def never(self, children: list[Any]) -> a.Called:
        """Read `never called X`."""
        return a.Called(calls=children[0], least=0, most=0)

    def exactly(self, children: list[Any]) -> tuple[int, int | None]:
        """Read `exactly N times`."""
        return _count(children[0]), _count(children[0])

    def once(self, children: list[Any]) -> tuple[int, int | None]:
        """Read `once`."""
        del children
        return 1, 1

    def at_least(self, children: list[Any]) -> tuple[int, int | None]:
        """Read `at least N times`."""
        if (least := _count(children[0])) == 0:
            raise Refused(children[0], "at least 0 times is always true")
        return least, None

    def at_most(self, children: list[Any]) -> tuple[int, int | None]:
        """Read `at most N times`."""
        return 0, _count(children[0])

    def between(self, children: list[Any]) -> tuple[int, int | None]:
        """Read `between N and M times`."""
        least, most = _count(children[0]), _count(children[1])
        if most < least:
            raise Refused(children[1], f"between {least} and {most} is never true")
        return least, most

    def before(self, children: list[Any]) -> a.Before:
        """Read `called A before B`."""
        return a.Before(first=children[0], then=children[1])

    def only_after(self, children: list[Any]) -> a.OnlyAfter:
        """Read `called A only after B`."""
        return a.OnlyAfter(calls=children[0], after=children[1])

    def path_mode(self, children: list[Any]) -> a.PathMode:
        """Read how a path is compared."""
        return a.PathMode(_words(children))

    def path(self, children: list[Any]) -> a.PathIs:
        """Read `path is A, B`."""
        return a.PathIs(mode=children[0], steps=tuple(children[1:]))

    # shapes

    def more(self, children: list[Any]) -> None:
        """Read `, ...`."""
        del children

    def optional(self, children: list[Any]) -> bool:
        """Read `?`."""
        del children
        return True

    def member(self, children: list[Any]) -> a.Field:
        """Read `name: type`."""
        name, *rest = children
        return a.Field(name=_name_of(name), shape=rest[-1], optional=len(rest) == 2)

    def members(self, children: list[Any]) -> a.Record:
        """Read the members of an object."""
        fields = tuple(each for each in children if each is not None)
        return a.Record(fields=fields, more=len(fields) < len(children))

    def anything(self, children: list[Any]) -> a.Record:
        """Read `...` alone."""
        del children
        return a.Record(more=True)

    def nothing(self, children: list[Any]) -> a.Record:
        """Read `nothing`."""
        del children
        return a.Record()

    def one_of(self, children: list[Any]) -> a.Shape:
        """Read `A or B`."""
        return a.OneOf(options=tuple(children))

    def simple(self, children: list[Any]) -> a.Shape:
        """Read the name of a type."""
        return a.Simple(name=str(children[0]))

    def list_of(self, children: list[Any]) -> a.Shape:
        """Read `list of A`."""
        return a.ListOf(item=children[1])

    def exactly_value(self, children: list[Any]) -> a.Shape:
        """Read a value that stands for itself."""
        return a.Exactly(value=children[0])

    def fields(self, children: list[Any]) -> a.ArgumentsAre:
        """Read `arguments of X are …`."""
        return a.ArgumentsAre(calls=children[0], shape=children[1])

    def fits(self, children: list[Any]) -> a.ArgumentsFit:
        """Read `arguments of X fit its schema`."""
        return a.ArgumentsFit(calls=children[0])

    # everything else

    def every(self, children: list[Any]) -> a.Every:
        """Read `every X has …`."""
        return a.Every(calls=children[0], has=tuple(children[1:]))

    def none_after(self, children: list[Any]) -> a.NoneAfter:
        """Read `no call of X after …`."""
        *calls, after = children
        return a.NoneAfter(calls=calls[0] if calls else a.Calls(), after=after if isinstance(after, a.Calls) else None)

    def says_compares(self, children: list[Any]) -> tuple[a.Op, Json]:
        """Read `op value`."""
        (op, token), value = children
        return op, _comparable(op, value, token)

    def says_among(self, children: list[Any]) -> tuple[a.Op, Json]:
        """Read `in […]`."""
        (op, _), *values = children
        return op, values

    def says_presence(self, children: list[Any]) -> tuple[a.Op, Json]:
        """Read `exists`."""
        return children[0][0], None

    def answer(self, children: list[Any]) -> a.Says:
        """Read `answer …`."""
        return _says(a.Subject.ANSWER, children)

    def response(self, children: list[Any]) -> a.Says:
        """Read `response …`."""
        return _says(a.Subject.RESPONSE, children)

    def status(self, children: list[Any]) -> a.Says:
        """Read `status …`."""
        return _says(a.Subject.STATUS, children)

    def stdout(self, children: list[Any]) -> a.Says:
        """Read `stdout …`."""
        return _says(a.Subject.STDOUT, children)

    def stderr(self, children: list[Any]) -> a.Says:
        """Read `stderr …`."""
        return _says(a.Subject.STDERR, children)

    def returns(self, children: list[Any]) -> a.Says:
        """Read `returns …`."""
        return _says(a.Subject.RETURNS, children)

    def wrote(self, children: list[Any]) -> a.Wrote:
        """Read `wrote …`."""
        return a.Wrote(path=children[0])

    def never_wrote(self, children: list[Any]) -> a.Wrote:
        """Read `never wrote …`."""
        return a.Wrote(path=children[0], never=True)

    def measure(self, children: list[Any]) -> a.Measure:
        """Read what is added up."""
        return a.Measure(_words(children))

    def bound(self, children: list[Any]) -> bool:
        """Read `at most`."""
        return str(children[1]) == "most"

    def unit(self, children: list[Any]) -> Token:
        """Read a unit."""
        return children[0]

    def total(self, children: list[Any]) -> a.Total:
        """Read `cost of X at most N usd`."""
        measure, *rest = children
        calls = rest.pop(0) if isinstance(rest[0], a.Calls) else None
        upper, amount, *units = rest
        expected = {a.Measure.COST: "usd", a.Measure.DURATION: "s"}.get(measure, "")
        if "".join(units) != expected:
            raise Refused(amount, f"expected {f'the unit {expected}' if expected else 'no unit'} after {amount}")
        return a.Total(measure=measure, bound=_amount(amount), upper=upper, calls=calls)

    def model_side(self, children: list[Any]) -> bool:
        """Read which model is meant."""
        return str(children[0]) == "answered"

    def models(self, children: list[Any]) -> a.ModelIs:
        """Read `model asked is X`."""
        return a.ModelIs(names=tuple(children[1:]), answered=children[0])

    def ends_ok(self, children: list[Any]) -> a.Ends:
        """Read `ends ok`."""
        del children
        return a.Ends()

    def ends_raised(self, children: list[Any]) -> a.Ends:
        """Read `ends with X`."""
        return a.Ends(ending=a.Ending.RAISED, exception=children[0])

    def ends_code(self, children: list[Any]) -> a.Ends:
        """Read `ends with exit code N`."""
        return a.Ends(ending=a.Ending.EXIT_CODE, code=_whole(children[0]))

    def ground(self, children: list[Any]) -> a.Ground:
        """Read what an answer is held against."""
        return a.Ground(_words(children))

    def grounded(self, children: list[Any]) -> a.Grounded:
        """Read `answer grounded in …`."""
        return a.Grounded(ground=children[0])

    def prose_asks(self, children: list[Any]) -> a.Asks:
        """Read what a judge is asked."""
        return a.Asks(_words(children))

    def least(self, children: list[Any]) -> tuple[str, float]:
        """Read `at least N`."""
        if (least := _amount(children[0])) > 1:
            raise Refused(children[0], f"expected a score from 0 to 1, not {children[0]}")
        return "least", least

    def judge(self, children: list[Any]) -> tuple[str, str]:
        """Read `by X`."""
        return "judge", _name_of(children[0])

    def prose(self, children: list[Any]) -> a.Prose:
        """Read `prose: answer …`."""
        asks, text, *more = children
        options: dict[str, Any] = dict(more)
        return a.Prose(asks=asks, text=_string(text), least=options.get("least"), judge=options.get("judge", ""))

    def cached(self, children: list[Any]) -> tuple[str, float]:
        """Read the price of what is read from a cache."""
        return "cached", _amount(children[0])

    def written(self, children: list[Any]) -> tuple[str, float]:
        """Read the price of what is written to a cache."""
        return "written", _amount(children[0])

    def price(self, children: list[Any]) -> a.Price:
        """Read a price."""
        name, input_rate, got, *more = children
        rates: dict[str, float] = dict(more)
        return a.Price(
            model=name,
            input=_amount(input_rate),
            output=_amount(got),
            cached=rates.get("cached"),
            written=rates.get("written"),
        )

    # JSON

    def text(self, children: list[Any]) -> Json:
        """Read a string."""
        return _string(children[0])

    def number(self, children: list[Any]) -> Json:
        """Read a number."""
        return _number(children[0])

    def true(self, children: list[Any]) -> Json:
        """Read `true`."""
        del children
        return True

    def false(self, children: list[Any]) -> Json:
        """Read `false`."""
        del children
        return False

    def null(self, children: list[Any]) -> Json:
        """Read `null`."""
        del children

    def array(self, children: list[Any]) -> Json:
        """Read a list."""
        return list(children)

    def pair(self, children: list[Any]) -> tuple[str, Json]:
        """Read a member of an object."""
        return _string(children[0]), children[1]

    def object(self, children: list[Any]) -> Json:
        """Read an object."""
        return dict(children)


def _says(subject: a.Subject, children: list[Any]) -> a.Says:
    *path, (op, value) = children
    return a.Says(subject=subject, path=tuple(path), op=op, value=value)


def _amount(token: Token) -> float:
    value = _number(token)
    if value < 0:
        raise Refused(token, f"expected a number from 0 up, not {token}")
    return value


def _comparable(op: a.Op, value: Json, token: Token) -> Json:
    if op in {a.Op.MATCHES, a.Op.MISMATCHES}:
        if not isinstance(value, str):
            raise Refused(token, "expected a regular expression in quotes")
        try:
            automaton(value)
        except PatternRefused as refused:
            raise Refused(token, str(refused)) from None
    ordered = {a.Op.LESS, a.Op.AT_MOST, a.Op.MORE, a.Op.AT_LEAST}
    if op in ordered and (isinstance(value, bool) or not isinstance(value, int | float | str)):
        raise Refused(token, f"{op.value} compares numbers, or strings, in order")
    return value
