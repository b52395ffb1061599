"""Finds out from the environment where spans are to go.

    OTEL_SDK_DISABLED=true                        nowhere
    OTEL_TRACES_EXPORTER=none                     not to the OTEL_EXPORTER_OTLP_* endpoint
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT            to this URL, as it is
    OTEL_EXPORTER_OTLP_ENDPOINT                   to this URL, with /v1/traces added for HTTP
    OTEL_EXPORTER_OTLP_[TRACES_]PROTOCOL          http/protobuf (unless set) or grpc
    OTEL_EXPORTER_OTLP_[TRACES_]HEADERS           key=value,… with percent-encoded values
    OTEL_EXPORTER_OTLP_[TRACES_]TIMEOUT           seconds
    OTEL_EXPORTER_OTLP_[TRACES_]COMPRESSION       gzip (unless set) or none
    OTEL_EXPORTER_OTLP_[TRACES_]CERTIFICATE, …_CLIENT_CERTIFICATE, …_CLIENT_KEY
    OTEL_EXPORTER_OTLP_[TRACES_]INSECURE          for gRPC endpoints that name no scheme
    REENACT_EXPORT                                to each of these URLs as well: http, https, grpc, grpcs, file
    REENACT_EXPORT_HEADERS                        headers for the URLs in REENACT_EXPORT
    REENACT_EXPORT_BATCH_BYTES                    bytes of one request (`limits.py`)
    REENACT_SEMCONV                               in whose names spans are shown (`values.semconv`)
    REENACT_BESIDE                                not to this endpoint, which collects into the same store

The timeout is in seconds, as opentelemetry-python has always read it, though the specification says milliseconds: the
same variable must not mean two things to two exporters in one process. The headers of one variable never go to the
endpoints of the other. With none of these set, spans go nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from reenact.errors import InputError
from reenact.export.limits import limits_from

if TYPE_CHECKING:  # every start asks; the senders are imported where the environment names a backend
    from reenact.export.otlp_http import HttpTarget
    from reenact.export.sender import Sender

_OURS, _OUR_HEADERS = "REENACT_EXPORT", "REENACT_EXPORT_HEADERS"
BESIDE = "REENACT_BESIDE"
"""What stands in OTEL_EXPORTER_OTLP_ENDPOINT for others alone: whoever records has its spans in the store already."""
_TRUE = frozenset({"true", "1"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A field name of RFC 9110, section 5.1."""


