"""What the names of fields say: that a value is secret, or must never be rewritten; and how tokens are told."""

from __future__ import annotations

import re
from typing import Final

TOKEN_MARK: Final = "REDACTED_"  # noqa: S105 - the mark of a token, not a token
"""How every token begins. Nothing that begins so is ever replaced, which makes redaction idempotent."""
TOKEN: Final = re.compile(r"(?i:REDACTED_)[A-Za-z0-9_]{1,64}(?:(?i:(?:@|%40)redacted\.invalid))?")
"""A token or a mask, in whatever case a program has spelled it since."""

SENSITIVE_KEYS: Final = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "api_key",
        "apikey",
        "openai_api_key",
        "password",
        "passwd",
        "secret",
        "client_secret",
        "clientsecret",
        "secret_key",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "bearer_token",
        "private_key",
        "cookie",
        "set-cookie",
        "aws_secret_access_key",
        "x-goog-api-key",
        "authorization_token",
        "connection_string",
        "accesstoken",
        "authtoken",
        "bearertoken",
        "connectionstring",
        "idtoken",
        "privatekey",
        "refreshtoken",
        "secretkey",
    }
)
"""Keys, lower case, whose values are secrets whatever they look like."""

OPAQUE_KEYS: Final = frozenset(
    {
        "encrypted_content",
        "signature",
        "obfuscation",
        "reasoning_signature",
        "b64_json",
        "thought_signature",
        "thoughtsignature",
        "encrypted_index",
        "encrypted_stdout",
    }
)
"""Fields that are signed, encrypted or binary: never rewritten, else the provider refuses them or media breaks."""

BYTES_KEYS: Final = frozenset({"b64", "$bytes"})
"""Fields that hold bytes in base64, as a trace spells what is no text."""

COUNTS: Final = re.compile(
    r"(?i:(?:^|_|\.)(?:ids?|at|time|timestamp|created|updated|ts|tokens|seed|index|count|size)$)|[a-z](?:Id|At|Time|Count)$"
)
"""Keys of numbers that identify or count, and are no one's."""


def is_sensitive(key: str) -> bool:
    """Tell whether an attribute's key, or the last part of it, says that the value is a secret."""
    lowered = key.lower()
    return lowered in SENSITIVE_KEYS or lowered.rpartition(".")[2] in SENSITIVE_KEYS
