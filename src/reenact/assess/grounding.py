"""Whether an answer stands on what was retrieved: piece by piece, by characters, with no judge.

A *piece* of the answer is what can be wrong and be looked up:

- a number by its value, written as in English (`1,250.00` is `1250`), the parts of a date or time among them;
- a quotation, of at least two words or one of at least four letters;
- an identifier: a word of letters with digits, `_` or inner capitals (`a-101`, `rb_12`, `AcmeCorp`), but for a number
  with what it counts (`5GB`, `30-day`);
- an e-mail address, a URL, a file name.

Numbers up to twelve are no pieces (people count with them), nor is what numbers a list. A piece is grounded where it
occurs in the ground or in what a person or the program asked: the answer may repeat the question. Numbers are compared
as numbers, quotations with their white space, case and quotation marks made equal, the rest without regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from reenact.assess.answers import Answer, final_answer
from reenact.assess.calls import CallView, Known, Lost
from reenact.assess.truth import TOKEN
from reenact.assess.view import Assessment, View, failing, holding, undecided
from reenact.values.assertion import Ground, Grounded
from reenact.values.difference import Absent
from reenact.values.json import Json
from reenact.values.message import Text

_NUMBER: Final = re.compile(
    r"(?<![\w.])[-\u2212+]?(?:\d{1,3}(?:[,'’_\u00a0\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\d)"
)
_QUOTED: Final = re.compile(
    '"([^"\n]{2,300})"|“([^”\n]{2,300})”|«([^»\n]{2,300})»|„([^“”\n]{2,300})[“”]|`([^`\n]{2,300})`'
)
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`)\]}]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_FILE: Final = re.compile(
    r"(?<![\w./-])[\w./-]{0,200}\w\.(?:pdf|docx?|xlsx?|csv|md|txt|html?|json|ya?ml|pptx?|png|jpe?g|py)\b"
)
_WORD: Final = re.compile(r"(?<![\w-])\w[\w-]*")
_HUMP: Final = re.compile(r"[a-zß-ÿ][A-ZÀ-Þ]")
_WITH_UNIT: Final = re.compile(r"\d+-?[^\W\d_]{1,4}|\d+-[^\W\d_]+")
"""`5GB`, `3rd`, `30-day`: a number, and what it counts."""
_LONGEST: Final = 200
"""What is longer is no identifier that a person could look up."""
_LISTED: Final = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+", re.MULTILINE)
_COUNTED: Final = 12
_SPACES: Final = re.compile(r"\s+")
_MARKS: Final = str.maketrans(
    "\u201c\u201d\u201e\u00ab\u00bb\u2019\u2018\u201a\u2212\u2010\u2011\u2013", '"""""\'\'\'----'
)
"""Quotation marks and dashes of print, as a keyboard has them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of the answer that must have come from somewhere."""

    kind: str
    text: str


def grounded(assertion: Grounded, view: View) -> Assessment:
    """Decide whether the answer stands on its ground."""
    answer = final_answer(view)
    if view.stopped:
        return undecided(view.stopped, answer.calls)
    if isinstance(answer.value, Lost):
        return undecided(f"{answer.of}: {answer.value.why}", answer.calls)
    if isinstance(answer.value, Absent):
        return holding(f"{answer.of}: {answer.why}, so there is nothing to be grounded", answer.calls)
    return _looked_up(assertion, view, answer)


def _looked_up(assertion: Grounded, view: View, answer: Answer) -> Assessment:
    text = str(answer.value)
    if token := TOKEN.search(text):
        return undecided(f"redaction replaced a part of the answer by {token[0]}", answer.calls)
    sources = list(_sources(assertion.ground, view))
    ground = Grounds([*(value for _, value in sources), *_asked(view)])
    items = list(pieces(text))
    stray = next((piece for piece in items if not ground.has(piece)), None)
    where = _where(assertion.ground, len(sources))
    if stray is None:
        return holding(
            f"{_many(items)} of the answer occur in {where}" if items else "the answer has no piece to look up"
        )
    because = f"the {stray.kind} {stray.text!r} is nowhere in {where}"
    if why := _unsure(sources, ground) or view.gap():
        return undecided(f"{because}; {why}", answer.calls)
    return failing(f"{answer.of}: {because}", [*answer.calls, *(each for each, _ in sources)])


def _unsure(sources: list[tuple[CallView, Known]], ground: Grounds) -> str:
    """Say why a piece may occur all the same."""
    lost = next((f"{each.label}: {value.why}" for each, value in sources if isinstance(value, Lost)), "")
    redacted = any(TOKEN.search(text) for text in ground.texts)
    return lost or ("redaction replaced a part of it" if redacted else "")


