"""Blobs in a folder, `blobs` beside the traces, or behind any URL that fsspec knows (`reenact[blobs]`).

blobs/ab/ab12…      one file a blob, named by the SHA-256 of what it holds; never changed, so that runs can share it

    REENACT_BLOBS             a folder, or a URL such as s3://bucket/path, in its place
    REENACT_BLOB_THRESHOLD    bytes; values of more are put there. 0 keeps every value in its span

The threshold is 1 MiB. What is smaller costs a trace file little, and fits the 4 MiB that a gRPC receiver takes in one
message; what is larger makes every reader of the trace wait for it, and is the same in many runs.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from reenact.contracts.blobs import BlobKeeping, Blobs
from reenact.disk import private
from reenact.disk.blob import BlobLostError, is_digest
from reenact.disk.durable import force, force_entry
from reenact.errors import InputError

THRESHOLD = 1 << 20
_NEVER = 1 << 62
_PIECE = 1 << 20
_WHERE, _FROM = "REENACT_BLOBS", "REENACT_BLOB_THRESHOLD"
_BRING_BACK = f"bring back the folder of blobs, or name it in {_WHERE}"


def opened(folder: Path) -> Blobs:
    """Open the blobs of a store or bundle. Raises `InputError` on settings that make no sense."""
    where, threshold = os.environ.get(_WHERE, "").strip(), _threshold()
    if "://" in where and not where.startswith("file://"):
        return RemoteBlobs(where, threshold)
    place = Path(where.removeprefix("file://")) if where else folder / "blobs"
    return FolderBlobs(place.absolute(), threshold)


def _threshold() -> int:
    text = os.environ.get(_FROM, "").strip()
    if not text:
        return THRESHOLD
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError(f"${_FROM}", f"{text[:40]!r} is not a number of bytes", hint=f"Unset it for {THRESHOLD:,}.")
    return int(text) or _NEVER


class FolderBlobs:
    """Blobs in a folder."""

    def __init__(self, folder: Path, threshold: int = THRESHOLD) -> None:
        self._folder, self.threshold = folder, threshold

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    def put(self, digest: str, pieces: Iterator[bytes], *, forced: bool = False) -> None:
        """Write a blob under a name of its own, and give it its name when it is whole."""
        path = self._path(digest)
        try:
            self._write_file(path, pieces)
            if forced:
                force(path)
                force_entry(path, self._folder)
        except OSError as error:
            hint = f"set {_WHERE} to a folder that can be written"
            raise InputError(str(path), f"cannot be written: {error.strerror}", hint=hint) from error

    def _write_file(self, path: Path, pieces: Iterator[bytes]) -> None:
        with suppress(FileNotFoundError):
            os.utime(path, follow_symlinks=False)  # it is in use from now on, whoever sweeps at this moment
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            private.folder(path.parent, self._folder)
            handle = private.opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(handle, "wb", buffering=0) as stream:
                for piece in pieces:
                    _write(stream.fileno(), piece)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise

    def get(self, digest: str) -> bytes:
        """Read a blob and check it."""
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise BlobLostError(f"the blob {digest[:19]}… is not in {self._folder.name}", _BRING_BACK) from None
        except OSError as error:
            raise BlobLostError(f"the blob {digest[:19]}… cannot be read: {error.strerror}", _BRING_BACK) from None
        return checked(digest, data)

    def sizes(self) -> Mapping[str, int]:
        """Look at every blob."""
        sizes: dict[str, int] = {}
        for path in self._folder.glob("??/*"):
            with suppress(FileNotFoundError):
                if is_digest(name := f"sha256:{path.name}"):
                    sizes[name] = path.stat().st_size
        return sizes

    def old(self, seconds: float) -> Mapping[str, int]:
        """Look at the time of every blob."""
        before, sizes = time.time() - seconds, dict[str, int]()
        for digest, size in self.sizes().items():
            with suppress(FileNotFoundError):
                if self._path(digest).stat().st_mtime <= before:
                    sizes[digest] = size
        return sizes

    def delete(self, digest: str) -> None:
        """Delete a blob."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        name = digest.removeprefix("sha256:")
        return self._folder / name[:2] / name


