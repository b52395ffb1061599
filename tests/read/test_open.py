from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from reenact.errors import InputError
from reenact.formats import otlp_json, otlp_proto
from reenact.read import unpack
from reenact.read.open import open_recording, open_spans
from reenact.values.log import LogRecord
from reenact.values.span import SpanRecord

_random = random.Random(0)
SPANS = [
    SpanRecord(
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id=f"{number:016x}",
        parent_id=None,
        name=f"span {number}",
        start_ns=number,
        end_ns=number + 1,
        attributes={"text": _random.randbytes(50).hex()},
    )
    for number in range(1, 200)
]
JSON = otlp_json.encode(SPANS)
PROTO = otlp_proto.encode(SPANS)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def zstd_streamed(data: bytes) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(data) + stream.flush()


def framed(*messages: bytes) -> bytes:
    return b"".join(len(packed).to_bytes(4, "big") + packed for packed in map(zstd, messages))


@pytest.fixture
def put(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "trace"
        path.write_bytes(data)
        return path

    return write


PACKED = {
    "plain json": JSON,
    "plain protobuf": PROTO,
    "gzip": gzip.compress(JSON),
    "gzip members": gzip.compress(JSON[:100]) + gzip.compress(JSON[100:]),
    "gzip with padding": gzip.compress(JSON) + b"\0" * 512,
    "zstd": zstd(JSON),
    "zstd without a size": zstd_streamed(PROTO),
    "zstd frames": zstd(JSON[:100]) + zstd(JSON[100:]),
    "zstd in gzip": gzip.compress(zstd(PROTO)),
    "framed zstd json": framed(otlp_json.encode(SPANS[:7]), otlp_json.encode(SPANS[7:]).rstrip()),
    "framed zstd protobuf": framed(otlp_proto.encode(SPANS[:7]), otlp_proto.encode(SPANS[7:])),
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_packing_and_format_are_told_by_content(put: Callable[[bytes], Path], packed: bytes) -> None:
    assert list(open_spans(put(packed))) == SPANS


@pytest.mark.parametrize("name", ["plain json", "zstd", "plain protobuf"])
def test_standard_input_is_read_through_a_pipe(name: str) -> None:
    program = (
        "import sys; from pathlib import Path; from reenact.read.open import open_spans;"
        "print(len(list(open_spans(Path('-')))))"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], input=PACKED[name], capture_output=True, env=environ, check=True
    )
    assert done.stdout.split() == [b"199"]


class _Trickle(io.RawIOBase):
    """A pipe that gives three bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        piece = self._data.read(min(3, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_a_slow_pipe_is_looked_at_as_far_as_a_file_is(packed: bytes) -> None:
    stream = unpack.unpacked(io.BufferedReader(_Trickle(packed), 8), "pipe")
    head, stream = unpack.looked_at(stream, 1000)
    assert len(head) == 1000
    assert stream.read(1000) == head


# ------------------------------------------------------------------------------------------------------------ refusals


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as refusal:
        list(open_spans(path))
    assert refusal.value.place.startswith(str(path))
    assert refusal.value.exit_code == 3
    assert "\n" not in refusal.value.problem
    return refusal.value


def test_a_path_that_is_no_readable_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing").problem
    assert "directory" in refused(tmp_path).problem
    assert "cannot be opened" in refused(tmp_path / ("x" * 5000)).problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(put: Callable[[bytes], Path]) -> None:
    path = put(JSON)
    path.chmod(0)
    assert "permission" in refused(path).problem


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"PAR1\x15\x04\x15", "Parquet file cannot be read"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a trace file"),
        (b"hello, world\n", "not a trace file"),
        (b"\x00\x01\x02\x03" * 100, "not a trace file"),
        (b'{"resourceSpans": []}\n', "holds no spans"),
        (b'{"data": []}\n', "not a trace file that is known: it is JSON with `data`"),
        (b"[]", "holds no spans"),
        (JSON[:-20], "cut off"),
        (PROTO[:-20], "the file ends"),
        (gzip.compress(JSON)[:-20], "gzip data is cut off"),
        (zstd(JSON)[:-20], "zstd data is cut off"),
        (gzip.compress(JSON) + b"garbage", "gzip data is damaged"),
        (zstd(JSON) + b"garbage", "zstd data is damaged"),
        (gzip.compress(JSON)[:300] + b"\xff" * 300, "gzip data is"),
        (zstd(JSON)[:300] + b"\xff" * 300, "zstd data is"),
        (framed(JSON)[:-20], "ends inside a frame"),
        (framed(JSON, JSON)[: len(framed(JSON)) + 2], "ends inside a length"),
        (b"[" * 10_000, "file ends"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "1,024 levels"),
    ],
)
def test_a_file_that_is_no_whole_trace(put: Callable[[bytes], Path], data: bytes, said: str) -> None:
    assert said in refused(put(data)).problem


def test_the_place_of_an_error_is_path_and_line(put: Callable[[bytes], Path]) -> None:
    path = put(b'{"resourceSpans":[]}\n\n{"resourceSpans":[{"scopeSpans":[{"spans":["none"]}]}]}\n')
    assert refused(path).place == f"{path}:3"


def test_spans_before_the_broken_line_come_and_the_error_still_does(put: Callable[[bytes], Path]) -> None:
    spans = open_spans(put(JSON + b'{"resourceSpans":[{"scop'))
    assert [next(spans) for _ in SPANS] == SPANS
    with pytest.raises(InputError):
        next(spans)


def test_a_line_over_the_limit_is_refused_within_the_memory_of_the_limit(put: Callable[[bytes], Path]) -> None:
    path = put(b'{"resourceSpans":[]}\n')
    with path.open("ab") as file:
        file.write(b'{"resourceSpans":[{"x":"')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}]}\n')
    program = (
        "import resource, sys; from pathlib import Path; from reenact.read.open import open_spans\n"
        "import reenact.discover; from reenact.contracts.format import Format\n"
        "reenact.discover.members('formats', Format)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: list(open_spans(Path(sys.argv[1])))\n"
        "except Exception as refusal: print(refusal)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert f"{path}:2: this line is longer than the limit of 128 MiB" in done.stdout
    assert int(done.stdout.split()[-1]) < 180 << 10  # KiB; twice the limit would be 256 MiB


def test_the_line_limit_can_be_set(put: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_MAX_LINE_BYTES", "1000")
    path = put(JSON)
    assert refused(path).problem == "this line is longer than the limit of 1000 bytes"
    monkeypatch.setenv("REENACT_MAX_LINE_BYTES", "a lot")
    with pytest.raises(InputError, match=r"\$REENACT_MAX_LINE_BYTES: 'a lot' is not a positive number of bytes"):
        list(open_spans(path))


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_what_expands_without_bounds_is_refused(
    put: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    bomb = put(pack(b'{"resourceSpans":[]}\n' + (b" " * 999 + b"\n") * 70_000))
    if pack is zstd:
        assert "decompression bomb" in refused(bomb).problem
    monkeypatch.setenv("REENACT_MAX_UNPACKED_BYTES", str(1 << 20))
    assert "expands to more than 1 MiB" in refused(bomb).problem


def test_real_files_of_every_framing(shared_data: Path) -> None:
    folder = shared_data / "traces" / "format-otlp"
    counts = {path.name: sum(1 for _ in open_spans(path)) for path in sorted(folder.iterdir())}
    assert {name: count for name, count in counts.items() if count != 16} == {"trace.json": 1}
    first, *others = (list(open_spans(path)) for path in sorted(folder.glob("three.*")))
    assert all(repr(spans) == repr(first) for spans in others)


# -------------------------------------------------------------------------------------------------- more than one file


def zipped(files: dict[str, bytes], **options: Any) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


LOG = {
    "resourceLogs": [
        {
            "scopeLogs": [
                {
                    "logRecords": [
                        {
                            "traceId": SPANS[0].trace_id,
                            "spanId": SPANS[0].span_id,
                            "observedTimeUnixNano": "5",
                            "eventName": "gen_ai.user.message",
                            "body": {"stringValue": "Hi"},
                        }
                    ]
                }
            ]
        }
    ]
}
LOGS = json.dumps(LOG).encode() + b"\n"
SEVERAL = {
    "b/second.json.gz": gzip.compress(otlp_json.encode(SPANS[7:])),
    "a-first.pb": otlp_proto.encode(SPANS[:7]),
    "README.md": b"# Where these come from\n",
    "settings.json": b'{"theme": "dark"}\n',
    "empty.jsonl": b"",
}


def test_a_directory_is_read_as_one_recording_and_what_is_no_trace_file_is_told(tmp_path: Path) -> None:
    for name, data in SEVERAL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / ".hidden.jsonl").write_bytes(JSON)
    blob = tmp_path / "blobs" / "ab" / f"ab{'0' * 62}"  # a value that a recording keeps beside itself
    blob.parent.mkdir(parents=True)
    blob.write_bytes(JSON)
    opened = open_recording(tmp_path)
    assert list(opened.records) == SPANS
    (note,) = opened.notes
    assert note.startswith("3 files in the directory hold no spans")
    assert all(name in note for name in ("README.md", "settings.json", "empty.jsonl"))


@pytest.mark.parametrize("piped", [False, True])
def test_a_zip_file_is_read_as_one_recording(put: Callable[[bytes], Path], *, piped: bool) -> None:
    packed = zipped(SEVERAL)
    if piped:
        program = (
            "from pathlib import Path; from reenact.read.open import open_spans;print(len(list(open_spans(Path('-')))))"
        )
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], input=packed, capture_output=True, env=environ, check=True
        )
        assert done.stdout.split() == [b"199"]
        return
    opened = open_recording(put(packed))
    assert list(opened.records) == SPANS
    assert "passed over" in opened.notes[0]


def test_a_damaged_file_in_a_directory_or_zip_file_is_named(tmp_path: Path, put: Callable[[bytes], Path]) -> None:
    files = {"one.jsonl": JSON, "two.jsonl": JSON[:-20]}
    assert refused(put(zipped(files))).place == f"{tmp_path / 'trace'}!two.jsonl:1"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert refused(folder).place == f"{folder / 'two.jsonl'}:1"


def test_zip_files_that_hold_nothing_or_are_broken_are_refused(put: Callable[[bytes], Path]) -> None:
    assert "holds no file of spans: not README.md" in refused(put(zipped({"README.md": b"#"}))).problem
    whole = zipped({"one.jsonl": JSON})
    assert "is damaged" in refused(put(whole[:-40])).problem
    assert "is damaged" in refused(put(whole[:60] + b"\xff" * 40 + whole[100:])).problem


@pytest.mark.slow
def test_a_zip_file_that_expands_without_bounds_is_refused(
    put: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = b'{"resourceSpans":[]}\n' + (b" " * 999 + b"\n") * 40_000
    bomb = put(zipped({f"{number}.jsonl": blank for number in range(3)}))
    monkeypatch.setenv("REENACT_MAX_UNPACKED_BYTES", str(100 << 20))  # more than each, less than all of them
    assert "!2.jsonl: byte" in refused(bomb).place
    assert "expands to more than 100 MiB" in refused(bomb).problem


def test_log_events_in_a_file_beside_are_read_with_the_spans(tmp_path: Path) -> None:
    (tmp_path / "x.otlp.jsonl").write_bytes(JSON)
    (tmp_path / "x.otlp.logs.jsonl").write_bytes(LOGS)
    opened = open_recording(tmp_path / "x.otlp.jsonl")
    *spans, log = opened.records
    assert spans == SPANS
    assert isinstance(log, LogRecord)
    assert (log.span_id, log.event_name, log.body) == (SPANS[0].span_id, "gen_ai.user.message", "Hi")
    assert opened.notes == ["1 log events read from x.otlp.logs.jsonl beside it"]
    assert [type(record) for record in open_spans(tmp_path / "x.otlp.logs.jsonl")] == [LogRecord]


def line(**changed: Any) -> bytes:
    span = {"traceId": SPANS[0].trace_id, "spanId": SPANS[0].span_id, "name": "ill"} | changed
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode() + b"\n"


NAMELESS = {
    "span id null": line(spanId=None),
    "span id empty": line(spanId=""),
    "span id all zeros": line(spanId="0" * 16),
    "span id in base64, all zeros": line(spanId="AAAAAAAAAAA="),
    "span id too long": line(spanId="ab" * 9),
    "span id a number": line(spanId=7),
    "trace id null": line(traceId=None),
    "trace id empty": line(traceId=""),
    "trace id all zeros": line(traceId="0" * 32),
    "trace id no hexadecimal": line(traceId="z" * 32),
    "trace id an object": line(traceId={"low": 1}),
}


@pytest.mark.parametrize("nameless", NAMELESS.values(), ids=NAMELESS)
def test_a_span_whose_ids_are_none_is_passed_over_and_told(put: Callable[[bytes], Path], nameless: bytes) -> None:
    opened = open_recording(put(otlp_json.encode(SPANS[:7]) + nameless + otlp_json.encode(SPANS[7:])))
    assert list(opened.records) == SPANS
    (note,) = opened.notes
    assert note.startswith("spans without a valid trace and span id, not read: 1 (trace line 2: ")


def test_many_such_spans_are_told_in_one_line(put: Callable[[bytes], Path]) -> None:
    opened = open_recording(put(JSON + b"".join(NAMELESS.values())))
    assert list(opened.records) == SPANS
    (note,) = opened.notes
    assert f"not read: {len(NAMELESS)} (trace line 2: " in note
    assert note.endswith("; …)")
    assert note.count("line") == 3


def test_a_file_of_nothing_else_says_why_it_holds_no_spans(put: Callable[[bytes], Path]) -> None:
    for data in (line(spanId=""), wired(b"", b"\1" * 8)):
        refusal = refused(put(data))
        assert "holds no spans; spans without a valid trace and span id, not read: 1" in refusal.problem


def test_a_parent_a_link_or_the_id_of_a_log_event_that_is_none_costs_itself_alone(put: Callable[[bytes], Path]) -> None:
    links = [{"traceId": "", "spanId": ""}, {"traceId": SPANS[1].trace_id, "spanId": SPANS[1].span_id}]
    log = json.loads(LOGS)
    log["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["traceId"] = "none"
    opened = open_recording(put(line(parentSpanId="12", links=links) + json.dumps(log).encode()))
    span, event = opened.records
    assert isinstance(span, SpanRecord)
    assert span.parent_id is None
    assert [link.span_id for link in span.links] == [SPANS[1].span_id]
    assert isinstance(event, LogRecord)
    assert (event.trace_id, event.body) == ("", "Hi")
    assert sorted(note.partition(",")[0] for note in opened.notes) == [
        "ids in log events that are no ids",
        "ids of parents that are no ids",
        "links without a valid trace and span id",
    ]


def wired(trace_id: bytes, span_id: bytes) -> bytes:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

    scoped = ScopeSpans(spans=[Span(trace_id=trace_id, span_id=span_id, name="ill")])
    return TracesData(resource_spans=[ResourceSpans(scope_spans=[scoped])]).SerializeToString()


@pytest.mark.parametrize("framing", ["bare", "fixed", "zstd"])
@pytest.mark.parametrize(
    ("trace_id", "span_id"), [(b"", b"\1" * 8), (b"\0" * 16, b"\1" * 8), (b"\1" * 16, b""), (b"\1" * 16, b"\1" * 7)]
)
def test_protobuf_passes_over_spans_whose_ids_are_none(
    put: Callable[[bytes], Path], trace_id: bytes, span_id: bytes, framing: str
) -> None:
    messages = [otlp_proto.encode(SPANS[:7]), wired(trace_id, span_id), otlp_proto.encode(SPANS[7:])]
    if framing == "fixed":
        messages = [len(message).to_bytes(4, "big") + message for message in messages]
    opened = open_recording(put(framed(*messages) if framing == "zstd" else b"".join(messages)))
    assert list(opened.records) == SPANS
    (note,) = opened.notes
    assert note.startswith("spans without a valid trace and span id, not read: 1 (trace byte ")


def test_what_is_damaged_is_refused_whatever_else_is_passed_over(put: Callable[[bytes], Path]) -> None:
    path = put(line(spanId=None) + JSON + b'{"resourceSpans":[{"scop')
    assert refused(path).place == f"{path}:3"
