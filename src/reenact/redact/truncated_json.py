"""JSON that ends too early, as the arguments of a call do where a stream breaks off: what would complete it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import orjson

_CLOSES: Final = {"{": "}", "[": "]"}
_SIGN: Final = re.compile(r'[{\[}\]]|"(?:[^"\\]|\\.)*(?P<end>"?)', re.DOTALL)
"""A bracket, or a string whole."""
_GOES_ON: Final = ("", "null", ":null", '"":null')
"""What may be missing before the brackets: a value, a colon and a value, a member."""
_CUT_OFF: Final = '{"redacted": "'


def completed(text: str) -> str | None:
    """Give what would complete a text to a document; None where it is none that ends too early."""
    stack: list[str] = []
    quote = ""
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign in _CLOSES:
            stack.append(_CLOSES[sign])
        elif sign[0] == '"':
            quote = "" if match["end"] else '"'  # a string without an end is the last that there is
        elif not stack or stack.pop() != sign:
            return None
    close = "".join(reversed(stack))
    for more in _GOES_ON:
        end = quote + more + close
        if _is_json(text + end):
            return end
    return None


def as_cut_off(text: str, redact: Callable[[str], str]) -> str:
    """Redact the arguments of a call, which stay arguments: what ends too early does so afterwards, too."""
    if text.lstrip()[:1] not in _CLOSES:
        return redact(text)
    end = completed(text)
    if end is not None:
        new = redact(text + end)
        if new.endswith(end):
            return new.removesuffix(end) if end else new
    new = redact(text)
    return new if new[:1] in _CLOSES else _CUT_OFF + new + '"'


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True
