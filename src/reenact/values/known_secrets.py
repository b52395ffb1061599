"""Secrets that are known exactly: values of variables whose names say that they hold one, and headers of replies.

What a header of a reply says in secret (a cookie, the token of a session or a form) the program gets as it came. The
recording has a stand-in for it, wherever the program sends or prints it later: a token as redaction makes them, keyed
by this process alone. In a replay the program gets the stand-in from the beginning, and asks and prints the same.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

MARK: Final = "REDACTED_"
"""How every token begins."""
_ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PWD", "_CREDENTIALS", "_PAT")
_WORDS: Final = ("API_KEY", "APIKEY", "SECRET_", "PASSWORD", "ACCESS_KEY")
_SHORTEST, _LONG_ENOUGH = 12, 24
_SHORTEST_HEADER: Final = 16
"""Characters of a header's secret that is looked for elsewhere; shorter ones may be words."""
_FEWEST_CHARACTERS: Final = 6
"""Different characters of one that is looked for: zeros stand in many a number."""
_MOST: Final = 32
"""Secrets of headers that are looked for, the latest."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY: Final[list[bytes]] = []
_STAND_INS: Final[dict[str, str]] = {}
"""What stands for each spelling of a secret of a header."""


def credentials_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Pick the variables whose names say that they hold a secret."""
    return {name: value for name, value in environ.items() if value and names_a_secret(name)}


def looks_secret(value: str) -> bool:
    """Tell a secret from a placeholder or a word that ordinary text may hold."""
    if value.startswith(MARK) or len(value) < _SHORTEST:
        return False
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed or len(value) >= _LONG_ENOUGH


def names_a_secret(name: str) -> bool:
    """Tell whether a variable's name says that it holds a secret."""
    upper = name.upper()
    return upper.endswith(_ENDINGS) or any(word in upper for word in _WORDS)


def stand_in(secret: str) -> str:
    """Give what stands for a secret of a header, and look for it from here on."""
    token = token_of(secret)
    if secret != token and len(secret) >= _SHORTEST_HEADER and len(set(secret)) >= _FEWEST_CHARACTERS:
        for spelled in {secret, unquote(secret), quote(secret, safe="")}:
            _STAND_INS.pop(spelled, None)
            _STAND_INS[spelled] = token
        while len(_STAND_INS) > _MOST:
            del _STAND_INS[next(iter(_STAND_INS))]
    return token


def token_of(secret: str) -> str:
    """Give a token for a secret, equal for equal ones.

    A token stands for itself. For a UUID (RFC 9562) another stands, since programs read it as one.
    """
    if secret.startswith(MARK):
        return secret
    if not _KEY:
        _KEY.append(os.urandom(32))
    digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=_KEY[0]).hexdigest()
    if _UUID.fullmatch(secret):
        return f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-a{digest[15:18]}-{digest[18:30]}"
    return f"{MARK}known_secret_{digest[:20]}"


def are_known() -> bool:
    """Tell whether a header has brought a secret."""
    return bool(_STAND_INS)


def bytes_without_secrets(data: bytes) -> bytes:
    """Put stand-ins in the place of the secrets that headers have brought, as UTF-8 spells them."""
    for secret, token in _longest_first():
        data = data.replace(secret.encode("utf-8", "surrogatepass"), token.encode())
    return data


def without_secrets(text: str) -> str:
    """Put stand-ins in the place of the secrets that headers have brought."""
    for secret, token in _longest_first():
        if secret in text:
            text = text.replace(secret, token)
    return text


def _longest_first() -> list[tuple[str, str]]:
    """List the secrets: of one that holds another, no part may stay."""
    return sorted(_STAND_INS.items(), key=lambda each: -len(each[0])) if _STAND_INS else []
