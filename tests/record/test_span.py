from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from reenact.boundary.place import Place
from reenact.record.journal import JournalProcessor
from reenact.record.span import CallSpans
from reenact.redact.engine import Engine

SECRET = "sk-ant-" + "api03-" + "a1B2c3D4" * 6
PLACE = Place(trace_id=1, span_id=2)


class Written:
    """Keeps the frames instead of a file."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []

    def write(self, payload: dict[str, Any]) -> None:
        self.frames.append(payload)


class Broken:
    """A redactor that fails."""

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        raise ValueError(attributes)

    def text(self, text: str) -> str:
        raise ValueError(text)


def made(redactor: Any = None) -> tuple[CallSpans, Written]:
    written = Written()
    return CallSpans(cast("JournalProcessor", written), redactor or Engine(salt="00" * 16)), written


def test_a_forked_child_draws_span_ids_of_its_own() -> None:
    spans, _ = made()
    spans.start("warm", PLACE, SpanKind.INTERNAL, {}, {})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = [spans.start("child", PLACE, SpanKind.INTERNAL, {}, {}).span_id for _ in range(100)]
        os.write(write, ",".join(map(str, drawn)).encode())
        os._exit(0)
    os.close(write)
    ours = {spans.start("parent", PLACE, SpanKind.INTERNAL, {}, {}).span_id for _ in range(100)}
    with os.fdopen(read) as pipe:
        theirs = {int(each) for each in pipe.read().split(",")}
    os.waitpid(child, 0)
    assert len(ours) == len(theirs) == 100
    assert not ours & theirs


def test_a_secret_in_what_spans_share_is_replaced_and_counted_in_each() -> None:
    engine = Engine(salt="00" * 16)
    spans, written = made(engine)
    shared = {"url.full": f"https://host/path?api_key={SECRET}"}
    for number in range(1, 4):
        spans.start("call", PLACE, SpanKind.CLIENT, {"input.value": "hello"}, shared)
        assert SECRET not in str(written.frames[-1])
        assert engine.replaced.total() == number
    clean = {"url.full": "https://host/path"}
    for _ in range(3):
        spans.start("call", PLACE, SpanKind.CLIENT, {"input.value": "hello"}, clean)
        assert written.frames[-1]["attributes"] == {"url.full": "https://host/path", "input.value": "hello"}
    assert engine.replaced.total() == 3


def test_what_cannot_be_redacted_is_left_out_and_the_structure_stays() -> None:
    spans, written = made(Broken())
    span = spans.start("call", PLACE, SpanKind.CLIENT, {"input.value": SECRET}, {"url.full": SECRET})
    span.add_event("exception", {"exception.message": SECRET})
    span.end({"output.value": SECRET}, StatusCode.ERROR, f"died of {SECRET}")
    begun, ended = written.frames
    assert SECRET not in str(written.frames)
    assert begun["span"] == ended["span"]
    assert begun["attributes"] == ended["attributes"] == {"reenact.redaction.failed": True}
    assert (ended["status"], ended["message"]) == (2, "reenact: could not be redacted")


def test_what_is_shared_is_known_by_an_identity_that_stays_its_own() -> None:
    spans, written = made()
    nothing: dict[str, Any] = {}
    for number in range(500):
        shared = {"url.full": f"https://host/{number}"}
        spans.start("call", PLACE, SpanKind.CLIENT, nothing, shared)
        del shared  # whoever does not hold it sees another one at its address
        assert written.frames.pop()["attributes"]["url.full"] == f"https://host/{number}"
