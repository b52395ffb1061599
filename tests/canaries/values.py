"""Canaries: values that look like what must not leave, each of its own, so that one found names where it was put."""

from __future__ import annotations

import base64
import hashlib
import json
import string
import zlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, TypeAlias

Group: TypeAlias = Literal["credentials", "personal"]
_WORD = string.ascii_letters + string.digits
_DIGITS = string.digits


def chance(*key: object) -> Random:
    """Give a source of chance that is the same for the same key, in every process."""
    return Random(hashlib.sha256(repr(key).encode()).digest())


def drawn(source: Random, letters: str, number: int) -> str:
    return "".join(source.choice(letters) for _ in range(number))


def token(source: Random) -> str:
    """A GitHub token as GitHub makes them: its last six characters are a checksum of the thirty before."""
    secret = drawn(source, _WORD, 30)
    rest, mark = zlib.crc32(secret.encode()), ""
    letters = string.digits + string.ascii_uppercase + string.ascii_lowercase
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        mark = letters[digit] + mark
    return f"ghp_{secret}{mark}"


def e_mail(source: Random) -> str:
    small = string.ascii_lowercase + string.digits
    return f"mara.{drawn(source, small, 10)}@{drawn(source, string.ascii_lowercase, 8)}-handel.de"


def card(source: Random) -> str:
    """A payment card's number, by Luhn."""
    digits = f"4{source.choice('23456789')}{drawn(source, _DIGITS, 13)}"
    return digits + next(last for last in _DIGITS if luhn(digits + last))


def luhn(digits: str) -> bool:
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


def iban(source: Random) -> str:
    account = drawn(source, _DIGITS, 18)
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def phone(source: Random) -> str:
    return f"+49 151 {source.choice('23456789')}{drawn(source, _DIGITS, 3)} {drawn(source, _DIGITS, 4)}"


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def jwt(source: Random) -> str:
    claims = {"sub": drawn(source, _WORD, 12), "iat": 1790000000}
    signature = base64.urlsafe_b64encode(source.randbytes(32)).rstrip(b"=").decode()
    return f"{_segment({'alg': 'HS256', 'typ': 'JWT'})}.{_segment(claims)}.{signature}"


def pem(source: Random) -> str:
    """A private key in PEM, of the length of an Ed25519 key."""
    body = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + source.randbytes(32)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"


def known(source: Random) -> str:
    """A secret of no known form: it is one because a variable of the environment holds it."""
    return f"{drawn(source, string.ascii_lowercase, 6)}-{drawn(source, _WORD, 22)}"


CLASSES: Mapping[str, tuple[Group, Callable[[Random], str]]] = {
    "github_token": ("credentials", token),
    "known_secret": ("credentials", known),
    "jwt": ("credentials", jwt),
    "private_key": ("credentials", pem),
    "e_mail": ("personal", e_mail),
    "payment_card": ("personal", card),
    "iban": ("personal", iban),
    "phone": ("personal", phone),
}


def canary(name: str, *cell: object) -> str:
    """Give the canary of a class for one cell of a matrix."""
    return CLASSES[name][1](chance(name, *cell))
