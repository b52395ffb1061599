"""Bank accounts: IBAN by its country's length and its checksum (ISO 13616), others after words that announce them."""

from __future__ import annotations

import re
from collections.abc import Callable

from reenact.contracts.detector import Detector
from reenact.values.checksums import digits_of, mod_97, weighted

_STRUCTURES = {
    # the account's part as the registry of ISO 13616 gives it: 0 digits, A letters, c either
    "AD": "00000000cccccccccccc", "AE": "0000000000000000000", "AL": "00000000cccccccccccccccc",
    "AT": "0000000000000000", "AZ": "AAAAcccccccccccccccccccc", "BA": "0000000000000000", "BE": "000000000000",
    "BG": "AAAA000000cccccccc", "BH": "AAAAcccccccccccccc", "BI": "00000000000000000000000",
    "BR": "00000000000000000000000Ac", "BY": "AAAA0000cccccccccccccccc", "CH": "00000cccccccccccc",
    "CR": "000000000000000000", "CY": "00000000cccccccccccccccc", "CZ": "00000000000000000000",
    "DE": "000000000000000000", "DJ": "00000000000000000000000", "DK": "00000000000000",
    "DO": "AAAA00000000000000000000", "EE": "0000000000000000", "EG": "0000000000000000000000000",
    "ES": "00000000000000000000", "FI": "00000000000000", "FK": "AA000000000000", "FO": "00000000000000",
    "FR": "0000000000ccccccccccc00", "GB": "AAAA00000000000000", "GE": "AA0000000000000000",
    "GI": "AAAAccccccccccccccc", "GL": "00000000000000", "GR": "0000000cccccccccccccccc",
    "GT": "AAAAcccccccccccccccccccc", "HN": "AAAA00000000000000000000", "HR": "00000000000000000",
    "HU": "000000000000000000000000", "IE": "AAAA00000000000000", "IL": "0000000000000000000",
    "IQ": "AAAA000000000000000", "IS": "0000000000000000000000", "IT": "A0000000000cccccccccccc",
    "JO": "AAAA0000cccccccccccccccccc", "KW": "AAAAcccccccccccccccccccccc", "KZ": "000ccccccccccccc",
    "LB": "0000cccccccccccccccccccc", "LC": "AAAAcccccccccccccccccccccccc", "LI": "00000cccccccccccc",
    "LT": "0000000000000000", "LU": "000000cccccccccc", "LV": "AAAAccccccccccccc", "LY": "000000000000000000000",
    "MC": "0000000000ccccccccccc00", "MD": "AAcccccccccccccccccc", "ME": "000000000000000000",
    "MK": "000000ccccccc00", "MN": "0000000000000000", "MR": "00000000000000000000000",
    "MT": "AAAA00000cccccccccccccccccc", "MU": "AAAA0000000000000000000AAA", "NI": "AAAA00000000000000000000",
    "NL": "AAAA0000000000", "NO": "00000000000", "OM": "000000ccccccccccccc", "PK": "AAAAcccccccccccccccc",
    "PL": "000000000000000000000000", "PS": "AAAAccccccccccccccccccccc", "PT": "000000000000000000000",
    "QA": "AAAAccccccccccccccccccccc", "RO": "AAAAcccccccccccccccc", "RS": "000000000000000000",
    "RU": "00000000000000ccccccccccccccc", "SA": "000000cccccccccccccc", "SC": "AAAA00000000000000000000AAA",
    "SD": "00000000000000", "SE": "00000000000000000000", "SI": "000000000000000", "SK": "00000000000000000000",
    "SM": "A0000000000cccccccccccc", "SO": "0000000000000000000", "ST": "000000000000000000000",
    "SV": "AAAA00000000000000000000", "TL": "0000000000000000000", "TN": "00000000000000000000",
    "TR": "000000cccccccccccccccc", "UA": "000000ccccccccccccccccccc", "VA": "000000000000000000",
    "VG": "AAAA0000000000000000", "XK": "0000000000000000",
}  # fmt: skip
_EITHER = "[A-Za-z0-9]"
_SIGNS = {"0": "[0-9]", "A": "[A-Za-z]", "c": _EITHER}


def _spelled(country: str, structure: str) -> str:
    """Give the pattern of one country's accounts; one separator may stand before any but the first group of four."""
    first = "".join(_SIGNS[sign] for sign in structure[:4])
    parts = [rf"(?:[ \-]?{_SIGNS[signs[0]]}){{{len(signs)}}}" for signs in re.findall(r"0+|A+|c+", structure[4:])]
    return rf"{country}[0-9]{{2}}[ \-]?{first}" + "".join(parts)


def _beginnings() -> list[str]:
    """Give the shapes with which accounts begin, together and in groups of four."""
    shapes: dict[str, None] = {}
    for structure in _STRUCTURES.values():
        sure = re.sub("c.*", "", structure)[:4]
        whole = f"AA00{sure}"
        for sign in ("0", "A") if len(sure) < 4 else ("",):  # where all else is unsure, both must be looked for
            together = whole + sign
            shapes[together] = None
            for between in " -":
                shapes[between.join(together[at : at + 4] for at in range(0, len(together), 4))] = None
    return [shape for shape in shapes if not any(other != shape and shape.startswith(other) for other in shapes)]


def _routing(value: str) -> bool:
    """Tell a routing number of the American Bankers Association by its checksum."""
    digits = digits_of(value)
    return len(digits) == 9 and len(set(digits)) > 1 and weighted(digits, (3, 7, 1) * 3) % 10 == 0


def _account(value: str) -> bool:
    return 6 <= len(digits_of(value)) <= 18 and len(set(value)) > 2


def _worded(name: str, words: str, pattern: str, check: Callable[[str], bool]) -> Detector:
    anchors = tuple(words.split("|"))
    return Detector(
        name=name,
        group="personal",
        anchors=anchors,
        any_case=True,
        pattern=rf"(?i:(?<![a-z])(?:{'|'.join(map(re.escape, anchors))})[^0-9\r\n]{{0,24}}(?P<secret>{pattern})"
        rf"(?![0-9A-Za-z]|[.\-][0-9]))",
        after=96,
        check=check,
        order=60,
    )


DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="iban",
        group="personal",
        run="shapes",
        anchors=tuple(_beginnings()),
        pattern=rf"(?<![A-Za-z0-9])(?:{'|'.join(_spelled(*each) for each in _STRUCTURES.items())})(?![A-Za-z0-9])",
        after=72,
        check=mod_97,
        order=48,
    ),
    _worded(
        "bank_account",
        "routing number|routing_number|routing no|routing #|routing:|aba number|aba routing",
        "[0-9]{9}",
        _routing,
    ),
    _worded(
        "bank_account",
        "account number|account_number|accountnumber|account no|account #|acct no|acct #|acct:|kontonummer"
        "|sort code|sort_code",
        r"[0-9](?:[ \-]?[0-9]){5,17}",
        _account,
    ),
)
