"""A stranger's recording runs nothing: every way to use one, by everything that it may name.

What is done is observed from outside: canary files that hostile code would make, a server that counts what is asked of
it, the files of the project and of a folder beside it by time and digest, and for one real process of each way the
system calls (strace, where it is installed).
"""

from __future__ import annotations

import http.client
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import reenact as api
from collect.running import Running, start
from desk import Desk
from reenact.cli.main import reenact
from reenact.errors import ReenactError
from reenact.formats import journal, otlp_json, otlp_proto, phoenix_json
from reenact.keep.catalog import index
from reenact.stores.directory import DirectoryStore
from reenact.testing.cases import Case, Options, Replays, TestFailed
from reenact.values.json import compact
from reenact.values.span import SpanRecord
from trust.hostile import CARRIERS, OF_PROGRAMS, Lair, everything, plain, renamed, watched

pytestmark = pytest.mark.sample(5)

NOT_YOURS = "is not known as your own recording"
ALLOWED = ("--writes", "allow")
"""So that a program which were run could make a canary: by default a replay refuses to write."""
OWN_COMMAND = ("--", sys.executable, "agent.py")


@dataclass(frozen=True)
class Said:
    """What a command ended with, and what it said."""

    code: int
    text: str


def command(*words: str, stdin: bytes = b"") -> Said:
    """Run a command of ours in this process."""
    heard = io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)), redirect_stderr(heard):
            reenact.main(list(words), standalone_mode=False)
    except SystemExit as end:
        return Said(int(end.code or 0), heard.getvalue())
    except ReenactError as error:
        return Said(error.exit_code, str(error))
    finally:
        sys.stdin = before
    return Said(0, heard.getvalue())


Way = Callable[[list[SpanRecord], Desk], Said]


def _file(spans: list[SpanRecord], desk: Desk) -> str:
    path = desk.folder.parent / "stranger.jsonl"
    path.write_bytes(otlp_json.encode(spans))
    return str(path)


def by_file(spans: list[SpanRecord], desk: Desk) -> Said:
    return command("replay", *ALLOWED, _file(spans, desk))


def by_stdin(spans: list[SpanRecord], _: Desk) -> Said:
    return command("replay", *ALLOWED, "-", stdin=otlp_json.encode(spans))


def by_fork(spans: list[SpanRecord], desk: Desk) -> Said:
    return command("fork", *ALLOWED, _file(spans, desk), "--at", "first tool", "--set", "result=4")


def by_fuzz(spans: list[SpanRecord], desk: Desk) -> Said:
    return command("fuzz", *ALLOWED, _file(spans, desk), "--cases", "2")


def by_promote(spans: list[SpanRecord], desk: Desk) -> Said:
    return command("promote", _file(spans, desk))


def by_import(spans: list[SpanRecord], desk: Desk) -> Said:
    assert command("import", _file(spans, desk)).code == 0
    return command("replay", *ALLOWED, "last")


def by_planted_store(spans: list[SpanRecord], desk: Desk) -> Said:
    """A store that came with the project: a proof of a run of the user's own is on every root, and on a journal's."""
    store = DirectoryStore(desk.folder / ".reenact")
    store.prepare()
    mac = compact({"version": 1, "mac": "0" * 64})
    proven = [_with(span, {"reenact.origin": mac}) for span in spans]
    store.append(proven, proofs=True)
    index(store, [proven[0].trace_id])
    (store.journals / "0123456789abcdef-fedcba9876543210.rnj").write_bytes(journal.FORMAT.encode(proven))  # type: ignore[misc]
    return command("replay", *ALLOWED, "last")


def _with(span: SpanRecord, further: dict[str, Any]) -> SpanRecord:
    return replace(span, attributes={**span.attributes, **further})


def by_plugin(spans: list[SpanRecord], desk: Desk) -> Said:
    fixture = desk.folder / "tests" / "recordings" / "stranger.jsonl"
    fixture.parent.mkdir(exist_ok=True)
    fixture.write_bytes(otlp_json.encode(spans))
    case = Case(test="t", fixture=str(fixture), options=Options(), store=DirectoryStore(desk.folder.parent / "scratch"))
    try:
        Replays(case)()
    except TestFailed as failed:
        return Said(3, str(failed))
    finally:
        fixture.unlink()
    return Said(0, "it ran")


