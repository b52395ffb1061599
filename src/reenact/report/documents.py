"""The documents of every `--json`: a contract that scripts rely on. It grows; nothing is renamed or taken away."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from reenact.boundary.reading import reply_body
from reenact.report.times import instant, milliseconds
from reenact.values.call import Body, Chunk, HttpReply, HttpRequest, Raised, Returned, Streamed, Value
from reenact.values.difference import Divergence, divergence_to_json
from reenact.values.exception_record import exception_to_json
from reenact.values.json import Json, parsed_or_none
from reenact.values.protection import protection
from reenact.values.run import NOTHING_WRITTEN, OUTPUT, SECTION, WRITTEN, Node, Run, Verdict

if TYPE_CHECKING:
    from reenact.values.judgement import Comparison, ReplayResult

_EVIDENCE = ("input.value", "input.mime_type", "output.value", "output.mime_type")
_EVIDENCE_PREFIXES = ("reenact.http.", "reenact.stream.")


def ls_document(summaries: Iterable[Mapping[str, Json]]) -> dict[str, Json]:
    """Make the document of `reenact ls`: one summary a run."""
    return {"runs": [dict(summary) for summary in summaries]}


def show_document(run: Run, summary: Mapping[str, Json], verdict: Verdict) -> dict[str, Json]:
    """Make the document of `reenact show`: the run with its verdict, and its calls in causal order."""
    described: dict[str, Json] = {
        **summary,
        "verdict": verdict_document(verdict),
        "notes": [*run.notes],
        "redaction": protection(run).to_json(),
        "own": run.own,
        "wrote": _files_written(run),
        "printed": _printed(run),
        "entry": run.entry,
        "surroundings": run.surroundings,
    }
    document: dict[str, Json] = {"run": described, "calls": [call_document(node) for node in run.nodes]}
    if run.sections:
        document["sections"] = [_section_document(node) for node in run.sections]
    return document


def _section_document(node: Node) -> dict[str, Json]:
    """Describe a section of a framework: it has no number, lane or cause, since it is no call."""
    described = call_document(node)
    wanted = ("id", "parent", "kind", "name", "started", "duration_ms", "request", "outcome", "attributes")
    return {"framework": str(node.span.attributes.get(SECTION)), **{name: described[name] for name in wanted}}


def _printed_now(result: ReplayResult) -> dict[str, Json]:
    comparison = result.printed
    return {
        "compared": comparison.compared,
        "why": comparison.why,
        "as_recorded": [*comparison.as_recorded],
        "passed_over": [*comparison.passed_over],
        "notes": [*comparison.notes],
    }


def _printed(run: Run) -> Json:
    """Describe what a run printed; null where nobody noted it."""
    if not any(OUTPUT in node.span.attributes for node in run.nodes):
        return None
    from reenact.report.console_text import of_run

    return of_run(run)


def _files_written(run: Run) -> Json:
    """Describe what a run wrote; null where nobody noted it."""
    records = [node.span.attributes[WRITTEN] for node in run.nodes if WRITTEN in node.span.attributes]
    if all(each == NOTHING_WRITTEN for each in records):
        return [] if records else None
    from reenact.report.file_writes import of_run

    return of_run(run)


def call_document(node: Node) -> dict[str, Json]:
    """Describe one call. `started` is RFC 3339 in UTC; it and `duration_ms` are null where nobody says them."""
    return {
        "id": node.id,
        "parent": node.parent,
        "number": node.number,
        "kind": node.call.word,
        "name": node.call.name,
        "label": node.label,
        "started": instant(node.span.start_ns) if node.span.start_ns > 0 else None,
        "duration_ms": milliseconds(node.span.start_ns, node.span.end_ns),
        "request": request_document(node),
        "outcome": outcome_document(node),
        "lane": node.lane,
        "caused_by": node.caused_by,
        "tool_call_id": node.tool_call_id,
        "orphan": node.orphan,
        "attributes": {
            name: _plain(value)
            for name, value in node.span.attributes.items()
            if name not in _EVIDENCE and not name.startswith(_EVIDENCE_PREFIXES)
        },
        **({"section": node.section} if node.section is not None else {}),
        **_folded_document(node),
    }


def _folded_document(node: Node) -> dict[str, Json]:
    """Name the other spans of a call that several instrumentations wrote down, and what only they said."""
    if not node.twins:
        return {}
    twins: list[Json] = [{"id": span.span_id, "name": span.name, "scope": span.scope.name} for span in node.twins]
    merged = node.call.attributes.get("reenact.merged")
    return {"twins": twins, "merged": merged if merged is not None else {}}


def request_document(node: Node) -> Json:
    """Describe what was asked: `method`, `url`, `shape`, `body` of a provider's API, `arguments` of a function."""
    request = node.call.request
    if isinstance(request, HttpRequest):
        return {
            "method": request.method,
            "url": request.url,
            "shape": request.shape,
            "attempt": request.attempt,
            "body": _body(request.body),
        }
    return {"function": request.function, "arguments": request.arguments}


def outcome_document(node: Node) -> Json:
    """Describe what came of it under one key: `returned`, `streamed`, `raised`, `not_kept`, or `unfinished`."""
    match node.outcome:
        case Returned(payload=Value(json=value)):
            return {"returned": value}
        case Returned(payload=HttpReply(status=status, headers=headers, body=body)):
            return {"returned": {"status": status, "headers": _headers(headers), "body": _body(body)}}
        case Streamed() as stream:
            return {"streamed": _stream(node, stream)}
        case Raised(exception=exception):
            return {"raised": exception_to_json(exception)}
        case _:
            from reenact.report.call_text import is_mute  # most documents are of calls that ended

            return {"not_kept": True} if is_mute(node) else {"unfinished": True}


