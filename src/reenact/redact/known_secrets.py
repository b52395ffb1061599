"""Secrets that are known exactly: the values of variables whose names say that they hold one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.redact.fields import TOKEN_MARK

_ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PWD", "_CREDENTIALS", "_PAT")
_WORDS: Final = ("API_KEY", "APIKEY", "SECRET_", "PASSWORD", "ACCESS_KEY")
_SHORTEST, _LONG_ENOUGH = 12, 24


def credentials_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Pick the variables whose names say that they hold a secret."""
    return {name: value for name, value in environ.items() if value and names_a_secret(name)}


def looks_secret(value: str) -> bool:
    """Tell a secret from a placeholder or a word that ordinary text may hold."""
    if value.startswith(TOKEN_MARK) or len(value) < _SHORTEST:
        return False
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed or len(value) >= _LONG_ENOUGH


def names_a_secret(name: str) -> bool:
    """Tell whether a variable's name says that it holds a secret."""
    upper = name.upper()
    return upper.endswith(_ENDINGS) or any(word in upper for word in _WORDS)
