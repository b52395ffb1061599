"""Recordings whose large values lie beside them: a folder, or a zip file, of a trace and `blobs/`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reenact.disk.blob import LOST, BlobLostError, Get, cut, is_cut, is_digest, restored
from reenact.errors import InputError
from reenact.values.log import Record
from reenact.values.span import SpanRecord

FOLDER = "blobs"
_LARGEST = 4 << 30
"""A blob of more bytes is not taken out of a zip file: it would be held in memory whole."""


def whole(records: Iterable[Record], path: Path, *, keep_lost: bool = False) -> Iterator[Record]:
    """Put the values of blobs back into what is read from `path`.

    They are looked for beside it, in it (a folder, a zip file), and where REENACT_BLOBS says. A span of which one is
    lost says so (`disk.blob.restored`), or is given as it is with `keep_lost`.
    """
    get: Get | None = None
    for record in records:
        if not isinstance(record, SpanRecord) or not is_cut(record):
            yield record
            continue
        get = get or _found_by(path)
        put_back = restored(record, get)
        yield record if keep_lost and LOST in put_back.attributes else put_back


def _found_by(path: Path) -> Get:
    import zipfile

    from reenact.stores.blobs import FolderBlobs, opened

    places = [
        opened(path.parent if path.is_file() else path).get
    ]  # REENACT_BLOBS, else beside the file or in the folder
    if path.is_file():
        places.append(FolderBlobs((path.parent / FOLDER).absolute()).get)
    if zipfile.is_zipfile(path):
        places.insert(0, lambda digest: _out_of(path, digest))

    def get(digest: str) -> bytes:
        lost: BlobLostError | None = None
        for place in places:
            try:
                return place(digest)
            except BlobLostError as problem:
                lost = lost or problem
        raise lost or BlobLostError(f"the blob {digest[:19]}… is nowhere", "")

    return get


def _out_of(path: Path, digest: str) -> bytes:
    import zipfile

    from reenact.stores.blobs import checked

    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(_name(digest))]
            if not names or archive.getinfo(names[0]).file_size > _LARGEST:
                raise BlobLostError(f"the blob {digest[:19]}… is not in {path.name}", "copy the whole bundle again")
            data = archive.read(names[0])
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BlobLostError(f"the blob {digest[:19]}… cannot be read: {error}", "copy the bundle again") from None
    return checked(digest, data)


def _name(digest: str) -> str:
    name = digest.removeprefix("sha256:")
    return f"{FOLDER}/{name[:2]}/{name}"


def bundle(
    spans: Sequence[SpanRecord],
    target: Path,
    trace: str,
    encode: Callable[[Sequence[SpanRecord]], bytes],
    threshold: int,
) -> None:
    """Write a bundle: a zip file where `target` ends in `.zip`, else a folder; `trace` names the file of spans in it.

    Values of more than `threshold` bytes become blobs. Whole or not at all. Raises `InputError`.
    """
    from reenact.stores.blobs import FolderBlobs

    draft = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        if target.suffix == ".zip":
            _zip(spans, draft, trace, encode, threshold)
            draft.replace(target)
            return
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(str(target), "is there already", hint="Name a new folder, or a file that ends in .zip.")
        draft.mkdir(parents=True)
        blobs = FolderBlobs((draft / FOLDER).absolute())
        referring = [cut(span, threshold, blobs.put) for span in spans]
        (draft / trace).write_bytes(encode(referring))
        with suppress(OSError):
            target.rmdir()
        draft.rename(target)
    except OSError as error:
        raise InputError(str(target), f"cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
        shutil.rmtree(draft, ignore_errors=True)


def _zip(
    spans: Sequence[SpanRecord],
    draft: Path,
    trace: str,
    encode: Callable[[Sequence[SpanRecord]], bytes],
    threshold: int,
) -> None:
    import zipfile

    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        seen_digests: set[str] = set()

        def add_pieces(digest: str, pieces: Iterator[bytes]) -> None:
            if digest in seen_digests or not is_digest(digest):
                return
            seen_digests.add(digest)
            with archive.open(_name(digest), "w", force_zip64=True) as stream:
                for piece in pieces:
                    stream.write(piece)

        referring = [cut(span, threshold, add_pieces) for span in spans]
        archive.writestr(trace, encode(referring))
