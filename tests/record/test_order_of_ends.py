"""The ends of calls are written down in the order of their numbers, whichever thread comes first."""

from __future__ import annotations

import threading
from pathlib import Path

from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from reenact.boundary.place import Place
from reenact.formats.journal import Reader
from reenact.record.journal import JournalProcessor
from reenact.record.span import CallSpans
from reenact.redact.engine import Engine

PLACE = Place(trace_id=1, span_id=2)


def test_no_other_call_ends_between_the_number_of_an_end_and_its_writing(tmp_path: Path) -> None:
    journal = JournalProcessor(tmp_path, "0-1", {}, "reenact", "1")
    spans = CallSpans(journal, Engine(salt="00" * 16))
    first, second = (spans.start(name, PLACE, SpanKind.CLIENT, {}, {}) for name in ("first", "second"))
    numbers = iter(range(1, 9))
    other = threading.Thread(target=lambda: second.end({}, StatusCode.OK, "", numbers.__next__))

    def slowly() -> int:
        number = next(numbers)
        other.start()
        other.join(0.2)
        return number

    first.end({}, StatusCode.OK, "", slowly)
    other.join()
    journal.shutdown()
    ended = Reader("test").feed(journal.path.read_bytes())
    assert [(each.name, each.attributes["reenact.order.end"]) for each in ended] == [("first", 1), ("second", 2)]
