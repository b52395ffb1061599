"""What is promised of a cell of the matrix, and what is not, with the reason: the one place where that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from canaries.encodings import BY_NAME
from canaries.searching import Cell


@dataclass(frozen=True, slots=True)
class Exception_:  # noqa: N801 - the plain word is Python's
    """Cells of which nothing is promised although the encoding is."""

    said: str
    """Which, in words."""
    why: str
    fits: Callable[[Cell], bool]


PERCENT = frozenset(
    (
        "query of a model call",
        "query of a plain call",
        "path of a plain call",
        "body of a plain call, form",
        "chat image URL",
        "redirect",
        "failed connection",
        "service: path",
        "service: query",
    )
)
"""Paths on which whatever is planted is percent-encoded once more, as URLs and forms are."""
_LOOK_ALIKE = frozenset(("Cyrillic look-alikes", "mathematical bold", "Unicode tags"))
_PACKED = frozenset(("base64 in lines", "gzip, base64", "zlib, base64"))
_ESCAPED = frozenset(
    ("run input", "exception of a tool", "generator", "generator that fails", "run's own error", "service: header")
)
"""Paths on which a value is spelled as Python spells it; a header with a line feed is in its refusal alone."""
_NUMBERS = frozenset(("payment_card", "iban"))
_BYTES = "answer of a plain call, among bytes"


def _foreign(cell: Cell) -> bool:
    return not BY_NAME[cell.encoding].spell("a1_@. A-z").isascii()


EXCEPTIONS: tuple[Exception_, ...] = (
    Exception_(
        "characters outside ASCII, such as zero-width ones or look-alikes, among bytes that are no text",
        "what these bytes stand for is not known; only ASCII is looked at in them",
        lambda cell: cell.path == _BYTES and _foreign(cell),
    ),
    Exception_(
        "look-alikes, and base64 in lines or of something compressed, percent-encoded in a URL or a form",
        "two disguises on top of one another",
        lambda cell: cell.path in PERCENT and cell.encoding in _LOOK_ALIKE | _PACKED,
    ),
    Exception_(
        "base64 in lines whose ends are escaped, as in a stack trace or a run's input",
        "`\\n` as two characters is no end of a line",
        lambda cell: cell.encoding == "base64 in lines" and cell.path in _ESCAPED,
    ),
    Exception_(
        "a card or an account number in the middle of Chinese text, percent-encoded in a URL or a form",
        "digits and letters of the percent-encoding stand beside it, so that it has no beginning",
        lambda cell: cell.path in PERCENT and cell.encoding == "in Chinese text" and cell.name in _NUMBERS,
    ),
    Exception_(
        "a card's number as user of a URL or as a part of its path, and an e-mail address as its user",
        "numbers in paths are ids far more often; `%40` and `@` are told apart by reading the URL as one",
        lambda cell: (
            (cell.name == "payment_card" and cell.encoding in {"URL user", "JSON with \\/"})
            or (cell.name == "e_mail" and cell.encoding == "URL user")
        ),
    ),
)


def not_promised(cell: Cell) -> str:
    """Say why a cell is not promised; empty where it is."""
    if cell.encoding in BY_NAME and BY_NAME[cell.encoding].not_promised:
        return BY_NAME[cell.encoding].not_promised
    return next((each.why for each in EXCEPTIONS if each.fits(cell)), "")