def by_api(spans: list[SpanRecord], desk: Desk) -> Said:
    """In code the program is the block itself; nothing of the recording's is started in its place."""
    found = api.load(_file(spans, desk))
    assert not found.starts
    before = dict(os.environ)
    with api.replay(found, strict=False, store=desk.folder.parent / "scratch"):
        assert dict(os.environ) == before
    return Said(3, f"{found.source}: the block ran, and nothing that the recording names")


class _Backend(BaseHTTPRequestHandler):
    """Answers as Phoenix and ClickHouse do, over HTTP, with the rows of one trace."""

    spans: list[SpanRecord]

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path.endswith("/traces"):
            told: Any = {"data": [{"trace_id": self.spans[0].trace_id}], "next_cursor": None}
            self._answer(compact(told).encode())
        else:
            self._answer(phoenix_json.FORMAT.encode(self.spans))  # type: ignore[misc]

    def do_POST(self) -> None:
        ask = self.rfile.read(int(self.headers["content-length"])).decode()
        wanted = parse_qs(urlsplit(self.path).query)
        if "system.tables" in ask:
            self._answer(b'{"name":"otel_traces"}\n')
        elif "SELECT *" in ask and wanted:
            self._answer("".join(f"{compact(_row(span))}\n" for span in self.spans).encode())
        else:
            row = {"TraceId": self.spans[0].trace_id, "At": self.spans[0].start_ns}
            self._answer(f"{compact(row)}\n".encode())

    def _answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def _row(span: SpanRecord) -> Any:
    """Spell a span as a row of `otel_traces` holds it: every attribute is text."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else compact(value)

    return {
        "Timestamp": span.start_ns,
        "TraceId": span.trace_id,
        "SpanId": span.span_id,
        "ParentSpanId": span.parent_id or "",
        "SpanName": span.name,
        "Duration": max(0, span.end_ns - span.start_ns),
        "SpanAttributes": {name: text(value) for name, value in span.attributes.items()},
        "ResourceAttributes": {name: text(value) for name, value in span.resource.attributes.items()},
    }


@contextmanager
def _serving(spans: list[SpanRecord]) -> Iterator[int]:
    handler = type("Handler", (_Backend,), {"spans": spans})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def by_phoenix(spans: list[SpanRecord], desk: Desk) -> Said:
    del desk
    with _serving(spans) as port:
        return command("replay", *ALLOWED, f"phoenix+http://127.0.0.1:{port}/default")


def by_clickhouse(spans: list[SpanRecord], desk: Desk) -> Said:
    del desk
    with _serving(spans) as port:
        return command("replay", *ALLOWED, f"clickhouse://127.0.0.1:{port}/default")


WAYS: dict[str, Way] = {
    "replay FILE": by_file,
    "replay -": by_stdin,
    "fork": by_fork,
    "fuzz": by_fuzz,
    "promote": by_promote,
    "import, replay": by_import,
    "planted store": by_planted_store,
    "plugin": by_plugin,
    "API": by_api,
    "Phoenix URL": by_phoenix,
    "ClickHouse URL": by_clickhouse,
}
"""Those of which a cell is cheap. `--all` and the collector have a process of their own for all cells at once."""


def sentence(text: str) -> str:
    """Give what was said first, less what differs from run to run."""
    first = next(iter(text.strip().splitlines()), "")
    return re.sub(r"/\S*/|:\d{4,5}\b|\b[0-9a-f]{12}\b", "…", first)[:160]


def figure(tell: Callable[[str, object], None], way: str, cells: int, said: str) -> None:
    """Print the row of one way, after every cell of it came to exit code 3 and to nothing else."""
    tell("figure", f"stranger's trace, {way} × {cells}: 0 run, imported, written, fetched; exit 3; {sentence(said)}")


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """No module of the stranger's is known before, and none afterwards."""
    known = {*sys.modules}
    path = [*sys.path]
    yield
    sys.path[:] = path
    for name in {*sys.modules} - known:
        if name.startswith("reenact_evil"):
            del sys.modules[name]


@pytest.mark.parametrize("name", WAYS)
def test_nothing_that_a_stranger_names_is_done(
    name: str, desk: Desk, here: Lair, exported: list[SpanRecord], record_property: Callable[[str, object], None]
) -> None:
    said = ""
    for number, (carrier, hostile) in enumerate(CARRIERS.items(), 1):
        spans = renamed(hostile(exported, here), f"{number:032x}")
        before = here.seen(desk.folder)
        with watched() as acts:
            result = WAYS[name](spans, desk)
        assert not here.canary.exists(), f"{carrier}: {here.canary.read_text()}"
        assert acts.started == [], carrier
        assert acts.imported == [], carrier
        assert here.seen(desk.folder) == before, carrier
        assert here.asked == [], carrier
        assert result.code == 3, f"{carrier}: {result}"
        assert name == "API" or NOT_YOURS in result.text, f"{carrier}: {result}"
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", result.text), carrier
        said = said or result.text
        shutil.rmtree(desk.folder / ".reenact", ignore_errors=True)
    figure(record_property, name, len(CARRIERS), said)


