"""Patterns that people write: taken where a text cannot make them slow, refused with what to write instead.

`re` tries every way in which a pattern can match. How many there are is bounded here from the pattern alone: every
repeat has an end, and where one repeat may give characters to what follows it, the ways multiply. The engine tries a
pattern in a window around one of its anchors, so that the width of a match is bounded as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any, cast

_MOST_WAYS = 20_000
"""In how many ways a pattern may match at one place: more would make one text a burden."""
WIDEST = 4096
"""The longest match, in characters."""
_SHORTEST_ANCHOR = 2
_MOST_BRANCHES = 200
_OTHER = 128
"""Stands for every character that is none of ASCII's."""
_ALL = frozenset(range(_OTHER + 1))
_NOTHING: frozenset[int] = frozenset()
_ENDLESS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|([*+]|\{[0-9]+,\})", re.DOTALL)
_CATEGORIES = {
    "CATEGORY_DIGIT": frozenset(map(ord, "0123456789")),
    "CATEGORY_SPACE": frozenset(map(ord, " \t\n\r\f\v")),
    "CATEGORY_WORD": frozenset(c for c in range(_OTHER) if chr(c).isalnum() or chr(c) == "_"),
}


class PatternRefused(ValueError):
    """A pattern that is not taken. `at` is the place in it, in characters; `hint` says what to write instead."""

    def __init__(self, problem: str, *, hint: str = "", at: int = 0) -> None:
        self.problem, self.hint, self.at = problem, hint, at
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Linear:
    """What is known of a pattern that is taken."""

    width: int
    """Characters of the longest match."""
    anchors: tuple[str, ...]
    """Literals of ASCII, one of which is in every match; none where it has no such literal."""


def linear(pattern: str, *, any_case: bool = False) -> Linear:
    """Check a pattern, which is meant with ASCII's letters and digits. Raises `PatternRefused`."""
    parser: Any = import_module("re._parser")  # the tree of a pattern, which nothing public gives
    flags = re.ASCII | (re.IGNORECASE if any_case else 0)
    try:
        tree: Any = parser.parse(pattern, flags)
        re.compile(pattern, flags)
    except re.error as error:
        raise PatternRefused(f"it is no pattern of `re`: {error.msg}", at=error.pos or 0) from None
    except (RecursionError, OverflowError):
        raise PatternRefused("it is nested too deep, or a number in it is too large") from None
    ways = _Ways(any_case=bool(int(tree.state.flags) & re.IGNORECASE), pattern=pattern)
    items = list(cast("Iterable[Any]", tree))
    if ways.nullable(items):
        raise PatternRefused("it matches the empty text", hint="make one part of it obligatory")
    ways.of(items, _NOTHING)
    width = int(tree.getwidth()[1])
    if width > WIDEST:
        raise PatternRefused(f"it may match {width} characters, and {WIDEST} is the most", hint="lower its repeats")
    return Linear(width=width, anchors=_anchors(items))


