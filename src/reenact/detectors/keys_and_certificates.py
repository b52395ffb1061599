"""Private keys as files hold them, and signed tokens (JWT)."""

from __future__ import annotations

import base64
import binascii

from reenact.contracts.detector import ENDS, Detector, credential

_LINE_ENDS = r"(?:\s|\\[rn]){1,8}"


def _private(value: str) -> bool:
    """Tell the base 64 of a private key from that of a certificate or of a public key."""
    try:
        return b"PRIVATE" in base64.b64decode(value[:80])
    except binascii.Error:
        return False


DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="private_key",
        group="credentials",
        anchors=("-----BEGIN",),
        pattern=(
            r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){1,16384}-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?(?:-----)?"
            r"|(?:(?:\s|\\[rn]){1,4}[A-Za-z0-9+/=]{20,80}){1,190})"
        ),
        after=16800,
        order=10,
    ),
    Detector(
        name="private_key",
        group="credentials",
        anchors=("---- BEGIN SSH2 ENCRYPTED",),
        pattern=r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[^-]|-(?!---)){1,8192}---- END SSH2",
        after=8400,
        order=10,
    ),
    credential(
        "private_key",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,16384}={0,2}",
        after=16500,
        check=_private,
        order=20,
    ),
    credential(
        "private_key",
        "Private-Lines: ",
        rf"Private-Lines: [0-9]{{1,3}}{_LINE_ENDS}(?P<secret>[A-Za-z0-9+/=]{{16,80}}"
        rf"(?:{_LINE_ENDS}[A-Za-z0-9+/=]{{1,80}}(?![A-Za-z0-9\-])){{0,100}})",
        after=10000,
        order=10,
    ),
    credential("age_key", "AGE-SECRET-KEY-1", rf"AGE-SECRET-KEY-1[A-Z0-9]{{58}}{ENDS}"),
    credential(
        "wireguard_key",
        "PrivateKey|PresharedKey",
        r"(?:PrivateKey|PresharedKey)\s{0,3}[=:]\s{0,3}(?P<secret>[A-Za-z0-9+/]{43}=)",
    ),
    credential(
        "private_key",
        "client-key-data:",
        r"client-key-data:\s{1,4}(?P<secret>[A-Za-z0-9+/=]{40,16384})",
        after=16500,
        order=15,
    ),
    credential(
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_\-]{8,2048}\.[A-Za-z0-9_\-]{0,8192}\.[A-Za-z0-9_\-]{6,1024}"
        r"(?:\.[A-Za-z0-9_\-]{6,8192}\.[A-Za-z0-9_\-]{6,256})?",
        after=20000,
    ),
)
