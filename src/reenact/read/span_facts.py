"""What a listing needs to know of a span, told from its attributes alone: nothing of what was said is decoded.

This runs once for every span of a file of any size, beside a parser that takes a few microseconds for one: it looks at
keys, takes a handful of values, and makes no object for the span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from reenact.values.json import Json
from reenact.values.run import RECORDED_NAME, SECTION
from reenact.values.span import STATUS_ERROR, STATUS_OK, SpanRecord

KINDS: Final = (
    "llm",
    "tool",
    "embedding",
    "retriever",
    "reranker",
    "agent",
    "chain",
    "guardrail",
    "evaluator",
    "other",
)
"""How calls are counted; `other` is what is no call or is of a kind that only decoding tells."""
_OTHER: Final = len(KINDS) - 1
_ROOT: Final = "reenact.run.root"
_SESSION, _USER, _TENANT, _MODEL, _KIND, _IS_ROOT, _IS_SECTION, _NAME = range(8)
_WANTED: Final[Mapping[str, tuple[int, int]]] = {
    _ROOT: (_IS_ROOT, 0),
    SECTION: (_IS_SECTION, 0),
    RECORDED_NAME: (_NAME, 0),
    "session.id": (_SESSION, 0),
    "gen_ai.conversation.id": (_SESSION, 1),
    "langfuse.session.id": (_SESSION, 2),
    "traceloop.association.properties.session_id": (_SESSION, 3),
    "ai.telemetry.metadata.sessionId": (_SESSION, 4),
    "langsmith.metadata.session_id": (_SESSION, 4),
    "langsmith.metadata.thread_id": (_SESSION, 4),
    "gcp.vertex.agent.session_id": (_SESSION, 4),
    "user.id": (_USER, 0),
    "enduser.id": (_USER, 1),
    "langfuse.user.id": (_USER, 2),
    "traceloop.association.properties.user_id": (_USER, 3),
    "ai.telemetry.metadata.userId": (_USER, 4),
    "langsmith.metadata.user_id": (_USER, 4),
    "reenact.tenant": (_TENANT, 0),
    "gen_ai.request.model": (_MODEL, 0),
    "llm.model_name": (_MODEL, 1),
    "embedding.model_name": (_MODEL, 1),
    "ai.model.id": (_MODEL, 1),
    "langfuse.observation.model.name": (_MODEL, 1),
    "openinference.span.kind": (_KIND, 0),
    "langfuse.observation.type": (_KIND, 1),
    "gen_ai.operation.name": (_KIND, 2),
    "traceloop.span.kind": (_KIND, 3),
    "langsmith.span.kind": (_KIND, 3),
    "mlflow.spanType": (_KIND, 3),
    "agentops.span.kind": (_KIND, 3),
    "ai.operationId": (_KIND, 3),
    "llm.request.type": (_KIND, 4),
}
_WORDS: Final[Mapping[str, int]] = {
    **{kind: at for at, kind in enumerate(KINDS)},
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion", "generation", "call_llm"), 0),
    **dict.fromkeys(("chat_model", "ai.generatetext.dogenerate", "ai.streamtext.dostream"), 0),
    **dict.fromkeys(("ai.generateobject.dogenerate", "ai.streamobject.dostream"), 0),
    **dict.fromkeys(("execute_tool", "ai.toolcall", "function"), 1),
    **dict.fromkeys(("embeddings", "ai.embed.doembed", "ai.embedmany.doembed"), 2),
    "retrieval": 3,
    **dict.fromkeys(("invoke_agent", "create_agent"), 5),
    **dict.fromkeys(("workflow", "task", "span", "invoke_workflow"), 6),
}


_FAILED_BELOW: Final = 3


class Row:
    """What is known of a trace so far."""

    __slots__ = (
        *("name", "rooted", "topped", "started", "ended", "failed", "spans", "counts"),
        *("session", "user", "tenant", "recording", "models"),
    )

    def __init__(self) -> None:
        self.name = ""
        self.rooted = self.topped = 0
        """Whether `name` is that of a span without a parent (1) or of a run's own root (2), and when that began."""
        self.started = 1 << 62
        self.ended = self.spans = 0
        self.failed = 0
        """The status of the topmost span; `_FAILED_BELOW` where another one failed and no topmost one is known."""
        self.counts = [0] * len(KINDS)
        self.recording = ""
        self.session = self.user = self.tenant = self.models = ""
        """Every one that a span names, one a line, the first one first."""


