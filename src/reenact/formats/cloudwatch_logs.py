"""AWS CloudWatch: the spans of `aws/spans` and the log events beside them, as its commands and its console give them.

Each message is the JSON of one span or log event of OpenTelemetry, names as in OTLP, attributes as plain objects. They
come as `{"events": [{"message": …}]}` (`filter-log-events`), as `{"results": [[{"field": "@message", "value": …}]]}`
(`get-query-results`), or as rows and lines with `@message`. Messages that are neither are passed over. It is read, not
written. From its documentation, and from messages of that form; not tried on an account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.span_dict import is_log, log_of, span_of
from reenact.values.json import parsed_or_none
from reenact.values.log import Record
from reenact.values.skeleton import holds

_MESSAGE = "@message"
_SPAN = re.compile(rb'\\"(?:spanId|span_id)\\"')


def _recognises(head: bytes) -> float:
    forms = holds(head, "events[].message|results[][].field|@message|message") or b'"@message"' in head
    return 0.9 if forms and _SPAN.search(head) else 0.0


def _records(document: object) -> Iterator[Record]:
    for message in _messages(document):
        if message.keys() & {"traceId", "trace_id"}:
            yield log_of(message) if is_log(message) else span_of(message)


def _messages(document: object) -> Iterator[dict[str, Any]]:
    if isinstance(document, list):
        for item in cast("list[object]", document):
            yield from _messages(item)
        return
    (page,) = as_objects(document, "a page")
    if "field" in page:
        texts = [page.get("value")] if page["field"] == _MESSAGE else []
    elif any(isinstance(page.get(name), list) for name in ("events", "results")):
        yield from _messages([item for name in ("events", "results") for item in page.get(name) or ()])
        return
    else:
        texts = [page.get(_MESSAGE), page.get("message")]
    for text in texts:
        read = parsed_or_none(text) if isinstance(text, str) else text
        if isinstance(read, dict):
            yield cast("dict[str, Any]", read)


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, _records, "messages of CloudWatch")


FORMAT = Format(
    name="cloudwatch",
    suffix=".cloudwatch.json",
    recognises=_recognises,
    decode=_decode,
    most=0.9,
    marks=HeadMarks(texts=((r"spanId\"",), (r"span_id\"",))),
)
