"""Files, folders, archives and big files, named on the command line."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from golden_cases import GOLDEN
from reenact.cli.main import reenact
from reenact.errors import ReenactError
from reenact.formats import otlp_json
from reenact.read import open as opening
from reenact.read.open import open_spans
from reenact.values.span import SpanRecord

RECORDED = GOLDEN / "assertions" / "cleanup" / "incident.jsonl"
LOGS = GOLDEN / "formats" / "otlp_json" / "logs" / "input.jsonl"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REENACT_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*words: str) -> Result:
    done = CliRunner().invoke(reenact, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit | ReenactError):
        raise done.exception
    return done


def listed(*words: str) -> list[dict[str, object]]:
    done = run("ls", "--json", *words)
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)["runs"]


def copies(path: Path, count: int) -> Path:
    """A file of so many recorded runs, each with a trace of its own."""
    spans = [record for record in open_spans(RECORDED) if isinstance(record, SpanRecord)]
    with path.open("wb") as out:
        for number in range(1, count + 1):
            out.write(otlp_json.encode(replace(span, trace_id=f"{number:032x}") for span in spans))
    return path


def test_a_folder_and_an_archive_of_it_are_one_recording(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    spans = [record for record in open_spans(RECORDED) if isinstance(record, SpanRecord)]
    (folder / "one.jsonl").write_bytes(otlp_json.encode(spans[:4]))
    (folder / "two.jsonl").write_bytes(otlp_json.encode(spans[4:]))
    (folder / "README.md").write_text("# notes")
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    whole = json.loads(run("show", str(RECORDED), "--json").stdout)
    for source in (str(folder), str(tmp_path / "runs.zip")):
        (row,) = listed(source)
        assert row["id"] == whole["run"]["id"]
        shown = json.loads(run("show", source, "--json").stdout)
        assert [call["label"] for call in shown["calls"]] == [call["label"] for call in whole["calls"]]
        assert "README.md" in run("show", source, "--full").stdout + json.dumps(shown)


def test_log_events_beside_a_file_are_part_of_its_runs(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "formats" / "otlp_json" / "logs" / "input.jsonl", tmp_path / "x.otlp.logs.jsonl")
    shutil.copy(GOLDEN / "formats" / "otlp_proto" / "spans_and_logs" / "input.pb", tmp_path / "both.pb")
    spans = [record for record in open_spans(tmp_path / "both.pb") if isinstance(record, SpanRecord)]
    (tmp_path / "x.otlp.jsonl").write_bytes(otlp_json.encode(spans))
    runs = listed(str(tmp_path / "x.otlp.jsonl"))
    assert spans[0].trace_id in {row["id"] for row in runs}
    assert run("import", str(tmp_path / "x.otlp.jsonl")).exit_code == 0
    stored = "".join(path.read_text() for path in (tmp_path / "store").rglob("*.jsonl"))
    assert "gen_ai.user.message" in stored
    assert "reenact.log" in stored


def test_log_events_alone_are_runs_of_their_own() -> None:
    runs = listed(str(LOGS))
    assert len(runs) == 2
    assert run("show", f"{LOGS}#{runs[0]['id']}").exit_code == 0


def test_a_format_that_is_only_read_is_not_written(tmp_path: Path) -> None:
    done = run("export", str(RECORDED), "--format", "zipkin", "-o", str(tmp_path / "x"))
    assert isinstance(done.exception, ReenactError)
    assert done.exception.exit_code == 2
    assert "zipkin is only read, not written" in str(done.exception)


@pytest.mark.parametrize("name", ["run.otlp.jsonl.gz", "run.pb.zst"])
def test_an_export_is_packed_as_its_name_says(tmp_path: Path, name: str) -> None:
    assert run("export", str(RECORDED), "-o", str(tmp_path / name)).exit_code == 0
    assert (tmp_path / name).read_bytes()[:2] in (b"\x1f\x8b", b"\x28\xb5")
    assert [row["id"] for row in listed(str(tmp_path / name))] == [row["id"] for row in listed(str(RECORDED))]


def test_every_command_takes_a_run_out_of_a_big_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copies(tmp_path / "big.jsonl", 30)
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    assert len(listed(str(path))) == 20
    everything = listed(str(path), "-n", "0")
    assert len(everything) == 30
    assert {row["verdict"] for row in everything} == {None}
    assert "not judged" in run("ls", str(path), "-n", "0").stdout
    selector = f"{path}#{7:032x}"
    for words in (("show", selector), ("doctor", selector), ("step", selector), ("diff", selector, selector)):
        assert run(*words).exit_code == 0, words
    assert len(list((tmp_path / "cache" / "reenact" / "files").glob("*.db"))) == 1


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(tmp_path: Path) -> None:
    path = copies(tmp_path / "big.jsonl", 1500)
    assert path.stat().st_size > opening.BIG
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "reenact", "ls", "--json", "-n", "1", str(path)]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=environ) as process:
        out, _ = process.communicate()
    os.close(terminal)
    said = os.read(screen, 1 << 16).decode()
    os.close(screen)
    assert len(json.loads(out)["runs"]) == 1
    assert f"reenact: reading big.jsonl: 8 of {path.stat().st_size >> 20} MiB" in said
    assert said.endswith("\r\x1b[K")
    again = subprocess.run(command, capture_output=True, env=environ, check=True)
    assert again.stdout == out
    assert again.stderr == b""


def ill(path: Path, *, first: bool) -> Path:
    """The recorded run, with spans of an archive among its lines that nobody could read: their ids are none."""
    nameless = [{"traceId": "", "spanId": "", "name": "a"}, {"traceId": "ab" * 16, "spanId": "0" * 16, "name": "b"}]
    bad = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": nameless}]}]}).encode() + b"\n"
    path.write_bytes(bad + RECORDED.read_bytes() if first else RECORDED.read_bytes() + bad)
    return path


@pytest.mark.parametrize("indexed", [False, True])
def test_spans_without_ids_cost_no_others_and_are_told_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, indexed: bool
) -> None:
    if indexed:
        monkeypatch.setattr("reenact.read.open.BIG", 1)
    path = ill(tmp_path / "archive.jsonl", first=True)
    whole = json.loads(run("show", str(RECORDED), "--json").stdout)
    for _ in range(2):  # the second time from the index alone
        done = run("ls", "--json", str(path))
        assert [row["id"] for row in json.loads(done.stdout)["runs"]] == [whole["run"]["id"]]
        assert "not read: 2 (archive.jsonl line 1: traceId" in done.stderr
    shown = json.loads(run("show", str(path), "--json").stdout)
    assert [call["label"] for call in shown["calls"]] == [call["label"] for call in whole["calls"]]
    assert any("line 1: spanId is all zeros" in note for note in shown["run"]["notes"])
    assert "not read: 2 (archive.jsonl" in run("show", str(path)).stdout
    told = run("doctor", str(path)).stdout
    assert "not read: 2 (archive.jsonl" in told
    assert "any of them may be a call of this run" in told
    before, after = (json.loads(run("doctor", str(each), "--json").stdout)["verdict"] for each in (RECORDED, path))
    assert after["grade"] == "partial"
    [lost] = [reason for reason in after["reasons"] if reason not in before["reasons"]]
    assert lost["lost"].startswith("spans without a valid trace and span id, not read: 2")


def test_what_is_taken_in_or_redacted_tells_the_spans_it_left_behind(tmp_path: Path) -> None:
    path = ill(tmp_path / "archive.jsonl", first=False)
    last = len(path.read_bytes().splitlines())
    taken = run("import", str(path))
    assert taken.exit_code == 0
    assert f"not read: 2 (archive.jsonl line {last}:" in taken.stderr
    assert len(listed()) == 1
    redacted = run("redact", str(path), "-o", str(tmp_path / "clean.jsonl"))
    assert redacted.exit_code == 0, redacted.exception
    assert f"not read: 2 (archive.jsonl line {last}:" in redacted.stderr
