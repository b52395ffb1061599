"""The documents that a retriever or reranker gave, whatever the recording calls their parts."""

from __future__ import annotations

import re
from collections import defaultdict

from reenact.values.call import CallKind, Returned, Value
from reenact.values.flat_attributes import retrieved
from reenact.values.json import Json
from reenact.values.run import Node

_KINDS = frozenset({CallKind.RETRIEVER, CallKind.RERANKER})
_PLACE = re.compile(
    r"(?:retrieval\.documents|reranker\.output_documents)\.(\d+)\.document\.(id|score|content|metadata)"
)


def documents(node: Node) -> list[dict[str, Json]]:
    """Give the documents of a call in the order in which they came: `id`, `score`, `text`, `metadata`, as far as known.

    Read from what was returned, else from the flattened attributes of OpenInference.
    """
    if node.kind not in _KINDS:
        return []
    outcome = node.outcome
    if isinstance(outcome, Returned) and isinstance(outcome.payload, Value):
        pairs = dict[str, object](retrieved(outcome.payload.json))
    else:
        pairs = {}
    if not pairs:
        pairs = dict[str, object](node.span.attributes)
    fields_by_place: defaultdict[int, dict[str, Json]] = defaultdict(dict)
    for name, value in pairs.items():
        place = _PLACE.fullmatch(name)
        if place is not None and isinstance(value, str | int | float):
            fields_by_place[int(place[1])]["text" if place[2] == "content" else place[2]] = value
    return [fields_by_place[place] for place in sorted(fields_by_place)]
