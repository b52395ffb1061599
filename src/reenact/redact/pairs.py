"""Values that the value beside them calls a secret: `{"name": "password", "value": …}`, `["Authorization", …]`.

In JSON of headers, parameters, forms and command lines the name of a thing is no key but a value of its own, before or
behind that of the thing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from reenact.redact.fields import SENSITIVE_KEYS

_NAMES: Final = frozenset(
    {
        *("name", "key", "header", "field", "param", "parameter", "property", "attribute", "variable", "var", "label"),
        *("id", "k", "n", "headername", "header_name"),
    }
)
_VALUES: Final = "value|val|v|content|data|text|default|headervalue|header_value"
_WHITE: Final = r"[ \t\r\n]{0,200}+"
_STRING: Final = r'"(?:[^"\\]|\\.)*+"'
_MEMBER: Final = rf'"[^"\\]{{1,40}}"{_WHITE}:{_WHITE}(?:"[^"\\]{{0,200}}"|[-a-z0-9.]{{1,20}})'
_OPENED: Final = rf'(?:\{{{_WHITE}"(?:stringValue|string_value)"{_WHITE}:{_WHITE})?'
_BEHIND: Final = re.compile(
    rf'{_WHITE},{_WHITE}(?:{_MEMBER}{_WHITE},{_WHITE}){{0,4}}?"(?i:{_VALUES})"{_WHITE}:{_WHITE}{_OPENED}({_STRING})',
    re.DOTALL,
)
_BEFORE: Final = re.compile(
    rf'\{{{_WHITE}(?:{_MEMBER}{_WHITE},{_WHITE}){{0,4}}?"(?i:{_VALUES})"{_WHITE}:{_WHITE}{_OPENED}({_STRING}){_WHITE}\}}?'
    rf'{_WHITE},{_WHITE}(?:{_MEMBER}{_WHITE},{_WHITE}){{0,4}}?"[^"\\]{{1,40}}"{_WHITE}:{_WHITE}',
    re.DOTALL,
)
_NEXT: Final = re.compile(rf"{_WHITE},{_WHITE}({_STRING})({_WHITE}\])?", re.DOTALL)
_FLAG: Final = re.compile(
    r"--(?:[a-z0-9]{1,20}[-_]){0,3}(?:api[-_]?key|key|token|secret|password|passwd|passphrase|pass|pwd|credentials?)",
    re.IGNORECASE,
)
_NO_SECRET: Final = re.compile(r"-.*|[./~].*|[A-Za-z_.\-/]{0,64}\d{0,2}|\$.*|.{0,5}", re.DOTALL)
"""What may follow such an option and is none: another option, a path, a name, a variable."""
_LONGEST: Final = 4096


class Beside(NamedTuple):
    """A string of JSON that is a secret, with its quotes, and the key that says so."""

    start: int
    end: int
    key: str


def behind(text: str, left: int, right: int, key: str, value: str) -> Beside | None:
    """Give the value that the string `value`, under `key` and between the quotes at `left` and `right`, names."""
    lowered = value.lower()
    if lowered in SENSITIVE_KEYS:
        if key.lower() in _NAMES and (match := _BEHIND.match(text, right + 1)) is not None:
            return Beside(*match.span(1), lowered)
        match = _NEXT.match(text, right + 1) if _opens_a_list(text, left) else None
        return Beside(*match.span(1), lowered) if match is not None and match[2] is not None else None
    if value[:2] == "--" and _FLAG.fullmatch(value) is not None and (match := _NEXT.match(text, right + 1)) is not None:
        exemption = _NO_SECRET.fullmatch(match[1][1:-1])
        return Beside(*match.span(1), "password") if exemption is None else None
    return None


def before(text: str, left: int, key: str, value: str) -> Beside | None:
    """Give the value before the string `value` that it names, within the same object."""
    if value.lower() not in SENSITIVE_KEYS or key.lower() not in _NAMES:
        return None
    at = left
    for _ in range(2):  # that of a value in an object of its own, then the one around it
        at = text.rfind("{", max(0, left - _LONGEST), at)
        if at < 0:
            return None
        if (match := _BEFORE.fullmatch(text, at, left)) is not None:
            return Beside(*match.span(1), value.lower())
    return None


def _opens_a_list(text: str, at: int) -> bool:
    at -= 1
    while at >= 0 and text[at] in " \t\r\n":
        at -= 1
    return at >= 0 and text[at] == "["
