from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from receivers import ACCEPTED, PROTOBUF, Receiver, rejecting, span
from reenact.errors import InputError
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.outcome import Delivered, Rejected, Retry, TooLarge
from reenact.export.replies import retry_after

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
SPANS = [span(1), span(2), span(3)]


def sender(receiver: Receiver, **settings: object) -> OtlpHttpSender:
    return OtlpHttpSender(HttpTarget(url=receiver.url, **settings))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ accepted


@pytest.mark.parametrize(
    "answer",
    [
        ACCEPTED,
        (200, {}, b""),
        (202, JSON, b"{}"),
        (204, {}, b""),
        (200, JSON, b'{"partialSuccess": {}}'),
        (200, {"Content-Type": "application/json; charset=utf-8"}, b'{"partialSuccess": {"rejectedSpans": "0"}}'),
    ],
)
def test_an_otlp_reply_without_rejections_means_delivered(receiver: Receiver, answer: tuple) -> None:
    receiver.behave = lambda *_: answer
    assert sender(receiver).send(SPANS) == Delivered(count=3)
    assert receiver.names == ["span 1", "span 2", "span 3"]


def test_a_warning_is_passed_on_and_rejects_nothing(receiver: Receiver) -> None:
    receiver.behave = lambda *_: (200, PROTOBUF, rejecting(0, "use the new endpoint"))
    assert sender(receiver).send(SPANS) == Delivered(count=3, note="use the new endpoint")


def test_requests_share_a_connection_and_carry_the_headers(receiver: Receiver) -> None:
    ours = sender(receiver, headers=(("authorization", "Bearer a=b"),))
    for _ in range(3):
        ours.send(SPANS)
    assert len(receiver.connections) == 1
    assert receiver.headers[0]["authorization"] == "Bearer a=b"
    assert receiver.headers[0]["content-type"] == "application/x-protobuf"
    assert receiver.headers[0]["content-encoding"] == "gzip"
    assert receiver.paths == ["/v1/traces"] * 3


def test_compression_can_be_turned_off(receiver: Receiver) -> None:
    assert sender(receiver, gzip=False).send(SPANS) == Delivered(count=3)
    assert "content-encoding" not in receiver.headers[0]


def test_a_password_in_the_url_is_sent_and_never_shown(receiver: Receiver) -> None:
    url = receiver.url.replace("http://", "http://user:p%40ss@") + "?project=1"
    ours = OtlpHttpSender(HttpTarget(url=url))
    ours.send(SPANS)
    assert receiver.headers[0]["authorization"] == "Basic dXNlcjpwQHNz"
    assert receiver.paths == ["/v1/traces?project=1"]
    assert ours.name == receiver.url
    assert "p%40ss" not in repr(ours._target)


# ------------------------------------------------------------------------------------------------------------ rejected