def test_nothing_is_done_by_a_whole_folder_of_them(
    desk: Desk, here: Lair, exported: list[SpanRecord], record_property: Callable[[str, object], None]
) -> None:
    folder = desk.folder.parent / "all"
    folder.mkdir()
    for number, (carrier, hostile) in enumerate(CARRIERS.items(), 1):
        spans = renamed(hostile(exported, here), f"{number:032x}")
        (folder / f"{carrier.replace(' ', '_')}.jsonl").write_bytes(otlp_json.encode(spans))
    before = here.seen(desk.folder)
    done = desk.reenact("replay", *ALLOWED, "--all", str(folder), "--json")
    runs = json.loads(done.stdout)["runs"]
    assert [each["exit"] for each in runs] == [3] * len(CARRIERS), done.stdout
    assert all(NOT_YOURS in each["error"] for each in runs)
    assert done.returncode == 3
    assert (here.canary.exists(), here.asked, here.seen(desk.folder)) == (False, [], before)
    figure(record_property, "replay --all", len(runs), runs[0]["error"])


@pytest.fixture
def collector(desk: Desk) -> Iterator[Running]:
    running = start(desk.folder / ".reenact")
    yield running
    running.kill()


def test_nothing_that_was_sent_to_the_collector_is_done(
    desk: Desk,
    here: Lair,
    collector: Running,
    exported: list[SpanRecord],
    record_property: Callable[[str, object], None],
) -> None:
    ids: dict[str, str] = {}
    for number, (carrier, hostile) in enumerate(CARRIERS.items(), 1):
        ids[carrier] = f"{number:032x}"
        body = otlp_proto.encode(renamed(hostile(exported, here), ids[carrier]))
        with closing(http.client.HTTPConnection("127.0.0.1", collector.http_port, timeout=30)) as connection:
            connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
            assert connection.getresponse().status == 200
    assert collector.end() == 0
    before = here.seen(desk.folder)
    said = ""
    for carrier, trace_id in ids.items():
        with watched() as acts:
            result = command("replay", *ALLOWED, trace_id)
        assert (result.code, acts.started, acts.imported) == (3, [], []), f"{carrier}: {result}"
        assert NOT_YOURS in result.text
        said = said or result.text
    assert command("replay", "last").code == 3
    assert (here.canary.exists(), here.asked, here.seen(desk.folder)) == (False, [], before)
    figure(record_property, "collect, replay", len(ids), said)


STRACE = shutil.which("strace")


def traced(desk: Desk, here: Lair, *words: str, stdin: bytes) -> tuple[subprocess.CompletedProcess[bytes], list[str]]:
    """Run a command in a process of its own; give what it executed, or opened to write, of what is not ours."""
    log = desk.folder.parent / "calls.log"
    look = [STRACE, "-f", "-qq", "-e", "trace=execve,openat,open,creat,connect,chdir", "-o", str(log)] if STRACE else []
    done = subprocess.run(
        [*look, sys.executable, "-m", "reenact", *words],
        cwd=desk.folder,
        env=plain(),
        capture_output=True,
        check=False,
        timeout=100,
        input=stdin,
    )
    calls = log.read_text().splitlines() if STRACE else []
    port = urlsplit(here.url).port
    bad = [
        call
        for call in calls
        if (str(here.folder) in call and re.search(r"execve\(|chdir\(|O_WRONLY|O_RDWR|O_CREAT", call))
        or f"htons({port})" in call
    ]
    return done, bad


REAL: dict[str, tuple[str, ...]] = {
    "replay FILE": ("replay", "FILE"),
    "replay -": ("replay", "-"),
    "replay --all": ("replay", "--all", "FOLDER"),
    "fork": ("fork", "FILE", "--at", "first tool", "--set", "result=4"),
    "fuzz": ("fuzz", "FILE", "--cases", "2"),
    "promote": ("promote", "FILE"),
}


