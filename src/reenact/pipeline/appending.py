"""Adding calls that a replay had to fetch to the recording they were missing from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reenact.pipeline.catalog import index
from reenact.pipeline.sources import Found
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Node


def append(found: Found, fetched: Sequence[Node], store: DirectoryStore) -> int:
    """Append calls to a recording, after everything it holds, and say how many.

    A recording that came from a file is kept whole in the store first; the file itself is not touched.
    """
    run = found.run
    last = max((node.end_order for node in run.nodes), default=0)
    root = run.root.id if run.root else None
    spans = [] if found.source == str(store.folder) else [node.span for node in run.nodes]
    for number, node in enumerate(fetched, 1):
        attributes = {
            **{k: v for k, v in node.span.attributes.items() if k != "reenact.replay.live"},
            "reenact.appended_by": node.trace_id,
            "reenact.order.start": last + 2 * number - 1,
            "reenact.order.end": 0,
        }
        parent = str(node.span.attributes.get("reenact.replay.parent") or root or "") or None
        spans.append(replace(node.span, trace_id=run.id, parent_id=parent, attributes=attributes))
    store.append(spans)
    index(store, [run.id])
    return len(fetched)
