from __future__ import annotations

import pytest

from reenact.boundary.request_headers import kept_headers


@pytest.mark.parametrize(
    "name",
    [
        *("x-tenant", "x-tier", "accept-encoding", "connection", "keep-alive", "te", "transfer-encoding", "upgrade"),
        *("traceparent", "sec-ch-ua", "cf-ray", "x-forwarded-for", "authorization", "cookie", "x-api-key"),
        *("idempotency-key", "x-inside", "x-shopping"),
    ],
)
def test_a_header_is_kept_that_holds_no_secret_by_its_name_or_that_redaction_knows(name: str) -> None:
    headers, left_out = kept_headers([(name, "a"), (name, "b")])
    assert headers == {name: ["a", "b"], "content-length": []}
    assert left_out == []


@pytest.mark.parametrize(
    "name",
    [
        *("proxy-authorization", "x-auth-request-user", "x-session-id", "x-csrftoken", "x-xsrf", "x-user-password"),
        *("x-client-secret", "x-hub-signature-256", "x-shopify-hmac-sha256", "cf-access-jwt-assertion", "dpop"),
        *("x-amzn-oidc-data", "x-goog-api-key", "x-credential", "x-sid", "x-pin", "x-forwarded-client-cert"),
    ],
)
def test_a_header_that_may_hold_a_secret_by_its_name_is_named_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_headers([(name, "a"), ("content-length", "2")]) == ({"content-length": ["2"]}, [name])
    monkeypatch.setenv("REENACT_KEEP_HEADERS", f"X-Other, {name.title()}")
    assert kept_headers([(name, "a")]) == ({name: ["a"], "content-length": []}, [])