def _stream(node: Node, stream: Streamed) -> dict[str, Json]:
    document: dict[str, Json] = {"end": stream.end.value, "chunks": [_chunk(chunk) for chunk in stream.chunks]}
    if isinstance(node.call.request, HttpRequest):
        document |= {"status": stream.status, "headers": _headers(stream.headers), "body": reply_body(node)}
    if stream.exception is not None:
        document["exception"] = exception_to_json(stream.exception)
    return document


def _chunk(chunk: Chunk) -> dict[str, Json]:
    document: dict[str, Json] = {"offset_us": chunk.offset_us, "order": chunk.order}
    if chunk.data is None:
        document["value"] = chunk.value
    else:
        document["data"] = _text_or_base64(chunk.data)
    return document


def _headers(headers: tuple[tuple[str, str], ...]) -> list[Json]:
    return [[name, value] for name, value in headers]


def _body(body: Body) -> Json:
    """Give a body as JSON where it is some, else as text, else in base64."""
    value = parsed_or_none(body.data) if body.data else None
    return _text_or_base64(body.data) if value is None else value


def _text_or_base64(data: bytes) -> Json:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _plain(value: object) -> Json:
    """Give an attribute as JSON; bytes are tagged as in typed JSON."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def verdict_document(verdict: Verdict) -> dict[str, Json]:
    """Describe a verdict: how far the recording can be replayed, and what it lost."""
    return {
        "grade": verdict.grade.value,
        "redacted": verdict.redacted,
        "given": [
            {"call": each.call, "field": each.field, "classes": dict[str, Json](each.classes)}
            for each in verdict.replaced_inputs
        ],
        "reasons": [
            {"call": reason.call, "field": reason.field, "lost": reason.lost, "fix": reason.fix}
            for reason in verdict.reasons
        ],
    }


def doctor_document(run: Run, verdict: Verdict) -> dict[str, Json]:
    """Make the document of `reenact doctor`: the verdict and the replay kit, field by field."""
    kit: list[Json] = [
        {"name": item.name, "state": item.state, "detail": item.detail, "fix": item.fix} for item in verdict.kit
    ]
    return {
        "run": run.id,
        "name": run.name,
        "verdict": verdict_document(verdict),
        "kit": kit,
        "redaction": protection(run).to_json(),
        "notes": [*run.notes],
    }


def diff_document(comparison: Comparison) -> dict[str, Json]:
    """Make the document of `reenact diff`. A side that has no value is null and named in `absent`."""
    divergences = [_with_more(each, comparison) for each in comparison.divergences]
    return {
        "same": comparison.same,
        "same_path": comparison.same_path,
        "first": divergences[0] if divergences else None,
        "divergences": [*divergences],
        "calls": {"a": comparison.calls_a, "b": comparison.calls_b},
    }


def _with_more(divergence: Divergence, comparison: Comparison) -> dict[str, Json]:
    document = divergence_to_json(divergence)
    rest = comparison.more.get(divergence.node_a or "", ())
    first = next(each for each in comparison.divergences if each.node_a == divergence.node_a)
    if rest and first is divergence:
        document["more"] = [divergence_to_json(each) for each in rest]
    return document


def _writes(result: ReplayResult) -> Json:
    from reenact.report.file_writes import document

    return document(result)


def _surroundings(result: ReplayResult) -> dict[str, Json]:
    """Say what kept the program from the world around, and what of it was not its own."""
    return {
        "world": {**result.world},
        "level": result.level,
        "levels_refused": {**result.levels_refused},
        "ways_out": [*result.ways_out],
        "stubs": dict[str, Json](result.stubs),
        "reached": {**result.reached},
    }


def replay_document(
    result: ReplayResult,
    *,
    recorded: str = "",
    commits: tuple[str | None, str | None] = (None, None),
    uncommitted: tuple[bool | None, bool | None] = (None, None),
) -> dict[str, Json]:
    """Make the document of `reenact replay`. `recorded` is the id of the run that was replayed."""
    return {
        "result": result.result,
        "why": result.why,
        "answered": dict[str, Json](result.answered),
        "ran_again": dict[str, Json](result.ran_again),
        "unrestored": [*result.unrestored],
        "other_code": [*result.other_code],
        "live": result.live,
        "beyond": result.beyond,
        "misses": [*result.misses],
        "unconsumed": [*result.unconsumed],
        "not_reached": result.not_reached,
        "refused": [*result.refused],
        "ignored": [*result.ignored],
        "redaction": result.redaction,
        "volatile": [*result.volatile],
        "divergences": [*result.divergences],
        "released_out_of_order": [*result.released_out_of_order],
        "killed": [*result.killed],
        "left": result.left,
        "writes": _writes(result),
        "printed": _printed_now(result),
        "outcome": result.strictness.value,
        "unwatched": [*result.unwatched],
        "unwitnessed": [*result.unwitnessed],
        "unlike": [*result.unlike],
        "by_tools": {tool: [*paths] for tool, paths in result.by_tools.items()},
        **_surroundings(result),
        "ended_with": result.ended_with,
        "lacks": [*result.lacks],
        "outside": [*result.outside],
        "exit_code": {"recorded": result.recorded_exit, "replay": result.exit_code},
        "commit": {"recorded": commits[0], "current": commits[1]},
        "uncommitted": {"recorded": uncommitted[0], "current": uncommitted[1]},
        "recorded": recorded or None,
        "replay": result.replay,
        "earlier": [*result.earlier],
    }
