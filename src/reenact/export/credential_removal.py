"""What a backend says of a request may repeat the credentials that it was made with; reports and the outbox keep none.

In: an outcome and the secrets of the sender. Out: the outcome without them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import SplitResult, parse_qsl, unquote

from reenact.export.outcome import Delivered, Outcome

_SHORTEST = 6
"""A shorter value would be cut out of words that only look like it."""
_STANDS_FOR = "[credentials]"


def secrets_of(headers: Iterable[tuple[str, str]], url: SplitResult | None = None) -> tuple[str, ...]:
    """Give what must not be repeated: values of headers, with and without their scheme; user, password and query."""
    secrets: set[str] = set()
    for _, value in headers:
        secrets |= {value, value.rpartition(" ")[2]}
    if url is not None:
        user = url.netloc.rpartition("@")[0]
        parts = {user, user.rpartition(":")[2]}  # a user alone may be any word
        secrets |= parts | {unquote(part) for part in parts} | {value for _, value in parse_qsl(url.query)}
        secrets.add(base64.b64encode(unquote(user).encode()).decode())
    return tuple(sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True))


def hushed(outcome: Outcome, secrets: tuple[str, ...]) -> Outcome:
    """Take the secrets out of what an outcome says."""
    if isinstance(outcome, Delivered):
        note = _without(outcome.note, secrets)
        return outcome if note == outcome.note else replace(outcome, note=note)
    reason = _without(outcome.reason, secrets)
    return outcome if reason == outcome.reason else replace(outcome, reason=reason)


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, _STANDS_FOR)
        if text.endswith("…"):  # what was said is cut, perhaps in the middle of it
            begun = (number for number in range(len(secret), _SHORTEST - 1, -1) if text[:-1].endswith(secret[:number]))
            if number := next(begun, 0):
                text = f"{text[: -1 - number]}{_STANDS_FOR}…"
    return text
