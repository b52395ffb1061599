"""Recorded calls found again although redaction spelled them otherwise: with another key, or by another policy.

Tokens of guessable values are keyed by a secret that does not travel with the trace. Without it, what the program says
by itself gets other tokens than when it was recorded; what it was given comes back as recorded. So a live question may
be a recorded one with tokens renamed. It is taken for that only where every live token stands for one recorded token of
its class, one to one, the same all through the run, and only one recorded question fits; places in the graph and lanes
tell apart, the order never does. Everything matched so is said in the report. Anything else is a miss.

A policy that takes whole texts makes another token of what the program composed of tokens than it made of what it had
composed of the values; such a text stands for the recorded one under the same conditions.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from reenact.boundary.question import Question, question
from reenact.contracts.redactor import Redactor
from reenact.replay.stubs import process_of
from reenact.values.call import Call
from reenact.values.difference import Absent, FieldDifference
from reenact.values.json import Json, compact, digest, parse
from reenact.values.redaction_marks import MARK, TOKEN, spelled, tokens_in
from reenact.values.run import Node, Run

_NOTHING: Final = object()
_WHOLE: Final = "value"
"""The class of texts that a policy takes whole."""
_CREDENTIALS: Final = "credentials"


class RenamedStub(Protocol):
    """What is needed of a stub."""

    @property
    def node(self) -> Node:
        """The recorded call."""
        ...

    @property
    def question(self) -> Question:
        """What it asks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What had to be taken for what, so that a live value is a recorded one. No pairs: the policies differ alone."""

    pairs: Mapping[str, str]
    """Live token, or text made of tokens, to recorded token."""
    classes: Mapping[str, int]
    """How many pairs, by class."""
    composed: int = 0
    """How many of them are texts that the program made of tokens."""


@dataclass(slots=True)
class Pairs:
    """What one question would have to be renamed."""

    live: dict[str, str] = field(default_factory=dict[str, str])
    composed: int = 0


class _UnlikeError(Exception):
    """Two questions are no renaming of each other."""


class Renaming:
    """Finds recorded calls again whose tokens are spelled otherwise. Not thread-safe: its owner holds a lock."""

    def __init__(self, runs: Iterable[Run], redactor: Redactor, as_asked: Callable[[Node], Call]) -> None:
        self._redactor, self._as_asked = redactor, as_asked
        self._runs = tuple(runs)
        first = self._runs[0] if self._runs else None
        self.key_id = first.key_id if first is not None else ""
        """Names the key of the recording, as its trace tells it; empty where it says none."""
        self._live_key = str(getattr(redactor, "key_id", ""))
        self._salted = bool(first is not None and first.salt)
        self._live_policy = str(getattr(redactor, "policy_digest", ""))
        self._other_policy = any(run.policy_digest != self._live_policy for run in self._runs)
        unkeyed = bool(getattr(redactor, "salt", "")) and not self._salted
        self._foreign = self.key_id != self._live_key or unkeyed
        self._to: dict[str, str] = {}
        self._from: dict[str, str] = {}
        self._recorded_tokens: frozenset[str] | None = None
        self._whole: dict[str, list[RenamedStub]] | None = None
        self._blind: dict[str, list[RenamedStub]] = defaultdict(list)
        self._questions: dict[str, Question] = {}
        self._among: dict[str, int] = {}
        """How many recorded calls fitted a question that was missed."""

    @property
    def foreign(self) -> bool:
        """Tell that the recording's key is not here."""
        return self._foreign

    def find(
        self,
        call: Call,
        asked: Question,
        recorded_calls: Iterable[RenamedStub],
        free: Callable[[Node], bool],
        at: Place,
    ) -> tuple[RenamedStub, Renamed] | int:
        """Find the one recorded call that a live one may be; else how many there are that it may be.

        `at` is the live one's place: the recorded call above it, its lane, the recorded process.
        """
        if self._whole is None:
            self._index_questions(recorded_calls)
        same = [each for each in self._whole_of(asked) if free(each.node)]
        if same:  # told apart by place like equal questions
            nearest = next((each for place in _places(at) for each in same if place(each)), same[0])
            return nearest, Renamed(pairs={}, classes={})
        raw = question(call, None).asked
        fits = [
            (each, pairs)
            for each in self._blind[_blind_key(asked)]
            if free(each.node) and (pairs := self._pairs(self._questions[each.node.id].asked, asked.asked, raw))
        ]
        pairs_by_id = {each.node.id: pairs for each, pairs in fits}
        chosen, count = _only([each for each, _ in fits], at, self._questions)
        if chosen is None:
            self._among[asked.key] = count
            return count
        return chosen, self.keep(pairs_by_id[chosen.node.id])

    def fits(self, differences: Iterable[FieldDifference]) -> Pairs | None:
        """Tell that fields differ by the names of tokens alone, and how; None where they differ otherwise."""
        if not self._foreign:
            return None
        if self._recorded_tokens is None:
            self._recorded_tokens = _tokens_of(self._runs)
        field_differences = list(differences)
        if any(isinstance(side, Absent) for each in field_differences for side in (each.a, each.b)):
            return None
        recorded: list[Json] = [each.a for each in field_differences if not isinstance(each.a, Absent)]
        return self._pairs(recorded, [each.b for each in field_differences if not isinstance(each.b, Absent)], None)

    def renamed(self, value: Json) -> Json:
        """Spell what is known of a live value as the recording does."""
        if not self._to:
            return value
        return _mapped(value, self._to)

    def same(self, recorded: Json, live: Json, raw: Json) -> Renamed | None:
        """Tell that a live value is a recorded one with tokens renamed, and keep how; None where it is not."""
        if self._recorded_tokens is None:
            self._recorded_tokens = _tokens_of(self._runs)
        clean = recorded
        if self._other_policy:
            clean = _redacted(recorded, self._redactor)
            if clean == live:
                return Renamed(pairs={}, classes={})
        pairs = self._pairs(clean, live, raw)
        return None if pairs is None else self.keep(pairs)

    def keep(self, pairs: Pairs) -> Renamed:
        """Hold on to what stands for what from here on."""
        self._to |= pairs.live
        self._from |= {recorded: live for live, recorded in pairs.live.items()}
        classes = Counter(map(_class, pairs.live.values()))
        return Renamed(pairs=pairs.live, classes=classes, composed=pairs.composed)

    def why(self, renamed: Renamed) -> tuple[str, str, str, str]:
        """Say what a match ignored: field, what is recorded, what is here, and why that is no difference."""
        if not renamed.pairs:
            recorded = self._runs[0].policy_digest if self._runs else ""
            reason = "both sides passed the redaction that is in force; the recording's is another"
            return "redaction policy", recorded, self._live_policy, reason
        counts = spelled(renamed.classes)
        if renamed.composed == len(renamed.pairs):
            reason = f"matched by renaming: the program made a text of replaced values ({counts})"
            return "redaction", "of the values", "of their tokens", reason
        return (
            "redaction key",
            self.key_id or "not told",
            self._live_key or "none",
            f"matched by renaming, without the recording's key: {counts}",
        )

    def hint(self, asked: Question, nearest: Question) -> str:
        """Say what would tell, of a missed question, which recorded one it is; empty where nothing of this would."""
        among = self._among.get(asked.key, 0)
        key = f"the recording's key {self.key_id}" if self.key_id else "the recording's key"
        if among and self._foreign:
            return f"{among} recorded calls fit by renaming; only {key} tells which: set REENACT_REDACTION_KEY to it"
        if among:
            return f"{among} recorded calls fit, and what the program made of replaced values does not tell which"
        if self._foreign and MARK in compact(asked.asked) and MARK in compact(nearest.asked):
            return f"redacted values cannot be compared without {key}: set REENACT_REDACTION_KEY to it"
        return ""

    def _index_questions(self, recorded_calls: Iterable[RenamedStub]) -> None:
        """Index the recorded questions, each as the redaction in force spells it, and without its tokens."""
        self._whole = defaultdict(list)
        self._recorded_tokens = _tokens_of(self._runs)
        for each in recorded_calls:
            asked = each.question
            if self._other_policy:
                asked = question(self._as_asked(each.node), self._redactor)
                if asked.key != each.question.key:
                    self._whole[asked.key].append(each)
            self._questions[each.node.id] = asked
            self._blind[_blind_key(asked)].append(each)
        self._seed()

    def _seed(self) -> None:
        """Learn what the command line tells: it was recorded, and this program has one of its own."""
        for run in self._runs[:1]:
            recorded = run.entry.get("argv")
            live = _redacted([*sys.orig_argv], self._redactor)
            if isinstance(recorded, list) and isinstance(live, list) and len(recorded) == len(live):
                pairs = self._pairs(recorded[1:], live[1:], [*sys.orig_argv[1:]])
                if pairs is not None:
                    self.keep(pairs)

    def _whole_of(self, asked: Question) -> list[RenamedStub]:
        return (self._whole or {}).get(asked.key, [])

    def _pairs(self, recorded: Json, live: Json, raw: Json) -> Pairs | None:
        """Say what of a live value stands for what of a recorded one; None where they cannot be one."""
        pairs = Pairs()
        try:
            self._walk(recorded, live, raw, pairs)
        except _UnlikeError:
            return None
        return pairs

    def _walk(self, a: Json, b: Json, raw: Any, pairs: Pairs) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for x, y in _members(a, b):
                if x != y:
                    self._leaf(x, y, _NOTHING, pairs)
                inside = cast("dict[str, Any]", raw).get(x, _NOTHING) if isinstance(raw, dict) else _NOTHING
                self._walk(a[x], b[y], inside, pairs)
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            raw_items = cast("list[Any]", raw) if isinstance(raw, list) else []
            beside = raw_items if len(raw_items) == len(b) else [_NOTHING] * len(b)
            for x, y, z in zip(a, b, beside, strict=True):
                self._walk(x, y, z, pairs)
        elif isinstance(a, str) and isinstance(b, str):
            if a != b:
                self._leaf(a, b, raw, pairs)
        elif type(a) is not type(b) or a != b:
            raise _UnlikeError

    def _leaf(self, a: str, b: str, raw: Any, pairs: Pairs) -> None:
        composed = isinstance(raw, str) and MARK in raw and TOKEN.fullmatch(raw) is None
        left, right = TOKEN.split(a), TOKEN.split(b)
        if len(left) == len(right) and left[::3] == right[::3] and left[1::3] == right[1::3] and len(left) > 1:
            for x, y in zip(tokens_in(a), tokens_in(b), strict=True):
                if x != y:
                    whole = composed and _class(x) == _WHOLE
                    if not (whole or self._may_rename(_class(x))):
                        raise _UnlikeError
                    self._pair(y, x, pairs)
                    pairs.composed += whole and not self._foreign
        elif composed and (token := TOKEN.fullmatch(a)) is not None and token[1] == _WHOLE:
            self._pair(b, a, pairs)
            pairs.composed += 1
        else:
            raise _UnlikeError

    def _may_rename(self, name: str) -> bool:
        """Tell whether tokens of a class may be keyed otherwise here than when recorded."""
        if not self._foreign:
            return False
        group = getattr(self._redactor, "group", None)
        return not self._salted or group is None or group(name) != _CREDENTIALS

    def _pair(self, live: str, recorded: str, pairs: Pairs) -> None:
        if live in (self._recorded_tokens or ()):  # it came from the recording, and is another value
            raise _UnlikeError
        to = pairs.live.get(live, self._to.get(live, recorded))
        of = next((name for name, each in pairs.live.items() if each == recorded), self._from.get(recorded, live))
        if to != recorded or of != live:
            raise _UnlikeError
        pairs.live[live] = recorded


