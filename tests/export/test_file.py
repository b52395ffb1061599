from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from receivers import span
from reenact.export.file import FileSender
from reenact.export.outcome import Delivered, Retry
from reenact.read.open import open_spans


def test_batches_are_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.otlp.jsonl"
    sender = FileSender(path)
    assert sender.send([span(1), span(2)]) == Delivered(count=2)
    assert sender.send([span(3)]) == Delivered(count=1)
    assert list(open_spans(path)) == [span(1), span(2), span(3)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_batch_that_cannot_be_written_whole_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.jsonl"
    sender = FileSender(path)
    sender.send([span(1)])
    write, calls = os.write, iter(range(100))

    def full(handle: int, data: bytes) -> int:
        if next(calls):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, bytes(data)[:50])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        assert sender.send([span(2)]) == Retry(reason="the file cannot be written: No space left on device")
    assert list(open_spans(path)) == [span(1)]
    assert sender.send([span(2)]) == Delivered(count=1)
    assert list(open_spans(path)) == [span(1), span(2)]


def test_a_line_that_somebody_left_cut_off_is_not_glued_to_ours(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_bytes(b'{"resourceSpans":[')
    FileSender(path).send([span(1)])
    assert path.read_bytes().startswith(b'{"resourceSpans":[\n{"resourceSpans":[{')


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = FileSender(tmp_path / "file" / "b.jsonl").send([span(1)])
    assert isinstance(outcome, Retry)


def test_processes_that_append_at_once_never_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    program = (
        "import sys; from pathlib import Path; from receivers import span; from reenact.export.file import FileSender\n"
        "first = int(sys.argv[2])\n"
        "for number in range(first, first + 20): FileSender(Path(sys.argv[1])).send([span(number, text='x' * 70_000)])"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(first)], env=environ) for first in (100, 200)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    numbers = sorted(each.start_ns for each in open_spans(path))
    assert numbers == [*range(100, 120), *range(200, 220)]
