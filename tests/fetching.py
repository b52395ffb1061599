"""One client each: what an agent can see of one reply, through every client library."""

from __future__ import annotations

import asyncio
import http.client
import importlib
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import requests
import urllib3


def patience_s(url: str) -> float:
    """Say how long a client waits: what is slow is to be too slow, anything else never.

    Before a slow body there is a head, which is to be in time on a machine that has much else to do.
    """
    return 3.0 if "slow/body" in url else 0.3 if "slow" in url else 30.0


def described(error: BaseException) -> tuple[str, ...]:
    """Say all that an agent can tell of an error."""
    return (
        f"{type(error).__module__}.{type(error).__qualname__}",
        str(error),
        repr(getattr(error, "reason", "")),
        repr(type(error.__cause__)),
    )


def attempted(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - what the agent sees
        return described(error)


def by_requests(url: str) -> Any:
    reply = requests.get(url, timeout=patience_s(url))
    return (
        reply.status_code,
        reply.reason,
        reply.content,
        reply.text,
        reply.url,
        [each.status_code for each in reply.history],
        reply.headers.get("x-total-count"),
        reply.headers.get("date"),
        reply.encoding,
    )


def by_requests_piecewise(url: str) -> Any:
    with requests.get(url, timeout=patience_s(url), stream=True) as reply:
        return [reply.status_code, *reply.iter_content(1000)]


def by_requests_as_it_comes(url: str) -> Any:
    with requests.get(url, timeout=patience_s(url), stream=True) as reply:
        return [reply.status_code, *reply.iter_content(None)]


def by_urllib3(url: str) -> Any:
    reply = urllib3.PoolManager().request(
        "GET", url, timeout=patience_s(url), retries=urllib3.Retry(2, redirect=2, read=0)
    )
    return reply.status, reply.reason, reply.data, reply.geturl(), reply.headers.get("x-total-count")


def by_urllib(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=patience_s(url)) as reply:
            return reply.status, reply.reason, reply.read(), reply.url, reply.headers["x-total-count"]
    except urllib.error.HTTPError as error:
        try:
            return error.code, error.reason, error.read()
        except http.client.IncompleteRead as cut:
            return error.code, cut.partial, cut.expected


def by_urllib_lines(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=patience_s(url)) as reply:
        return [*reply]


def by_http_client(url: str) -> Any:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=patience_s(url))
    try:
        connection.request("GET", f"/{path}", headers={"accept": "text/plain"})
        reply = connection.getresponse()
        buffer = bytearray(400)
        pieces = [reply.read(7), reply.read1(100), buffer[: reply.readinto(buffer)], reply.readline(), reply.read()]
        return reply.status, [named for named in reply.getheaders() if named[0] != "Set-Cookie"], pieces
    finally:
        connection.close()


def by_httpx(name: str) -> Callable[[str], Any]:
    def get(url: str) -> Any:
        library = importlib.import_module(name)
        with library.Client(verify=False, follow_redirects=True, timeout=patience_s(url)) as client:
            reply = client.get(url)
            return (
                reply.status_code,
                reply.reason_phrase,
                reply.content,
                reply.text,
                str(reply.url),
                [each.status_code for each in reply.history],
                reply.headers.get("x-total-count"),
            )

    return get


def by_httpx_piecewise(name: str) -> Callable[[str], Any]:
    def get(url: str) -> Any:
        library = importlib.import_module(name)
        with library.Client(verify=False, timeout=patience_s(url)) as client, client.stream("GET", url) as reply:
            return [reply.status_code, *reply.iter_bytes(1000)]

    return get


def by_async_httpx(name: str) -> Callable[[str], Any]:
    async def get(url: str) -> Any:
        library = importlib.import_module(name)
        async with library.AsyncClient(verify=False, timeout=patience_s(url)) as client:
            whole = await client.get(url)
            async with client.stream("GET", url) as reply:
                return whole.status_code, whole.content, [piece async for piece in reply.aiter_bytes(1000)]

    return lambda url: asyncio.run(get(url))


def by_aiohttp(url: str) -> Any:
    async def get() -> Any:
        limit = aiohttp.ClientTimeout(total=patience_s(url))
        async with aiohttp.ClientSession(timeout=limit) as session, session.get(url) as reply:
            return (
                reply.status,
                reply.reason,
                await reply.read(),
                str(reply.url),
                [each.status for each in reply.history],
                reply.headers.get("x-total-count"),
            )

    return asyncio.run(get())


def by_aiohttp_piecewise(url: str) -> Any:
    async def get() -> Any:
        limit = aiohttp.ClientTimeout(total=patience_s(url))
        async with aiohttp.ClientSession(timeout=limit) as session, session.get(url) as reply:
            return [piece async for piece in reply.content.iter_chunked(1000)]

    return asyncio.run(get())


CLIENTS: dict[str, Callable[[str], Any]] = {
    "requests": by_requests,
    "requests-pieces": by_requests_piecewise,
    "requests-as-it-comes": by_requests_as_it_comes,
    "urllib3": by_urllib3,
    "urllib": by_urllib,
    "urllib-lines": by_urllib_lines,
    "http.client": by_http_client,
    "httpx": by_httpx("httpx"),
    "httpx2": by_httpx("httpx2"),
    "httpx-pieces": by_httpx_piecewise("httpx"),
    "httpx2-pieces": by_httpx_piecewise("httpx2"),
    "httpx-async": by_async_httpx("httpx"),
    "httpx2-async": by_async_httpx("httpx2"),
    "aiohttp": by_aiohttp,
    "aiohttp-pieces": by_aiohttp_piecewise,
}
