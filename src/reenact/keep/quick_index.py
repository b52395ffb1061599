"""A first look at a trace that a collector took in: enough to find it, at a fraction of what judging it costs.

Read are the attributes of OpenInference and of OpenTelemetry's GenAI conventions. Whoever rebuilds the run later knows
more, and every dialect; what is noted here stands until then.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.disk.run_index import Entry
from reenact.report.times import instant
from reenact.values.finding import REVISIONS, ToolUse, argument_pairs
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.run import PROCESS_REST, RECORDED_NAME, SECTION, SESSION_NAMES, TENANT, USER_NAMES

_KINDS: Final = {
    "LLM": "llm", "TOOL": "tool", "RETRIEVER": "retriever", "EMBEDDING": "embedding", "RERANKER": "reranker",
    "AGENT": "agent", "CHAIN": "chain", "chat": "llm", "text_completion": "llm", "generate_content": "llm",
    "execute_tool": "tool", "embeddings": "embedding", "invoke_agent": "agent",
}  # fmt: skip
_MODEL = ("llm.model_name", "gen_ai.request.model", "embedding.model_name")
_KIND = ("openinference.span.kind", "gen_ai.operation.name")
_TOOL, _ARGUMENTS = ("tool.name", "gen_ai.tool.name"), ("input.value", "gen_ai.tool.call.arguments")
_WHO = (SESSION_NAMES, USER_NAMES, (TENANT,))
_NO_CALLS: Final = frozenset({"reenact.run.root", PROCESS_REST, SECTION})
_WANTED = frozenset((*SESSION_NAMES, *USER_NAMES, TENANT, *_MODEL, *_KIND, *_TOOL, *_ARGUMENTS, *_NO_CALLS))


def glimpse(trace_id: str, spans: bytes) -> Entry | None:
    """Make an index entry of the spans of one trace, a request of OTLP; None where it has none."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(spans)
    every: list[Any] = [span for group in request.resource_spans for entry in group.scope_spans for span in entry.spans]
    if not every:
        return None
    facts = _Seen()
    for group in request.resource_spans:
        facts.hear(group.resource.attributes)
    for span in every:
        facts.look(span)
    ids = {span.span_id for span in every}
    root = next((span for span in every if not span.parent_span_id), None)
    root = root or next((span for span in every if span.parent_span_id not in ids), every[0])
    recorded = next((pair.value.string_value for pair in root.attributes if pair.key == RECORDED_NAME), "")
    root.name = recorded or root.name
    started = min((span.start_time_unix_nano for span in every if span.start_time_unix_nano), default=0)
    ended = max(started, *(span.end_time_unix_nano for span in every))
    return facts.entry(trace_id, root, started, ended)


class _Seen:
    """What the spans of one trace say."""

    def __init__(self) -> None:
        self.identity: dict[str, str] = {}
        self.models = set[str]()
        self.tools = set[str]()
        self.uses: list[ToolUse] = []
        self.calls: dict[str, int] = {}
        self.services = set[str]()
        self.commits = set[str]()

    def hear(self, attributes: Any) -> None:
        """Take what a resource says."""
        for pair in attributes:
            if pair.key == "service.name" and pair.value.string_value:
                self.services.add(pair.value.string_value)
            elif pair.key in REVISIONS and pair.value.string_value:
                self.commits.add(pair.value.string_value)

    def look(self, span: Any) -> None:
        """Take what one span says."""
        attributes: dict[str, str] = {
            pair.key: pair.value.string_value for pair in span.attributes if pair.key in _WANTED
        }  # fmt: skip
        for names in _WHO:
            if names[0] not in self.identity and (value := _first(attributes, names)):
                self.identity[names[0]] = value
        if model := _first(attributes, _MODEL):
            self.models.add(model)
        kind = _KINDS.get(_first(attributes, _KIND), "")
        if kind and _NO_CALLS.isdisjoint(attributes):
            self.calls[kind] = self.calls.get(kind, 0) + 1
        if kind == "tool":
            name = _first(attributes, _TOOL) or span.name
            self.tools.add(name)
            pairs = argument_pairs(parsed_or_none(_first(attributes, _ARGUMENTS)))
            self.uses.append(ToolUse(id=span.span_id.hex(), tool=name, arguments=pairs))

    def entry(self, trace_id: str, root: Any, started: int, ended: int) -> Entry:
        """Sum up."""
        status = "error" if root.status.code == 2 else ("ok" if not root.parent_span_id else "unset")
        session, user, tenant = (self.identity.get(names[0]) for names in _WHO)
        calls: dict[str, Json] = dict(self.calls)
        summary: dict[str, Json] = {
            "id": trace_id,
            "name": root.name,
            "started": instant(started) if started else None,
            "duration_ms": round((ended - started) / 1e6, 3) if started else None,
            "status": status,
            "calls": calls,
            "verdict": None,
            "judged": False,
            "session": session,
            "user": user,
            "tenant": tenant,
            "models": [*sorted(self.models)],
            "tools": [*sorted(self.tools)],
            "source": "store",
            "replay_of": None,
            "fork_of": None,
        }
        return Entry(
            id=trace_id, name=root.name, started=started, ended=ended, status=status, session=session, user=user,
            tenant=tenant, summary=compact(summary), models=tuple(sorted(self.models)), uses=tuple(self.uses),
            entries=tuple(sorted({root.name, *self.services} - {""})), commits=tuple(sorted(self.commits)),
        )  # fmt: skip


def _first(attributes: dict[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := attributes.get(name))), "")
