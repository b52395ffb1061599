"""What stands for a value: a keyed token, equal for equal values, which says the class and nothing else."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Final

from reenact.redact.fields import TOKEN_MARK
from reenact.redact.keys import key_id
from reenact.redact.plan import Plan

_BETWEEN: Final = str.maketrans("", "", " -()/.\u00a0\u202f\t")
_WITHOUT_BLANKS: Final = str.maketrans("", "", " \u00a0\u202f\t")
_DOTTED: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_MAIL: Final = "e_mail"
_DOMAIN: Final = "@redacted.invalid"


class Tokens:
    """Makes tokens.

    `key` is a secret that never travels; with `shared` it keys all classes, else the personal ones alone, and the
    others are keyed by `salt`, which is drawn where it is empty and travels with the trace: safe for what cannot be
    guessed. Without a key, a random one keys the personal classes, and is gone with this object.
    """

    def __init__(self, plan: Plan, *, key: bytes | None, salt: str, shared: bool) -> None:
        everything = key is not None and shared
        self.salt = "" if everything else salt or os.urandom(16).hex()
        self.key_id = key_id(key)
        self._plan = plan
        self._secret = _digest(key or os.urandom(32))
        self._public = self._secret if everything else _digest(bytes.fromhex(self.salt))

    def keyed(self, name: str) -> bool:
        """Tell whether tokens of a class are keyed by a secret that does not travel with the trace."""
        return not self.salt or self._plan.group(name) == "personal"

    def token(self, name: str, secret: str) -> str:
        """Give the token of a value: 80 bits of keyed BLAKE2b, the same for the same value in any class."""
        key = self._secret if self.keyed(name) else self._public
        value = normal(name, secret) if self._plan.group(name) == "personal" else secret
        mark = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=key, digest_size=10).hexdigest()
        return f"{TOKEN_MARK}{name}_{mark}{_DOMAIN if name == _MAIL else ''}"


def normal(name: str, value: str) -> str:
    """Spell a value as all its spellings are: an address in lower case, a number without what parts its digits."""
    if name == _MAIL or "@" in value:
        return value.lower()
    if not value.isascii() or name == "value" or len(value) > 64:
        return value
    if ":" in value or _DOTTED.fullmatch(value):
        return value.lower()
    bare = value.translate(_BETWEEN)
    return bare.upper() if any(c.isdigit() for c in bare) else value.translate(_WITHOUT_BLANKS)


def mask(name: str) -> str:
    """Give the constant text that stands for all values of a class."""
    return f"{TOKEN_MARK}{name}"


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32).digest()