class RemoteBlobs:
    """Blobs behind a URL, by fsspec."""

    def __init__(self, url: str, threshold: int = THRESHOLD) -> None:
        try:
            from fsspec.core import url_to_fs  # pyright: ignore[reportUnknownVariableType] - half typed
        except ImportError:
            hint = f"Run `pip install 'reenact[blobs]'`, or set {_WHERE} to a folder."
            raise InputError(
                f"${_WHERE}", "blobs behind a URL need fsspec, which is not installed", hint=hint
            ) from None
        try:
            location = cast("tuple[Any, str]", url_to_fs(url))
        except Exception as error:
            raise InputError(f"${_WHERE}", f"this URL cannot be used: {error}") from error
        self._system, root = location
        self._root, self._url, self.threshold = root.rstrip("/"), url, threshold

    @property
    def place(self) -> str:
        """The URL, without credentials."""
        scheme, _, rest = self._url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"

    def put(self, digest: str, pieces: Iterator[bytes], *, forced: bool = False) -> None:
        """Write a blob; object stores show it when it is whole, file systems get it moved to its name."""
        del forced  # it is on no disk of ours
        path = self._path(digest)
        draft = f"{path}.{os.urandom(8).hex()}"
        try:
            if self._system.exists(path):
                return
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self._system.open(draft, "wb") as stream:
                for piece in pieces:
                    stream.write(piece)
            self._system.mv(draft, path)
        except Exception as error:
            raise InputError(self.place, f"a blob cannot be written: {type(error).__name__}: {error}") from error

    def get(self, digest: str) -> bytes:
        """Fetch a blob and check it."""
        try:
            data: bytes = self._system.cat_file(self._path(digest))
        except FileNotFoundError:
            raise BlobLostError(f"the blob {digest[:19]}… is not in {self.place}", _BRING_BACK) from None
        except Exception as error:  # noqa: BLE001 - each system behind fsspec has errors of its own
            problem = f"the blob {digest[:19]}… cannot be fetched: {type(error).__name__}: {error}"
            raise BlobLostError(problem, _BRING_BACK) from None
        return checked(digest, data)

    def sizes(self) -> Mapping[str, int]:
        """List every blob."""
        try:
            files: dict[str, dict[str, Any]] = self._system.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise InputError(self.place, f"cannot be listed: {type(error).__name__}: {error}") from error
        sizes = {f"sha256:{path.rpartition('/')[2]}": int(facts.get("size") or 0) for path, facts in files.items()}
        return {digest: size for digest, size in sizes.items() if is_digest(digest)}

    def old(self, seconds: float) -> Mapping[str, int]:
        """Ask for the time of every blob, which not every system tells."""
        before, blob_sizes = time.time() - seconds, dict[str, int]()
        for digest, size in self.sizes().items():
            with suppress(FileNotFoundError, NotImplementedError):
                if self._system.modified(self._path(digest)).timestamp() <= before:
                    blob_sizes[digest] = size
        return blob_sizes

    def delete(self, digest: str) -> None:
        """Delete a blob."""
        with suppress(FileNotFoundError):
            self._system.rm_file(self._path(digest))

    def _path(self, digest: str) -> str:
        name = digest.removeprefix("sha256:")
        return f"{self._root}/{name[:2]}/{name}"


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def checked(digest: str, data: bytes) -> bytes:
    """Give the content of a blob, where it is what its digest says. Raises `BlobLostError`."""
    checksum = hashlib.sha256(data).hexdigest()
    if digest != f"sha256:{checksum}":
        problem = f"the blob {digest[:19]}… is damaged: what it holds has the digest {checksum[:12]}…"
        raise BlobLostError(problem, "bring back an undamaged copy of the folder of blobs")
    return data


KEEPING = BlobKeeping(open=opened)
