"""The headers of a request to an application: what of them is kept to be delivered again.

All are kept, those of connections and of caches too, since an application may read each. Left out is what may hold a
secret by its name, but for the credentials that redaction knows by theirs and what the settings name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from reenact.values.json import Json

LENGTH: Final = "content-length"
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "idempotency-key", "x-api-key"})
"""Redaction leaves a token in place of a secret in these: that one came is kept, what it was is not."""
_SECRET: Final = re.compile(
    r"auth|token|key|secret|session|signature|hmac|jwt|jws|assertion|csrf|xsrf|nonce|passw|passcode|passphrase|cookie"
    r"|credential|bearer|dpop|saml|oidc|private|ticket|(?:^|[-_])(?:sid|pin|otp|totp|pwd|pass|sig|cert)(?:$|[-_])"
)
_SETTINGS: Final = ("REENACT_KEEP_HEADERS", "REENACT_USER_HEADER", "REENACT_SESSION_HEADER")


def named() -> frozenset[str]:
    """Give the names of headers that the settings have kept."""
    words = ",".join(os.environ.get(variable, "") for variable in _SETTINGS).split(",")
    return frozenset(name.strip().lower() for name in words if name.strip())


def kept_headers(headers: Iterable[tuple[str, str]]) -> tuple[dict[str, Json], list[Json]]:
    """Pick the headers to keep, by lower-case name, and name those that are left out.

    The length is among them in any case, as an empty array where the request told none.
    """
    wanted = _CREDENTIALS | named()
    values_by_name: dict[str, list[Json]] = {}
    left_out: set[str] = set()
    for name, value in headers:
        if name in wanted or _SECRET.search(name) is None:
            values_by_name.setdefault(name, []).append(value)
        else:
            left_out.add(name)
    values_by_name.setdefault(LENGTH, [])
    return {name: [*values] for name, values in values_by_name.items()}, [*sorted(left_out)]
