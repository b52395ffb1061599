"""Laws of the formats that read vendors' own records: ids are brought to one spelling, and no field is lost."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden_cases import GOLDEN, case_name
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError
from reenact.foreign.records import nanoseconds
from reenact.values.span import SpanRecord

FORMATS = {member.name.replace("-", "_"): member for member in members("formats", Format)}
RECORDS = ("agentops", "braintrust", "datadog", "langfuse", "langsmith", "mlflow", "openai_agents", "opik", "weave")
CASES = [path for name in RECORDS for path in sorted((GOLDEN / "formats" / name).glob("*"))]
FAMILIES = {
    "langfuse": ("langfuse-api-export/*.json", "agent-prism/langfuse-*.json"),
    "langsmith": ("langsmith-runs/*.json", "rosetta/langsmith.runs.jsonl"),
    "mlflow": ("rosetta/mlflow.*.json",),
    "braintrust": ("braintrust-snapshots/*.json", "rosetta/braintrust.rows.jsonl"),
    "datadog": ("rosetta/datadog-*.jsonl",),
    "openai_agents": ("rosetta/openai-agents.*.jsonl",),
    "agentops": ("agentops/agentops-*",),
}
HEAD = 64 << 10


def source_of(case: Path) -> Path:
    (source,) = case.glob("input.*")
    return source


def decoded(member: Format, data: bytes) -> list[SpanRecord]:
    records = list(member.decode(io.BytesIO(data), Path("file")))
    assert all(isinstance(record, SpanRecord) for record in records)
    return [record for record in records if isinstance(record, SpanRecord)]


def real_files(shared_data: Path) -> Iterator[tuple[str, Path]]:
    for name, kinds in FAMILIES.items():
        for kind in kinds:
            for path in sorted((shared_data / "traces").glob(kind)):
                yield name, path


# ------------------------------------------------------------------------------------------------------- what is told


def leaves(value: Any) -> Iterator[str]:
    """Every text in JSON, also in JSON inside of texts."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        read = inside(value)
        yield from leaves(read) if isinstance(read, dict | list | str) and read != value else [value]


def inside(text: str) -> Any:
    if text[:1] not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def told(span: SpanRecord) -> Iterator[str]:
    """Every text of a span, names included, since nested objects become names."""
    yield from (span.name, span.status_message, span.trace_id, span.span_id, span.parent_id or "", span.scope.name)
    yield span.scope.version
    bags = [span.attributes, span.resource.attributes, span.scope.attributes]
    for bag in (*bags, *(event.attributes for event in span.events)):
        yield from leaves(bag)
        yield from bag
    yield from (event.name for event in span.events)


def documents(source: Path) -> list[Any]:
    text = source.read_text("utf-8")
    if source.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(text, newline="")))
    if source.suffix == ".md" and not text.startswith("{"):
        text = text.split("```json\n")[1].split("\n```")[0]
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def lost(member: Format, source: Path) -> list[str]:
    """Texts of a file that stand nowhere in its spans, less instants that a span's times hold."""
    spans = decoded(member, source.read_bytes())
    words = {word for span in spans for word in told(span)}
    whole = "\0".join(sorted(words))
    times = {time for span in spans for time in (span.start_ns, span.end_ns, *(event.time_ns for event in span.events))}
    constants = {"trace", "trace.span", "generation-create", "generation-update", "trace-create", "ok", "OK", "Client"}
    constants |= {"Internal", "undefined", "span", "list"}
    return sorted(
        leaf
        for leaf in {leaf for document in documents(source) for leaf in leaves(document)}
        if leaf
        and leaf not in words
        and leaf not in whole
        and leaf.lower() not in words
        and leaf not in constants
        and not leaf.startswith("STATUS_CODE_")
        and nanoseconds(leaf) not in (times - {0})
    )


# ---------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_no_text_of_a_record_is_lost(case: Path) -> None:
    ids = re.compile(r"e\d|AQ\w+")  # of envelopes around records, which say nothing of them
    assert [leaf for leaf in lost(FORMATS[case.parent.name], source_of(case)) if not ids.fullmatch(leaf)] == []


def test_no_text_of_a_real_record_is_lost(shared_data: Path) -> None:
    for name, path in real_files(shared_data):
        assert lost(FORMATS[name], path) == [], path.name


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_record_is_known_by_its_own_format_alone(case: Path) -> None:
    head = source_of(case).read_bytes()[:HEAD]
    sure = {name: member.recognises(head) for name, member in FORMATS.items()}
    assert max(sure, key=lambda name: sure[name]) == case.parent.name
    assert sorted(sure.values())[-2] < 0.85


def test_real_records_are_known_by_their_own_format(shared_data: Path) -> None:
    for name, path in real_files(shared_data):
        head = path.read_bytes()[:HEAD]
        sure = {other: member.recognises(head) for other, member in FORMATS.items()}
        assert max(sure, key=lambda other: sure[other]) == name, path.name


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_ids_are_hexadecimal_and_parents_are_there(case: Path) -> None:
    spans = decoded(FORMATS[case.parent.name], source_of(case).read_bytes())
    assert_identified(spans)


def test_real_ids_are_hexadecimal(shared_data: Path) -> None:
    for name, path in real_files(shared_data):
        assert_identified(decoded(FORMATS[name], path.read_bytes()))


def assert_identified(spans: list[SpanRecord]) -> None:
    assert spans
    for span in spans:
        assert re.fullmatch(r"[0-9a-f]{32}", span.trace_id)
        assert re.fullmatch(r"[0-9a-f]{16}", span.span_id)
        assert span.trace_id.strip("0")
        assert span.span_id.strip("0")
        assert span.parent_id is None or re.fullmatch(r"[0-9a-f]{16}", span.parent_id)
        assert span.parent_id != span.span_id
        assert span.end_ns >= span.start_ns or span.end_ns == 0
    assert len({(span.trace_id, span.span_id) for span in spans}) == len(spans)


@pytest.mark.parametrize("name", RECORDS)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_is_an_input_error_or_other_spans(name: str, data: st.DataObject) -> None:
    member = FORMATS[name]
    case = data.draw(st.sampled_from([case for case in CASES if case.parent.name == name]))
    good = bytearray(source_of(case).read_bytes())
    match data.draw(st.sampled_from(["cut", "byte", "swap"])):
        case "cut":
            del good[data.draw(st.integers(0, len(good) - 1)) :]
        case "byte":
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
        case _:  # a value of another type than anybody expects
            text = good.decode()
            values = [found.span() for found in re.finditer(r'(?<=": )(?:"[^"\\]*"|\d+|null|\{\}|\[\])', text)]
            if values:
                start, end = data.draw(st.sampled_from(values))
                other = data.draw(st.sampled_from(["null", "7", '"x"', "[]", "{}", "[[1]]", "-1e999", "true"]))
                good = bytearray(f"{text[:start]}{other}{text[end:]}".encode())
    came = refused_or_decoded(member, bytes(good))
    assert came.place.startswith("file") if isinstance(came, InputError) else came is not None


def refused_or_decoded(member: Format, data: bytes) -> InputError | list[SpanRecord]:
    try:
        return decoded(member, data)
    except InputError as refusal:
        return refusal


def test_every_member_has_cases(record_property: Callable[[str, object], None]) -> None:
    assert {case.parent.name for case in CASES} == set(RECORDS)
    record_property("figure", f"formats of record APIs: {len(RECORDS)}, golden cases: {len(CASES)}")
