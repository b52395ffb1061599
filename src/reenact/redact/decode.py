"""Texts behind spellings: escapes, entities, percent signs, look-alikes, base64 and hexadecimal, opened in places.

A view is a stretch of a text with its spellings undone; what is found in it is told by its place in the text as it
stands. Opening is for searching only: what the text says between the findings is never rewritten.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import re
import unicodedata
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

_BEFORE: Final = 80
_AFTER: Final = 160
"""How far around a spelling a text is opened at least, in characters, and on to the next white space."""
_FURTHER: Final = 512
_FORM: Final = re.compile(r"(?:https?://[^\s?]{1,512}\?)?[\w.\-\[\]%]{1,64}=")
_WHITE: Final = re.compile(r"\s")
_APART: Final = "\n\x1f\n"
_LARGEST: Final = 1 << 20
"""As much is unpacked of what is compressed."""
_HEAD: Final = 24
"""By so many characters of a run it is told whether a text is encoded in it."""

_IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\U000e0000-\U000e0fff"
)
_COMPATIBLE: Final = (
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff20\uff0e\uff3f\uff0d\uff1d\uff1a\uff0f\uff05\uff0b\u2024\ufe6b\ufe63"
    "\u2102-\u2139\u2160-\u2188\u2460-\u24ff\u2070-\u209c\U0001d400-\U0001d7ff\U0001f130-\U0001f149"
)
_DIGITS: Final = "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f"
_ALIKE: Final = "\u0370-\u03ff\u0400-\u052f\u0251\u0261\u0131\u017f\u01c0\u2223\u3002\uff61"
_BETWEEN: Final = "\u00a0\u2000-\u200a\u202f\u205f\u3000\u2010-\u2015\u2212"
_BEHIND_ASCII: Final = re.compile(f"[{_ALIKE}](?=[A-Za-z0-9_])")

_LOOK_ALIKES: Final = dict(
    zip(
        "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u04ae\u050c"
        "\u051b\u051d\u0430\u0435\u0456\u0458\u0455\u043e\u0440\u0441\u0443\u0445\u04af\u04bb\u0501\u0261"
        "\u0251\u0131\u017f\u01c0\u2223\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1"
        "\u03a4\u03a5\u03a7\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7\u03c4\u03f2\u03f3\u03b5\u050d"
        "\u044c\u042c\u04c0\u3002\uff61\u2080",
        "ABESIJKMHOPCTXYGqwaeijsopcyxyhdgaislIABEZHIKMNOPTYXaopvikuxtcjegbbl..0",
        strict=False,
    )
)
_FOLDED: Final = {
    **{chr(c): "-" for c in (*range(0x2010, 0x2016), 0x2212)},
    **{chr(c): " " for c in (0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)},
    **{chr(0xE0000 + c): chr(c) for c in range(0x20, 0x7F)},
    **_LOOK_ALIKES,
}
_IGNORE: Final = re.compile(f"[{_IGNORED}]")

_AFTER_MARK: Final = (
    r"(?<=%)[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*"
    r"|(?<=\\)(?:u\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}(?:\\u[0-9A-Fa-f]{4})*|U[0-9A-Fa-f]{8}"
    r"|x[0-9A-Fa-f]{2}(?:\\x[0-9A-Fa-f]{2})*|N\{[A-Za-z0-9 \-]{1,60}\}|[/\\]|\r?\n[ \t]{0,40})"
    r"|(?<=&)(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,12});?"
)
_SINGLE: Final = f"{_IGNORED}{_COMPATIBLE}{_DIGITS}{_ALIKE}{_BETWEEN}"
_AFTER_EQUALS: Final = r"(?<==)(?:\r?\n|[0-9A-F]{2}(?:=[0-9A-F]{2})*)"


def _spelled(*, quoted_printable: bool, in_ascii: bool) -> re.Pattern[str]:
    """Make the pattern of one spelling. It begins with a set, so that `re` goes quickly to where one may be."""
    marks, after = r"%\\&", _AFTER_MARK
    if quoted_printable:
        marks, after = f"={marks}", f"{_AFTER_EQUALS}|{after}"
    if not in_ascii:
        marks, after = f"{marks}{_SINGLE}", f"{after}|(?<=[{_SINGLE}])"
    return re.compile(f"[{marks}](?:{after})")


_SPELLINGS: Final = {
    (quoted, in_ascii): _spelled(quoted_printable=quoted, in_ascii=in_ascii)
    for quoted in (False, True)
    for in_ascii in (False, True)
}
"""By whether it is quoted-printable, and whether the text is in ASCII."""


def fold(text: str) -> str:
    """Spell a text in ASCII as far as it looks or means the same; what cannot be seen is left out."""
    if (ascii_text := _FOLDED.get(text)) is not None:
        return ascii_text
    folded = unicodedata.normalize("NFKC", _IGNORE.sub("", text))
    return "".join(_FOLDED.get(c) or (str(unicodedata.digit(c, c)) if c > "\x7f" else c) for c in folded)


def hiding() -> list[bytes]:
    """Give, in UTF-8, how a character begins that may hide what it stands in: by itself, or behind another.

    Letters in lower case stand for those in upper case, too.
    """
    alike = [c.encode() for c in _spread(_ALIKE) if fold(c) != c]
    between = [c.encode() for c in _spread(_BETWEEN)]
    return [
        *(c.encode() for c in _spread(_IGNORED + _COMPATIBLE + _DIGITS)),
        *(b"\xf0\x9d\x90", b"\xf0\x9d\x91", b"\xf0\x9d\x92", b"\xf0\x9d\x93", b"\xf0\x9d\x94", b"\xf0\x9d\x95"),
        *(b"\xf0\x9d\x96", b"\xf0\x9d\x97", b"\xf0\x9d\x98", b"\xf0\x9d\x99", b"\xf0\x9d\x9a", b"\xf0\x9d\x9f"),
        *(b"\xf0\x9f\x84", b"\xf3\xa0"),
        *(letter.encode() + c for letter in "abcdefghijklmnopqrstuvwxyz0123456789_" for c in alike),
        *(digit.encode() + c for digit in "0123456789" for c in between),
    ]


def hides(text: str, place: int) -> bool:
    """Tell whether a character at a place of `hiding` stands where it matters: at something in ASCII."""
    if text[place] < "\x7f":
        return True
    before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
    return "!" <= before <= "~" or "!" <= after <= "~" or _IGNORE.match(after) is not None or after.isalnum()


def may_hide(text: str, place: int, length: int) -> bool:
    """Tell whether an escape at a place hides anything: a soft line break does inside of a word alone.

    Quoted-printable (RFC 2045, 6.7) spells an equals sign `=3D`, so that a row of them is none: it underlines a title.
    """
    if text[place] != "=" or text[place + length - 1] != "\n":
        return True
    before, after = text[place - 1 : place], text[place + length : place + length + 1]
    return before != "=" and bool(after) and not after.isspace()


def _spread(ranges: str) -> list[str]:
    characters: list[str] = []
    for match in re.finditer(r"(.)-(.)|(.)", ranges, re.DOTALL):
        low, high = (match[1], match[2]) if match[1] else (match[3], match[3])
        characters += [chr(c) for c in range(ord(low), ord(high) + 1) if c < 0x10000]
    return characters


def before_ascii(text: str) -> list[int]:
    """Give the places of letters that look like ASCII's and stand before one of them."""
    return [match.start() for match in _BEHIND_ASCII.finditer(text)]