class _Ways:
    """Counts in how many ways a pattern can match, from its tree."""

    def __init__(self, *, any_case: bool, pattern: str) -> None:
        self._any_case, self._pattern = any_case, pattern

    def of(self, items: Sequence[Any], follow: frozenset[int]) -> int:
        """Count the ways of a sequence that is followed by one of `follow`. Raises `PatternRefused`."""
        total = 1
        for item in reversed(items):
            code, argument = _name(item[0]), item[1]
            total *= self._one(code, argument, follow)
            if total > _MOST_WAYS:
                raise PatternRefused(
                    f"it can match one text in more than {_MOST_WAYS} ways",
                    hint="let no repeat hold another of the same characters, and let two that follow each other "
                    "differ in theirs: [a-z]{1,20}-[a-z]{1,20} rather than [a-z-]{1,40}[a-z]{1,20}",
                )
            first = self._first(code, argument)
            follow = first | follow if self._empty(code, argument) else first
        return total

    def _one(self, code: str, argument: Any, follow: frozenset[int]) -> int:
        if code in {"GROUPREF", "GROUPREF_EXISTS"}:
            raise PatternRefused(
                "it refers back to a group, which is not linear",
                hint="write what the group may be once more; to find two that are equal needs a program",
            )
        if code in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            return self._repeat(code, int(argument[0]), int(argument[1]), list(argument[2]), follow)
        if code == "BRANCH":
            return self._branch([list(each) for each in argument[1]], follow)
        if code in {"SUBPATTERN", "ATOMIC_GROUP"}:
            inner = list(argument[-1] if code == "SUBPATTERN" else argument)
            ways = self.of(inner, follow)
            return 1 if code == "ATOMIC_GROUP" else ways
        if code in {"ASSERT", "ASSERT_NOT"}:
            return self.of(list(argument[1]), _NOTHING)
        return 1

    def _repeat(self, code: str, least: int, most: int, body: list[Any], follow: frozenset[int]) -> int:
        if most > WIDEST:
            match = next((match for match in _ENDLESS.finditer(self._pattern) if match[1]), None)
            spelled = match[1] if match else "a repeat"
            raise PatternRefused(
                f"`{spelled}` has no end" if match else f"a repeat of more than {WIDEST}",
                hint=f"write {{{least},200}}, or what it can be at most",
                at=match.start(1) if match else 0,
            )
        if self.nullable(body) and most > 1:
            raise PatternRefused("it repeats what may be empty", hint="make one part of the repeated group obligatory")
        first = self._firsts(body)
        inside = self.of(body, (first | follow) if most > 1 else follow)
        if code == "POSSESSIVE_REPEAT":
            return 1
        choices = most - least + 1 if first & follow else 1
        return choices * (inside ** min(most, 64))

    def _branch(self, branches: list[list[Any]], follow: frozenset[int]) -> int:
        each = [self.of(branch, follow) for branch in branches]
        empty = [self.nullable(branch) for branch in branches]
        firsts = [
            self._firsts(branch) | (follow if void else _NOTHING) for branch, void in zip(branches, empty, strict=True)
        ]
        many = len(branches) > _MOST_BRANCHES  # words in a list: compared one by one they would take long
        alike = not many and (sum(empty) > 1 or any(a & b for a, b in combinations(firsts, 2)))
        return sum(each) if alike else max(each)

    def nullable(self, items: Sequence[Any]) -> bool:
        """Tell whether a sequence matches the empty text."""
        return all(self._empty(_name(code), argument) for code, argument in items)

    def _empty(self, code: str, argument: Any) -> bool:
        if code in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            return int(argument[0]) == 0 or self.nullable(list(argument[2]))
        if code == "BRANCH":
            return any(self.nullable(list(each)) for each in argument[1])
        if code in {"SUBPATTERN", "ATOMIC_GROUP"}:
            return self.nullable(list(argument[-1] if code == "SUBPATTERN" else argument))
        return code in {"ASSERT", "ASSERT_NOT", "AT"}

    def _firsts(self, items: Sequence[Any]) -> frozenset[int]:
        characters = _NOTHING
        for code, argument in items:
            characters |= self._first(_name(code), argument)
            if not self._empty(_name(code), argument):
                break
        return characters

    def _first(self, code: str, argument: Any) -> frozenset[int]:
        """Give the characters that a part may begin with."""
        if code in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            return self._firsts(list(argument[2]))
        if code == "BRANCH":
            return _NOTHING.union(*(self._firsts(list(each)) for each in argument[1]))
        if code in {"SUBPATTERN", "ATOMIC_GROUP"}:
            return self._firsts(list(argument[-1] if code == "SUBPATTERN" else argument))
        if code in {"ASSERT", "ASSERT_NOT", "AT"}:
            return _NOTHING
        if code == "LITERAL":
            return self._cased(frozenset([min(int(argument), _OTHER)]))
        if code == "NOT_LITERAL":
            return _ALL - self._cased(frozenset([int(argument)]))
        return self._class(argument) if code == "IN" else _ALL

    def _class(self, members: Iterable[Any]) -> frozenset[int]:
        characters, negated = _NOTHING, False
        for code, argument in members:
            code_name = _name(code)
            if code_name == "NEGATE":
                negated = True
            elif code_name == "LITERAL":
                characters |= {min(int(argument), _OTHER)}
            elif code_name == "RANGE":
                low, high = (min(int(each), _OTHER) for each in argument)
                characters |= frozenset(range(low, high + 1))
            else:
                characters |= _category(_name(argument))
        characters = self._cased(characters)
        return _ALL - (characters - {_OTHER}) if negated else characters

    def _cased(self, characters: frozenset[int]) -> frozenset[int]:
        if not self._any_case:
            return characters
        both = {ord(other) for c in characters if c < _OTHER for other in (chr(c).lower(), chr(c).upper())}
        return characters | frozenset(c for c in both if c < _OTHER)


def _category(name: str) -> frozenset[int]:
    plain = name.replace("_NOT_", "_")
    characters = _CATEGORIES.get(plain, _ALL)
    return _ALL - characters if plain != name else characters


def _name(code: object) -> str:
    return str(code)


def _anchors(items: Sequence[Any]) -> tuple[str, ...]:
    """Pick literals, one of which every match holds: those whose shortest is longest."""
    best: tuple[str, ...] = ()
    run = ""

    def better(other: tuple[str, ...]) -> tuple[str, ...]:
        usable = bool(other) and all(len(each) >= _SHORTEST_ANCHOR and each.isascii() for each in other)
        return other if usable and min(map(len, other)) > min(map(len, best), default=0) else best

    for code, argument in items:
        code_name = _name(code)
        if code_name == "LITERAL":
            run += chr(int(argument))
            continue
        if code_name == "AT":
            continue
        best, run = better((run,)), ""
        if code_name == "SUBPATTERN":
            best = better(_anchors(list(argument[-1])))
        elif code_name in {"MAX_REPEAT", "MIN_REPEAT"} and int(argument[0]) > 0:
            best = better(_anchors(list(argument[2])))
        elif code_name == "BRANCH":
            each = [_anchors(list(branch)) for branch in argument[1]]
            best = better(tuple(dict.fromkeys(word for words in each for word in words)) if all(each) else ())
    return better((run,))