@pytest.mark.parametrize(
    ("answer", "rejected", "said"),
    [
        ((200, PROTOBUF, rejecting(2, "bad names")), 2, "bad names"),
        ((200, PROTOBUF, rejecting(9, "")), 3, "rejected without a reason"),
        ((200, JSON, b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}'), 1, "no"),
        ((200, HTML, b"<html><body>Sign in</body></html>"), 3, "text/html"),
        ((200, HTML, b""), 3, "text/html"),
        ((200, PROTOBUF, b"<html>Sign in</html>"), 3, "no OTLP reply"),
        ((200, {}, b"OK"), 3, "no content type"),
        ((200, JSON, b'{"error": "no such project"}'), 3, "no such project"),
        ((200, JSON, b'{"partialSuccess": {"rejectedSpans": "some"}}'), 3, "no number"),
        (
            (302, {"Location": "https://u:secret@login.test/x?token=1"}, b""),
            3,
            "302, sending us to https://login.test/x",
        ),
        ((308, {}, b""), 3, "nowhere"),
        ((400, PROTOBUF, b"\x08\x03\x12\x09bad spans"), 3, "answered 400: bad spans"),
        ((400, JSON, b'{"message": "bad\\nspans"}'), 3, "answered 400: bad spans"),
        ((401, {}, b""), 3, "credentials"),
        ((404, {}, b"not here"), 3, "/v1/traces"),
        ((415, {}, b""), 3, "gzip"),
        ((500, {}, b"x" * 1000), 3, "answered 500: xxx"),
        ((501, {}, b""), 3, "answered 501"),
    ],
)
def test_what_was_refused_is_counted_with_its_reason(
    receiver: Receiver, answer: tuple, rejected: int, said: str
) -> None:
    receiver.behave = lambda *_: answer
    outcome = sender(receiver).send(SPANS)
    assert isinstance(outcome, Rejected)
    assert (outcome.count, outcome.delivered) == (rejected, 3 - rejected)
    assert said in outcome.reason
    assert "secret" not in outcome.reason
    assert len(outcome.reason) < 400


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.behave = lambda *_: (307, {"Location": receiver.url + "/other"}, b"")
    sender(receiver).send(SPANS)
    assert receiver.paths == ["/v1/traces"]


@pytest.mark.parametrize(
    "answer",
    [
        (413, {}, b""),
        (400, {"Content-Type": "text/plain"}, b"http: request body too large"),
    ],
)
def test_too_large_is_told_from_wrong(receiver: Receiver, answer: tuple) -> None:
    receiver.behave = lambda *_: answer
    assert isinstance(sender(receiver).send(SPANS), TooLarge)


def test_a_request_over_our_own_limit_is_not_tried_unless_it_cannot_be_halved(receiver: Receiver) -> None:
    ours = sender(receiver, max_bytes=50)
    assert isinstance(ours.send(SPANS), TooLarge)
    assert not receiver.requests
    assert ours.send(SPANS[:1]) == Delivered(count=1)


def test_a_header_that_cannot_be_sent_is_a_rejection_and_no_exception(receiver: Receiver) -> None:
    outcome = sender(receiver, headers=(("x", "a\r\nb: c"),)).send(SPANS)
    assert isinstance(outcome, Rejected)
    assert not receiver.requests


# --------------------------------------------------------------------------------------------------------------- retry


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_backend_is_to_be_tried_again(receiver: Receiver, status: int) -> None:
    receiver.behave = lambda *_: (status, {"Retry-After": "7"}, b"")
    outcome = sender(receiver).send(SPANS)
    assert outcome == Retry(reason=f"answered {status}", after_s=7.0)


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after("12", now) == 12.0
    assert retry_after(format_datetime(now + timedelta(seconds=30), usegmt=True), now) == 30.0
    assert retry_after(format_datetime(now - timedelta(seconds=30), usegmt=True), now) == 0.0
    assert retry_after("", now) is None
    assert retry_after("soon", now) is None
    assert retry_after("-5", now) is None


def test_nobody_listening(receiver: Receiver) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1/traces"
        outcome = OtlpHttpSender(HttpTarget(url=url)).send(SPANS)
    assert isinstance(outcome, Retry)
    assert "connection failed" in outcome.reason
    assert not receiver.requests


def test_a_connection_that_is_closed_without_an_answer(receiver: Receiver) -> None:
    receiver.behave = lambda *_: None
    assert isinstance(sender(receiver).send(SPANS), Retry)


def test_an_idle_connection_that_was_closed_is_replaced_at_once(receiver: Receiver) -> None:
    ours = sender(receiver)
    receiver.behave = lambda state, _: None if len(state.requests) == 1 else ACCEPTED
    assert ours.send(SPANS) == Delivered(count=3)
    assert ours.send(SPANS) == Delivered(count=3)
    assert len(receiver.connections) == 2


@contextmanager
def raw_server(answer: bytes, *, drip_s: float = 0.0, read: bool = True) -> Iterator[str]:
    """A socket that answers with these bytes, whatever is asked, and holds the connection open."""
    done = threading.Event()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                if read:
                    connection.recv(1 << 20)
                for at in range(len(answer)):
                    try:
                        connection.sendall(answer[at : at + 1])
                    except OSError:
                        return
                    if drip_s and done.wait(drip_s):
                        return
                done.wait()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        done.set()


def test_a_backend_that_never_answers_is_left_after_the_time_limit() -> None:
    with raw_server(b"") as url:
        outcome = OtlpHttpSender(HttpTarget(url=url, timeout_s=0.3)).send(SPANS)
        assert outcome == Retry(reason="no answer within 0.3 s"), "while the connection is still open"


def test_a_backend_that_answers_drop_by_drop_is_left_after_the_time_limit() -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100, drip_s=0.1) as url:
        outcome = OtlpHttpSender(HttpTarget(url=url, timeout_s=0.5)).send(SPANS)
        assert outcome == Retry(reason="no answer within 0.5 s"), "while it still drips"


def test_the_deadline_of_the_caller_counts_as_well() -> None:
    with raw_server(b"") as url:
        assert OtlpHttpSender(HttpTarget(url=url)).send(SPANS, 0.2) == Retry(reason="no answer within 0.2 s")


def test_what_is_no_http_is_a_failed_connection() -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as url:
        assert isinstance(OtlpHttpSender(HttpTarget(url=url)).send(SPANS), Retry)


def test_an_answer_that_comes_while_the_body_is_still_sent_is_read() -> None:
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    big = [span(1, text=os.urandom(1 << 20).hex()), span(2)]
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        connection.recv(1000)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    with listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        outcome = OtlpHttpSender(HttpTarget(url=url, timeout_s=5)).send(big)
    assert isinstance(outcome, TooLarge | Retry)  # a reset may overtake the answer; neither loses a span


# ----------------------------------------------------------------------------------------------------------------- TLS


def _read_request(connection: socket.socket) -> None:
    """Read a request to its end: who closes before that resets the connection."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(1 << 20)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(re.findall(rb"(?i)content-length: *(\d+)", head)[0])
    while len(body) < length:
        body += connection.recv(1 << 20)


def test_a_certificate_nobody_vouches_for_is_a_failed_connection_and_ours_is_trusted(tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("no openssl command to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, *subject, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection = context.wrap_socket(listening.accept()[0], server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            with connection:
                _read_request(connection)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    with listening:
        url = f"https://localhost:{listening.getsockname()[1]}/"
        stranger = OtlpHttpSender(HttpTarget(url=url)).send(SPANS)
        known = OtlpHttpSender(HttpTarget(url=url, certificate=str(certificate))).send(SPANS)
    assert isinstance(stranger, Retry)
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.reason
    assert known == Delivered(count=3)


def test_settings_that_make_no_sense_are_told_when_the_sender_is_made(tmp_path: Path) -> None:
    for url in ("localhost:4318", "ftp://host/", "http://", "http://host:port/", "http://[::1"):
        with pytest.raises(InputError, match="not an http or https URL"):
            OtlpHttpSender(HttpTarget(url=url))
    with pytest.raises(InputError, match="certificate"):
        OtlpHttpSender(HttpTarget(url="https://host/", certificate=str(tmp_path / "none.pem")))


# --------------------------------------------------------------------------------------------------------------- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_a_connection_of_its_own(receiver: Receiver) -> None:
    ours = sender(receiver)
    ours.send(SPANS)
    child = os.fork()
    if child == 0:
        os._exit(0 if isinstance(ours.send(SPANS), Delivered) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ours.send(SPANS) == Delivered(count=3)
    assert len(receiver.connections) == 2
