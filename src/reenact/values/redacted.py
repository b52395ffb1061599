"""What redaction put in the place of values, and where a program was given it.

A token is `REDACTED_<class>_<20 hexadecimal digits>`, of an e-mail address `…@redacted.invalid`; a mask is the same
without digits. The digits name the value under a key: equal values, equal tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reenact.values.call import FunctionCall
from reenact.values.run import Given, Node, Run

MARK: Final = "REDACTED_"
TOKEN: Final = re.compile(r"REDACTED_([a-z0-9_]{1,64}?)_([0-9a-f]{20})(?![0-9a-f])(?:@redacted\.invalid)?")
"""A token; its class, and the digits that name the value."""
_ANY: Final = re.compile(
    r"(?<!_)REDACTED_(?:([a-z0-9_]{1,64}?)_[0-9a-f]{20}(?![0-9a-f])|([a-z0-9_]{0,63}[a-z0-9])(?![a-z0-9_]))"
)
_OUTCOME: Final[Mapping[str, str]] = {
    "output.value": "reply",
    "reenact.http.response.body": "reply",
    "reenact.stream.chunks": "stream",
    "reenact.stream.result": "result",
    "reenact.exception": "exception",
}
"""Attributes that say what a call came to, and what each is called in a verdict."""
_INPUT: Final[Mapping[str, str]] = {"reenact.entry": "command line", "input.value": "input"}
"""Attributes of a root that say what the run began with."""


def classes_in(text: str) -> Counter[str]:
    """Count the replaced values of a text, by class: tokens and masks."""
    if MARK not in text:
        return Counter()
    return Counter(found[1] or found[2] for found in _ANY.finditer(text))


def tokens_in(text: str) -> list[str]:
    """List the tokens of a text, in their order."""
    return [found[0] for found in TOKEN.finditer(text)] if MARK in text else []


def blinded(text: str) -> str:
    """Leave out of a text's tokens what they are keyed by."""
    return TOKEN.sub(r"REDACTED_\1", text) if MARK in text else text


def given_by(node: Node) -> Iterator[Given]:
    """Say which replaced values a call's outcome gave to the program."""
    yield from _given(node, node.label, _OUTCOME, function=isinstance(node.call.request, FunctionCall))


def given_to(run: Run) -> Iterator[Given]:
    """Say which replaced values a run began with: in its command line, or in what came in."""
    if run.root is not None:
        yield from _given(run.root, "run", _INPUT)


def total(given: Iterable[Given]) -> Counter[str]:
    """Count replaced values by class."""
    counted: Counter[str] = Counter()
    for each in given:
        counted.update(each.classes)
    return counted


def spelled(classes: Mapping[str, int]) -> str:
    """Say counts by class in words: `2 e_mail, 1 phone`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(classes.items()))


def _given(node: Node, label: str, names: Mapping[str, str], *, function: bool = False) -> Iterator[Given]:
    for name, word in names.items():
        text = node.span.attributes.get(name)
        if isinstance(text, str) and (classes := classes_in(text)):
            said = "result" if function and word == "reply" else word
            tokens = frozenset(tokens_in(text))
            yield Given(node=node.id, call=label, field=said, classes=dict(classes), tokens=tokens)
