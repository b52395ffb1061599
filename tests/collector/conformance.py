"""What OTLP 1.11 asks of a server, each rule tried against a running one.

    python tests/collector/conformance.py NAME=http://127.0.0.1:4318,127.0.0.1:4317 …

prints a table: a row for each rule, a column for each server. In code, `tried(Target(…))` gives what was found. A rule
is one line of `RULES`: how strong it is, over which transport, its words, and the probe that tries it. `also` are rules
that OTLP does not have and that its clients, or HTTP, count on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

from collector import probes
from collector.probes import Said
from collector.probing import Target

Level = Literal["MUST", "SHOULD", "also"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is asked of a server."""

    level: Level
    over: Literal["HTTP", "gRPC"]
    words: str
    probe: Callable[[Target], Said]


def tried(target: Target, rules: Iterable[Rule] | None = None) -> dict[Rule, Said]:
    """Try the rules one after another. A probe that fails in a way of its own is a rule not met."""
    found: dict[Rule, Said] = {}
    for rule in rules or RULES:
        if rule.over == "gRPC" and not target.grpc:
            found[rule] = Said(None, "no gRPC")
            continue
        try:
            found[rule] = rule.probe(target)
        except Exception as failure:  # noqa: BLE001 - whatever a server brings about
            found[rule] = Said(met=False, did=f"{type(failure).__name__}: {failure}"[:80])
    return found


def table(answers: Mapping[str, Mapping[Rule, Said]]) -> str:
    """Write a Markdown table: a row for each rule, a column for each server, and the sums."""
    lines = [f"| | OTLP 1.11 asks | {' | '.join(answers)} |", f"|---|---|{'---|' * len(answers)}"]
    for rule in RULES:
        cells = [str(each[rule]) if rule in each else "" for each in answers.values()]
        lines.append(f"| {rule.level} | {rule.over}: {rule.words} | {' | '.join(cells)} |")
    levels: tuple[Level, ...] = ("MUST", "SHOULD", "also")
    lines += [
        f"| | **{level} met** | {' | '.join(score(each, level) for each in answers.values())} |" for level in levels
    ]
    return "\n".join(lines)


def score(found: Mapping[Rule, Said], level: Level) -> str:
    """Say how many of the rules that could be tried are met."""
    verdicts = [said.met for rule, said in found.items() if rule.level == level and said.met is not None]
    return f"{sum(verdicts)} of {len(verdicts)}"


