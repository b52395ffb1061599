"""Where log events go beside the spans of a backend, and in what spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from receivers import http_receiver, rejecting, running_grpc_receiver
from reenact.disk import envelopes
from reenact.disk.envelopes import Part
from reenact.export.file import FileSender
from reenact.export.log_events import for_log_events
from reenact.export.otlp_grpc import GrpcTarget, OtlpGrpcSender
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.outcome import Delivered, Rejected, Retry, TooLarge


def parts(count: int, size: int = 10) -> list[Part]:
    message = ExportLogsServiceRequest()
    scope = message.resource_logs.add().scope_logs.add()
    for number in range(count):
        scope.log_records.add(time_unix_nano=number).body.string_value = "x" * size
    return list(envelopes.parts(message.SerializeToString()))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://host:4318/v1/traces", "http://host:4318/v1/logs (log events)"),
        ("https://host/otlp/v1/traces/?key=1", "https://host/otlp/v1/logs (log events)"),
        ("https://host/ingest", None),
        ("https://host/", None),
    ],
)
def test_the_way_of_log_events_is_that_of_spans_but_for_its_end(url: str, name: str | None) -> None:
    sender = for_log_events(OtlpHttpSender(HttpTarget(url=url)))
    assert (sender.name if sender is not None else None) == name


def test_over_http_they_go_with_the_same_headers_and_every_answer_is_judged() -> None:
    with http_receiver() as receiver:
        target = HttpTarget(url=receiver.url, headers=(("authorization", "Bearer a-credential"),), max_bytes=2000)
        sender = for_log_events(OtlpHttpSender(target))
        assert sender is not None
        found = parts(3)
        assert sender.send(found) == Delivered(count=3)
        ((path, body),) = receiver.bodies
        assert (path, list(envelopes.parts(body))) == ("/v1/logs", found)
        assert receiver.headers[0]["authorization"] == "Bearer a-credential"
        assert isinstance(sender.send(parts(3, 1000)), TooLarge)
        receiver.behave = lambda *_: (200, {"content-type": "application/x-protobuf"}, rejecting(1, "too old"))
        assert sender.send(found) == Rejected(count=1, delivered=2, reason="too old")
        told = b'{"partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "a-credential is too old"}}'
        receiver.behave = lambda *_: (200, {"content-type": "application/json"}, told)
        assert sender.send(found) == Rejected(count=2, delivered=1, reason="[credentials] is too old")
        receiver.behave = lambda *_: (503, {"retry-after": "7"}, b"")
        assert sender.send(found) == Retry(reason="answered 503", after_s=7)
        for status, cure in ((404, "absent"), (405, "absent"), (401, "setting"), (400, "")):
            receiver.behave = lambda *_, status=status: (status, {}, b"")
            refused = sender.send(found)
            assert isinstance(refused, Rejected)
            assert refused.cure == cure
        sender.close()


def test_over_grpc_they_have_a_service_of_their_own() -> None:
    with running_grpc_receiver() as receiver:
        sender = for_log_events(OtlpGrpcSender(GrpcTarget(address=receiver.address, tls=False)))
        assert sender is not None
        assert sender.send(parts(2)) == Delivered(count=2)
        assert [len(list(envelopes.parts(each.SerializeToString()))) for each in receiver.logs] == [2]
        assert not receiver.requests
        assert isinstance(sender.send(parts(1, 200_000)), TooLarge)
        sender.close()


def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("no folder")
    sender = for_log_events(FileSender(tmp_path / "folder" / "out.jsonl"))
    assert sender is not None
    assert isinstance(sender.send(parts(1)), Retry)


def test_another_sender_has_no_way_for_them() -> None:
    class Other:
        name = "elsewhere"

        def send(self, spans: object, within_s: float | None = None) -> Delivered:
            del spans, within_s
            return Delivered(count=0)

        def close(self) -> None: ...

    assert for_log_events(Other()) is None
