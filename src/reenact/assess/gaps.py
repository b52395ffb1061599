"""Why a call that is not in a trace may have happened all the same."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.assess.calls import CallView, asked_unseen
from reenact.assess.refusals import refused
from reenact.boundary.reading import is_plain
from reenact.boundary.resource import is_a_model
from reenact.values.assertion import Calls
from reenact.values.call import CallKind, HttpRequest
from reenact.values.run import FAILURES, OURS, Run

_HTTP = frozenset({"llm", "embedding", "http"})
_UNDERSTOOD = frozenset({CallKind.LLM, CallKind.TOOL, CallKind.RETRIEVER, CallKind.EMBEDDING, CallKind.RERANKER})


def unrecorded(run: Run, calls: Calls | None) -> str:
    """Name what the recorder itself says that it did not write down."""
    over_http = calls is None or calls.kind in _HTTP or (not calls.kind and "*" in calls.name)
    for name, why, counts in (
        ("reenact.dropped", "{} records could not be written to the journal", True),
        (FAILURES, "{} times the recorder failed by a fault of its own", True),
        ("reenact.suppressed", "{} calls were led past the recorder by suppress_tracing", True),
        ("reenact.unrecorded", "{} HTTP calls could not be written down", over_http),
    ):
        many = run.root.span.attributes.get(name) if run.root else None
        if counts and isinstance(many, int) and many:
            return why.format(many)
    return ""


def missing(run: Run) -> str:
    """Name spans that are named and not here. One that hangs below another service's span is a whole run."""
    orphans = sum(node.orphan for node in run.nodes)
    if orphans > (1 if run.root is None else 0):
        return f"{orphans} spans hang below a span that is not in the trace, so calls may be missing"
    return ""


def unread(run: Run, run_calls: Iterable[CallView], calls: Calls | None) -> str:
    """Name spans of which nobody knows what they are, where the call may be one of them."""
    unknown = [
        node for node in run.nodes if node.call.word == "unknown" and not node.span.attributes.get("reenact.run.root")
    ]
    if not unknown:
        return ""
    if not any(node.kind in _UNDERSTOOD for node in run.nodes):
        return f"what the {len(unknown)} spans of this trace are is not known"
    wanted = calls.name.strip("*?").lower() if calls is not None else ""
    like = [node for node in unknown if wanted and wanted in node.span.name.lower()]
    known_count = sum(each.wanted is not None and wanted in each.name.lower() for each in run_calls)
    if len(like) <= known_count:  # they are the tools that a model was seen to ask for
        return ""
    return f"what the span {like[0].span.name!r} is, is not known; it may be such a call"


def unspanned(run_calls: Iterable[CallView], calls: Calls | None) -> str:
    """Name a model call that may have asked for a tool, in a trace that holds no span of any."""
    if calls is not None and calls.kind not in {"", "tool"}:
        return ""
    models: list[CallView] = []
    for each in run_calls:
        if OURS in each.node.span.attributes or (each.word == "tool" and each.wanted is None):
            return ""
        if each.word == "llm" and each.wanted is None:
            models.append(each)
    for each in models:
        if refused(each) is None:
            return f"no tool has a span here, and what {each.label} answered was not recorded: it may have asked for it"
        if asked_unseen(each):
            return f"no tool has a span here, and which tools {each.label} asked for was not recorded"
    return ""


def unreadable(run_calls: Iterable[CallView], calls: Calls | None, spanned: Iterable[str]) -> str:
    """Name a call of a model's API that nobody can read here: what it cost, which model it was, what it asked for.

    A tool that has spans of its own whenever it runs is known all the same.
    """
    run_calls = [*run_calls]
    if calls is not None and calls.kind not in {"", "llm", "embedding", "tool"}:
        return ""
    if calls is not None and calls.kind in {"", "tool"} and calls.name in {*spanned, *_with_spans(run_calls)}:
        return ""
    for each in run_calls:
        request = each.node.call.request
        if isinstance(request, HttpRequest) and is_plain(each.node):
            url, body = request.url, request.body.data
            if is_a_model(request.method, url, body):
                return f"{each.label} is a call of a model's API that this version does not read"
    return ""


def _with_spans(run_calls: Iterable[CallView]) -> Iterable[str]:
    return (each.name for each in run_calls if each.word == "tool" and each.wanted is None)