RULES: tuple[Rule, ...] = (
    Rule(
        "MUST",
        "HTTP",
        "protobuf is taken; the answer is an ExportTraceServiceResponse of the same Content-Type",
        probes.plain_protobuf,
    ),
    Rule("MUST", "HTTP", "gzip is taken", probes.gzip_protobuf),
    Rule("SHOULD", "HTTP", "JSON is taken on the same port, and answered in JSON", probes.plain_json),
    Rule("MUST", "HTTP", "JSON with gzip is taken", probes.gzip_json),
    Rule("MUST", "HTTP", "partial_success is unset where all is taken", probes.unset_over_http),
    Rule(
        "MUST", "HTTP", "what is rejected of a request is counted, and the rest is taken", probes.rejected_are_counted
    ),
    Rule("SHOULD", "HTTP", "and the reason is said", probes.rejected_are_explained),
    Rule("MUST", "HTTP", "unknown names in JSON are ignored", probes.unknown_names_ignored),
    Rule("MUST", "HTTP", "ids in JSON are hex in any case", probes.ids_in_any_case),
    Rule(
        "MUST",
        "HTTP",
        "64-bit integers in JSON are taken as strings and as numbers, exactly",
        probes.numbers_either_way,
    ),
    Rule("MUST", "HTTP", "bytesValue in JSON is base64", probes.bytes_in_base64),
    Rule("MUST", "HTTP", "a field's name in snake_case is no name", probes.snake_case_is_no_name),
    Rule("MUST", "HTTP", "unknown fields in protobuf are ignored", probes.unknown_protobuf_ignored),
    Rule("MUST", "HTTP", "the size is limited, also after decompression", probes.limited_over_http),
    Rule("MUST", "HTTP", "over the limit is 413", probes.too_large_is_413),
    Rule("MUST", "HTTP", "over the limit is 413 for JSON too, said in JSON", probes.too_large_as_json),
    Rule("MUST", "HTTP", "protobuf that cannot be decoded is 400", probes.bad_protobuf),
    Rule("MUST", "HTTP", "protobuf that is cut is 400", probes.cut_protobuf),
    Rule("MUST", "HTTP", "JSON that cannot be decoded is 400", probes.bad_json),
    Rule("MUST", "HTTP", "an id in JSON that is no hex is 400", probes.bad_id_in_json),
    Rule("MUST", "HTTP", "gzip that cannot be unpacked is 400", probes.bad_gzip),
    Rule("MUST", "HTTP", "the body of a 400 is a Status, in protobuf for protobuf", probes.error_is_status),
    Rule("MUST", "HTTP", "the body of a 400 is a Status, in JSON for JSON", probes.error_is_json_status),
    Rule("MUST", "HTTP", "the body of a 413 is a Status", probes.too_large_is_status),
    Rule("MUST", "HTTP", "the body of a 404 is a Status", probes.unknown_path_is_status),
    Rule("MUST", "HTTP", "the body of a 405 is a Status", probes.other_method_is_status),
    Rule("MUST", "HTTP", "the body of a 415 is a Status", probes.other_type_is_status),
    Rule("MUST", "HTTP", "the body of the refusal of an encoding is a Status", probes.other_encoding_is_status),
    Rule("MUST", "HTTP", "the body of a 429 or 503 is a Status", probes.full_is_status),
    Rule("MUST", "HTTP", "an answer has 4 MiB at most", probes.answer_is_small),
    Rule("SHOULD", "HTTP", "an empty request is a success", probes.empty_over_http),
    Rule("SHOULD", "HTTP", "64 MiB are taken", probes.large_over_http),
    Rule("SHOULD", "HTTP", "Status.message says what is wrong", probes.error_has_message),
    Rule("SHOULD", "HTTP", "the Status of a 400 has BadRequest among its details", probes.error_has_details),
    Rule("SHOULD", "HTTP", "what cannot be taken now is 429 or 503", probes.full_is_retryable),
    Rule("also", "HTTP", "with Retry-After", probes.full_says_when),
    Rule("also", "HTTP", "empty envelopes are taken", probes.empty_envelopes),
    Rule("also", "HTTP", "a connection stays open", probes.kept_alive),
    Rule("also", "HTTP", "a connection stays open after an error", probes.kept_alive_after_error),
    Rule("also", "HTTP", "64 requests on 16 connections at once", probes.several_at_once_http),
    Rule("also", "HTTP", "a body in chunks (RFC 9112)", probes.chunked_body),
    Rule("also", "HTTP", "gzip in several members (RFC 1952)", probes.gzip_in_members),
    Rule("also", "HTTP", "Content-Type with parameters", probes.json_with_charset),
    Rule("also", "HTTP", "logs at /v1/logs", probes.logs_too),
    Rule("also", "HTTP", "404 for another path", probes.unknown_path),
    Rule("also", "HTTP", "405 with Allow for another method (RFC 9110)", probes.other_method),
    Rule("also", "HTTP", "415 for another type, or none", probes.other_type),
    Rule("also", "HTTP", "400 or 415 for an unknown encoding", probes.other_encoding),
    Rule("also", "HTTP", "strings that are no UTF-8 are 400, or taken", probes.bad_utf8),
    Rule("also", "HTTP", "a bomb of gzip, 1 GiB in 1 MiB, is refused, and the server lives", probes.bomb),
    Rule("also", "HTTP", "401 with a Status without the token", probes.stranger_refused),
    Rule("also", "HTTP", "a request that comes twice is kept once", probes.doubles_folded),
    Rule("MUST", "gRPC", "Export is answered", probes.grpc_plain),
    Rule("MUST", "gRPC", "gzip is taken", probes.grpc_gzip),
    Rule("MUST", "gRPC", "partial_success is unset where all is taken", probes.unset_over_grpc),
    Rule(
        "MUST",
        "gRPC",
        "over the limit, also after decompression, is RESOURCE_EXHAUSTED without RetryInfo",
        probes.limited_over_grpc,
    ),
    Rule(
        "MUST", "gRPC", "what cannot be decoded is refused with a code that is not retryable", probes.grpc_bad_message
    ),
    Rule("SHOULD", "gRPC", "and that is INVALID_ARGUMENT", probes.grpc_invalid_argument),
    Rule("SHOULD", "gRPC", "an empty request is a success", probes.grpc_empty),
    Rule("SHOULD", "gRPC", "64 MiB are taken", probes.large_over_grpc),
    Rule("SHOULD", "gRPC", "64 calls at once on one connection", probes.several_at_once_grpc),
    Rule(
        "SHOULD",
        "gRPC",
        "what cannot be taken now is UNAVAILABLE, or RESOURCE_EXHAUSTED with RetryInfo",
        probes.full_is_unavailable,
    ),
    Rule("also", "gRPC", "another method is UNIMPLEMENTED", probes.grpc_unknown_method),
    Rule("also", "gRPC", "UNAUTHENTICATED without the token", probes.stranger_refused_grpc),
)


if __name__ == "__main__":
    answers: dict[str, dict[Rule, Said]] = {}
    for word in sys.argv[1:]:
        label, _, places = word.partition("=")
        http_place, _, grpc_place = places.partition(",")
        answers[label] = tried(Target(name=label, http=http_place.rstrip("/"), grpc=grpc_place or None))
    print(table(answers))  # noqa: T201 - what it is for
