"""Addresses of crypto wallets that hold a checksum (bech32, BIP 173), and of Ethereum after a word for a wallet."""

from __future__ import annotations

from reenact.contracts.detector import Detector
from reenact.values.checksums import bech_32

DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="crypto_wallet",
        group="personal",
        anchors=("bc1", "ltc1", "addr1"),
        pattern=r"(?<![A-Za-z0-9])(?:bc1|ltc1|addr1)[ac-hj-np-z02-9]{25,100}(?![A-Za-z0-9])",
        check=bech_32,
    ),
    Detector(
        name="crypto_wallet",
        group="personal",
        anchors=("wallet", "eth address", "ethereum address"),
        any_case=True,
        pattern=r"(?i:(?:wallet|eth address|ethereum address)[^\r\n]{0,32}?(?P<secret>0x[0-9a-f]{40})(?![0-9a-z]))",
    ),
)