@dataclass(frozen=True, slots=True)
class View:
    """A stretch of a text, opened."""

    text: str
    _starts: list[int]
    _sources: list[tuple[int, int, bool]]
    """Where each piece of the view is in the text, and whether it stands there as it is."""

    def span(self, start: int, end: int) -> tuple[int, int, bool]:
        """Say where a stretch of the view is in the text, and whether any of it was spelled otherwise there."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, max(start, end - 1)) - 1
        low, _, plain = self._sources[first]
        _, high, as_is = self._sources[last]
        if plain:
            low += start - self._starts[first]
        if as_is:
            high = self._sources[last][0] + end - self._starts[last]
        return low, high, not (plain and first == last)


def opened(text: str, places: Iterable[int], *, quoted_printable: bool) -> View:
    """Open a text around `places`, which are in order. Stretches that are apart are apart in the view."""
    pattern = _SPELLINGS[quoted_printable, text.isascii()]
    view_builder = _Making(text, pattern)
    low = high = -1
    for place in places:
        if high < 0 or place - _BEFORE > high:
            if high >= 0:
                view_builder.stretch(low, _end(text, high))
            low = max(0, place - _BEFORE)
        high = place + _AFTER
    if high >= 0:
        view_builder.stretch(low, _end(text, high))
    return View("".join(view_builder.out), view_builder.starts, view_builder.sources)


def of_form(text: str) -> str | None:
    """Give the text of a form with its blanks, which are spelled `+` there; None for one that is none."""
    if "+" not in text or "=" not in text or " " in text or _FORM.match(text) is None:
        return None
    return text.replace("+", " ")


def _end(text: str, high: int) -> int:
    if high >= len(text):
        return len(text)
    white = _WHITE.search(text, high, high + _FURTHER)
    return white.start() if white else min(len(text), high + _FURTHER)


class _Making:
    """Makes a view, piece by piece."""

    __slots__ = ("length", "out", "pattern", "sources", "starts", "text")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.text, self.pattern = text, pattern
        self.out: list[str] = []
        self.starts: list[int] = []
        self.sources: list[tuple[int, int, bool]] = []
        self.length = 0

    def stretch(self, low: int, high: int) -> None:
        """Open what stands between two places."""
        text, at = self.text, low
        if self.starts:
            self.put(_APART, low, low, plain=False)
        for match in self.pattern.finditer(text, low, high):
            start, end = match.span()
            if start > at:
                self.put(text[at:start], at, start, plain=True)
            spelled, step = _opened(match[0])
            if step:
                for number, c in enumerate(spelled):
                    self.put(c, start + number * step, start + (number + 1) * step, plain=False)
            else:
                self.put(spelled, start, end, plain=False)
            at = end
        if at < high or not self.starts:
            self.put(text[at:high], at, high, plain=True)

    def put(self, piece: str, start: int, end: int, *, plain: bool) -> None:
        """Add a piece, and where it is from."""
        self.out.append(piece)
        self.starts.append(self.length)
        self.sources.append((start, end, plain))
        self.length += len(piece)


def _opened(spelled: str) -> tuple[str, int]:
    """Undo one spelling; also say how many characters each that it stands for took, 0 where that is unclear."""
    mark = spelled[0]
    if mark == "%" or (mark == "=" and spelled[-1] != "\n"):
        raw_bytes = unquote_to_bytes(spelled.replace("=", "%"))
        return (raw_bytes.decode(), 3) if raw_bytes.isascii() else (fold(raw_bytes.decode(errors="replace")), 0)
    if mark == "=":
        return "", 0
    if mark == "&":
        return fold(html.unescape(spelled if spelled[-1] == ";" else spelled + ";")), 0
    if mark != "\\":
        return fold(spelled), 0
    return _escaped(spelled)


def _escaped(spelled: str) -> tuple[str, int]:
    kind = spelled[1]
    if kind in "\r\n":
        return "", 0
    if kind == "N":
        try:
            return fold(unicodedata.lookup(spelled[3:-1])), 0
        except KeyError:
            return spelled, 0
    if kind in "uUx" and len(spelled) > 2:
        if spelled[2] == "{":
            return _character(int(spelled[3:-1], 16)), 0
        if kind == "U":
            return _character(int(spelled[2:10], 16)), 0
        step = 6 if kind == "u" else 4
        characters = "".join(chr(int(spelled[at + 2 : at + step], 16)) for at in range(0, len(spelled), step))
        if characters.isascii():
            return characters, step
        return fold(characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")), 0
    return kind, 0


def _character(number: int) -> str:
    return fold(chr(number)) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""


@dataclass(frozen=True, slots=True)
class Packed:
    """A run in a text that is another text, encoded."""

    start: int
    end: int
    text: str
    encode: Callable[[str], str] | None
    """Encodes a text in the same way; None where there is no telling how it was done."""


_MEMBERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_OTHER_MEMBERS: Final = b"+/_-"
_MARKS: Final = frozenset((b"+", b"/", b"_", b"-"))
_MEDIA: Final = 512
"""From so many characters of base64 on, what it holds is media, unless it is a text."""
_OF_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_BEFORE_A_RUN: Final = frozenset(b"\\%")
_STARTS: Final = frozenset((0x1F, 0x78, *range(0xC2, 0xF5)))
"""How something begins that is compressed, or a text that does not begin in ASCII."""
_REST: Final = re.compile(rb"[A-Za-z0-9+/_\-]*(?:\r?\n[A-Za-z0-9+/_\-]{16,})*(?:\r?\n[A-Za-z0-9+/]+(?==))?={0,2}")
_HEXADECIMAL: Final = 12
_HEX: Final = re.compile(rb"[0-9A-Fa-f]{12}")
_READABLE: Final = bytes((0, 9, 10, 13, *range(32, 127)))
_PACKINGS: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


def texts_in(data: bytes, runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, Packed | None]]:
    """Open the runs of letters and digits in which a text is encoded, and give their places.

    A long one that is no text is given with None: it is media, or a digest, or signed.
    """
    scanned_end = 0
    for start, end in runs:
        if start < scanned_end:
            continue
        begin = _begin(data, start)
        if begin is not None:
            if (packed := _packed(data, start, end, begin)) is not None:
                scanned_end = packed.end
                yield packed.start, packed.end, packed
        elif data[end : end + 1] in _MARKS or end - start >= _MEDIA:
            match = _REST.match(data, end)
            scanned_end = match.end() if match else end
            if scanned_end - start >= _MEDIA:
                yield start, scanned_end, None


def looks_packed(data: bytes, runs: Iterable[tuple[int, int]]) -> list[int]:
    """Give the places of runs that `texts_in` may open, at little cost."""
    places: list[int] = []
    scanned_end = 0
    for start, end in runs:
        if start < scanned_end:
            continue
        if _begin(data, start) is not None:
            places.append(start)
        elif data[end : end + 1] in _MARKS:
            match = _REST.match(data, end)
            scanned_end = match.end() if match and match.end() - start >= _MEDIA else end
    return places


def _begin(data: bytes, start: int) -> int | None:
    """Give where an encoded text seems to begin that holds a run; None where there is none."""
    if start and data[start - 1] in _BEFORE_A_RUN:
        start += _escaped_before(data, start)
    head = data[start : start + _HEAD]
    raw = _decoded(head)
    if (raw[:3].isascii() or raw[0] in _STARTS) and _says_something(raw):
        return start
    if head and head[0] in _OF_HEX and _HEX.match(head) is not None and _says_something(_unhexed(head)):
        return start
    wider = _wider(data, start)
    return wider if wider < start and _says_something(_decoded(data[wider : wider + _HEAD])) else None


def _escaped_before(data: bytes, start: int) -> int:
    """Count the characters at the beginning of a run that belong to an escape, as those of `%20` do."""
    if data[start - 1 : start] == b"%":
        return 2
    if data[start - 2 : start - 1] == b"\\":
        return 0
    return {b"u": 5, b"x": 3}.get(data[start : start + 1], 1)


def _packed(data: bytes, start: int, end: int, begin: int) -> Packed | None:
    if begin >= start and _HEX.match(data, begin, end) is not None:
        packed = _of_hexadecimal(data, begin, end)
        if packed is not None:
            return packed
    return _of_base64(data, begin)


def _wider(data: bytes, start: int) -> int:
    """Give where a run begins if `+/_-` are letters as well."""
    if not start or data[start - 1] not in _OTHER_MEMBERS:
        return start
    left = data[max(0, start - 256) : start]
    return start - len(left) + len(left.rstrip(_MEMBERS))


def _says_something(head: bytes) -> bool:
    """Tell the beginning of a text, or of one that is compressed, from that of anything else."""
    if head.isascii():
        return bool(head) and not head.translate(None, _READABLE)
    if head.startswith(_PACKINGS):
        return True
    read = head.decode("utf-8", "ignore")
    return len(read) > 4 and len(read.encode()) >= len(head) - 3 and read.replace("\n", " ").isprintable()


def _decoded(run: bytes) -> bytes:
    try:
        if b"-" in run or b"_" in run:
            run = run.replace(b"-", b"+").replace(b"_", b"/")
        return binascii.a2b_base64(run[: len(run) & ~3]) or b"\xff"
    except binascii.Error:
        return b"\xff"


def _unhexed(run: bytes) -> bytes:
    try:
        return binascii.unhexlify(run[: len(run) & ~1])
    except binascii.Error:
        return b"\xff"


def _of_hexadecimal(data: bytes, start: int, end: int) -> Packed | None:
    run = data[start:end]
    raw_bytes = _unhexed(run)
    if len(run) % 2 or not _says_something(raw_bytes[:_HEAD]):
        return None
    text = _text_of(raw_bytes)
    if text is None:
        return None
    upper, close = run.isupper(), text[1]
    if close is None:
        return Packed(start, end, text[0], None)

    def encode(new_text: str) -> str:
        spelled = close(new_text).hex()
        return spelled.upper() if upper else spelled

    return Packed(start, end, text[0], encode)


def _of_base64(data: bytes, start: int) -> Packed | None:
    match = _REST.match(data, start)
    if match is None:
        return None
    run = match[0]
    bare = run.replace(b"\r", b"").replace(b"\n", b"").rstrip(b"=")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        raw_bytes = binascii.a2b_base64(bare.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(bare) % 4))
    except binascii.Error:
        return None
    text = _text_of(raw_bytes)
    if text is None:
        return None
    safe, padded = b"-" in run or b"_" in run, run.endswith(b"=") or len(bare) % 4 == 0
    close = text[1]
    if close is None:
        return Packed(start, match.end(), text[0], None)

    def encode(new_text: str) -> str:
        spelled = (base64.urlsafe_b64encode if safe else base64.b64encode)(close(new_text)).decode()
        return spelled if padded else spelled.rstrip("=")

    return Packed(start, match.end(), text[0], encode)


def unpacked(text: str) -> bytes | None:
    """Read base64, and what is compressed in it; None where it is none."""
    try:
        raw_bytes = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return _inflated(raw_bytes) if raw_bytes.startswith(_PACKINGS) else raw_bytes


def pack(old: bytes, new: bytes, spelled: str) -> str:
    """Spell bytes as `spelled` spells `old`."""
    raw = base64.b64decode(spelled)
    return base64.b64encode(_deflate(raw, new) if raw != old else new).decode()


def _inflated(compressed: bytes) -> bytes | None:
    try:
        return zlib.decompressobj(47).decompress(compressed, _LARGEST)
    except zlib.error:
        return None


def _deflate(like: bytes, new: bytes) -> bytes:
    """Compress in the format that `like` is in."""
    return gzip.compress(new, mtime=0) if like.startswith(_PACKINGS[0]) else zlib.compress(new)


def _text_of(octets: bytes) -> tuple[str, Callable[[str], bytes] | None] | None:
    """Read bytes as a text; also say how another text becomes such bytes, None where there is no telling."""
    if octets.startswith(_PACKINGS):
        inflated = _inflated(octets)
        if inflated is None:
            return None
        return inflated.decode("utf-8", "replace"), lambda text: _deflate(octets, text.encode("utf-8", "surrogatepass"))
    if b"\0" in octets[:_HEAD]:
        encoding = "utf-16-le" if octets[1:2] == b"\0" else "utf-16-be"
        try:
            return octets.decode(encoding), lambda text: text.encode(encoding, "surrogatepass")
        except UnicodeDecodeError:
            return None
    try:
        return octets.decode(), lambda text: text.encode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        # What stands behind a run without a space may look like a part of it.
        readable = octets[: error.start]
        return (readable.decode(), None) if len(readable) > 2 * _HEAD else None
