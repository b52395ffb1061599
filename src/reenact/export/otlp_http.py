"""Sends spans over OTLP/HTTP with protobuf bodies, and judges every answer (`replies.py`)."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import os
import socket
import ssl
import threading
import urllib.request
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from reenact.errors import InputError
from reenact.export.credential_removal import hushed, secrets_of
from reenact.export.limits import BATCH_BYTES
from reenact.export.outcome import Outcome, Rejected, Retry, over
from reenact.export.replies import HttpAnswer, judged, shortest
from reenact.formats.otlp_proto import to_request
from reenact.values import locks
from reenact.values.span import SpanRecord

_LARGEST_ANSWER = 4 << 20
"""OTLP 1.11 holds receivers to answers of at most 4 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """Where to send, and how."""

    url: str = field(repr=False)
    """The whole URL, path included, `http` or `https`. A user and password in it are sent as basic authentication."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout_s: float = 10.0
    """For one request from connecting to the last byte of the answer."""
    gzip: bool = True
    certificate: str | None = None
    """A file of trusted certificate authorities (PEM) instead of the system's."""
    client_certificate: str | None = None
    client_key: str | None = None
    max_bytes: int = BATCH_BYTES
    """A request of several spans with more than this before compression is not tried."""


class OtlpHttpSender:
    """A sender over HTTP/1.1 with one connection kept open. Proxies are taken from the environment."""

    def __init__(self, target: HttpTarget) -> None:
        self._target = target
        self._url = _checked(target.url)
        self._name = self._url._replace(netloc=self._url.netloc.rpartition("@")[2], query="", fragment="").geturl()
        self._tls = _tls(target, self._name) if self._url.scheme == "https" else None
        self._secrets = secrets_of(target.headers, self._url)
        self._lock = locks.lock()
        self._connection: http.client.HTTPConnection | None = None
        self._path = self._url._replace(scheme="", netloc="", fragment="").geturl() or "/"
        self._owner = 0

    @property
    def name(self) -> str:
        """The URL, without credentials, query and fragment."""
        return self._name

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        """Make one request and judge the answer; see `sender.Sender`."""
        body = to_request(spans).SerializeToString()
        return over(len(body), len(spans), self._target.max_bytes) or self.post(body, len(spans), within_s)

    @property
    def most_bytes(self) -> int:
        """What a request of several may have before compression."""
        return self._target.max_bytes

    def beside(self, signal: str) -> OtlpHttpSender | None:
        """Give a sender to the same backend for another signal, such as `logs`; None where the URL tells no way."""
        path = self._url.path.rstrip("/")
        if not path.endswith("/v1/traces"):
            return None
        url = self._url._replace(path=f"{path.removesuffix('traces')}{signal}").geturl()
        return OtlpHttpSender(replace(self._target, url=url))

    def post(self, body: bytes, count: int, within_s: float | None = None) -> Outcome:
        """Send one request of `count` spans, or of any other signal's records, as its protobuf; judge the answer."""
        return hushed(self._posted(body, count, within_s), self._secrets)

    def _posted(self, body: bytes, count: int, within_s: float | None) -> Outcome:
        seconds = shortest(self._target.timeout_s, within_s)
        if not self._lock.acquire(timeout=seconds):
            return Retry(reason=f"the request before this one is still waiting after {seconds:.3g} s")
        try:
            answer = self._exchange(gzip.compress(body, 1, mtime=0) if self._target.gzip else body, seconds)
        except TimeoutError:
            return Retry(reason=f"no answer within {seconds:.3g} s")
        except (OSError, http.client.HTTPException) as failure:
            return Retry(reason=f"the connection failed: {type(failure).__name__}: {failure}")
        except Exception as failure:  # such as a header that cannot be sent
            return Rejected(count=count, reason=f"the request cannot be made: {type(failure).__name__}: {failure}")
        finally:
            self._lock.release()
        return judged(answer, count)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            self._drop()

    def _exchange(self, body: bytes, seconds: float) -> HttpAnswer:
        if self._owner != os.getpid():  # a forked child must not write into its parent's connection
            self._connection, self._owner = None, os.getpid()
        reused = self._connection is not None
        try:
            return self._ask(body, seconds)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            if not reused:
                raise
            return self._ask(body, seconds)  # the server closed the idle connection; a new one may do

    def _ask(self, body: bytes, seconds: float) -> HttpAnswer:
        connection = self._connection = self._connection or self._connected(seconds)
        connection.timeout = seconds
        expired = threading.Event()
        try:
            if connection.sock is None:
                connection.connect()
            cast("socket.socket", connection.sock).settimeout(seconds)
            with _watchdog(connection, seconds, expired):
                # A receiver that has seen enough answers (413) and closes while the body is on its way.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("POST", self._path, body, self._headers())
                response = connection.getresponse()
                data = response.read(_LARGEST_ANSWER + 1)
            if response.will_close or len(data) > _LARGEST_ANSWER:
                self._drop()
        except BaseException:
            self._drop()
            if expired.is_set():
                raise TimeoutError from None
            raise
        headers = {name.lower(): value for name, value in response.getheaders()}
        return HttpAnswer(status=response.status, headers=headers, body=data[:_LARGEST_ANSWER])

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/x-protobuf", "User-Agent": "reenact OTLP-exporter"}
        if self._target.gzip:
            headers["Content-Encoding"] = "gzip"
        headers |= _basic(self._url)
        return headers | dict(self._target.headers)

    def _connected(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        proxy = _proxy(self._url)
        near, near_port = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        if self._tls is not None:
            connection = http.client.HTTPSConnection(near, near_port, timeout=seconds, context=self._tls)
            if proxy:
                connection.set_tunnel(host, port or 443, _basic(proxy, "Proxy-Authorization"))
            return connection
        if proxy:
            self._path = self._url._replace(netloc=self._url.netloc.rpartition("@")[2], fragment="").geturl()
        return http.client.HTTPConnection(near, near_port, timeout=seconds)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()


@contextlib.contextmanager
def _watchdog(connection: http.client.HTTPConnection, seconds: float, expired: threading.Event) -> Generator[None]:
    """End the exchange after `seconds` in all: a socket's own time limit starts anew with every byte."""

    def bite() -> None:
        expired.set()
        with contextlib.suppress(OSError, AttributeError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, bite)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # the interpreter is ending and starts no more threads
        yield
        return
    try:
        yield
    finally:
        timer.cancel()


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid, parts = False, urlsplit("")
    if not is_valid:
        hint = "Write it as http://host:4318/v1/traces or https://…"
        raise InputError("the OTLP endpoint", "this is not an http or https URL", hint=hint)
    return parts


def _tls(target: HttpTarget, name: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=target.certificate)
        if target.client_certificate:
            context.load_cert_chain(target.client_certificate, target.client_key)
    except (OSError, ValueError) as failure:
        hint = "Check OTEL_EXPORTER_OTLP_CERTIFICATE, …_CLIENT_CERTIFICATE and …_CLIENT_KEY."
        raise InputError(name, f"a certificate file cannot be used ({failure})", hint=hint) from None
    return context


def _basic(url: SplitResult, header: str = "Authorization") -> dict[str, str]:
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {header: "Basic " + base64.b64encode(pair.encode()).decode()}


def _proxy(url: SplitResult) -> SplitResult | None:
    host = url.hostname or ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if not proxy or urllib.request.proxy_bypass(host) or host in ("localhost", "127.0.0.1", "::1"):
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")
