"""Addresses of machines: IPv4, IPv6 and MAC. Loopback, unspecified, broadcast and netmasks say nothing of anybody.

Private and documentation ranges count: an address inside a house tells of the house, and who plants a test wants it
found.
"""

from __future__ import annotations

import ipaddress
import itertools

from reenact.contracts.detector import Detector

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_GROUP = r"[0-9A-Fa-f]{1,4}"
_PAIR = r"[0-9A-Fa-f]{2}"


def _ip_v4(value: str) -> bool:
    """Tell somebody's address from a net, a mask, a loopback, and the four small numbers of a version."""
    address = ipaddress.IPv4Address(value)
    first = int(address) >> 24
    version = first < 10 and all(int(part) < 100 for part in value.split("."))
    return not (address.is_loopback or first in {0, 255} or value.endswith(".0") or version)


def _ip_v6(value: str) -> bool:
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return False
    grouped = max(map(len, value.split(":"))) > 2
    return grouped and not (
        address.is_loopback or address.is_unspecified or address.is_multicast or value.endswith("::")
    )


def _mac(value: str) -> bool:
    pairs = {value[at : at + 2].lower() for at in range(0, 17, 3)}
    return len(pairs) > 1 and pairs != {"00", "ff"}


_MIDDLES = ["".join(each) for each in itertools.product("0A", repeat=2)]

DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="ip_address",
        group="personal",
        run="shapes",
        anchors=tuple(f"0.{a}.{b}.0" for a in ("0", "00", "000") for b in ("0", "00", "000")),
        pattern=rf"(?<![A-Za-z0-9_.\-+])(?<![vV] )(?<!ersion )(?<!ersion: ){_OCTET}(?:\.{_OCTET}){{3}}"
        rf"(?![0-9A-Za-z_]|\.[0-9]|[\-+][A-Za-z0-9])",
        before=2,
        after=20,
        check=_ip_v4,
        order=58,
    ),
    Detector(
        name="ip_address",
        group="personal",
        run="shapes",
        anchors=(
            *("".join(each) + ":" for each in itertools.product("0", "0A", "0A", "0A")),
            *("AA00:", "AA0A:", "AAA0:"),
        ),
        pattern=(
            r"(?<![A-Za-z0-9_:.])(?=[A-Fa-f]{0,3}[0-9])(?:[23][0-9A-Fa-f]{3}|[Ff][CcDd][0-9A-Fa-f]{2}"
            r"|[Ff][Ee][89ABab][0-9A-Fa-f])"
            rf"(?::{_GROUP}){{0,6}}(?:::(?:{_GROUP}(?::{_GROUP}){{0,5}})?|:{_GROUP})(?![0-9A-Za-z_:]|\.[0-9])"
        ),
        after=64,
        check=_ip_v6,
        order=58,
    ),
    Detector(
        name="ip_address",
        group="personal",
        run="shapes",
        anchors=tuple(f":{''.join(each)}:" for each in itertools.product("0A", repeat=4) if "0" in each),
        pattern=rf"(?<![A-Za-z0-9_:.])(?=(?:{_GROUP}:){{1,6}}(?=[A-Fa-f]{{0,3}}[0-9])[0-9A-Fa-f]{{4}}:)"
        rf"(?:{_GROUP}:){{7}}{_GROUP}(?![0-9A-Za-z_:]|\.[0-9])",
        before=36,
        after=64,
        check=_ip_v6,
        order=59,
    ),
    Detector(
        name="mac_address",
        group="personal",
        run="shapes",
        anchors=tuple(f"{c}{a}{c}{b}{c}" for c in ":-" for a in _MIDDLES for b in _MIDDLES if "0" in a + b),
        pattern=rf"(?<![0-9A-Za-z:\-])(?={_PAIR}[:\-](?:{_PAIR}[:\-]){{0,3}}(?:[0-9][0-9A-Fa-f]"
        rf"|[A-Fa-f][0-9])[:\-])(?:{_PAIR}(?::{_PAIR}){{5}}|{_PAIR}(?:-{_PAIR}){{5}})(?![0-9A-Za-z]"
        rf"|[:\-][0-9A-Fa-f])",
        before=8,
        after=24,
        check=_mac,
        order=57,
    ),
)
