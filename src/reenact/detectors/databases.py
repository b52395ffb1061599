"""Passwords in connection strings, and tokens of hosted databases."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_PLACEHOLDERS = frozenset(
    [
        "password",
        "passwd",
        "pass",
        "pwd",
        "secret",
        "token",
        "none",
        "null",
        "true",
        "false",
        "self",
        "str",
        "string",
        "changeme",
        "redacted",
        "your_password",
    ]
)


def _stands(value: str) -> bool:
    """Tell a password from what a manual writes in its place: `<password>`, `${PASSWORD}`, `****`."""
    masked = not value.strip("*x.-_#•")
    filled_in = value[:1] in "<[{$%" or value[-1:] in ">]}"
    path = value[:1] in "/~" or value[1:3] == ":\\"
    return not masked and not filled_in and not path and value.strip(",.").lower() not in _PLACEHOLDERS


DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="url_password",
        group="credentials",
        anchors=("://",),
        needs="@",
        pattern=r"://[^\s/@:\"'<>`]{0,128}:(?P<secret>[^\s/\"'<>`]{1,256})@(?=[A-Za-z0-9\[_%{$.\-/])",
        check=_stands,
        order=45,
    ),
    Detector(
        name="connection_password",
        group="credentials",
        anchors=("password=", "pwd=", "password =", "pwd ="),
        any_case=True,
        pattern=(
            r"(?i:(?:(?<=[;?&])|(?<=[;?&] )|(?=[a-z ]{3,9}=[^;&\"'\s]{0,128};))(?:password|pwd) ?= ?"
            r"(?P<secret>[^;&\"'\s<>{}\[\]$%()][^;&\"'\s<>{}()\[\]]{2,127})(?=[;&\"'\s]|$))"
        ),
        check=_stands,
        order=64,
    ),
    Detector(
        name="connection_password",
        group="credentials",
        anchors=("host=", "user=", "dbname=", "port="),
        pattern=r"(?:host|user|dbname|port)=[^\s=]{1,128}\s(?:[a-z_]{2,24}=[^\s=]{1,128}\s){0,6}password="
        r"(?P<secret>[^\s\"'<>{}$]{1,128})",
        check=_stands,
        after=1200,
        order=64,
    ),
    credential(
        "connection_password",
        "jdbc:oracle:",
        r"jdbc:oracle:[a-z0-9]{1,8}:[^\s/:@\"']{1,64}/(?P<secret>[^\s@\"']{1,128})@",
        check=_stands,
    ),
    credential("aiven_password", "AVNS_", r"AVNS_[A-Za-z0-9_\-]{16,24}"),
    credential("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=\-]{32,64}"),
    credential("neon_key", "napi_", rf"napi_[a-z0-9]{{48,72}}{ENDS}"),
    credential("neon_password", "npg_", rf"npg_[A-Za-z0-9]{{12,24}}{ENDS}", check=lambda v: any(map(str.isdigit, v))),
    credential("databricks_token", "dapi|dose", rf"(?:dapi|dose)[0-9a-f]{{32}}(?:-[0-9])?{ENDS}"),
    credential("mongodb_atlas_secret", "mdb_sa_sk_", r"mdb_sa_sk_[A-Za-z0-9_\-]{36,48}"),
    credential("xata_key", "xau_", rf"xau_[A-Za-z0-9]{{28,48}}{ENDS}"),
    credential("cockroach_key", "CCDB1_", rf"CCDB1_[A-Za-z0-9]{{22}}_[A-Za-z0-9]{{40}}{ENDS}"),
    credential("tinybird_token", "p.eyJ", r"p\.eyJ[A-Za-z0-9_\-]{40,300}\.[A-Za-z0-9_\-]{30,64}", order=40),
)
