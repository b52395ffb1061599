from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.values import checksums

# numbers that the standards, the card brands and the states publish for tests

CARDS = [
    "4111 1111 1111 1111",
    "5555555555554444",
    "378282246310005",
    "6011000990139424",
    "30569309025904",
    "79927398713",
]
IBANS = [
    "GB82 WEST 1234 5698 7654 32",
    "DE89370400440532013000",
    "FR1420041010050500013M02606",
    "MT84MALT011000012345MTLCAST001S",
]
HOLDS = [
    *((checksums.luhn, number) for number in CARDS),
    *((checksums.mod_97, iban) for iban in IBANS),
    *((checksums.verhoeff, number) for number in ("2363", "234123412346", "1428570")),
    *((checksums.mod_11_10, number) for number in ("86095742719", "33392005961")),
    (checksums.ean_13, "756.9217.0769.85"),
    (checksums.bech_32, "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
    (checksums.bech_32, "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"),
    (checksums.bech_32, "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"),
]


@pytest.mark.parametrize(("check", "text"), HOLDS)
def test_published_numbers_hold_and_a_changed_digit_is_noticed(check: object, text: str) -> None:
    assert check(text)  # type: ignore[operator]
    places = [at for at, c in enumerate(text) if c.isdigit()]
    for at in places[3:]:
        changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        assert not check(changed)  # type: ignore[operator]


@pytest.mark.parametrize(
    "check",
    [checksums.luhn, checksums.mod_97, checksums.verhoeff, checksums.mod_11_10, checksums.ean_13, checksums.bech_32],
)
@given(text=st.text())
def test_no_text_is_too_strange(check: object, text: str) -> None:
    assert check(text) in {True, False}  # type: ignore[operator]


@given(st.text("0123456789", min_size=2, max_size=18), st.integers(0, 16))
def test_two_neighbours_that_change_places_are_noticed(digits: str, at: int) -> None:
    """By Verhoeff's always, by Luhn's save for 09 and 90."""
    if at + 1 >= len(digits) or digits[at] == digits[at + 1]:
        return
    turned = digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :]
    assert not (checksums.verhoeff(digits) and checksums.verhoeff(turned))
    if {digits[at], digits[at + 1]} != {"0", "9"}:
        assert not (checksums.luhn(digits) and checksums.luhn(turned))


def test_base_58_counts_as_bitcoin_does() -> None:
    assert checksums.base_58("2NEpo7TZRRrLZSi2U") == b"Hello World!"
    assert checksums.base_58("0OIl") is None
