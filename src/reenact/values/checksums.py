"""Checksums of published numbers: cards, bank accounts, people's ids. Each takes text and tells whether it holds.

The algorithms are those of ISO/IEC 7812 (Luhn), ISO 13616 and ISO/IEC 7064 (mod 97, mod 11,10), Verhoeff's of 1969, and
the weighted sums that the states publish for the ids of their people.
"""

from __future__ import annotations

from collections.abc import Sequence

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)

_VERHOEFF_PRODUCT = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 2, 3, 4, 0, 6, 7, 8, 9, 5),
    (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
    (3, 4, 0, 1, 2, 8, 9, 5, 6, 7),
    (4, 0, 1, 2, 3, 9, 5, 6, 7, 8),
    (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
    (6, 5, 9, 8, 7, 1, 0, 4, 3, 2),
    (7, 6, 5, 9, 8, 2, 1, 0, 4, 3),
    (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
    (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
)
"""The multiplication of the dihedral group of ten elements."""
_VERHOEFF_TURN = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def digits_of(text: str) -> list[int]:
    """Give the ASCII digits of a text in their order; what stands between is left out."""
    return [ord(c) - 48 for c in text if "0" <= c <= "9"]


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """Sum the products of digits and weights, as many as there are of both."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def luhn(text: str) -> bool:
    """Tell whether the digits of a text hold the Luhn checksum, and are not all equal."""
    digits = digits_of(text)
    if len(digits) < 2 or len(set(digits)) == 1:
        return False
    total = sum(digits[-1::-2]) + sum(_DOUBLED[digit] for digit in digits[-2::-2])
    return total % 10 == 0


def mod_97(text: str) -> bool:
    """Tell whether a text (IBAN, letters in any case, separators left out) leaves 1 modulo 97, as ISO 13616 asks."""
    compact = "".join(c for c in text.upper() if c.isascii() and c.isalnum())
    if len(compact) < 5:
        return False
    turned = compact[4:] + compact[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1


def verhoeff(text: str) -> bool:
    """Tell whether the digits of a text hold Verhoeff's checksum."""
    check = 0
    for place, digit in enumerate(reversed(digits_of(text))):
        for _ in range(place % 8):
            digit = _VERHOEFF_TURN[digit]  # noqa: PLW2901 - the same digit, turned
        check = _VERHOEFF_PRODUCT[check][digit]
    return check == 0 and bool(digits_of(text))


def mod_11_10(text: str) -> bool:
    """Tell whether the digits of a text hold ISO/IEC 7064 mod 11,10: German tax ids, Croatian OIB."""
    digits = digits_of(text)
    if len(digits) < 2:
        return False
    product = 10
    for digit in digits[:-1]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == digits[-1]


def ean_13(text: str) -> bool:
    """Tell whether 13 digits hold the checksum of EAN: Swiss AHV numbers."""
    digits = digits_of(text)
    return len(digits) == 13 and weighted(digits, (1, 3) * 7) % 10 == 0


def mod_11_digit(digits: Sequence[int], weights: Sequence[int]) -> int:
    """Give the rest modulo 11 of a weighted sum as most states write it: 0 where it is below 2, else 11 minus it."""
    rest = weighted(digits, weights) % 11
    return 0 if rest < 2 else 11 - rest


_BASE_58 = {c: value for value, c in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}
_BECH_32 = {c: value for value, c in enumerate("qpzry9x8gf2tvdw0s3jn54khce6mua7l")}


def base_58(text: str) -> bytes | None:
    """Decode base 58 as Bitcoin writes it; None for a text that is none."""
    value = 0
    for c in text:
        if (digit := _BASE_58.get(c)) is None:
            return None
        value = value * 58 + digit
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + value.to_bytes((value.bit_length() + 7) // 8, "big")


def bech_32(text: str) -> bool:
    """Tell whether a text holds the checksum of BIP 173 (bech32) or BIP 350 (bech32m)."""
    lowered = text.lower()
    head, one, data = lowered.rpartition("1")
    if not one or not head or len(data) < 6 or any(c not in _BECH_32 for c in data):
        return False
    values = [ord(c) >> 5 for c in head] + [0] + [ord(c) & 31 for c in head] + [_BECH_32[c] for c in data]
    rest = 1
    for value in values:
        top = rest >> 25
        rest = (rest & 0x1FFFFFF) << 5 ^ value
        for bit, term in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            rest ^= term if top >> bit & 1 else 0
    return rest in {1, 0x2BC830A3}
