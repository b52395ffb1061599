from __future__ import annotations

import importlib.util
import socket
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from receivers import GrpcReceiver, span
from reenact.errors import InputError
from reenact.export import otlp_grpc
from reenact.export.delivery import Delivery, Patience
from reenact.export.otlp_grpc import GrpcTarget, OtlpGrpcSender
from reenact.export.outcome import Delivered, Rejected, Retry, TooLarge
from reenact.export.rpc_status import RpcStatus, read_status
from reenact.formats.otlp_proto import to_request

SPANS = [span(1), span(2), span(3)]
# google.rpc.Status { code: 8, message: "busy", details: RetryInfo { retry_delay: 1.5 s } }
_DURATION = b"\x08\x01\x10" + b"\x80\xca\xb5\xee\x01"
_RETRY_INFO = b"\x0a" + bytes([len(_DURATION)]) + _DURATION
_TYPE = b"type.googleapis.com/google.rpc.RetryInfo"
_ANY = b"\x0a" + bytes([len(_TYPE)]) + _TYPE + b"\x12" + bytes([len(_RETRY_INFO)]) + _RETRY_INFO
BUSY = b"\x08\x08\x12\x04busy\x1a" + bytes([len(_ANY)]) + _ANY


def sender(receiver: GrpcReceiver, **settings: Any) -> OtlpGrpcSender:
    return OtlpGrpcSender(GrpcTarget(address=receiver.address, tls=False, **settings))


def failing(code: str, details: str = "", trailer: bytes | None = None) -> Any:
    import grpc

    def behave(_request: Any, context: Any) -> Any:
        if trailer is not None:
            context.set_trailing_metadata((("grpc-status-details-bin", trailer),))
        context.abort(grpc.StatusCode[code], details)

    return behave


def rejecting(rejected: int, message: str) -> ExportTraceServiceResponse:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans, response.partial_success.error_message = rejected, message
    return response


def test_spans_arrive_with_the_headers(grpc_receiver: GrpcReceiver) -> None:
    ours = sender(grpc_receiver, headers=(("Authorization", "Bearer x"),))
    assert ours.send(SPANS) == Delivered(count=3)
    assert grpc_receiver.requests == [to_request(SPANS)]
    assert grpc_receiver.metadata[0]["authorization"] == "Bearer x"
    ours.close()
    assert ours.send(SPANS) == Delivered(count=3)


def test_partial_success_is_told(grpc_receiver: GrpcReceiver) -> None:
    grpc_receiver.behave = lambda *_: rejecting(2, "bad names")
    assert sender(grpc_receiver).send(SPANS) == Rejected(count=2, delivered=1, reason="bad names")
    grpc_receiver.behave = lambda *_: rejecting(0, "a warning")
    assert sender(grpc_receiver).send(SPANS) == Delivered(count=3, note="a warning")


@pytest.mark.parametrize(
    "code", ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"]
)
def test_codes_to_try_again(grpc_receiver: GrpcReceiver, code: str) -> None:
    grpc_receiver.behave = failing(code, "later")
    assert sender(grpc_receiver).send(SPANS) == Retry(reason=f"answered {code}: later")


@pytest.mark.parametrize(
    "code", ["INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED", "INTERNAL", "UNKNOWN"]
)
def test_codes_that_are_final(grpc_receiver: GrpcReceiver, code: str) -> None:
    grpc_receiver.behave = failing(code, "no")
    assert sender(grpc_receiver).send(SPANS) == Rejected(count=3, reason=f"answered {code}: no")


def test_exhaustion_is_final_unless_the_server_says_when_to_come_back(grpc_receiver: GrpcReceiver) -> None:
    grpc_receiver.behave = failing("RESOURCE_EXHAUSTED", "quota used up")
    assert isinstance(sender(grpc_receiver).send(SPANS), Rejected)
    grpc_receiver.behave = failing("RESOURCE_EXHAUSTED", "busy", BUSY)
    assert sender(grpc_receiver).send(SPANS) == Retry(reason="answered RESOURCE_EXHAUSTED: busy", after_s=1.5)


def test_a_message_over_the_servers_limit_is_halved_until_it_fits(grpc_receiver: GrpcReceiver) -> None:
    spans = [span(number, text="x" * 30_000) for number in range(1, 11)] + [span(11, text="x" * 200_000)]
    ours = sender(grpc_receiver)
    assert isinstance(ours.send(spans), TooLarge)
    delivery = Delivery(ours, spans, Patience())
    delivery.run()
    report = delivery.report()
    assert (report.sent, report.rejected, report.left) == (10, 1, ())
    assert "larger than max" in report.reasons[0]


def test_nobody_listening_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ours = OtlpGrpcSender(GrpcTarget(address=f"127.0.0.1:{taken.getsockname()[1]}", tls=False))
        outcome = ours.send(SPANS)
    assert isinstance(outcome, Retry)
    assert "UNAVAILABLE" in outcome.reason


def test_a_header_that_cannot_be_sent_is_a_rejection_and_no_exception(grpc_receiver: GrpcReceiver) -> None:
    assert isinstance(sender(grpc_receiver, headers=(("b\xe4d", "x"),)).send(SPANS), Rejected)


def test_grpcio_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_grpc.importlib.util, "find_spec", lambda name: None if name == "grpc" else name)
    assert importlib.util.find_spec("grpc") is None
    with pytest.raises(InputError, match=r"pip install 'reenact\[grpc\]'"):
        OtlpGrpcSender(GrpcTarget(address="localhost:4317"))


def test_a_status_is_read_as_google_spells_it() -> None:
    status_pb2 = pytest.importorskip("google.rpc.status_pb2", reason="googleapis-common-protos is not installed")
    error_details_pb2 = pytest.importorskip("google.rpc.error_details_pb2")
    status = status_pb2.Status(code=8, message="slow döwn")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="other"))
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(2250)
    status.details.add().Pack(retry)
    assert read_status(status.SerializeToString()) == RpcStatus(message="slow döwn", retry_after_s=2.25)
    assert read_status(BUSY) == RpcStatus(message="busy", retry_after_s=1.5)
    for noise in (b"", b"\xff" * 20, b"\x12\xff", b"<html>"):
        assert read_status(noise).retry_after_s is None
