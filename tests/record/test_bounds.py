from __future__ import annotations

import importlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from reenact.formats.journal import FORMAT
from reenact.keep.drain import Drain
from reenact.keep.journal_reader import Tail, journals
from reenact.record.bounds import Bounds, Fsync, bounds_from, structure
from reenact.record.journal import JournalProcessor
from reenact.stores.directory import DirectoryStore

TRACE = "0af7651916cd43dd8448eb211c80319c"


def begin(number: int, parent: int | None, text: str = "", *, root: bool = False) -> dict[str, Any]:
    attributes: dict[str, Any] = {"reenact.run.root": True} if root else {}
    return {
        "t": "start",
        "trace": TRACE,
        "span": f"{number:016x}",
        "parent": f"{parent:016x}" if parent else None,
        "name": f"call {number}",
        "kind": 1,
        "ns": number,
        "attributes": {"input.value": text, "reenact.order.start": number, **attributes},
    }


def end(number: int, text: str = "") -> dict[str, Any]:
    return {"t": "end", "span": f"{number:016x}", "ns": number + 1, "attributes": {"output.value": text}, "status": 1}


def writer(folder: Path, most: int = 1 << 16, name: str = "aa-bb") -> JournalProcessor:
    return JournalProcessor(folder, name, {"process.pid": 7}, "reenact", "1", Bounds(most=most))


@pytest.mark.parametrize(
    ("said", "most"),
    [("", 1 << 30), ("off", 0), ("0", 0), ("512M", 512 << 20), ("2GiB", 2 << 30), ("100000", 100_000), ("1", 1 << 16)],
)
def test_the_bound_is_read_from_the_environment(said: str, most: int) -> None:
    assert bounds_from({"REENACT_JOURNAL_MAX": said}).most == most


def test_a_setting_that_cannot_be_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = bounds_from({"REENACT_JOURNAL_MAX": "much", "REENACT_JOURNAL_FSYNC": "sometimes"})
    assert found == Bounds()
    said = capsys.readouterr().err
    assert "REENACT_JOURNAL_MAX=much is no size" in said
    assert "REENACT_JOURNAL_FSYNC=sometimes is none of off, end, always" in said


@pytest.mark.parametrize("policy", list(Fsync))
def test_when_the_disk_is_asked_for_it(tmp_path: Path, policy: Fsync, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "fdatasync", asked.append)
    journal = JournalProcessor(tmp_path, "aa-bb", {}, "reenact", "1", bounds_from({"REENACT_JOURNAL_FSYNC": policy}))
    for number in range(1, 4):
        journal.write(begin(number, None))
    journal.shutdown()
    assert len(asked) == {Fsync.OFF: 0, Fsync.END: 1, Fsync.ALWAYS: 4}[policy]


# files


def test_a_long_journal_goes_on_in_further_files_and_reads_as_one(tmp_path: Path) -> None:
    journal = writer(tmp_path, most=1 << 20)
    journal.write(begin(1, None, root=True))
    for number in range(2, 60):
        journal.write(begin(number, 1, f"{number}" * 5000))
        journal.write(end(number, "x" * 5000))
    journal.write(begin(99, 1, "open"))
    journal.write(end(1))
    journal.shutdown()
    (files,) = journals(tmp_path).values()
    assert len(files) > 3
    tail = Tail(files[0])
    assert not tail.is_written()
    spans = tail.whole()
    assert [span.name for span in spans] == [*(f"call {number}" for number in range(2, 60)), "call 1", "call 99"]
    assert [span.attributes["input.value"] for span in spans[:58]] == [f"{number}" * 5000 for number in range(2, 60)]
    assert tail.reader.damaged == 0
    assert tail.reader.torn() == 0


def test_what_was_carried_goes_from_the_disk_while_the_process_lives(tmp_path: Path) -> None:
    """A service that runs for ever needs room for what waits, and not for what was."""
    store = DirectoryStore(tmp_path)
    store.prepare()
    journal = writer(store.journals, most=1 << 20)
    drain = Drain(store)
    journal.write(begin(1, None, root=True))
    most = 0
    for number in range(2, 300):
        journal.write(begin(number, 1, "x" * 10_000))
        journal.write(end(number, "y" * 10_000))
        if number % 10 == 0:
            drain.poll()
            most = max(most, sum(path.stat().st_size for path in store.journals.glob("*.rnj")))
    assert journal.dropped == 0
    assert most < 1 << 20, "six megabytes went through"
    journal.write(end(1))
    journal.shutdown()
    (run,) = drain.finish()
    assert len(run.nodes) == 299
    assert list(store.journals.iterdir()) == []


