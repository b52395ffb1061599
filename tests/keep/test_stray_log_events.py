"""Log events that name no span, in a collector's store: the runs are those of one file that holds everything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reenact.collect.intake import Signal, take
from reenact.disk import frames
from reenact.find.listing import listed
from reenact.find.sources import find, runs_in
from reenact.keep.catalog import note_taken_in
from reenact.keep.collecting import decoding
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore, Placed
from reenact.values.finding import Filters
from reenact.values.run import Run

RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
SECOND = 10**9
START = 1_763_600_000 * SECOND


def value(of: Any) -> dict[str, Any]:
    return {"intValue": str(of)} if isinstance(of, int) else {"stringValue": of}


def attributes(**given: Any) -> list[dict[str, Any]]:
    return [{"key": name.replace("__", "."), "value": value(of)} for name, of in given.items()]


def spans(number: int, tokens: int, response: str | None = None) -> dict[str, Any]:
    """One call of a model in a trace of its own."""
    said = {"gen_ai__response__id": response} if response else {}
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat small",
        "startTimeUnixNano": str(START + number * SECOND),
        "endTimeUnixNano": str(START + number * SECOND + SECOND // 2),
        "attributes": attributes(
            gen_ai__operation__name="chat",
            gen_ai__request__model="small",
            gen_ai__usage__input_tokens=tokens,
            gen_ai__usage__output_tokens=3,
            **said,
        ),
    }
    return {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"spans": [span]}]}]}


def details(number: int, tokens: int, response: str | None = None) -> dict[str, Any]:
    """What was said in that call, in an event that names neither trace nor span."""
    said = {"gen_ai__response__id": response} if response else {}
    message = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}])
    log = {
        "timeUnixNano": str(START + number * SECOND + SECOND // 2),
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": attributes(
            gen_ai__operation__name="chat",
            gen_ai__request__model="small",
            gen_ai__usage__input_tokens=tokens,
            gen_ai__usage__output_tokens=3,
            gen_ai__input__messages=message,
            **said,
        ),
    }
    return {"resourceLogs": [{"resource": RESOURCE, "scopeLogs": [{"logRecords": [log]}]}]}


def taken_in(store: Path, requests: Iterable[dict[str, Any]]) -> None:
    kept = FrameStore(store)
    appender = kept.appender()
    for request in requests:
        signal: Signal = "traces" if "resourceSpans" in request else "logs"
        taken = take(json.dumps(request).encode(), signal, is_json=True, decoding=decoding())
        for frame in taken.frames:
            (at,) = appender.append([frame])
            kept.note([Placed(segment=appender.number, at=at, size=len(frame), frame=frames.head(frame))])
    appender.close()
    kept.close()


def outline(runs: Iterable[Run]) -> list[list[tuple[str, int, list[str]]]]:
    """Say of each run what its spans carry: events apart carry a span id that is made of where they are kept."""
    return sorted(
        [
            (str(span.attributes.get("reenact.synthetic", span.span_id)), len(span.events), _said(span))
            for span in _spans(run)
        ]
        for run in runs
    )


def _spans(run: Run) -> list[Any]:
    return [node.span for node in run.nodes]


def _said(span: Any) -> list[str]:
    return [str(event.attributes.get("gen_ai.input.messages")) for event in span.events]


THREE = [spans(1, 10, "r-1"), spans(2, 20), spans(3, 30)]
CASES = {
    "by_the_id_of_the_response": [*THREE, details(1, 99, "r-1")],
    "by_what_both_say": [*THREE, details(2, 20), details(3, 30)],
    "not_where_two_say_so": [*THREE, spans(4, 20), details(2, 20)],
    "not_where_none_does": [*THREE, details(9, 77)],
    "some_of_them": [*THREE, details(1, 10, "r-1"), details(9, 77)],
}


@pytest.mark.parametrize("first", ["spans", "events"])
@pytest.mark.parametrize("case", CASES)
def test_the_store_gives_the_runs_of_one_file(case: str, first: str, tmp_path: Path) -> None:
    requests = CASES[case] if first == "spans" else CASES[case][::-1]
    file = tmp_path / "all.otlp.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in CASES[case]))
    store = DirectoryStore(tmp_path / "store")
    store.prepare()
    for each in requests:  # each is noted by itself, as they come in
        taken_in(store.folder, [each])
        assert note_taken_in(DirectoryStore(store.folder), 60) == 0
    store = DirectoryStore(store.folder)
    ids = [str(run["id"]) for run in listed(store, None, Filters(), 0)]
    assert outline(find(each, store).run for each in ids) == outline(runs_in(file))
