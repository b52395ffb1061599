from __future__ import annotations

import hashlib
import io
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.disk.blob import BlobLostError, cut, is_cut, pieces, reference_to, references, restored
from reenact.errors import InputError
from reenact.stores.blobs import THRESHOLD, FolderBlobs, RemoteBlobs, opened
from reenact.stores.directory import DirectoryStore
from reenact.values.json import parse
from reenact.values.span import SpanEvent, SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = SpanRecord(trace_id=TRACE, span_id="00000000000000aa", parent_id=None, name="run", start_ns=1, end_ns=2)
BIG = "é😀 large " * 200_000


def named(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> FolderBlobs | RemoteBlobs:
    if request.param == "memory":
        pytest.importorskip("fsspec", reason="fsspec is not installed")
        return RemoteBlobs(f"memory://{tmp_path.name}/blobs")
    return FolderBlobs(tmp_path / "blobs")


def test_what_is_put_is_got(blobs: FolderBlobs | RemoteBlobs) -> None:
    blobs.put(named(b"abc"), iter([b"a", b"bc"]))
    blobs.put(named(b"abc"), iter([b"never read: it is there"]))
    assert blobs.get(named(b"abc")) == b"abc"
    assert dict(blobs.sizes()) == {named(b"abc"): 3}
    blobs.delete(named(b"abc"))
    blobs.delete(named(b"abc"))
    assert dict(blobs.sizes()) == {}
    with pytest.raises(BlobLostError, match="is not in"):
        blobs.get(named(b"abc"))


def test_a_blob_that_is_not_what_its_name_says_is_refused(blobs: FolderBlobs | RemoteBlobs) -> None:
    blobs.put(named(b"abc"), iter([b"abd"]))
    with pytest.raises(BlobLostError, match="is damaged"):
        blobs.get(named(b"abc"))


def test_a_blob_is_whole_or_not_there(tmp_path: Path) -> None:
    def breaking() -> Iterator[bytes]:
        yield b"a"
        raise OSError(28, "No space left on device")

    blobs = FolderBlobs(tmp_path / "blobs")
    with pytest.raises(InputError, match="No space left"):
        blobs.put(named(b"abc"), breaking())
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_blobs_are_their_owners_alone(tmp_path: Path) -> None:
    FolderBlobs(tmp_path).put(named(b"abc"), iter([b"abc"]))
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_many_writers_of_one_blob_do_not_disturb_each_other(tmp_path: Path) -> None:
    blobs, data = FolderBlobs(tmp_path), b"x" * 3_000_000
    threads = [threading.Thread(target=blobs.put, args=(named(data), pieces(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blobs.get(named(data)) == data
    assert len(list(tmp_path.rglob("*"))) == 2


# settings


def test_where_blobs_are_kept_and_from_which_size_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (opened(tmp_path).place, opened(tmp_path).threshold) == (str(tmp_path / "blobs"), THRESHOLD)
    monkeypatch.setenv("REENACT_BLOBS", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("REENACT_BLOB_THRESHOLD", "77")
    assert (opened(tmp_path).place, opened(tmp_path).threshold) == (str(tmp_path / "elsewhere"), 77)
    monkeypatch.setenv("REENACT_BLOB_THRESHOLD", "0")
    assert opened(tmp_path).threshold > 1 << 60
    monkeypatch.setenv("REENACT_BLOB_THRESHOLD", "much")
    with pytest.raises(InputError, match="REENACT_BLOB_THRESHOLD"):
        opened(tmp_path)


def test_a_url_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    monkeypatch.setenv("REENACT_BLOBS", "nowhere://bucket")
    with pytest.raises(InputError, match="REENACT_BLOBS"):
        opened(tmp_path)


def test_without_fsspec_a_url_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match="fsspec") as error:
        RemoteBlobs("s3://bucket")
    assert "reenact[blobs]" in str(error.value)


# spans


def keep() -> tuple[dict[str, bytes], Any, Any]:
    held: dict[str, bytes] = {}

    def put(digest: str, given: Iterator[bytes]) -> None:
        held[digest] = b"".join(given)

    def get(digest: str) -> bytes:
        if digest not in held:
            raise BlobLostError("it is gone", "bring it back")
        return held[digest]

    return held, put, get


_VALUE = st.text(max_size=40) | st.text(st.characters(), max_size=40) | st.binary(max_size=40) | st.integers()


@given(st.dictionaries(st.text(min_size=1, max_size=8), _VALUE, max_size=5), st.integers(0, 30))
def test_what_was_cut_is_put_back_to_the_byte(attributes: dict[str, Any], threshold: int) -> None:
    attributes.pop("reenact.blobs", None)
    held, put, get = keep()
    span = replace(SPAN, attributes=attributes, events=(SpanEvent(name="e", time_ns=1, attributes=attributes),))
    short = cut(span, threshold, put)
    assert restored(short, get) == span
    assert all(named(data) == digest for digest, data in held.items())
    assert is_cut(short) == any(
        len(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")) > threshold
        for value in attributes.values()
        if isinstance(value, str | bytes)
    )
    assert cut(short, 10_000, put) is short


def test_a_lone_surrogate_and_a_text_of_many_pieces_come_back(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    span = replace(SPAN, attributes={"output.value": BIG + "\ud800", "raw": b"\xff" * 3_000_000, "n": 1})
    short = cut(span, 1000, blobs.put)
    assert short.attributes["reenact.blobs"] == ["output.value", "raw"]
    assert [reference.type for reference in references(short)] == ["string", "bytes"]
    said = parse(str(short.attributes["output.value"]))
    assert said == {
        "reenact.blob": reference_to(BIG + "\ud800").digest,
        "size": len((BIG + "\ud800").encode("utf-8", "surrogatepass")),
        "type": "string",
    }
    assert restored(short, blobs.get) == span


def test_text_that_looks_like_a_reference_is_none(tmp_path: Path) -> None:
    text = reference_to("abc").text
    span = replace(SPAN, attributes={"output.value": text})
    assert restored(span, FolderBlobs(tmp_path).get) is span


def test_a_lost_outcome_leaves_a_call_that_nobody_can_answer() -> None:
    held, put, get = keep()
    evidence = {"reenact.outcome": "returned", "output.value": "x" * 50, "input.value": "y"}
    short = cut(replace(SPAN, attributes=evidence), 10, put)
    held.clear()
    back = restored(short, get)
    assert back.attributes["reenact.outcome"] == "unfinished"
    assert "output.value" not in back.attributes
    assert parse(str(back.attributes["reenact.lost"])) == [
        {"field": "output.value", "lost": "50 bytes: it is gone", "fix": "bring it back"}
    ]


@pytest.mark.parametrize("hostile", ["../../etc/passwd", "sha256:" + "g" * 64, "sha256:..", ""])
def test_a_reference_that_names_no_digest_reaches_no_file(hostile: str) -> None:
    text = f'{{"reenact.blob":"{hostile}","size":3,"type":"string"}}'
    span = replace(SPAN, attributes={"output.value": text, "reenact.blobs": ["output.value"]})

    def get(digest: str) -> bytes:
        raise AssertionError(digest)

    assert "is no digest" in str(restored(span, get).attributes["reenact.lost"])


# the store


def test_a_store_keeps_large_values_apart_and_reads_them_back(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    span = replace(SPAN, attributes={"output.value": BIG, "small": "x"})
    store.append([span, replace(span, span_id="00000000000000ab")])
    assert list(store.spans(TRACE)) == [span, replace(span, span_id="00000000000000ab")]
    assert len(store.blobs.sizes()) == 1, "the same value is kept once"
    (line,) = (tmp_path / "store" / "traces").rglob("*.jsonl")
    assert line.stat().st_size < 2000
    assert all(is_cut(bare) for bare in store.bare_spans(TRACE))


def test_a_store_without_blobs_keeps_values_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_BLOB_THRESHOLD", "0")
    store = DirectoryStore(tmp_path / "store")
    span = replace(SPAN, attributes={"output.value": BIG})
    store.append([span])
    assert list(store.spans(TRACE)) == [span]
    assert not (tmp_path / "store" / "blobs").exists()


def test_a_remote_place_of_blobs_serves_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    monkeypatch.setenv("REENACT_BLOBS", f"memory://{tmp_path.name}")
    store = DirectoryStore(tmp_path / "store")
    span = replace(SPAN, attributes={"output.value": BIG})
    store.append([span])
    assert list(DirectoryStore(tmp_path / "store").spans(TRACE)) == [span]
    assert store.blobs.place == f"memory://{tmp_path.name}"
    assert not (tmp_path / "store" / "blobs").exists()


def test_pieces_of_a_value_are_its_bytes() -> None:
    stream = io.BytesIO()
    for piece in pieces(BIG):
        stream.write(piece)
    assert stream.getvalue() == BIG.encode()
