from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from receivers import Receiver, span
from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.export.file import FileSender
from reenact.export.otlp_grpc import OtlpGrpcSender
from reenact.export.otlp_http import OtlpHttpSender
from reenact.export.outcome import Delivered

E = "OTEL_EXPORTER_OTLP_ENDPOINT"
T = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def names(**environ: str) -> list[str]:
    return [sender.name for sender in backends_from_environment(environ)]


def only(**environ: str) -> Any:
    (sender,) = backends_from_environment(environ)
    assert isinstance(sender, OtlpHttpSender | OtlpGrpcSender)
    return sender._target


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        ({E: ""}, []),
        ({E: "http://c:4318"}, ["http://c:4318/v1/traces"]),
        ({E: "http://c:4318/base/"}, ["http://c:4318/base/v1/traces"]),
        ({E: "http://c:4318", T: "https://t/ingest"}, ["https://t/ingest"]),
        ({T: "https://t"}, ["https://t"]),
        ({E: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, []),
        ({E: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, []),
        ({E: "http://c:4318", "OTEL_TRACES_EXPORTER": "console, otlp"}, ["http://c:4318/v1/traces"]),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["http://localhost:4318/v1/traces"]),
        ({E: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["grpc://c:4317"]),
        ({E: "https://c:4317/", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, ["grpcs://c:4317"]),
        ({E: "c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["grpcs://c:4317"]),
        (
            {E: "c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_INSECURE": "true"},
            ["grpc://c:4317"],
        ),
        (
            {
                E: "http://c:4317",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            ["http://c:4317/v1/traces"],
        ),
        (
            {"REENACT_EXPORT": "http://a:1, https://b/x ,grpc://c:2,grpcs://d,file:///data/a%20b.jsonl,none,"},
            ["http://a:1/v1/traces", "https://b/x", "grpc://c:2", "grpcs://d", "/data/a b.jsonl"],
        ),
        (
            {E: "http://c:4318", "REENACT_EXPORT": "http://a/v1/traces"},
            ["http://c:4318/v1/traces", "http://a/v1/traces"],
        ),
        ({E: "http://c:4318", "REENACT_EXPORT": "http://c:4318,http://c:4318"}, ["http://c:4318/v1/traces"]),
        ({"REENACT_EXPORT": "https://one:k@h/x,https://two:k@h/x"}, ["https://h/x", "https://h/x"]),
        ({"REENACT_EXPORT": "none"}, []),
    ],
)
def test_where_spans_go(environ: dict[str, str], expected: list[str]) -> None:
    assert names(**environ) == expected


def test_settings_for_traces_go_before_those_for_every_signal() -> None:
    target = only(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://c",
        OTEL_EXPORTER_OTLP_HEADERS="api-key=one",
        OTEL_EXPORTER_OTLP_TRACES_HEADERS=" Authorization = Basic%20YTpi==, x-tenant=a%2Cb ,",
        OTEL_EXPORTER_OTLP_TIMEOUT="5",
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT="2.5",
        OTEL_EXPORTER_OTLP_COMPRESSION="none",
        OTEL_EXPORTER_OTLP_CERTIFICATE="",
    )
    assert target.headers == (("authorization", "Basic YTpi=="), ("x-tenant", "a,b"))
    assert (target.timeout_s, target.gzip, target.certificate) == (2.5, False, None)


def test_defaults() -> None:
    target = only(OTEL_EXPORTER_OTLP_ENDPOINT="http://c")
    assert (target.headers, target.timeout_s, target.gzip) == ((), 10.0, True)


def test_credentials_of_one_variable_never_go_to_the_endpoints_of_the_other() -> None:
    standard, ours = backends_from_environment(
        {E: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "k=secret", "REENACT_EXPORT": "http://a"}
    )
    assert isinstance(standard, OtlpHttpSender)
    assert isinstance(ours, OtlpHttpSender)
    assert standard._target.headers == (("k", "secret"),)
    assert ours._target.headers == ()
    assert only(REENACT_EXPORT="grpc://a:1", REENACT_EXPORT_HEADERS="k=v").headers == (("k", "v"),)


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({E: "nonsense"}, E),
        ({T: "ftp://x"}, T),
        ({E: "ftp://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, E),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0asecret"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "OTEL_EXPORTER_OTLP_TIMEOUT"),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "-1"}, "OTEL_EXPORTER_OTLP_TIMEOUT"),
        ({E: "http://c", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION"),
        ({"REENACT_EXPORT": "host:4318"}, "REENACT_EXPORT"),
        ({"REENACT_EXPORT": "grpc://"}, "REENACT_EXPORT"),
        ({"REENACT_EXPORT": "http://[::1"}, "REENACT_EXPORT"),
    ],
)
def test_what_makes_no_sense_is_told_by_its_variable_and_never_shows_a_secret(
    environ: dict[str, str], variable: str
) -> None:
    with pytest.raises(InputError) as refusal:
        backends_from_environment(environ)
    assert refusal.value.place == f"${variable}"
    assert "secret" not in str(refusal.value)


def test_the_environment_leads_to_a_backend_that_gets_the_spans(receiver: Receiver, tmp_path: Path) -> None:
    base = receiver.url.removesuffix("/v1/traces")
    file = tmp_path / "new" / "run.otlp.jsonl"
    senders = backends_from_environment({E: base, "REENACT_EXPORT": file.as_uri()})
    assert [sender.send([span(1)]) for sender in senders] == [Delivered(count=1)] * 2
    assert isinstance(senders[1], FileSender)
    assert receiver.names == ["span 1"]
    assert file.read_bytes().count(b"\n") == 1