def backends_from_environment(environ: Mapping[str, str]) -> list[Sender]:
    """Give a sender for every backend that the environment names, each once, OpenTelemetry's own variables first.

    Raises `InputError`, its place the name of the variable, on a URL, header, number or protocol that makes no sense;
    values are not quoted in it where they may be secret.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    senders: list[Sender] = []
    settings = _Settings(environ)
    if (standard := _standard(settings)) is not None:
        senders.append(standard)
    headers = _headers(environ.get(_OUR_HEADERS, ""), _OUR_HEADERS)
    size = settings.size
    for url in dict.fromkeys(part.strip() for part in environ.get(_OURS, "").split(",")):
        if url in ("", "none"):
            continue
        sender = _ours(url, headers, size)
        # The same endpoint under other credentials is another project; under none of its own it is the same one.
        if headers or "@" in url or sender.name not in {other.name for other in senders}:
            senders.append(sender)
    if senders:
        from reenact.values.semconv import semconv_from

        semconv_from(environ)
    return senders


@dataclass(frozen=True, slots=True)
class _Settings:
    """The OTEL_EXPORTER_OTLP_* variables, in which one for traces goes before the one for every signal."""

    environ: Mapping[str, str]

    def find(self, name: str) -> tuple[str, str]:
        """Give the variable that counts and its value; an empty one counts as not set."""
        variables = (f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}")
        for variable in variables:
            if value := self.environ.get(variable, "").strip():
                return variable, value
        return variables[1], ""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        variable, value = self.find("HEADERS")
        return _headers(value, variable)

    @property
    def timeout_s(self) -> float:
        variable, value = self.find("TIMEOUT")
        try:
            seconds = float(value or 10)
        except ValueError:
            seconds = -1
        if not seconds > 0:
            raise InputError(f"${variable}", f"{value!r} is not a positive number of seconds")
        return seconds

    @property
    def gzip(self) -> bool:
        variable, value = self.find("COMPRESSION")
        if value.lower() not in ("", "gzip", "none"):
            raise InputError(f"${variable}", f"{value!r} is not a compression we have", hint="Set gzip or none.")
        return value.lower() != "none"

    @property
    def size(self) -> int:
        return limits_from(self.environ).size

    def file(self, name: str) -> str | None:
        return self.find(name)[1] or None


def _standard(settings: _Settings) -> Sender | None:
    chosen = {part.strip() for part in settings.environ.get("OTEL_TRACES_EXPORTER", "").lower().split(",")} - {""}
    if chosen and "otlp" not in chosen:
        return None
    variable, endpoint = settings.find("ENDPOINT")
    if (not endpoint and not chosen) or (endpoint and endpoint == settings.environ.get(BESIDE)):
        return None
    setting, protocol = settings.find("PROTOCOL")
    if protocol == "grpc":
        return _standard_grpc(settings, endpoint or "http://localhost:4317", variable)
    if protocol not in ("", "http/protobuf"):
        raise InputError(f"${setting}", f"{protocol!r} is not a protocol we have", hint="Set http/protobuf or grpc.")
    endpoint = endpoint or "http://localhost:4318"
    if variable != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":
        endpoint = _with_path(endpoint)
    from reenact.export.otlp_http import HttpTarget

    return _http(
        HttpTarget(
            url=endpoint,
            headers=settings.headers,
            timeout_s=settings.timeout_s,
            gzip=settings.gzip,
            certificate=settings.file("CERTIFICATE"),
            client_certificate=settings.file("CLIENT_CERTIFICATE"),
            client_key=settings.file("CLIENT_KEY"),
            max_bytes=settings.size,
        ),
        variable,
    )


def _standard_grpc(settings: _Settings, endpoint: str, variable: str) -> Sender:
    scheme, separator, rest = endpoint.partition("://")
    if separator:
        tls, address = scheme.lower() == "https", rest
    else:
        tls, address = settings.find("INSECURE")[1].lower() not in _TRUE, endpoint
    address = address.partition("/")[0].rpartition("@")[2]
    if not address or (separator and scheme.lower() not in ("http", "https")):
        raise InputError(f"${variable}", "this is not a gRPC endpoint", hint="Write it as http://host:4317.")
    from reenact.export.otlp_grpc import GrpcTarget, OtlpGrpcSender

    return OtlpGrpcSender(
        GrpcTarget(
            address=address,
            tls=tls,
            headers=settings.headers,
            timeout_s=settings.timeout_s,
            gzip=settings.gzip,
            certificate=settings.file("CERTIFICATE"),
            client_certificate=settings.file("CLIENT_CERTIFICATE"),
            client_key=settings.file("CLIENT_KEY"),
            max_bytes=settings.size,
        )
    )


def _ours(url: str, headers: tuple[tuple[str, str], ...], size: int) -> Sender:
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme in ("http", "https"):
        try:
            bare = urlsplit(url).path in ("", "/")
        except ValueError:
            bare = False
        from reenact.export.otlp_http import HttpTarget

        return _http(HttpTarget(url=_with_path(url) if bare else url, headers=headers, max_bytes=size), _OURS)
    if scheme in ("grpc", "grpcs"):
        address = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        if address:
            from reenact.export.otlp_grpc import GrpcTarget, OtlpGrpcSender

            tls = scheme == "grpcs"
            return OtlpGrpcSender(GrpcTarget(address=address, tls=tls, headers=headers, max_bytes=size))
    if scheme == "file":
        path = unquote(urlsplit(url).path)
        if path.strip("/"):
            from reenact.export.file import FileSender

            return FileSender(Path(path))
    hint = "Write http://host:4318, https://host/path, grpc://host:4317, grpcs://host:4317 or file:///path."
    raise InputError(f"${_OURS}", "this is not a list of URLs that spans can be sent to", hint=hint)


def _http(target: HttpTarget, variable: str) -> Sender:
    from reenact.export.otlp_http import OtlpHttpSender

    try:
        return OtlpHttpSender(target)
    except InputError as refusal:
        raise InputError(f"${variable}", refusal.problem, hint=refusal.hint) from None


def _with_path(endpoint: str) -> str:
    """Add the path of traces, before a query where there is one."""
    base, mark, query = endpoint.partition("?")
    return f"{base.rstrip('/')}/v1/traces{mark}{query}"


def _headers(text: str, variable: str) -> tuple[tuple[str, str], ...]:
    """Read `key=value,…` (OpenTelemetry, "Specifying headers via environment variables")."""
    headers: dict[str, str] = {}
    for number, part in enumerate(text.split(","), start=1):
        if not part.strip():
            continue
        name, separator, value = part.partition("=")
        name, value = unquote(name).strip().lower(), unquote(value).strip()
        if not separator or not _TOKEN.fullmatch(name) or not value.isprintable() or not value.isascii():
            hint = "Write key=value,key=value with percent-encoded values; a comma in a value is %2C."
            raise InputError(f"${variable}", f"entry {number} is not a header", hint=hint)
        headers[name] = value
    return tuple(headers.items())
