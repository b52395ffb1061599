from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LoggingHandler,
    LogRecordDroppedAttributesWarning,
    LogRecordLimits,
)
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    ConsoleLogRecordExporter,
    InMemoryLogRecordExporter,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.resources import Resource

from receivers import http_receiver
from reenact.redact.engine import Engine
from reenact.redact.logs import RedactingLogRecordExporter, RedactingLogRecordProcessor

SECRET = "ghp_" + "aB3d" * 9


def provider(*processors: Any) -> LoggerProvider:
    made = LoggerProvider(Resource({"service.name": "t", "deploy.key": SECRET}), shutdown_on_exit=False)
    for processor in processors:
        made.add_log_record_processor(processor)
    return made


def event() -> LogRecord:
    """An event as a GenAI instrumentation emits it, with the prompt in its body."""
    return LogRecord(
        timestamp=1,
        event_name="gen_ai.user.message",
        severity_number=SeverityNumber.INFO,
        body={"role": "user", "content": f"I am {SECRET}", "parts": [{"arguments": json.dumps({"q": SECRET})}]},
        attributes={"gen_ai.system": "openai", "note": SECRET, SECRET: 1},
    )


def test_no_secret_of_a_log_event_is_on_the_wire() -> None:
    with http_receiver() as receiver:
        exporter = OTLPLogExporter(receiver.url.replace("/v1/traces", "/v1/logs"))
        made = provider(RedactingLogRecordProcessor(BatchLogRecordProcessor(exporter), Engine()))
        logger = made.get_logger(f"lib {SECRET}", "1", attributes={"scope.key": SECRET})
        logger.emit(event())
        assert made.force_flush()
        made.shutdown()
        wire = receiver.wire()
    assert b"gen_ai.user.message" in wire
    assert SECRET.encode() not in wire
    assert wire.count(b"REDACTED_github_token") >= 7
    assert b"reenact.redaction.policy" in wire


def test_the_program_s_own_record_is_untouched_and_the_copy_says_what_was_done() -> None:
    exporter, plain = InMemoryLogRecordExporter(), InMemoryLogRecordExporter()
    protected = RedactingLogRecordProcessor(SimpleLogRecordProcessor(exporter), Engine())
    provider(protected, SimpleLogRecordProcessor(plain)).get_logger("lib").emit(event())
    (clean,), (given,) = exporter.get_finished_logs(), plain.get_finished_logs()
    assert SECRET not in clean.to_json()
    assert given.log_record.body == event().body
    assert (clean.log_record.attributes or {})["reenact.redaction.replaced.github_token"] == 4
    assert (clean.log_record.event_name, clean.log_record.timestamp) == ("gen_ai.user.message", 1)


def test_what_the_limits_dropped_is_still_told() -> None:
    exporter = InMemoryLogRecordExporter()
    made = LoggerProvider(shutdown_on_exit=False, log_record_limits=LogRecordLimits(max_log_record_attributes=1))
    made.add_log_record_processor(RedactingLogRecordProcessor(SimpleLogRecordProcessor(exporter), Engine()))
    with pytest.warns(LogRecordDroppedAttributesWarning):
        made.get_logger("lib").emit(body="b", attributes={"a": 1, "b": 2, "c": 3})
    assert exporter.get_finished_logs()[0].dropped_attributes == 2


def failing() -> None:
    raise ValueError(f"no {SECRET}") from KeyError(SECRET)


def test_python_s_logging_with_an_exception() -> None:
    out = io.StringIO()
    made = provider(SimpleLogRecordProcessor(RedactingLogRecordExporter(ConsoleLogRecordExporter(out=out), Engine())))
    logger, handler = logging.getLogger("a shop's"), LoggingHandler(logger_provider=made)
    logger.addHandler(handler)
    try:
        failing()
    except ValueError:
        logger.exception("failed with %s", SECRET, extra={"customer": SECRET})
    finally:
        logger.removeHandler(handler)
    assert "exception.stacktrace" in out.getvalue()
    assert SECRET not in out.getvalue()


class Fails(Engine):
    def text(self, text: str, **_: Any) -> str:
        raise RuntimeError(text)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        raise RuntimeError(attributes)


@pytest.mark.parametrize("wrapped", ["processor", "exporter"])
def test_where_redaction_fails_nothing_gets_through_and_the_record_stays(wrapped: str) -> None:
    exporter = InMemoryLogRecordExporter()
    if wrapped == "processor":
        processor: Any = RedactingLogRecordProcessor(SimpleLogRecordProcessor(exporter), Fails())
    else:
        processor = SimpleLogRecordProcessor(RedactingLogRecordExporter(exporter, Fails()))
    provider(processor).get_logger("lib").emit(event())
    (clean,) = exporter.get_finished_logs()
    assert SECRET not in clean.to_json()
    assert dict(clean.log_record.attributes or {}) == {"reenact.redaction.failed": True}
    assert clean.log_record.body == "reenact: could not be redacted"


def test_what_is_no_log_record_is_dropped_and_counted() -> None:
    exporter = InMemoryLogRecordExporter()
    protected = RedactingLogRecordProcessor(SimpleLogRecordProcessor(exporter), Engine())
    protected.on_emit(object())
    assert (protected.dropped, exporter.get_finished_logs()) == (1, ())
    inside = RedactingLogRecordExporter(exporter, Engine())
    inside.export([object()])
    assert (inside.dropped, exporter.get_finished_logs()) == (1, ())


def test_flush_shutdown_and_filters_are_the_protected_processor_s() -> None:
    class Filters(SimpleLogRecordProcessor):
        def enabled(self, **asked: Any) -> bool:
            return asked.get("event_name") != "noise"

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return timeout_millis > 5

        def on_emit(self, log_record: Any) -> None:
            raise RuntimeError(log_record)

    exporter = InMemoryLogRecordExporter()
    protected = RedactingLogRecordProcessor(Filters(exporter), Engine())
    assert (protected.enabled(event_name="noise"), protected.enabled(event_name="x")) == (False, True)
    assert (protected.force_flush(5), protected.force_flush(6)) == (False, True)
    provider(protected).get_logger("lib").emit(event())
    protected.shutdown()
    assert exporter._stopped
