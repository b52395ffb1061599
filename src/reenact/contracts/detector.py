"""What a detector promises: one class of what must not leave, told by anchors and a pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Group = Literal["credentials", "personal"]
"""Credentials cannot be guessed, so their tokens may be keyed by a salt that travels; personal data can."""

RUNS: Final = frozenset({"shapes", "text"})
"""What `run` may name.

`shapes`: anchors are looked for in the shape of a text, in which every digit of ASCII is `0` and every letter `A`:
`000-00-0000` is anywhere where three digits, two and four are joined by hyphens. `text`: the pattern, which has no
literal to be told by, is tried at every place of a text; that is slow.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One class of secret or personal data. Modules of `reenact.detectors` declare them as `DETECTORS`."""

    name: str
    """Class name in tokens and counts: lower case, digits and `_`."""
    group: Group
    anchors: tuple[str, ...] = ()
    """ASCII literals of at least two characters, `@` apart. Every match begins at most `before` characters left of the
    start of one of them, and ends at most `after` right of it. Empty only where `run` is given."""
    any_case: bool = False
    """The anchors are meant in any case. The pattern says so itself, by `(?i:…)`."""
    run: str = ""
    """One of `RUNS`, in place of anchors: a match begins at most `before` left of such a run's start, and ends at most
    `after` right of its end."""
    pattern: str
    """`re` syntax, ASCII letters and word boundaries, every repeat bounded, no backreference.

    It is tried at the places that `before` allows, from left to right, and the first that matches counts; look-behinds
    see what stands before. The value is the group `secret`, else the whole match."""
    before: int = 0
    """0 is fastest: the pattern is tried at the anchor alone."""
    after: int = 512
    """Characters; larger is slower only where the pattern goes on for so long."""
    apart: bool = False
    """An anchor of shapes counts at no place right behind a letter or digit, though a match may begin before it."""
    needs: str = ""
    """A literal that every match holds behind its anchor: where it is not, the pattern need not be tried."""
    check: Callable[[str], bool] | None = None
    """Whether a value is one indeed (a checksum, entropy), asked after the pattern matched."""
    order: int = 50
    """Of matches that overlap, the one of the lower order takes the place; generic classes have high ones."""


BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
"""No letter or digit of ASCII stands in front, unless it belongs to an escape. In Chinese, a key follows the text
without a space."""
ENDS = r"(?![A-Za-z0-9])"


def credential(  # noqa: PLR0913 - a row of a table
    name: str,
    anchors: str,
    pattern: str,
    *,
    before: int = 0,
    after: int = 512,
    any_case: bool = False,
    check: Callable[[str], bool] | None = None,
    order: int = 50,
) -> Detector:
    """Make a detector of credentials: anchors parted by `|`, and the pattern of a token that stands by itself."""
    return Detector(
        name=name,
        group="credentials",
        anchors=tuple(anchors.split("|")),
        any_case=any_case,
        pattern=f"(?i:{BEGINS}{pattern})" if any_case else BEGINS + pattern,
        before=before,
        after=after,
        check=check,
        order=order,
    )
