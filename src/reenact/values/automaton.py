"""Regular expressions of `re`, searched for in time that grows with the text alone.

`re` tries one way of matching after another, and `(a+)+$` has more ways than there is time for. Here all ways are gone
at once: the pattern becomes an automaton, and a set of its places is carried over the text, a character at a time
(Thompson 1968). A set that was reached before is known with what it leads to, so that most characters cost one look
into a dictionary. What a search may cost is counted, in places looked at.

The pattern is read by `re`'s own parser, and each of its characters and classes is tried by `re` itself, so that
letters, case, digits and `.` mean what they mean there. Groups that look ahead or behind, or refer back, are none of an
automaton's: a pattern with one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

_MOST_PLACES: Final = 5_000
"""Places of an automaton: `(?:ab{1,100}){1,100}` takes some ten thousand."""
_MOST_WORK: Final = 5_000_000
"""Places that one search may look at."""
_MOST_KNOWN: Final = 20_000
"""Steps that are remembered at once."""
_CONSUMING: Final = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY", "CATEGORY"})
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_KINDS: Final = int(re.ASCII | re.LOCALE | re.UNICODE)
"""Of these a group has one."""
_OF_EMPTY: Final = re.search(r"\B", "") is not None
"""Whether `\\B` is in the empty text: since Python 3.14 it is."""
_LONG_END: Final = "\n at the end"
"""Stands for the line feed behind which the text ends, where `$` holds as well."""


class PatternRefused(ValueError):
    """A pattern that is not taken; the message says why, and what to write instead."""


class TooHard(Exception):
    """A text is too long for this pattern."""


class _Around(NamedTuple):
    """What `^`, `$` and boundaries of words ask of the character before or behind a place."""

    none: bool
    line: bool
    """It is a line feed, or there is none."""
    word: bool
    ascii_word: bool


class _Place:
    """A place of the automaton: what it takes (a character, or what must be around), and the places behind it."""

    __slots__ = ("behind", "condition", "takes")

    def __init__(self) -> None:
        self.takes: Callable[[str], object] | None = None
        self.condition: Callable[[_Around, _Around, bool], bool] | None = None
        self.behind: list[int] = []


_Set = tuple[frozenset[int], _Around]
_WORD, _ASCII_WORD = re.compile(r"\w"), re.compile(r"\w", re.ASCII)
_NOTHING = _Around(none=True, line=True, word=False, ascii_word=False)


class _Work:
    """What one search has cost."""

    __slots__ = ("_cost",)

    def __init__(self) -> None:
        self._cost = 0

    def spend(self, places: int) -> None:
        """Pay for looking at places. Raises `TooHard`."""
        self._cost += places
        if self._cost > _MOST_WORK:
            raise TooHard


class Automaton:
    """A pattern that can be searched for."""

    def __init__(self, pattern: str) -> None:
        parser: Any = import_module("re._parser")  # the tree of a pattern, which nothing public gives
        try:
            tree: Any = parser.parse(pattern)
            re.compile(pattern)
        except re.error as error:
            raise PatternRefused(f"this is no regular expression: {error}") from None
        except (RecursionError, OverflowError):
            raise PatternRefused("this regular expression is nested too deep, or a number in it is too large") from None
        self._places: list[_Place] = []
        self._final_place = self._place()
        try:
            self._start = self._sequence(list(tree), int(tree.state.flags), self._final_place)
        except RecursionError:
            raise PatternRefused("this regular expression is nested too deep") from None
        self._transitions: dict[_Set, dict[str, _Set | None]] = {}
        self._size = 0

    def search(self, text: str) -> bool:
        """Tell whether the pattern is anywhere in a text. Raises `TooHard`."""
        at: _Set = (frozenset(), _NOTHING)
        work = _Work()
        transitions, last = self._transitions, len(text) - 1
        for place, letter in enumerate(text):
            row = transitions.get(at)
            sign = _LONG_END if letter == "\n" and place == last else letter
            following = row[sign] if row is not None and sign in row else self._step(at, sign, work)
            if following is None:
                return True
            at = following
        return self._final_place in self._closure(at, _NOTHING, work, ends=True)

    # ------------------------------------------------------------------------------------------------ going over a text

    def _step(self, at: _Set, sign: str, work: _Work) -> _Set | None:
        """Go over one character; None where the pattern was found before it."""
        letter = sign[0]
        around = _Around(
            none=False,
            line=letter == "\n",
            word=_WORD.match(letter) is not None,
            ascii_word=_ASCII_WORD.match(letter) is not None,
        )
        closed = self._closure(at, around, work, ends=sign is _LONG_END)
        following: _Set | None = None
        if self._final_place not in closed:
            reached: set[int] = set()
            for number in closed:
                place = self._places[number]
                if place.takes is not None and place.takes(letter):
                    reached.update(place.behind)
            following = (frozenset(reached), around)
        if self._size >= _MOST_KNOWN:
            self._transitions.clear()
            self._size = 0
        self._transitions.setdefault(at, {})[sign] = following
        self._size += 1
        return following

    def _closure(self, at: _Set, following: _Around, work: _Work, *, ends: bool) -> set[int]:
        """Give all places that are reached before the next character; a match may begin at any."""
        closed: set[int] = set()
        waiting = [*at[0], self._start]
        while waiting:
            number = waiting.pop()
            if number in closed:
                continue
            closed.add(number)
            place = self._places[number]
            passes = place.takes is None and (place.condition is None or place.condition(at[1], following, ends))
            if passes:
                waiting += place.behind
        work.spend(len(closed))
        return closed

    # ------------------------------------------------------------------------------------------------ reading a pattern

    def _place(self, behind: Iterable[int] = ()) -> int:
        if len(self._places) >= _MOST_PLACES:
            raise PatternRefused("this regular expression is too large: lower the numbers of its repeats")
        place = _Place()
        place.behind += behind
        self._places.append(place)
        return len(self._places) - 1

    def _sequence(self, items: Sequence[Any], flags: int, behind: int) -> int:
        """Make the places of items that are followed by `behind`, and give the first."""
        for code, argument in reversed(items):
            behind = self._item(str(code), (code, argument), flags, behind)
        return behind

    def _item(self, code: str, item: tuple[Any, Any], flags: int, behind: int) -> int:
        argument = item[1]
        if code in _CONSUMING:
            number = self._place([behind])
            self._places[number].takes = self._taking(item, flags)
            return number
        if code in _REPEATS:
            least, most, body = argument
            return self._repeat(int(least), most, list(body), flags, behind)
        if code == "BRANCH":
            return self._place([self._sequence(list(branch), flags, behind) for branch in argument[1]])
        if code == "SUBPATTERN":
            _, added, removed_flags, body = argument
            base_flags = flags & ~_KINDS if added & _KINDS else flags
            return self._sequence(list(body), (base_flags | int(added)) & ~int(removed_flags), behind)
        if code == "AT":
            number = self._place([behind])
            self._places[number].condition = _condition(str(argument), flags)
            return number
        raise PatternRefused(
            f"{_NAMES.get(code, code)} cannot be searched for in time that the text bounds: write two conditions, "
            "joined by `and`, or `does not match`"
        )

    def _repeat(self, least: int, most: Any, body: list[Any], flags: int, behind: int) -> int:
        if str(most) == "MAXREPEAT":
            number = self._place([behind])
            self._places[number].behind.insert(0, self._sequence(body, flags, number))
            behind = number
        else:
            for _ in range(int(most) - least):
                behind = self._place([self._sequence(body, flags, behind), behind])
        for _ in range(least):
            first = self._sequence(body, flags, behind)
            if first == behind:  # the body is empty, however often
                break
            behind = first
        return behind

    def _taking(self, item: tuple[Any, Any], flags: int) -> Callable[[str], object]:
        """Have `re` itself tell whether one character fits."""
        compiler, parser = cast("Any", import_module("re._compiler")), cast("Any", import_module("re._parser"))
        state = parser.State()
        state.flags = flags
        return cast("re.Pattern[str]", compiler.compile(parser.SubPattern(state, [item]), flags)).match


_NAMES: Final = {
    "ASSERT": "a group that looks ahead or behind",
    "ASSERT_NOT": "a group that looks ahead or behind",
    "GROUPREF": "a reference back to a group",
    "GROUPREF_EXISTS": "a condition on a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}


def _condition(at: str, flags: int) -> Callable[[_Around, _Around, bool], bool]:
    """Give what must be around a place: of the character before it, of that behind it, and whether the text ends."""
    lines = bool(flags & re.MULTILINE)
    if at == "AT_BEGINNING" and lines:
        return lambda before, _behind, _ends: before.line
    if at in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
        return lambda before, _behind, _ends: before.none
    if at == "AT_END" and lines:
        return lambda _before, behind, _ends: behind.line
    if at == "AT_END":
        return lambda _before, _behind, ends: ends
    if at == "AT_END_STRING":
        return lambda _before, behind, _ends: behind.none
    if at not in {"AT_BOUNDARY", "AT_NON_BOUNDARY"}:
        raise PatternRefused(f"{at} is not known")
    wanted, ascii_only = at == "AT_BOUNDARY", bool(flags & re.ASCII)

    def bounds(before: _Around, behind: _Around, _ends: bool) -> bool:  # noqa: FBT001 - as the others
        if before.none and behind.none:
            return _OF_EMPTY and not wanted
        other = before.ascii_word != behind.ascii_word if ascii_only else before.word != behind.word
        return other is wanted

    return bounds


@lru_cache(maxsize=64)
def automaton(pattern: str) -> Automaton:
    """Make the automaton of a pattern. Raises `PatternRefused`."""
    return Automaton(pattern)
