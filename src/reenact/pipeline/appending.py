"""Adding calls that a replay had to fetch to the recording they were missing from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reenact.find.sources import RunSource
from reenact.keep.catalog import index
from reenact.stores.directory import DirectoryStore
from reenact.values.call import Outcome, Streamed
from reenact.values.evidence import chunk_to_json
from reenact.values.json import compact
from reenact.values.run import Node, Run, spans_of
from reenact.values.span import Attribute, SpanRecord

APPENDED_BY: Final = "reenact.appended_by"
"""The attribute of a call that names the replay which fetched it."""
_OF_THE_REPLAY = {"reenact.replay.live", "reenact.replay.parent", "reenact.order.head"}


def append(recording: RunSource, fetched: Sequence[Node], store: DirectoryStore) -> int:
    """Append calls to a recording, after everything it holds, and say how many.

    A recording that came from a file is kept whole in the store first; the file itself is not touched.
    """
    run = recording.run
    spans = [] if recording.source == str(store.folder) else spans_of([run])
    store.append([*spans, *appended(run, fetched)])
    index(store, [run.id])
    return len(fetched)


def appended(run: Run, fetched: Sequence[Node]) -> list[SpanRecord]:
    """Give calls as spans of a recording, after everything it holds."""
    last = max((max(node.start_order, node.end_order) for node in run.nodes), default=0)
    new = {node.id for node in fetched}
    spans: list[SpanRecord] = []
    for number, node in enumerate(fetched, 1):
        parent = node.parent if node.parent in new else _recorded_parent(node, run)
        attributes = {
            **{name: value for name, value in node.span.attributes.items() if name not in _OF_THE_REPLAY},
            APPENDED_BY: node.trace_id,
            "reenact.order.start": last + number,
            "reenact.order.end": 0,
            **_unordered(node.outcome),
        }
        spans.append(replace(node.span, trace_id=run.id, parent_id=parent, attributes=attributes))
    return spans


def _recorded_parent(node: Node, run: Run) -> str | None:
    """Give the recorded call that a fetched one was made in, else the root."""
    parent_id = node.span.attributes.get("reenact.replay.parent")
    if parent_id in {each.id for each in run.nodes}:
        return str(parent_id)
    return run.root.id if run.root else None


def _unordered(outcome: Outcome) -> dict[str, Attribute]:
    """Take the order numbers off a stream: they are the replay's, and would be taken for the recording's own."""
    if not isinstance(outcome, Streamed):
        return {}
    return {"reenact.stream.chunks": compact([chunk_to_json(replace(chunk, order=0)) for chunk in outcome.chunks])}