@pytest.mark.parametrize("name", REAL)
def test_the_kernel_saw_nothing_of_it(name: str, desk: Desk, here: Lair, exported: list[SpanRecord]) -> None:
    folder = desk.folder.parent / "all"
    folder.mkdir()
    data = otlp_json.encode(everything(exported, here))
    (folder / "stranger.jsonl").write_bytes(data)
    named = {"FILE": str(folder / "stranger.jsonl"), "FOLDER": str(folder)}
    before = here.seen(desk.folder)
    done, bad = traced(desk, here, *(named.get(word, word) for word in REAL[name]), stdin=data)
    assert done.returncode == 3, done.stderr
    assert NOT_YOURS.encode() in done.stderr + done.stdout
    assert bad == []
    assert (here.canary.exists(), here.asked, here.seen(desk.folder)) == (False, [], before)


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_the_users_own_command_replays_a_strangers_trace(
    name: str, desk: Desk, here: Lair, exported: list[SpanRecord]
) -> None:
    told = desk.folder.parent / "environment.json"
    before = here.seen(desk.folder)
    environ = {**plain(), "TELL_ENVIRONMENT": str(told)}
    path = _file(CARRIERS[name](exported, here), desk)
    words = ("replay", *ALLOWED, path, *OWN_COMMAND)
    done = desk.reenact(*words, environ=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sum 3")
    assert (here.canary.exists(), here.asked) == (False, [])
    assert here.seen(desk.folder) == before
    set_here = json.loads(told.read_text())
    ours = {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "OPENAI_API_KEY", "TZ", "LC_CTYPE", "LANG"}
    named = {key: value for key, value in set_here.items() if environ.get(key) != value and key not in ours}
    assert [key for key in named if not key.startswith("REENACT_")] == []
    assert str(here.folder) not in "\n".join(f"{key}={value}" for key, value in set_here.items() if key not in environ)
    assert set_here["OPENAI_API_KEY"] == "reenact-inert"
    assert str(here.folder) not in set_here["PYTHONPATH"]


def test_a_fuzzed_strangers_trace_varies_the_users_own_command(
    desk: Desk, here: Lair, exported: list[SpanRecord]
) -> None:
    path = _file(CARRIERS["argv"](exported, here), desk)
    done = desk.reenact("fuzz", *ALLOWED, path, "--cases", "6", "--jobs", "1", *OWN_COMMAND, environ=plain())
    assert done.returncode in {0, 1}, done.stderr
    assert not here.canary.exists()


@pytest.mark.parametrize("name", ["app path", "app import", "job module", "main"])
def test_the_users_own_application_is_the_only_one_that_is_imported(
    name: str, desk: Desk, here: Lair, exported: list[SpanRecord]
) -> None:
    served = "async def app(scope, receive, send):\n    raise SystemExit(0)\ndef app2(*args, **kwargs): return 1\n"
    desk.write("mine.py", served)
    path = _file(CARRIERS[name](exported, here), desk)
    own = "mine:app2" if name == "job module" else "mine:app"
    done = desk.reenact("replay", *ALLOWED, path, "--app", own, environ=plain())
    assert done.returncode in {0, 1, 125}, done.stderr
    assert (here.canary.exists(), here.asked) == (False, [])


def test_a_yes_is_for_what_was_shown(desk: Desk, here: Lair, exported: list[SpanRecord]) -> None:
    path = _file(CARRIERS["argv"](exported, here), desk)
    refused = desk.reenact("replay", path, environ=plain())
    done = desk.reenact("replay", *ALLOWED, path, "--trust", environ=plain())
    shown = next(line.strip() for line in refused.stderr.splitlines() if " -c " in line)
    assert shown in done.stderr
    assert done.stderr.index(shown) < done.stderr.index("diverged")
    assert here.canary.read_text() == "argv\n", "and so the canaries of the other tests can sing"


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_on_a_terminal_it_is_asked(desk: Desk, here: Lair, exported: list[SpanRecord], answer: str) -> None:
    path = _file(CARRIERS["argv"](exported, here), desk)
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "reenact", "replay", *ALLOWED, path]
    with subprocess.Popen(words, cwd=desk.folder, env=plain(), stdin=theirs, stderr=theirs, stdout=theirs) as asking:
        os.close(theirs)
        heard = b""
        while b"[y/N]" not in heard:
            heard += os.read(ours, 4096)
        assert not here.canary.exists(), "it was asked before anything ran"
        assert b"-c " in heard, "what would run was shown before"
        os.write(ours, f"{answer}\n".encode())
        with suppress(OSError):  # the terminal is gone with the program
            while more := os.read(ours, 4096):
                heard += more
    os.close(ours)
    assert here.canary.exists() is (answer == "y")
    assert (asking.returncode == 3) is (answer != "y"), heard
