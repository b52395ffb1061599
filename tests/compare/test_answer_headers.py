"""The headers of a service's answer: what is kept of them, and when two answers have the same ones."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from reenact.boundary.answer_headers import kept_headers
from reenact.compare.answer_headers import header_differences
from reenact.compare.volatile import Side
from reenact.values.difference import ABSENT

BEGAN = (
    datetime(2026, 11, 25, 9, 0, 0, tzinfo=UTC).timestamp(),
    datetime(2026, 11, 28, 7, 30, 0, tzinfo=UTC).timestamp(),
)
A, B = (Side(began_ns=int(began * 1e9), ended_ns=int((began + 2) * 1e9)) for began in BEGAN)


def at(side: int, after_s: float) -> str:
    """Spell a time so long after the beginning of a run."""
    return format_datetime(datetime.fromtimestamp(BEGAN[side] + after_s, UTC), usegmt=True)


def differ(before: list[tuple[str, str]], now: list[tuple[str, str]]) -> list[str]:
    """Name the headers that differ between two answers of an application."""
    left, right = ([(one, other) for one, other in kept_headers(each)] for each in (before, now))
    return [name for name, _, _ in header_differences(left, right, A, B)]


@pytest.mark.parametrize(
    ("name", "before", "now", "field"),
    [
        ("cache-control", "no-store", "public, max-age=60", "cache-control"),
        ("content-type", "application/json", "text/html", "content-type"),
        ("location", "/cart", "/carts", "location"),
        (":reason", "OK", "Fine", ":reason"),
        ("set-cookie", "plan=gold; Secure; Path=/", "plan=gold; Path=/", "set-cookie:plan"),
        ("set-cookie", "plan=gold; Path=/", "plan=silver; Path=/", "cookie"),
        ("set-cookie", f"id={'x' * 40}; HttpOnly", f"id={'x' * 40}", "set-cookie:id"),
        ("set-cookie", f"a=1; Expires={at(0, 60)}", f"a=1; Expires={at(1, 3600)}", "set-cookie:a"),
        ("expires", at(0, 3600), "Thu, 01 Jan 1970 00:00:00 GMT", "expires"),
        ("content-security-policy", "script-src 'nonce-abc='", "script-src 'unsafe-inline'", "content-security-policy"),
        ("x-total", "5", "6", "x-total"),
    ],
)
def test_another_header_is_a_difference(name: str, before: str, now: str, field: str) -> None:
    assert differ([(name, before)], [(name, now)]) == [field]
    assert not differ([(name, before)], [(name, before)])
    lost = [*header_differences([(name, before)], [], A, B)]
    assert lost == [(name, before, ABSENT)]


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("date", at(0, 0), at(1, 0)),
        ("etag", '"a"', '"b"'),
        ("x-request-id", "r-1", "r-2"),
        ("x-process-time", "0.1", "0.2"),
        ("x-csrf-token", "a" * 32, "b" * 32),
        ("x-ratelimit-remaining", "9", "8"),
        ("expires", at(0, 3600), at(1, 3600)),
        ("set-cookie", f"a=1; Expires={at(0, 60)}; Max-Age=60", f"a=1; Expires={at(1, 61)}; Max-Age=60"),
        ("set-cookie", f"session={'a' * 60}; HttpOnly", f"session={'b' * 60}; HttpOnly"),
        ("content-security-policy", "script-src 'nonce-abc='", "script-src 'nonce-xyz='"),
        ("x-served-at", at(0, 1), at(1, 1)),
    ],
)
def test_what_differs_by_nature_is_none(name: str, before: str, now: str) -> None:
    assert not differ([(name, before)], [(name, now)])


def test_a_cookies_long_value_is_not_kept() -> None:
    assert kept_headers([("set-cookie", f"session={'s' * 60}; Secure")]) == [["set-cookie:session", "Secure"]]
    assert kept_headers([("set-cookie", 'theme="dark"')]) == [["set-cookie:theme", ""], ["cookie", "theme=dark"]]
