"""A collector that deletes what is too old beside the work: what is to stay stays, to the last answered span."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from collect.running import Running, collecting, start
from reenact.keep.retention import Flags
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore
from waiting import until

DAYS_2 = 2 * 24 * 3600 * 10**9
OPTIONS = ("--idle", "0.3", "--keep-days", "1", "--prune-every", "0.3")


class Answered(SpanExporter):
    """The stock exporter, and what it was told is taken."""

    def __init__(self, port: int) -> None:
        self._exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
        self.spans: dict[str, set[str]] = {}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            for span in spans:
                self.spans.setdefault(f"{span.context.trace_id:032x}", set()).add(f"{span.context.span_id:016x}")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class Program:
    """Sends runs as any instrumented program does."""

    def __init__(self, running: Running) -> None:
        self.answered = Answered(running.http_port)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(self.answered, schedule_delay_millis=50))
        self.tracer = self.provider.get_tracer("a.program")

    def begun(self, ago: int) -> Span:
        return self.tracer.start_span(
            "run", start_time=time.time_ns() - ago, attributes={"openinference.span.kind": "AGENT"}
        )

    def called(self, root: Span, ago: int, tool: str = "look") -> None:
        said = {"openinference.span.kind": "TOOL", "tool.name": tool, "input.value": "{}"}
        at = time.time_ns() - ago
        span = self.tracer.start_span(tool, set_span_in_context(root), start_time=at, attributes=said)
        span.end(at + 1000)

    def ended(self, root: Span, ago: int, *, failed: bool = False) -> str:
        if failed:
            root.set_status(Status(StatusCode.ERROR, "it went wrong"))
        root.end(time.time_ns() - ago)
        return f"{root.get_span_context().trace_id:032x}"

    def run(self, ago: int = 0, *, failed: bool = False, tool: str = "look") -> str:
        root = self.begun(ago)
        self.called(root, ago, tool)
        return self.ended(root, ago, failed=failed)


def kept(store: Path) -> dict[str, set[str]]:
    found = DirectoryStore(store)
    return {trace_id: {record.span_id for record in found.records(trace_id)} for trace_id in found.trace_ids()}


@pytest.mark.slow
def test_old_runs_go_while_others_come_and_nothing_of_what_stays_is_lost(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with collecting(store, *OPTIONS, "--flag-unless", "never called delete_accounts") as running:
        program = Program(running)
        stay = {program.run(DAYS_2, failed=True), program.run(DAYS_2, tool="delete_accounts")}
        go: set[str] = set()
        slow = program.begun(DAYS_2)  # a run that goes wrong in the end, and that comes in all the while
        over = threading.Event()

        def others() -> None:
            while not over.wait(0.02):
                stay.add(program.run())
                go.add(program.run(DAYS_2))

        thread = threading.Thread(target=others)
        thread.start()
        for number in range(30):
            time.sleep(0.2)
            program.called(slow, DAYS_2, f"step_{number}")
        stay.add(program.ended(slow, DAYS_2, failed=True))
        over.set()
        thread.join()
        assert program.provider.force_flush()
        left = _left(store, go)
        while left:  # it deletes some at a time: what may not take long is each step
            until(lambda: len(_left(store, go)) < len(left), 60, lambda: "".join(running.said))  # noqa: B023
            left = _left(store, go)
        program.provider.shutdown()
        said = "".join(running.said)
    assert set(program.answered.spans) == stay | go, "everything was answered"
    assert len(go) > 50
    for again in range(2):
        assert kept(store) == {trace_id: program.answered.spans[trace_id] for trace_id in stay}
        if not again:  # and so where the index is made again from the files
            for path in (store / "frames").glob("index*"):
                path.unlink()
            FrameStore(store).catch_up()
    (flag,) = Flags(DirectoryStore(store)).all().values()
    assert flag.startswith("never called delete_accounts")
    assert "runs deleted and 1 flagged by the rules of retention" in said
    assert "was not deleted" not in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_what_was_deleted_gives_its_room_back_and_its_marks_do_not_pile_up(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with collecting(store, *OPTIONS, "--max-size", "0.02") as running:
        program, left = Program(running), DirectoryStore(store)
        packs = lambda: sum(path.stat().st_size for path in (store / "frames").glob("pack-*"))  # noqa: E731 - said twice

        def is_settled() -> bool:
            further = left.further()
            packed = sum(each.packed_bytes() for each in further)
            return 0 < packed <= 0.02 * (1 << 20) and not any(each.unnoted(1_000_000) for each in further)

        for _ in range(8):
            for _ in range(30):
                program.run()
            program.provider.force_flush()
            until(is_settled, 60, lambda: "".join(running.said))
        until(lambda: packs() < 60 << 10, 60, lambda: f"packs of {packs()} bytes")
        program.provider.shutdown()
    kept_ones = set(left.trace_ids())
    stays = [trace_id in kept_ones for trace_id in program.answered.spans]
    counts = [sum(stays[at : at + 30]) for at in range(0, 240, 30)]
    oldest = next(place for place, count in enumerate(counts) if count)
    assert counts[oldest + 1 :] == [30] * (7 - oldest), "the newest stay"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--flag-if", "called look"), "nothing would be deleted"),
        (("--keep-days", "1", "--flag-if", "whatever it likes"), "whatever it likes"),
    ],
)
def test_rules_that_make_no_sense_are_refused_before_anything_listens(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(AssertionError, match=said), collecting(tmp_path / "store", *options):
        pass


def test_an_error_does_not_end_the_keeping(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with collecting(store, *OPTIONS) as running:
        (store / "flags").mkdir()
        (store / "flags" / "damaged").write_bytes(b"\xff")  # no text
        program = Program(running)
        old = program.run(DAYS_2)
        program.provider.force_flush()
        said = lambda: "".join(running.said)  # noqa: E731 - said twice
        until(lambda: "was not deleted for now" in said(), 60, said)
        assert old in DirectoryStore(store).trace_ids()
        (store / "flags" / "damaged").unlink()
        until(lambda: old not in DirectoryStore(store).trace_ids(), 60, said)
        program.provider.shutdown()
        assert old not in DirectoryStore(store).trace_ids()
        assert not any("it is started again" in line for line in running.said)


@pytest.mark.slow
@pytest.mark.timeout(300)
def _left(store: Path, runs: set[str]) -> set[str]:
    return runs & set(DirectoryStore(store).trace_ids())


def test_killed_while_it_deletes_it_loses_nothing_of_what_stays(tmp_path: Path) -> None:
    store, rng = tmp_path / "store", random.Random(8)
    stay, go = dict[str, set[str]](), set[str]()
    for _ in range(12):
        running = start(store, *OPTIONS)
        program = Program(running)
        end = time.monotonic() + rng.uniform(1.0, 4.0)
        while time.monotonic() < end:
            kept_run, old_run = program.run(), program.run(DAYS_2)
            program.provider.force_flush()
            answered = program.answered.spans
            stay |= {kept_run: set(answered[kept_run])}
            go |= {old_run} & set(answered)
        running.kill()
        program.provider.shutdown()
    with collecting(store, *OPTIONS) as running:
        left = _left(store, go)
        while left:  # it deletes some at a time: what may not take long is each step
            until(lambda: len(_left(store, go)) < len(left), 60, lambda: "".join(running.said))  # noqa: B023
            left = _left(store, go)
        assert not any("Traceback" in line for line in running.said)
    assert len(go) > 50
    for again in range(2):
        assert kept(store) == stay
        if not again:
            for path in (store / "frames").glob("index*"):
                path.unlink()
            FrameStore(store).catch_up()
