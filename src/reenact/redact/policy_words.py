"""Classes that a policy finds by patterns or words of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from reenact.contracts.detector import Detector
from reenact.disk import private
from reenact.errors import InputError
from reenact.redact.patterns import PatternRefused, linear
from reenact.redact.plan import BUILT_IN, GROUPS, Action
from reenact.redact.toml_reader import Table

EVERYWHERE = "text"
"""The gate of what has no anchor: all of a text is looked at, which is slow."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST_NAME = 40
MOST_WORDS = 2000
_LONGEST_WORD = 200
_SHORTEST_WORD = 2
_AROUND = 64
"""How far a pattern may look around what it matches."""
_ASCII_RUN = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A class of a policy's own."""

    name: str
    group: Literal["credentials", "personal"] = "personal"
    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    any_case: bool = False
    action: Action | None = None
    withheld: int = 0
    """How many words it had that are not here: a trace does not hold them."""

    def detector(self) -> Detector | None:
        """Make what finds it; None where all that it is found by was withheld."""
        if not self.patterns and not self.words:
            return None
        expressions = [linear(pattern, any_case=self.any_case) for pattern in self.patterns]
        anchors = [anchor for each in expressions for anchor in each.anchors] + [_anchor(word) for word in self.words]
        gated = all(each.anchors for each in expressions) and all(_anchor(word) for word in self.words)
        width = max([each.width for each in expressions] + [len(word) for word in self.words]) + _AROUND
        alternatives = [f"(?:{pattern})" for pattern in self.patterns]
        if self.words:
            longest_first = sorted(self.words, key=lambda word: (-len(word), word))
            alternatives.append(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
        pattern = "|".join(alternatives)
        return Detector(
            name=self.name,
            group=self.group,
            anchors=self.anchors or (tuple(dict.fromkeys(anchors)) if gated else ()),
            run="" if self.anchors or gated else EVERYWHERE,
            any_case=self.any_case,
            pattern=f"(?i:{pattern})" if self.any_case else pattern,
            before=width,
            after=width,
        )

    def toml(self) -> Iterator[str]:
        """Spell it, less its words."""
        yield f"class = {json.dumps(self.name)}"
        yield f"group = {json.dumps(self.group)}"
        if self.patterns:
            yield f"pattern = [{', '.join(json.dumps(each, ensure_ascii=False) for each in self.patterns)}]"
        if self.anchors:
            yield f"anchors = [{', '.join(map(json.dumps, self.anchors))}]"
        if self.any_case:
            yield "any_case = true"
        if self.action:
            yield f"do = {json.dumps(self.action)}"
        if self.words or self.withheld:
            yield f"withheld = {len(self.words) or self.withheld}"


def _anchor(word: str) -> str:
    """Pick the longest run of ASCII in a word, by which its places are found fast."""
    longest_run: str = max(_ASCII_RUN.findall(word), key=len, default="")
    return longest_run if len(longest_run) >= _SHORTEST_WORD else ""


def own_classes(
    tables: Iterable[Table], beside: Path | None, other_names: Collection[str], actions: Sequence[str]
) -> list[Own]:
    """Read the classes of a policy. Raises `InputError`."""
    classes: list[Own] = []
    for table in tables:
        own = _own(table, beside, actions)
        if own.name in other_names or own.name in BUILT_IN or own.name in {other.name for other in classes}:
            raise table.error(f"there is a class {own.name!r} already: choose another name", "class")
        classes.append(own)
    return classes


def _own(table: Table, beside: Path | None, actions: Sequence[str]) -> Own:
    table.only("class", "group", "pattern", "words", "words_file", "anchors", "any_case", "do", "withheld")
    name = table.text("class", needed=True)
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        hint = "it is a part of every token: customer_number"
        raise table.error("a class is spelled in lower-case letters, digits and single `_`", "class", hint=hint)
    any_case = table.flag("any_case")
    words = (*table.texts("words"), *_listed(table, beside))
    patterns = table.texts("pattern")
    withheld = int(table.number("withheld", 1, MOST_WORDS)) if table.has("withheld") else 0
    if not words and not patterns and not withheld:
        raise table.error(f"nothing says how {name!r} is found: give `pattern`, `words` or `words_file`", "class")
    if len(words) > MOST_WORDS:
        raise table.error(f"has {len(words)} words, and {MOST_WORDS} is the most for a class", "words")
    for at, word in enumerate(words):
        if not _fits(len(word)):
            problem = f"a word has {_SHORTEST_WORD} to {_LONGEST_WORD} characters, not {len(word)}"
            raise table.error(problem, "words", at)
    for at, pattern in enumerate(patterns):
        try:
            linear(pattern, any_case=any_case)
        except PatternRefused as refused:
            which = f"pattern {at + 1}" if len(patterns) > 1 else "the pattern"
            where = f", at its character {refused.at + 1}" if refused.at else ""
            raise table.error(
                f"{which} is refused{where}: {refused.problem}", "pattern", at, hint=refused.hint
            ) from None
    anchors = table.texts("anchors")
    for at, anchor in enumerate(anchors):
        if not anchor.isascii() or len(anchor) < _SHORTEST_WORD:
            raise table.error("an anchor is two or more characters of ASCII, that every match holds", "anchors", at)
    return Own(
        name=name,
        group=cast("Literal['credentials', 'personal']", table.one_of("group", GROUPS) or "personal"),
        patterns=patterns,
        words=tuple(dict.fromkeys(words)),
        anchors=anchors,
        any_case=any_case,
        withheld=withheld,
        action=cast("Action | None", table.one_of("do", actions) or None),
    )


def _listed(table: Table, beside: Path | None) -> list[str]:
    """Read words from a file, one on a line; `#` begins a comment."""
    name = table.text("words_file")
    if not name:
        return []
    file = Path(name) if beside is None else beside / name
    try:
        lines = private.read_settings(file, "this list of words").decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise table.error(f"the words in {name} cannot be read: {why}", "words_file") from None
    words = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not all(_fits(len(word)) for word in words):
        lengths = [0 if line.startswith("#") else len(line.strip()) for line in lines]
        bad = next(at for at, length in enumerate(lengths, 1) if length and not _fits(length))
        raise InputError(f"{file}:{bad}", f"a word has {_SHORTEST_WORD} to {_LONGEST_WORD} characters")
    return words


def _fits(length: int) -> bool:
    return _SHORTEST_WORD <= length <= _LONGEST_WORD