_Pairs = Iterable[dict[str, Any]]
_Told = tuple[int, str] | None
Glimpse = tuple[str, int, int, int, bool, bool, list[_Told]]
"""Of a span: name, start and end in nanoseconds, status, whether it is topmost, whether it counts, and its facts."""


def of_told(span: dict[str, Any]) -> Glimpse:
    """Look at a span as OTLP/JSON has it. Raises what odd shapes raise: `foreign.otlp` then reads the line."""
    facts: list[_Told] = [None, None, None, None, None]
    root = section = False
    name = span.get("name") or ""
    for pair in cast("_Pairs", span.get("attributes") or ()):
        if pair["key"] in _WANTED:
            what, rank = _WANTED[pair["key"]]
            if what == _IS_ROOT:
                root = True
                continue
            if what == _IS_SECTION:
                section = True
                continue
            if what == _NAME:
                name = pair["value"].get("stringValue") or name
                continue
            earlier = facts[what]
            if earlier is None or earlier[0] > rank:
                value = pair["value"].get("stringValue")
                if value:
                    facts[what] = (rank, value)
    status_object = span.get("status")
    status = status_object.get("code") if status_object else 0
    if isinstance(status, str):
        status = STATUS_ERROR if status.endswith("ERROR") else STATUS_OK if status.endswith("OK") else 0
    start, end = int(span.get("startTimeUnixNano") or 0), int(span.get("endTimeUnixNano") or 0)
    top = root or not span.get("parentSpanId")
    return name, start, end, status or 0, top, not (root or section), facts


def of_record(span: SpanRecord) -> Glimpse:
    """Look at a span that was read."""
    facts: list[_Told] = [None, None, None, None, None]
    for name, value in span.attributes.items():
        fact_rank = _WANTED.get(name)
        if fact_rank is not None and fact_rank[0] < _IS_ROOT and isinstance(value, str) and value:
            earlier = facts[fact_rank[0]]
            if earlier is None or earlier[0] > fact_rank[1]:
                facts[fact_rank[0]] = (fact_rank[1], value)
    root = span.attributes.get(_ROOT) is True
    name = recorded if isinstance(recorded := span.attributes.get(RECORDED_NAME), str) else span.name
    counts = not root and SECTION not in span.attributes
    return name, span.start_ns, span.end_ns, span.status, root or span.parent_id is None, counts, facts


def add(row: Row, glimpse: Glimpse) -> None:
    """Add a span to what is known of its trace."""
    name, start, end, status, top, counts, facts = glimpse
    row.spans += 1
    row.started = min(row.started, start)
    row.ended = max(row.ended, end)
    rank = 0 if not top else 1 if counts else 2
    if rank and (rank > row.rooted or (rank == row.rooted and start < row.topped)):
        row.rooted, row.topped, row.name, row.failed = rank, start, name, status
    else:
        row.name = row.name or name
        if status == STATUS_ERROR and not row.rooted:
            row.failed = _FAILED_BELOW
    session, user, tenant, model, kind = facts
    if session is not None and session[1] not in row.session:
        row.session = f"{row.session}\n{session[1]}" if row.session else session[1]
    if user is not None and user[1] not in row.user:
        row.user = f"{row.user}\n{user[1]}" if row.user else user[1]
    if tenant is not None and tenant[1] not in row.tenant:
        row.tenant = f"{row.tenant}\n{tenant[1]}" if row.tenant else tenant[1]
    if model is not None and model[1] not in row.models:
        row.models = f"{row.models}\n{model[1]}" if row.models else model[1]
    if counts:
        row.counts[_WORDS.get(kind[1].lower(), _OTHER) if kind is not None else _OTHER] += 1


def status_word(failed: int, *, rooted: bool) -> str:
    """Say how a run ended, as far as a glance tells: `ok`, `error` or `unset`."""
    if rooted:
        return "error" if failed == STATUS_ERROR else "ok"
    return "error" if failed == _FAILED_BELOW else "unset"


def by_kind(counts: Iterable[int]) -> dict[str, Json]:
    """Give the counts that are there, by kind."""
    return {kind: count for kind, count in zip(KINDS, counts, strict=True) if count}
