"""What happened, in sentences for people who read no code. Every word of them follows from the trace."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from reenact.boundary.reading import answered, asked
from reenact.report import call_text
from reenact.report.incident.incident import Incident
from reenact.report.incident.inert import flat
from reenact.values.assertion import Finding, Standing
from reenact.values.call import CallKind, FunctionCall, Raised
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_text
from reenact.values.message import Text
from reenact.values.run import Node, Run
from reenact.values.unit import answer_of, job_of, request_of, result_of

_LONGEST = 400
_ARGUMENTS = 3
_NAMED = 4
_SIDE = 60
_KINDS = {
    "llm": "model call",
    "tool": "tool call",
    "retriever": "document search",
    "embedding": "embedding",
    "reranker": "reranking",
    "http": "HTTP call",
    "grpc": "gRPC call",
    "child": "program",
}


def headline(incident: Incident) -> str:
    """Say in one sentence what happened: what was asserted and failed, what it died of, where a replay leaves it."""
    if incident.title:
        return incident.title
    if broken := _broken(incident):
        witness = _witness(incident.run, broken[0])
        return f"The agent {_did(witness)}." if witness is not None else _sentence(broken[0].because)
    if incident.status == "interrupted":
        return f"{_name(incident)} was cut off before it ended"
    if error := died_of(incident.run):
        return f"{_name(incident)} ended with an error: {_cut(error, 160)}"
    second = incident.second
    if second is not None and second.word == "diverged" and second.divergences:
        return departure(incident)[0]
    if incident.status == "error":
        return f"{_name(incident)} ended with an error"
    ended = " ran to its end" if incident.status == "ok" else ""
    return f"{_name(incident)}{ended}: {counts(incident.run)}"


def lede(incident: Incident) -> str:
    """Say the sentences after it: the rule that it breaks, and what the replay shows."""
    rules = [f"That breaks the rule “{each.assertion}”." for each in _broken(incident)[:1]]
    return " ".join([*rules, _of_second(incident)])


def _of_second(incident: Incident) -> str:
    second = incident.second
    if second is None:
        words = first_words(incident.run)
        return f"It was asked: “{_cut(words, 200)}”" if words else ""
    which = "replay" if second.is_replay else "second run"
    match second.word:
        case "same":
            return f"The {which} is the same run, call by call, down to how it ended."
        case "other words":
            return f"The {which} takes the same path; only wording differs."
        case "diverged" if second.divergences:
            first, short, then = departure(incident)
            before = same_before(incident)
            shared = f" The {before} calls before that are the same." if before and before > 1 else ""
            return f"{short if headline(incident) == first else then}{shared}"
        case _:
            return f"The {which} cannot be judged: {second.why or 'nothing can be said of it'}."


def departure(incident: Incident) -> tuple[str, str, str]:
    """Say the first divergence: what the recording has, what the other run does instead, and that by itself."""
    second = incident.second
    first: Mapping[str, Json] = second.divergences[0] if second is not None and second.divergences else {}
    other = "replayed code" if second is None or second.is_replay else "second run"
    node = next((each for each in incident.run.nodes if each.id == first.get("node_a")), None)
    call = flat(as_text(first.get("call")))
    match as_text(first.get("kind")):
        case "missing" if node is not None:
            return f"The agent {_did(node)}.", f"The {other} does not.", f"The {other} does not make the call {call}."
        case "extra":
            then = f"The {other} does what was not recorded: {flat(as_text(first.get('reason'))) or call}."
            return f"The {other} leaves the recording.", then, then
        case "reordered":
            then = f"The {other} makes the same calls in another order; the first out of place is {call}."
            return f"The {other} leaves the recording.", then, then
        case _ if node is not None and not node.call.is_structure:
            then = f"The {other} {_otherwise(node, first)}."
            return f"The agent {_did(node)}.", then, then
        case _:
            then = f"The runs part at {call}: {flat(as_text(first.get('field')))} differs."
            return f"The {other} leaves the recording.", then, then


def _otherwise(node: Node, first: Mapping[str, Json]) -> str:
    """Say how another run makes the same call."""
    field = flat(as_text(first.get("field")))
    name = field.removeprefix("arguments.")
    makes = (
        f"calls {flat(node.call.name)}"
        if node.kind is CallKind.TOOL
        else f"makes the {_KINDS.get(node.call.word, 'call')} #{node.number}"
    )
    sides = [value_words(first.get(side)) for side in ("a", "b")]
    if name != field and not as_list(first.get("absent")) and all(len(side) <= _SIDE for side in sides):
        return f"{makes} with {name} {sides[1]} instead of {sides[0]}"
    return f"{makes} too, and {field} differs"


def same_before(incident: Incident) -> int | None:
    """Count the recorded calls before the first divergence, which are the same; None where no place is known."""
    second = incident.second
    if second is None or not second.divergences:
        return None
    first = second.divergences[0]
    for run, node_id in ((incident.run, first.get("node_a")), (second.run, first.get("node_b"))):
        if run is not None and node_id:
            for place, node in enumerate(run.nodes):
                if node.id == node_id:
                    return sum(not each.call.is_structure for each in run.nodes[:place])
    return None


def _broken(incident: Incident) -> list[Finding]:
    return [each for each in incident.findings if each.standing is Standing.FAILS and each.layer == "structure"]


def _witness(run: Run, finding: Finding) -> Node | None:
    """Give the call that decides a finding, where it is one that people can be told of."""
    candidates = (node for node in run.nodes if node.id in finding.nodes and not node.call.is_structure)
    return next(candidates, None)


def died_of(run: Run) -> str | None:
    """Say what the run died of, as `Class: message`, or None."""
    root = run.root
    if root is None:
        return None
    attributes = root.span.attributes
    if attributes.get("reenact.outcome") == "raised" and attributes.get("exception.type"):
        return f"{attributes.get('exception.type')}: {attributes.get('exception.message')}"
    if isinstance(root.outcome, Raised):
        return f"{root.outcome.exception.qualname}: {root.outcome.exception.message}"
    return None


def counts(run: Run) -> str:
    """Count the calls of a run: `3 model calls, 2 tool calls and 1 document search`."""
    numbers = Counter(node.call.word for node in run.nodes if not node.call.is_structure)
    phrases = [f"{number:,} {_plural(_KINDS.get(kind, f'{kind} call'), number)}" for kind, number in numbers.items()]
    return _listed(phrases) or f"{len(run.nodes):,} spans, of which none is read as a call"


def asked_for(run: Run) -> Iterator[tuple[str, str]]:
    """Give what was asked of the agent: a label and the text, the nearest to a person first."""
    if words := first_words(run):
        yield "The request", words
    if (request := request_of(run)) is not None:
        yield "HTTP request", f"{request.method} {request.path}{f'?{request.query}' if request.query else ''}"
    if (job := job_of(run)) is not None:
        yield "Job", f"{job.name} {compact([*job.args])} {compact(job.kwargs) if job.kwargs else ''}".rstrip()
    if argv := short_argv(run):
        yield "Started as", shlex.join(argv)


def short_argv(run: Run) -> list[str]:
    """Give how the program was started, the interpreter and the program by their names alone."""
    argv = [as_text(word) for word in as_list(run.entry.get("argv"))]
    return [word.rpartition("/")[2] if at < 2 else word for at, word in enumerate(argv)]


def first_words(run: Run) -> str:
    """Give what a person asked: the last message of a user in the first model call that has one."""
    for node in run.nodes:
        if node.kind is not CallKind.LLM or (ask := asked(node)) is None:
            continue
        for message in reversed(ask.messages):
            texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
            if message.role == "user" and texts:
                return "\n".join(texts)
    return ""


def last_words(run: Run) -> str:
    """Give what the agent said at the end: the text of its last model call that has any."""
    for node in reversed(run.nodes):
        if node.kind is CallKind.LLM and (reply := answered(node)) is not None:
            texts = [part.text for each in reply.messages for part in each.parts if isinstance(part, Text)]
            if text := "".join(texts).strip():
                return text
    return ""


def answered_to_the_caller(run: Run) -> str:
    """Give what a service or job answered: the status and body, or the result; empty where it was no such thing."""
    answer, result = answer_of(run), result_of(run) if job_of(run) is not None else ABSENT
    if answer is not None:
        body = (answer.body or b"").decode("utf-8", "replace")
        return f"HTTP {answer.status}{f'{chr(10)}{body}' if body else ''}"
    return "" if isinstance(result, Absent) else compact(result)


def tools_used(run: Run) -> list[tuple[Node, str]]:
    """Give the calls of tools in order, each with its arguments in words."""
    return [(node, in_words(node)) for node in run.nodes if node.kind is CallKind.TOOL]


def in_words(node: Node) -> str:
    """Say the arguments of a call: `account_ids a-104, a-117 and target production`."""
    request = node.call.request
    if not isinstance(request, FunctionCall) or not isinstance(request.arguments, dict):
        return ""
    phrases = [f"{name} {value_words(value)}" for name, value in request.arguments.items() if value not in ({}, [], "")]
    return _listed([_cut(each, 90) for each in phrases[:_ARGUMENTS]])


def value_words(value: Json) -> str:
    """Say a value: text as it is, a list by its items, nothing as `(none)`."""
    if value is None:
        return "(none)"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        some = ", ".join(str(item) for item in value[:_NAMED])
        return some if len(value) <= _NAMED else f"{some} and {len(value) - _NAMED} more"
    return flat(value if isinstance(value, str) else compact(value))


def _name(incident: Incident) -> str:
    return _cut(incident.run.name, 60)


def _did(node: Node) -> str:
    if node.kind is CallKind.TOOL:
        words = in_words(node)
        return f"called {flat(node.call.name)}{f' with {words}' if words else ''}"
    if node.kind is CallKind.LLM:
        words = _cut(flat(call_text.outcome(node)), 120).rstrip(".")
        return f"asked the model (call #{node.number}){f', which said: “{words}”' if words else ''}"
    return f"made {_KINDS.get(node.call.word, 'the call')} {flat(node.call.name)} #{node.number}"


def _plural(word: str, number: int) -> str:
    if number == 1:
        return word
    return f"{word}es" if word.endswith("ch") else f"{word}s"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _cut(text: str, most: int) -> str:
    line = flat(text[: 8 * most])
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _sentence(text: str) -> str:
    line = _cut(text, _LONGEST).rstrip(".")
    return line[:1].upper() + line[1:]