def test_a_drain_that_dies_in_between_is_taken_up_where_it_was(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.prepare()
    journal = writer(store.journals, most=1 << 20)
    journal.write(begin(1, None, root=True))
    for number in range(2, 200):
        journal.write(begin(number, 1, "x" * 10_000))
        journal.write(end(number, "y" * 10_000))
        if number % 40 == 0:
            Drain(store).poll()  # another one each time
    journal.shutdown()
    (run,) = Drain(store).finish()
    assert len(run.nodes) == 199
    assert run.root is not None
    assert run.root.span.attributes["reenact.incomplete"] is True


# the bound


def test_at_the_bound_what_is_not_whole_is_unfinished_and_says_what_it_lacks(tmp_path: Path) -> None:
    journal = writer(tmp_path)
    journal.write(begin(1, None, "x" * 3000, root=True))
    for number in range(2, 40):
        journal.write(begin(number, 1, "x" * 3000))
        journal.write({"t": "chunk", "span": f"{number:016x}", "chunk": [1, 1, "y" * 500]})
        journal.write(end(number, "y" * 3000))
    journal.write(end(1, "z" * 3000))
    journal.shutdown()
    assert journal.dropped > 0
    (files,) = journals(tmp_path).values()
    tail = Tail(files[0], files)
    spans = tail.whole()
    whole = [span for span in spans if "reenact.lost" not in span.attributes]
    cut = [span for span in spans if "reenact.lost" in span.attributes]
    assert len(whole) > 5
    assert len(cut) > 5
    assert {str(span.attributes["reenact.outcome"]) for span in cut} == {"unfinished"}
    lost = max((json.loads(str(span.attributes["reenact.lost"])) for span in cut), key=len)
    assert [each["field"] for each in lost] == ["request", "outcome"]
    assert "input.value: the journal was at its bound" in lost[0]["lost"]
    assert all("reenact.lost.request" not in span.attributes for span in spans)
    assert tail.reader.notes == {"dropped": journal.dropped}
    (root,) = [span for span in spans if span.parent_id is None]
    assert root.attributes["input.value"] == "x" * 3000, "roots come before payloads"


def test_room_that_is_made_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    store.prepare()
    journal = writer(store.journals)
    journal.write(begin(1, None, root=True))

    def calls(first: int, many: int) -> None:
        for number in range(first, first + many):
            journal.write(begin(number, 1, "x" * 3000))
            journal.write(end(number, "y" * 3000))

    calls(100, 30)
    lost = journal.dropped
    assert lost > 0
    Drain(store).poll()
    segments = importlib.import_module("reenact.record.segments")
    monkeypatch.setattr(segments, "_monotonic", lambda: 1e9)  # a while later
    calls(200, 3)
    assert journal.dropped == lost


def test_structure_keeps_what_is_short() -> None:
    made, whole = structure(begin(5, 1, "x" * 300), "no room", whole_start=True)
    assert made is not None
    assert not whole
    assert made["attributes"]["reenact.order.start"] == 5
    assert "input.value" not in made["attributes"]
    assert structure(begin(5, 1, "short"), "no room", whole_start=True) == (begin(5, 1, "short"), True)
    assert structure({"t": "chunk", "span": "a", "chunk": []}, "no room", whole_start=True) == (None, False)


# the lock


def test_a_call_in_the_middle_of_a_write_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer or a signal handler may make one, on the very thread that holds the lock."""
    journal, real = writer(tmp_path), os.write
    inner = [begin(number, None) for number in (2, 3)]

    def interrupted(fd: int, data: bytes) -> int:
        if inner:
            journal.write(inner.pop())
        return real(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    thread = threading.Thread(target=journal.write, args=(begin(1, None),), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    journal.shutdown()
    spans = list(FORMAT.decode(journal.path.open("rb"), journal.path))
    assert sorted(span.name for span in spans) == ["call 1", "call 2", "call 3"]  # type: ignore[union-attr]
