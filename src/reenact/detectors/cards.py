"""Numbers of payment cards: a brand's first digits and length (ISO/IEC 7812), and the Luhn checksum."""

from __future__ import annotations

import re

from reenact.contracts.detector import Detector
from reenact.values.checksums import luhn

_BRANDS = (
    r"4[0-9]{12}(?:[0-9]{3}(?:[0-9]{3})?)?"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}"  # Discover
    r"|(?:30[0-5][0-9]|3095|36[0-9]{2}|3[89][0-9]{2})[0-9]{10,12}"  # Diners Club
    r"|35[0-9]{14}"  # JCB
    r"|62[0-9]{14,17}|81[0-9]{14}"  # UnionPay
    r"|(?:50[0-9]{2}|5[6-8][0-9]{2}|6[037][0-9]{2})[0-9]{8,15}"  # Maestro
    r"|(?:2131|1800)[0-9]{11}|0604[0-9]{8,15}"  # JCB and Maestro of old
    r"|220[0-4][0-9]{12}"  # Mir
    r"|(?:60|65|81|82|508)[0-9]{13,14}"  # RuPay
    r"|9792[0-9]{12}"  # Troy
    r"|(?:5067|4576|4011|6363|5041|6504|6505|6509|6516|6550)[0-9]{12}"  # Elo
)
_BRAND = re.compile(_BRANDS)
_FIRM = re.compile(
    r"4[0-9]{12}|4[0-9]{15}|4[0-9]{18}|5[1-5][0-9]{14}|2[2-7][0-9]{14}|3[47][0-9]{13}|6(?:011|4[4-9]|5|2)[0-9]{12,14}"
    r"|35[0-9]{14}|3[0689][0-9]{12}|(?:2131|1800)[0-9]{11}"
    r"|(?:5018|5020|5038|5612|5893|6304|6759|676[1-3]|0604)[0-9]{8,15}"
)
"""Without separators only what nearly all cards begin with, and their lengths: ids are long, and many."""


def _card(value: str) -> bool:
    digits = "".join(c for c in value if c.isdigit())
    return _BRAND.fullmatch(digits) is not None and luhn(digits) and len(set(digits)) > 2


def _bare(value: str) -> bool:
    return _FIRM.fullmatch(value) is not None and _card(value)


_STARTS = r"(?<![A-Za-z0-9_.\-+/])(?<![0-9A-F]{4} )"
_STOPS = r"(?![A-Za-z0-9_]|[.\-/][0-9A-Za-z]| [0-9A-F]{4}(?![0-9A-Za-z]))"
_GROUPED = r"[0-9]{4}%s[0-9]{4}%s[0-9]{4}%s[0-9]{1,4}(?:%s[0-9]{3})?"
_WORDS = ("card", "visa", "mastercard", "amex", "american express", "maestro", "carte", "karte", "tarjeta", "pan:")

DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="payment_card",
        group="personal",
        run="shapes",
        anchors=(
            *(f"0000{c}0000{c}0000{c}0" for c in " -."),
            *(f"0000{c}000000{c}0000" for c in " -."),
        ),
        pattern=_STARTS
        + "(?:"
        + "|".join(
            [
                *((_GROUPED % ((c,) * 4)) for c in (" ", "-", r"\.")),
                *(rf"[0-9]{{4}}{c}[0-9]{{6}}{c}[0-9]{{4,5}}" for c in (" ", "-", r"\.")),
            ]
        )
        + ")"
        + _STOPS,
        after=40,
        check=_card,
        order=52,
    ),
    Detector(
        name="payment_card",
        group="personal",
        run="shapes",
        anchors=("000000000000",),
        pattern=rf"{_STARTS}[0-9]{{12,19}}{_STOPS}",
        after=24,
        check=_bare,
        order=54,
    ),
    Detector(
        name="payment_card",
        group="personal",
        anchors=_WORDS,
        any_case=True,
        pattern=rf"(?i:{'|'.join(map(re.escape, _WORDS))})[^0-9\r\n]{{0,40}}(?P<secret>[0-9](?:[ .\-]{{0"
        rf",2}}[0-9]){{11,18}})(?![0-9A-Za-z_]|[.\-][0-9])",
        after=128,
        check=_card,
        order=53,
    ),
)
