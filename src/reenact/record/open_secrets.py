"""Whether a stream may be written down as far as it has come, or a secret has perhaps begun that its next piece ends.

This asks for no class of secret. What waits is any run of characters at the end of what was said so far that is long,
or holds a digit or a mark; digits in groups; and a block of PEM. A word of prose is none: most pieces pass.
"""

from __future__ import annotations

import codecs
import re

_FIELD = re.compile(r'"([A-Za-z_]\w*)"\s*:\s*(?:"([^"\\]*(?:\\.[^"\\]*)*)"|([0-9]+))')
_STRUCTURE = re.compile(
    r"(?:\w+_)?(?:id|ids|type|at|fingerprint|reason|tier|status|signature|encoding)"
    r"|object|model|role|name|created|obfuscation|encrypted_content|format"
)
"""Names of fields that no provider streams a text in."""
_RUN = re.compile(r"[^\s\"'<>,]+\Z")
_TELLING = re.compile(r"[0-9_.@%\\=&/:+~-]|[a-z][A-Z]|[^\x00-\x7f]")
_SHORT, _LONG = 6, 12
_GROUPS = re.compile(
    r"(?:[0-9](?:[ ().\-/]{0,2}[0-9]){5,}[ ().\-/]{0,2}|(?:\+|\b[A-Z]{2})[0-9][0-9A-Z ().\-/]{0,40})\Z"
)
"""Digits in groups; a telephone number or an account number from its beginning on."""
_LINE = re.compile(r"[A-Za-z0-9+/_\-]*")
_WHOLE_LINE = 40
"""Characters that a line of base64 has at least which is not the last (RFC 2045, 6.8: 76; PEM: 64)."""
_TAIL = 128
_BEGUN, _ENDED = "-----BEGIN ", "-----END "
_SEEN_LATELY = 4
"""A field that so many pieces did not speak of has ended."""
_streams: dict[str, bool] = {}
"""Which names of fields may be those of streams."""


class _Said:
    """What was said in one field so far, its last characters."""

    __slots__ = ("at", "block", "last", "tail")

    def __init__(self) -> None:
        self.tail, self.last, self.block, self.at = "", "", False, 0

    def add(self, text: str) -> str:
        """Take more, and give it with what stands before it."""
        joined = self.tail + text
        if _BEGUN in joined or _ENDED in joined:
            self.block = joined.rfind(_BEGUN) > joined.rfind(_ENDED)
        self.tail, self.last = joined[-_TAIL:], text
        return joined

    @property
    def open(self) -> bool:
        return self.block or _is_open(self.tail)


def _is_open(text: str) -> bool:
    """Tell that a text ends inside of what may be a secret."""
    if "\n" in text and _among_lines(text):
        return True
    if text[-1:].isspace() and not text[-8:].rstrip()[-1:].isdigit():
        return False
    run = _RUN.search(text)
    if run is not None:
        word = run[0]
        if len(word) >= _LONG or (len(word) >= _SHORT and _TELLING.search(word)):
            return True
    return text[-1:] not in "\n\r" and _GROUPS.search(text, max(0, len(text) - 48)) is not None


def _among_lines(text: str) -> bool:
    """Tell that a text ends at the beginning of a line, or in one, of which the one before is base64."""
    before, _, line = text.rpartition("\n")
    before = before.rstrip("\r")[-_WHOLE_LINE:]
    return len(before) == _WHOLE_LINE and all(map(_LINE.fullmatch, (before, line)))


class Following:
    """Follows one stream, piece by piece."""

    __slots__ = ("_decoder", "_fields", "_number", "_raw", "_rest", "joined")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fields: dict[tuple[str, str], _Said] = {}
        self._raw = _Said()
        self._rest = ""
        self._number = 0
        self.joined: list[str] = []
        """What the last piece said, each with what stands before it."""

    def settles(self, piece: bytes) -> bool:
        """Take the next piece, and tell that no secret that goes on seems to have begun at the end of it."""
        text = self._decoder.decode(piece)
        self._number += 1
        self.joined = [self._raw.add(text)]
        whole, _, rest = (self._rest + text).rpartition("\n")
        if rest.endswith("}"):
            whole, rest = f"{whole}\n{rest}", ""
        self._rest = rest[-65_536:]
        if '"' in whole:
            self._read_fields(whole)
        lately = self._number - _SEEN_LATELY
        waits = self._raw.open or any(field.at > lately and field.open for field in self._fields.values())
        return not (waits or self._decoder.getstate()[0])

    def _read_fields(self, events: str) -> None:
        """Take what the events say, each field of each of several answers by itself."""
        index = ""
        for name, text, number in _FIELD.findall(events):
            if number:
                if name.endswith("index"):
                    index += f"{name}{number}"
                continue
            streams = _streams.get(name)
            if streams is None:
                streams = _STRUCTURE.fullmatch(name) is None
                if len(_streams) < 1000:
                    _streams[name] = streams
            if not streams or not text:
                continue
            field = self._fields.get((name, index))
            if field is None:
                field = self._fields[name, index] = _Said()
            if len(text) >= _LONG and text == field.last:  # what stays the same is no stream
                field.tail = ""
                continue
            field.at = self._number
            self.joined.append(field.add(text))
