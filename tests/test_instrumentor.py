from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reenact
from reenact.boundary import door
from reenact.instrumentor import RedactionInstrumentor
from reenact.keep.leftovers import leftovers
from reenact.pipeline import recording
from reenact.redact import provider_guard
from reenact.stores.directory import DirectoryStore


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


@pytest.fixture
def instrumentor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseInstrumentor:
    """The instrumentor as OpenTelemetry finds it."""
    monkeypatch.setenv("REENACT_STORE", str(tmp_path / "store"))
    (point,) = importlib.metadata.entry_points(group="opentelemetry_instrumentor", name="reenact")
    loaded = point.load()()
    assert isinstance(loaded, BaseInstrumentor)
    return loaded


def test_instrument_and_uninstrument(instrumentor: BaseInstrumentor, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    send = httpx2.Client.send
    instrumentor.instrument(tracer_provider=provider)
    assert instrumentor.is_instrumented_by_opentelemetry
    assert look_up("tea") == "tea is there"
    assert httpx2.Client.send is not send
    instrumentor.uninstrument()
    assert httpx2.Client.send is send
    assert (door.doorman(), recording.current()) == (None, None)
    assert look_up("milk") == "milk is there"
    assert [span.name for span in exporter.get_finished_spans()] == ["look_up"]
    (entry,) = DirectoryStore(tmp_path / "store").find()
    assert next(DirectoryStore(tmp_path / "store").spans(entry.id)).name == "look_up"
    assert list((tmp_path / "store" / "journal").iterdir()) == []


def test_instrumenting_again_and_twice(instrumentor: BaseInstrumentor, tmp_path: Path) -> None:
    for _ in range(2):
        instrumentor.instrument()
        instrumentor.instrument()
        look_up("tea")
        instrumentor.uninstrument()
        instrumentor.uninstrument()
    assert len(DirectoryStore(tmp_path / "store").find()) == 2


def test_a_recording_in_charge_is_left_in_charge(instrumentor: BaseInstrumentor, tmp_path: Path) -> None:
    made = recording.start(recording.Setup(store=tmp_path / "other"), {})
    instrumentor.instrument()
    look_up("tea")
    instrumentor.uninstrument()
    assert recording.current() is made
    recording.stop(made)
    assert not (tmp_path / "store").exists()


PROGRAM = """
import sys, reenact
from opentelemetry import trace
@reenact.tool
def look_up(item):
    return item + " is there"
print(look_up("tea"))
"""


def test_under_opentelemetry_instrument(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    if not command.exists():
        pytest.skip("opentelemetry-instrument is not installed here")
    (tmp_path / "program.py").write_text(PROGRAM)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REENACT_"))}
    done = subprocess.run(
        [str(command), sys.executable, "program.py"],
        cwd=tmp_path,
        env={**inherited, "REENACT_STORE": str(tmp_path / "store"), "OTEL_TRACES_EXPORTER": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "tea is there\n"), done.stderr
    store = DirectoryStore(tmp_path / "store")
    leftovers(store)
    (entry,) = store.find()
    assert entry.name == "program.py"
    assert shutil.which("opentelemetry-instrument") is None or "Traceback" not in done.stderr


UNCHANGED = """
import sys
from opentelemetry import trace
from opentelemetry._logs import get_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

{begin}
for multi in (None, ConcurrentMultiSpanProcessor()):
    provider = TracerProvider(active_span_processor=multi)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    provider.get_tracer("t").start_span("s", attributes={{"a": sys.argv[1]}}).end()
logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(ConsoleLogRecordExporter()))
logs.get_logger("t").emit(body=sys.argv[1])
"""
BEGIN = "from reenact.instrumentor import RedactionInstrumentor\nRedactionInstrumentor().instrument()"


@pytest.mark.parametrize(("asked", "leaks"), [("1", 0), ("on", 0), ("", 3), ("off", 3)])
def test_an_unchanged_program_is_redacted_where_its_environment_asks_for_it(
    tmp_path: Path, asked: str, leaks: int
) -> None:
    secret = "ghp_" + "aB3d" * 9
    done = subprocess.run(
        [sys.executable, "-c", UNCHANGED.format(begin=BEGIN), secret],
        env={**os.environ, "REENACT_REDACT": asked},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.count(secret), done.stdout.count("REDACTED_")) == (leaks, 3 - leaks)
    assert list(tmp_path.iterdir()) == []


def test_the_provider_that_it_is_given_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_REDACT", "1")
    monkeypatch.setattr(provider_guard, "redact_process", lambda: None)  # it would stay for the tests to come
    secret = "ghp_" + "aB3d" * 9
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    loaded = RedactionInstrumentor()
    loaded.instrument(tracer_provider=provider)
    provider.get_tracer("t").start_span("s", attributes={"a": secret}).end()
    loaded.uninstrument()
    (span,) = exporter.get_finished_spans()
    assert secret not in span.to_json()
