"""The one spelling of each assertion: what the language reads back as the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, assert_never

from reenact.values import assertion as a
from reenact.values.json import Json, compact

_NAME: Final = re.compile(r"[\w*?$][\w*?.:$/-]*")
_FIELD: Final = re.compile(r"[^\W\d][\w$-]*|[$][\w$-]*")
_WORDS: Final = frozenset(
    [
        "llm",
        "embedding",
        "tool",
        "retriever",
        "reranker",
        "agent",
        "chain",
        "guardrail",
        "evaluator",
        "prompt",
        "decision",
        "http",
        "database",
        "child",
        "where",
        "and",
        "before",
        "only",
        "after",
        "exactly",
        "at",
        "between",
        "once",
        "is",
        "are",
        "fit",
        "has",
        "ok",
        "exit",
        "with",
        "of",
        "refusal",
        "nothing",
    ]
)
"""Words that mean something where a name may stand; such a name is quoted."""


def spelled(assertion: a.Assertion) -> str:  # noqa: C901, PLR0911, PLR0912 - one case a member of the union
    """Spell an assertion."""
    match assertion:
        case a.Called():
            return _called(assertion)
        case a.Before(first=first, then=then):
            return f"called {calls(first)} before {calls(then)}"
        case a.OnlyAfter(calls=selector, after=after):
            return f"called {calls(selector)} only after {calls(after)}"
        case a.PathIs(mode=mode, steps=steps):
            return f"path {mode.value} {', '.join(map(calls, steps))}"
        case a.ArgumentsAre(calls=selector, shape=shape):
            return f"arguments of {calls(selector)} are {_members(shape)}"
        case a.ArgumentsFit(calls=selector):
            return f"arguments of {calls(selector)} fit its schema"
        case a.Every(calls=selector, has=has):
            return f"every {calls(selector)} has {_conditions(has)}"
        case a.NoneAfter(calls=selector, after=after):
            of = "" if selector == a.Calls() else f" of {calls(selector)}"
            return f"no call{of} after {'refusal' if after is None else calls(after)}"
        case a.Says(subject=subject, path=path, op=op, value=value):
            return f"{subject.value}{_steps(path)} {_comparison(op, value, equal='is')}"
        case a.Wrote(path=path, never=never):
            return f"{'never ' if never else ''}wrote {_name(path)}"
        case a.Total():
            return _total(assertion)
        case a.ModelIs(names=names, answered=answered):
            return f"model {'answered' if answered else 'asked'} is {', '.join(map(_name, names))}"
        case a.Ends():
            return _ends(assertion)
        case a.Grounded(ground=ground):
            return f"answer grounded in {ground.value}"
        case a.Prose(asks=asks, text=text, least=least, judge=judge):
            score = "" if least is None else f" at least {_number(least)}"
            return f"prose: answer {asks.value} {compact(text)}{score}{f' by {_field(judge)}' if judge else ''}"
        case a.Price(model=model, input=asked, output=got, cached=cached, written=cache_write):
            further = "".join(
                f", {_number(each)} {word}"
                for each, word in ((cached, "cached"), (cache_write, "written"))
                if each is not None
            )
            return f"price of {_name(model)} is {_number(asked)} in, {_number(got)} out{further} usd per million tokens"
        case _:
            assert_never(assertion)


def calls(selector: a.Calls) -> str:
    """Spell which calls are meant."""
    words = [selector.kind] if selector.kind else []
    if selector.name != "*" or not selector.kind:
        words.append(_name(selector.name))
    if selector.where:
        words.append(f"where {_conditions(selector.where)}")
    return " ".join(words)


def condition(clause: a.Condition) -> str:
    """Spell a condition."""
    return f"{place(clause.part, clause.path)} {_comparison(clause.op, clause.value)}"


def place(part: a.Part, path: tuple[a.Step, ...]) -> str:
    """Spell a path within a call."""
    match path:
        case (str() as first, *rest) if part is a.Part.ARGUMENTS and first not in set(a.Part):
            return f"{_field(first)}{_steps(rest)}"
        case _:
            return f"{part.value}{_steps(path)}"


def place_of(subject: str, path: Iterable[a.Step]) -> str:
    """Spell a path within what a run said."""
    return f"{subject}{_steps(path)}"


def _called(assertion: a.Called) -> str:
    phrase = f"called {calls(assertion.calls)}"
    match assertion.least, assertion.most:
        case 1, None:
            return phrase
        case 0, 0:
            return f"never {phrase}"
        case least, None:
            return f"{phrase} at least {_times(least)}"
        case 0, most:
            return f"{phrase} at most {_times(most)}"
        case least, most if least == most:
            return f"{phrase} exactly {_times(most)}"
        case least, most:
            return f"{phrase} between {least} and {_times(most)}"


def _times(count: int) -> str:
    return f"{count} time{'' if count == 1 else 's'}"


def _conditions(clauses: Iterable[a.Condition]) -> str:
    return " and ".join(map(condition, clauses))


def _comparison(op: a.Op, value: Json, *, equal: str = "=") -> str:
    match op:
        case a.Op.EXISTS | a.Op.ABSENT:
            return op.value
        case a.Op.EQUAL:
            return f"{equal} {_value(value)}"
        case a.Op.DIFFERENT:
            return f"{'is not' if equal == 'is' else '!='} {_value(value)}"
        case _:
            return f"{op.value} {_value(value)}"


def _steps(path: Iterable[a.Step]) -> str:
    text = ""
    for step in path:
        match step:
            case None:
                text += "[*]"
            case int():
                text += f"[{step}]"
            case _:
                text += f".{_field(step)}"
    return text


def _value(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{compact(name)}: {_value(each)}' for name, each in value.items())}}}"
    return compact(value)


def _number(value: float) -> str:
    whole = int(value)
    return str(whole) if whole == value and isinstance(value, int) else compact(value)


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) and name not in _WORDS else compact(name)


def _field(name: str) -> str:
    return name if _FIELD.fullmatch(name) else compact(name)


def _members(shape: a.Record) -> str:
    if not shape.fields:
        return "..." if shape.more else "nothing"
    members = [f"{_member(each.name)}{'?' if each.optional else ''}: {_shape(each.shape)}" for each in shape.fields]
    return ", ".join([*members, "..."] if shape.more else members)


def _member(name: str) -> str:
    return compact(name) if name == "nothing" else _field(name)


def _shape(shape: a.Shape) -> str:
    match shape:
        case a.Simple(name=name):
            return name
        case a.Exactly(value=value):
            return compact(value)
        case a.ListOf(item=item):
            return f"list of {_inner(item)}"
        case a.OneOf(options=options):
            return " or ".join(map(_inner, options))
        case a.Record():
            return f"{{{_members(shape)}}}"
        case _:
            assert_never(shape)


def _inner(shape: a.Shape) -> str:
    return f"({_shape(shape)})" if isinstance(shape, a.OneOf) else _shape(shape)


def _total(assertion: a.Total) -> str:
    of = "" if assertion.calls is None else f" of {calls(assertion.calls)}"
    unit = {a.Measure.COST: " usd", a.Measure.DURATION: " s"}.get(assertion.measure, "")
    bound = "at most" if assertion.upper else "at least"
    return f"{assertion.measure.value}{of} {bound} {_number(assertion.bound)}{unit}"


def _ends(assertion: a.Ends) -> str:
    match assertion.ending:
        case a.Ending.OK:
            return "ends ok"
        case a.Ending.RAISED:
            return f"ends with {_name(assertion.exception)}"
        case a.Ending.EXIT_CODE:
            return f"ends with exit code {assertion.code}"
