"""What redaction put in the place of values, and where a program was given it.

A token is `REDACTED_<class>_<20 hexadecimal digits>`, of an e-mail address `…@redacted.invalid`; a mask is the same
without digits. The digits name the value under a key: equal values, equal tokens.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reenact.values.call import FunctionCall
from reenact.values.run import Node, ReplacedInputs, Run

MARK: Final = "REDACTED_"
_ADDRESS: Final = "e_mail"
"""The class of an address of mail."""
TOKEN: Final = re.compile(r"REDACTED_([a-z0-9_]{1,64}?)_([0-9a-f]{20})(?![0-9a-f])(?:@redacted\.invalid)?")
"""A token; its class, and the digits that name the value."""
_ANY: Final = re.compile(
    r"(?<!_)REDACTED_(?:([a-z0-9_]{1,64}?)_[0-9a-f]{20}(?![0-9a-f])|([a-z0-9_]{0,63}[a-z0-9])(?![a-z0-9_]))"
)
_BYTES: Final = re.compile(r'"(?:\$bytes|b64)": ?"([A-Za-z0-9+/]+={0,2})"')
"""Bytes as a trace spells them that are no text."""
_HIDDEN: Final = ("UkVEQUNURURf", "JFREFDVEVEX", "SRURBQ1RFRF")
"""The mark as base64 spells it, by what stands before it: the characters that hang on nothing else."""
_PACKINGS: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_MOST: Final = 16 << 20
_OUTCOME: Final[Mapping[str, str]] = {
    "output.value": "reply",
    "reenact.http.response.body": "reply",
    "reenact.stream.chunks": "stream",
    "reenact.stream.result": "result",
    "reenact.exception": "exception",
}
"""Attributes that say what a call came to, and what each is called in a verdict."""
_INPUT: Final[Mapping[str, str]] = {
    "reenact.entry": "command line",
    "input.value": "input",
    "reenact.inbound": "request headers",
}
"""Attributes of a root that say what the run began with."""


def classes_in(text: str) -> Counter[str]:
    """Count the replaced values of a text, and of the bytes in it, by class: tokens and masks."""
    return Counter(match[1] or match[2] for each in _open(text) for match in _ANY.finditer(each))


def tokens_in(text: str) -> list[str]:
    """List the tokens of a text, and of the bytes in it, in their order."""
    return [match[0] for each in _open(text) for match in TOKEN.finditer(each)]


def count_in(text: str) -> int:
    """Count the replaced values of a text, and of the bytes in it."""
    return sum(each.count(MARK) for each in _open(text))


def _open(text: str) -> Iterator[str]:
    """Give a text, and what the bytes hold that it spells in base64, as far as a mark is in them."""
    if MARK in text:
        yield text
    if '"b64"' not in text and '"$bytes"' not in text:
        return
    for match in _BYTES.finditer(text):
        spelled = match[1]
        packed = spelled.startswith(("H4s", "eA", "eJ", "eN"))  # gzip and zlib
        if not packed and not any(mark in spelled for mark in _HIDDEN):
            continue
        try:
            content = base64.b64decode(spelled)
            if content.startswith(_PACKINGS):
                content = zlib.decompressobj(47).decompress(content, _MOST)
        except (ValueError, zlib.error):  # it is none
            continue
        if MARK.encode() in content:
            yield content.decode("latin-1")


def lines_with_addresses(text: str, clean: str) -> str:
    """Give the lines of a text of which redaction replaced addresses of mail alone; `clean` is what it made of it.

    An id may look like an address (RFC 5545, 3.8.4.7: UID; RFC 5322, 3.6.4: Message-ID), and is nothing secret.
    """
    before, after = text.split("\n"), clean.split("\n")
    if MARK not in clean or len(before) != len(after):
        return ""
    pairs = zip(before, after, strict=True)
    return "\n".join(line for line, other in pairs if line != other and {*classes_in(other)} == {_ADDRESS})


def blinded(text: str) -> str:
    """Leave out of a text's tokens what they are keyed by."""
    return TOKEN.sub(r"REDACTED_\1", text) if MARK in text else text


def given_by(node: Node) -> Iterator[ReplacedInputs]:
    """Say which replaced values a call's outcome gave to the program."""
    yield from _replacements(node, node.label, _OUTCOME, function=isinstance(node.call.request, FunctionCall))


def given_to(run: Run) -> Iterator[ReplacedInputs]:
    """Say which replaced values a run began with: in its command line, or in what came in."""
    if run.root is not None:
        yield from _replacements(run.root, "run", _INPUT)


def attribute_of(field: str) -> str:
    """Give the attribute of a root that holds what a run began with, by its name in a verdict."""
    return next((name for name, word in _INPUT.items() if word == field), "input.value")


def total(replacements: Iterable[ReplacedInputs]) -> Counter[str]:
    """Count replaced values by class."""
    counted: Counter[str] = Counter()
    for each in replacements:
        counted.update(each.classes)
    return counted


def spelled(classes: Mapping[str, int]) -> str:
    """Say counts by class in words: `2 e_mail, 1 phone`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(classes.items()))


def _replacements(
    node: Node, label: str, names: Mapping[str, str], *, function: bool = False
) -> Iterator[ReplacedInputs]:
    for name, word in names.items():
        text = node.span.attributes.get(name)
        if isinstance(text, str) and (classes := classes_in(text)):
            field = "result" if function and word == "reply" else word
            tokens = frozenset(tokens_in(text))
            yield ReplacedInputs(node=node.id, call=label, field=field, classes=dict(classes), tokens=tokens)