def _many(items: list[Piece]) -> str:
    return f"all {len(items)} pieces" if len(items) != 1 else f"the {items[0].kind} {items[0].text!r}"


def _where(ground: Ground, calls: int) -> str:
    return f"{ground.value} ({calls} calls)" if calls else f"{ground.value}: there are none"


def _sources(ground: Ground, view: View) -> Iterator[tuple[CallView, Known]]:
    words = {
        Ground.DOCUMENTS: {"retriever", "reranker"},
        Ground.RESULTS: {"tool"},
        Ground.BOTH: {"retriever", "reranker", "tool"},
    }[ground]
    for each in view.calls:
        if each.word in words:
            yield each, each.result if not isinstance(each.result, Absent) else _raised(each)


def _raised(each: CallView) -> Known:
    raised = each.raised
    return raised if isinstance(raised, Absent | Lost) else raised.message


def _asked(view: View) -> Iterator[str]:
    """Give what people asked: the messages of users to models."""
    met = set[str]()
    for each in view.calls:
        for message in each.asked.messages if each.word == "llm" and each.wanted is None and each.asked else ():
            text = "".join(part.text for part in message.parts if isinstance(part, Text))
            if message.role == "user" and text not in met:
                met.add(text)
                yield text


def pieces(answer: str) -> Iterator[Piece]:
    """Take an answer apart. Longer pieces come first; what they cover is no piece of its own."""
    left = _LISTED.sub(_blank, answer)
    for kind, pattern in (("address", _ADDRESS), ("quotation", _QUOTED), ("file name", _FILE)):
        for match in pattern.finditer(left):
            text = next((group for group in match.groups() if group is not None), match[0]).strip()
            if kind != "quotation" or _is_quotation(text):
                yield Piece(kind, text if kind == "quotation" else text.rstrip(".,;:"))
        left = pattern.sub(_blank, left)
    for match in _WORD.finditer(left):
        if _is_identifier(word := match[0].strip("-")):
            yield Piece("identifier", word)
    for match in _NUMBER.finditer(_WORD.sub(_number_alone, left)):
        if _is_counted(match[0]):
            yield Piece("number", match[0].strip())


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _number_alone(match: re.Match[str]) -> str:
    """Leave of a word no more than the number that it may be."""
    word = match[0].strip("-")
    if _is_identifier(word):
        return _blank(match)
    return re.sub(r"[^\d]", " ", match[0]) if _WITH_UNIT.fullmatch(word) else match[0]


def _is_identifier(word: str) -> bool:
    if len(word) > _LONGEST or _WITH_UNIT.fullmatch(word):
        return False
    letters, digits = any(map(str.isalpha, word)), any(map(str.isdigit, word))
    return letters and (digits or "_" in word.strip("_") or _HUMP.search(word) is not None)


def _is_quotation(text: str) -> bool:
    return len(text.split()) > 1 or sum(map(str.isalnum, text)) >= 4


def _is_counted(text: str) -> bool:
    value = _decimal(text)
    return value is not None and not (value == value.to_integral_value() and 0 <= value <= _COUNTED)


def _decimal(text: str) -> Decimal | None:
    spelled = re.sub(r"[,'’_\u00a0\u202f]", "", text.replace("\u2212", "-"))
    try:
        return Decimal(spelled)
    except InvalidOperation:
        return None


class Grounds:
    """Texts in which pieces are looked up."""

    def __init__(self, values: Iterable[Known]) -> None:
        self.texts: list[str] = []
        self._numbers = set[Decimal]()
        for value in values:
            if not isinstance(value, Absent | Lost):
                self._take(value)
        self._folded = "\n".join(map(_folded, self.texts))
        for text in self.texts:
            self._numbers.update(number for each in _NUMBER.findall(text) if (number := _decimal(each)) is not None)

    def _take(self, value: Json) -> None:
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, list):
            for item in value:
                self._take(item)
        elif isinstance(value, dict):
            for name, item in value.items():
                self.texts.append(name)
                self._take(item)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._numbers.add(Decimal(str(value)))

    def has(self, piece: Piece) -> bool:
        """Tell whether a piece occurs."""
        if piece.kind == "number":
            return _decimal(piece.text) in self._numbers
        wanted = re.escape(_folded(piece.text))
        edges = (r"(?<!\w)", r"(?!\w)") if piece.kind == "identifier" else ("", "")
        return re.search(f"{edges[0]}{wanted}{edges[1]}", self._folded) is not None


def _folded(text: str) -> str:
    return _SPACES.sub(" ", text.translate(_MARKS)).casefold()
