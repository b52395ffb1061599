"""Headers of a reply that may hold a secret: what a recording keeps of them, and what a replay gives back.

Of a cookie (RFC 6265, section 4.1) the name and the attributes are kept, of a challenge (RFC 9110, section 11.6.1) in a
scheme whose parameters are public all of it. For a secret itself there is a stand-in. A kept cookie has a colon before
its header's name, since redaction would take all of a `set-cookie`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reenact.values.known_secrets import stand_in, token_of

_COOKIE: Final = "set-cookie"
_CHALLENGES: Final = frozenset({"www-authenticate", "proxy-authenticate"})
_PUBLIC_SCHEMES: Final = frozenset({"basic", "bearer", "digest"})
"""Schemes whose challenge says where and how to log in, and nothing that lets in (RFC 6750, 7616, 7617)."""
_NO_SECRET: Final = re.compile(
    r"(?i:true|false)|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,18}Z?"
)
"""What a header such as `session-expires` says: a date (RFC 9110, section 5.6.7; RFC 3339), or whether."""
_ATTRIBUTES: Final = frozenset(
    {"expires", "max-age", "domain", "path", "secure", "httponly", "samesite", "partitioned", "priority", "version"}
)
"""What a cookie says beside its value (RFC 6265, section 4.1.2, and what browsers take)."""
_SHORT: Final = 16
"""Characters of a cookie's value that is kept: a language, a theme. Redaction decides on it."""


def hide(name: str, value: str) -> tuple[str, str]:
    """Give the header to keep in the place of one that may hold a secret."""
    lowered = name.lower()
    if lowered == _COOKIE:
        return kept_name(name), _cookie(value)
    if lowered in _CHALLENGES:
        return name, _challenge(value)
    return name, value if _NO_SECRET.fullmatch(value) else stand_in(value)


def kept_name(name: str) -> str:
    """Give the name under which a header is kept."""
    return f":{name}" if name.lower() == _COOKIE else name


def spell_back(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Spell kept headers as the program gets them."""
    return [(name[1:] if name.lower() == f":{_COOKIE}" else name, value) for name, value in headers]


def _cookie(header: str) -> str:
    pair, *attributes = header.split(";")
    name, equals, spelled = pair.partition("=")
    value = spelled.strip().strip('"')
    if len(value) >= _SHORT:
        pair = f"{name}{equals}{stand_in(value)}"
    return ";".join([pair, *(each if _is_of_cookies(each) else f" {token_of(each.strip())}" for each in attributes)])


def _is_of_cookies(attribute: str) -> bool:
    """Tell an attribute from the rest of a value that a semicolon parts; an empty one says nothing.

    Such a rest is not looked for elsewhere: it may be words, and a secret of which they are a part would not be known.
    """
    name = attribute.partition("=")[0].strip().lower()
    return not name or name in _ATTRIBUTES


def _challenge(header: str) -> str:
    scheme, blank, rest = header.partition(" ")
    return header if scheme.lower() in _PUBLIC_SCHEMES or not rest else f"{scheme}{blank}{stand_in(rest)}"
