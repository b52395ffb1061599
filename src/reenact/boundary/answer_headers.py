"""The headers that an application answers with, as its outcome: what of them is kept to be compared.

All but a closed list are kept, as spelled, with lower-case names. Left out is what servers, gateways and tracers add or
draw anew (`DRAWN`), what the body says as well (its length, its tag), and what holds a secret by its name. Of a cookie
(RFC 6265, section 4.1) its name and attributes are kept under `set-cookie:NAME`. Its value stands under `cookie` where
it is short, for redaction to decide on; longer ones are ids of sessions and signed texts, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

DRAWN: Final = frozenset(
    {
        *("age", "alt-svc", "connection", "content-length", "date", "etag", "keep-alive", "last-modified", "nel"),
        *("server", "server-timing", "trailer", "transfer-encoding", "upgrade", "via", "report-to"),
        *("traceparent", "tracestate", "traceresponse", "x-cloud-trace-context", "x-process-time", "x-response-time"),
        *("x-runtime", "x-served-by", "x-timer", "x-cache", "x-cache-hits"),
    }
)
"""Headers of connections, caches, tracing and timing."""
_DRAWN: Final = re.compile(
    r"(?:.*[-_])?(?:request|trace|correlation|span|transaction|amz|ray)[-_]?(?:id|ref)|cf-.*|x-b3-.*|x-amzn?-.*"
    r"|x-envoy-.*|x-datadog-.*|(?:x-)?ratelimit.*"
)
"""Names of ids that are drawn for one answer, of gateways, and of limits that count all requests of a client."""
_SECRET: Final = re.compile(
    r".*(?:token|secret|session|signature|csrf|xsrf|nonce|password|credential|api-?key).*"
    r"|authorization|proxy-authorization|authentication-info"
)
_SHORT: Final = 16
"""Characters of a cookie's value that is kept."""


def kept_headers(headers: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Pick what is kept of the headers of an answer, in their order."""
    pairs: list[list[str]] = []
    for name, value in headers:
        if name == "set-cookie":
            pairs += _cookie(value)
        elif not (name in DRAWN or _DRAWN.fullmatch(name) or _SECRET.fullmatch(name)):
            pairs.append([name, value])
    return pairs


def _cookie(spelled: str) -> list[list[str]]:
    pair, _, attributes = spelled.partition(";")
    name, _, value = pair.strip().partition("=")
    value = value.strip().strip('"')
    header = [f"set-cookie:{name}", "; ".join(part.strip() for part in attributes.split(";") if part.strip())]
    return [header, ["cookie", f"{name}={value}"]] if len(value) < _SHORT else [header]