Place = tuple[str | None, str, str]
"""The recorded call above, the lane, the recorded process."""


def _places(at: Place) -> tuple[Callable[[RenamedStub], bool], ...]:
    """Give tests whether a recorded call is at a place, the narrowest first."""
    parent, lane, process = at
    return (
        lambda each: each.node.parent == parent and each.node.lane == lane,
        lambda each: process_of(each.node) == process and each.node.lane == lane,
    )


def _only(fits: list[RenamedStub], at: Place, questions: Mapping[str, Question]) -> tuple[RenamedStub | None, int]:
    """Give the one question that fits, of the narrowest place that has any; else how many there are."""
    if not fits:
        return None, 0
    for place in (*_places(at), _anywhere):
        here = [each for each in fits if place(each)]
        keys = {questions[each.node.id].key for each in here}
        if here:
            return (here[0], 1) if len(keys) == 1 else (None, len(keys))
    return None, 0


def _anywhere(_: RenamedStub) -> bool:
    return True


def _class(token: str) -> str:
    match = TOKEN.match(token)
    return match[1] if match else ""


def _members(a: dict[str, Json], b: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Pair the names of two objects; names that hold tokens by what else they say."""
    yield from ((name, name) for name in a if name in b)
    left, right = [name for name in a if name not in b], [name for name in b if name not in a]
    if len(left) != len(right):
        raise _UnlikeError
    blind = {_blind(name): name for name in right}
    if len(blind) != len(right):
        raise _UnlikeError
    for name in left:
        other = blind.pop(_blind(name), None)
        if other is None:
            raise _UnlikeError
        yield name, other


def _blind_key(asked: Question) -> str:
    return digest([asked.kind.value, asked.name if not asked.shape else asked.shape, _blinded(asked.asked)])


def _blinded(value: Json) -> Json:
    """Leave tokens out of a value, whatever they are keyed by."""
    if isinstance(value, str):
        return _blind(value)
    if isinstance(value, list):
        return [_blinded(item) for item in value]
    if isinstance(value, dict):
        members = [(_blind(name), _blinded(item)) for name, item in value.items()]
        if len({name for name, _ in members}) == len(members):
            return dict(members)
        return sorted((compact([name, item]) for name, item in members), key=str)  # type: ignore[return-value]  # strings are JSON
    return value


def _blind(text: str) -> str:
    if MARK not in text:
        return text
    return f"{MARK}{_WHOLE}" if f"{MARK}{_WHOLE}_" in text else TOKEN.sub(r"REDACTED_\1", text)


def _mapped(value: Json, names: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        if MARK not in value:
            return value
        if (whole := names.get(value)) is not None:
            return whole
        return TOKEN.sub(lambda match: names.get(match[0], match[0]), value)
    if isinstance(value, list):
        return [_mapped(item, names) for item in value]
    if isinstance(value, dict):
        return {str(_mapped(name, names)): _mapped(item, names) for name, item in value.items()}
    return value


def _redacted(value: Json, redactor: Redactor) -> Json:
    return parse(redactor.text(compact(value)))


def _tokens_of(runs: Iterable[Run]) -> frozenset[str]:
    texts = (
        value
        for run in runs
        for node in run.nodes
        for value in node.span.attributes.values()
        if isinstance(value, str) and MARK in value
    )
    return frozenset(token for text in texts for token in tokens_in(text))
