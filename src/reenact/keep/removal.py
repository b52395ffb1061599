"""Taking things out of a store: runs that are named, and blobs that no run refers to any more."""

from __future__ import annotations

from collections.abc import Mapping

from reenact.disk.blob import references
from reenact.stores.directory import DirectoryStore

GRACE_S = 3600.0
"""A blob is put before the span that refers to it is written; so long a young one may be such."""


def unused(store: DirectoryStore, grace_s: float = GRACE_S) -> Mapping[str, int]:
    """Find the blobs that no trace of the store refers to, with their bytes, by reading every trace.

    Raises `InputError` where a trace is damaged: what it refers to cannot be known.
    """
    blob_sizes = dict(store.blobs.old(grace_s))
    for trace_id in store.trace_ids() if blob_sizes else ():
        for span in store.bare_spans(trace_id):
            for reference in references(span):
                blob_sizes.pop(reference.digest, None)
    return blob_sizes


def sweep(store: DirectoryStore, grace_s: float = GRACE_S) -> Mapping[str, int]:
    """Delete the blobs that no trace refers to, and give what they were. Raises `InputError` before any is deleted."""
    blob_sizes = unused(store, grace_s)
    for digest in blob_sizes:
        store.blobs.delete(digest)
    return blob_sizes
