"""Sends the spans of a file through the official OTLP exporters for Python.

python python_send.py FILE http|grpc ENDPOINT none|gzip SPANS_IN_A_REQUEST
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

KINDS = {each.value + 1: each for each in SpanKind}  # the protocol's numbers begin one later


def exporter(over: str, endpoint: str, compression: str) -> SpanExporter:
    if over == "grpc":
        import grpc
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

        chosen = grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression
        return OverGrpc(endpoint=endpoint, insecure=True, compression=chosen, timeout=60)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp

    return OverHttp(endpoint=endpoint, compression=Compression(compression), timeout=60)


def context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1))


def named(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in listed}


def spans(given: dict[str, Any]) -> list[ReadableSpan]:
    resource = Resource(named(given["resource"]))
    scope = InstrumentationScope(given["scope"]["name"], given["scope"]["version"])
    return [
        ReadableSpan(
            name=each["name"],
            context=context(each["traceId"], each["spanId"]),
            parent=context(each["traceId"], each["parentId"]) if each["parentId"] else None,
            resource=resource,
            attributes=named(each["attributes"]),
            events=[Event(one["name"], named(one["attributes"]), int(one["time"])) for one in each["events"]],
            links=[Link(context(one["traceId"], one["spanId"]), named(one["attributes"])) for one in each["links"]],
            kind=KINDS[each["kind"]],
            status=Status(StatusCode(each["status"]), each["message"] or None),
            start_time=int(each["start"]),
            end_time=int(each["end"]),
            instrumentation_scope=scope,
        )
        for each in given["spans"]
    ]


if __name__ == "__main__":
    file, over, endpoint, compression, size = sys.argv[1:]
    sender = exporter(over, endpoint, compression)
    made = spans(json.loads(Path(file).read_text()))
    for at in range(0, len(made), int(size)):
        if sender.export(made[at : at + int(size)]) is not SpanExportResult.SUCCESS:
            sys.exit("refused")
    sender.shutdown()
