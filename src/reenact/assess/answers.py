"""What a run said at its end, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reenact.assess import run_outputs
from reenact.assess.assertion_text import place_of
from reenact.assess.calls import CallView, Known, Lost, asked_unseen
from reenact.assess.plain_values import plain
from reenact.assess.refusals import refused
from reenact.assess.truth import Unknown, comparison, glob, reached
from reenact.assess.view import Assessment, View, failing, holding, matches, undecided, value_text
from reenact.values import unit
from reenact.values.assertion import Calls, Ending, Ends, ModelIs, Says, Subject
from reenact.values.call import ExceptionRecord, Raised, Returned, Value
from reenact.values.difference import ABSENT, Absent
from reenact.values.ending import cut_off_by
from reenact.values.json import compact, parsed_or_none
from reenact.values.message import Text, ToolCall
from reenact.values.run import Node
from reenact.values.span import STATUS_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The final answer: its text, or why there is none."""

    value: Known
    of: str
    """What said it, for a sentence."""
    calls: tuple[CallView, ...] = ()
    why: str = ""
    """Where it is absent: what came instead."""


def final_answer(view: View) -> Answer:
    """Find the text of the last model call; in a trace that holds none, what the root put out."""
    models = [each for each in view.calls if each.word == "llm" and each.wanted is None]
    if not models:
        return _of_the_root(view)
    return _of_model(_last(models))


def _last(models: Sequence[CallView]) -> CallView:
    """Choose the call that was answered last; one that a killed process was waiting for comes after all."""
    waiting = [each for each in models if each.node.span.attributes.get("reenact.incomplete")]
    if waiting:
        return waiting[-1]
    processes = {str(each.node.span.resource.attributes.get("reenact.process.id")) for each in models}
    if len(processes) == 1 and all(each.node.end_order for each in models):
        return max(models, key=lambda each: each.node.end_order)
    return max(models, key=lambda each: (max(each.node.span.start_ns, each.node.span.end_ns), each.node.number))


def _of_model(last: CallView) -> Answer:
    reply, outcome, of = last.answered, last.node.outcome, last.label
    if isinstance(outcome, Raised):
        return Answer(value=ABSENT, of=of, calls=(last,), why=f"it raised {outcome.exception.qualname}")
    if isinstance(last.status, int) and last.status >= 400:
        return Answer(value=ABSENT, of=of, calls=(last,), why=f"it was answered HTTP {last.status}")
    if reply is None:
        if isinstance(outcome, Returned) and isinstance(outcome.payload, Value):
            value = plain(outcome.payload.json)
            return Answer(value=value if isinstance(value, str) else compact(value), of=of, calls=(last,))
        return Answer(value=Lost("what the model answered was not recorded"), of=of, calls=(last,))
    parts = [part for message in reply.messages for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    if texts:
        return Answer(value="".join(texts), of=of, calls=(last,))
    tools = [part.name for part in parts if isinstance(part, ToolCall)]
    if asked_unseen(last):
        return Answer(value=Lost("which tools it asked for was not recorded"), of=of, calls=(last,))
    why = f"it asked for {', '.join(tools)} and said nothing" if tools else "it said nothing"
    return Answer(value=ABSENT, of=of, calls=(last,), why="it refused" if refused(last) else why)


def _of_the_root(view: View) -> Answer:
    root = view.run.root
    if root is not None and isinstance(root.outcome, Returned) and isinstance(root.outcome.payload, Value):
        value = plain(root.outcome.payload.json)
        if value is not None:
            return Answer(value=value if isinstance(value, str) else compact(value), of=root.label)
    return Answer(value=Lost("no model call was recorded"), of="the run")


def says(assertion: Says, view: View) -> Assessment:
    """Decide what a run said at its end."""
    answer = _subject(assertion.subject, view)
    if view.stopped:
        return undecided(view.stopped, answer.calls)
    value = answer.value
    if isinstance(value, str) and (assertion.path or not isinstance(assertion.value, str | list | None)):
        parsed = parsed_or_none(value)
        if parsed is None:
            answer = Answer(value=ABSENT, of=answer.of, calls=answer.calls, why="it is no JSON")
        value = ABSENT if parsed is None else parsed
    values = reached(value, assertion.path)
    where = place_of(assertion.subject.value, assertion.path)
    shown_values = " | ".join(value_text(each) for each in values[:3])
    because = f"{answer.of}: {where} {'is' if shown_values == 'absent' else '='} {shown_values}"
    because += f" ({answer.why})" if answer.why and isinstance(value, Absent) else ""
    match comparison(values, assertion.op, assertion.value):
        case True:
            return holding(because, answer.calls)
        case Unknown(why=why):
            return undecided(f"{answer.of}: {where}: {why}", answer.calls)
        case _:
            return failing(because, answer.calls)


def _subject(subject: Subject, view: View) -> Answer:
    if subject is Subject.ANSWER:
        return final_answer(view)
    if subject in run_outputs.SUBJECTS:
        value = run_outputs.value_of(subject, view.run)
        return Answer(value=value, of="the run", why="it printed nothing" if isinstance(value, Absent) else "")
    run = view.run
    http_answer, of = unit.answer_of(run), "the run"
    if subject is Subject.STATUS:
        lost = Lost("no HTTP answer of it was recorded: it is no unit of a service, or did not come to one")
        return Answer(value=http_answer.status if http_answer else lost, of=of)
    if http_answer is not None:
        if http_answer.body is None:
            return Answer(value=Lost("its HTTP answer was too large to be kept"), of=of)
        text = http_answer.body.decode("utf-8", "replace")
        return Answer(value=text, of=of)
    if unit.job_of(run) is not None:
        value = unit.result_of(run)
        why = "the job did not return" if isinstance(value, Absent) else ""
        return Answer(value=ABSENT if isinstance(value, Absent) else plain(value), of=of, why=why)
    return Answer(value=Lost("no answer of a service or job was recorded; `stdout` asks what a program printed"), of=of)


def models(assertion: ModelIs, view: View) -> Assessment:
    """Decide which models were asked, or answered."""
    hits = matches(Calls(kind="llm"), view.calls)
    unknown: Assessment | None = None
    met: dict[str, CallView] = {}
    for each in hits.sure:
        name = _model(each, answered=assertion.answered)
        if name is None:
            unknown = unknown or undecided(f"{each.label}: which model it was, was not recorded", [each])
        elif not any(glob(wanted, name) for wanted in assertion.names):
            side = "was answered by" if assertion.answered else "asked"
            return failing(f"{each.label} {side} {name}", [each])
        else:
            met.setdefault(name, each)
    if unknown is not None:
        return unknown
    if why := view.open(Calls(kind="llm")):
        return undecided(f"so in {len(hits.sure)} calls so far; {why}", hits.sure)
    return holding(f"{', '.join(met)} in {len(hits.sure)} calls" if met else "no model was called", [*met.values()])


def _model(each: CallView, *, answered: bool) -> str | None:
    """Name the model of a call; None where it is not known, an empty one where nothing was answered."""
    attributes = each.node.span.attributes
    model = each.answered.model if each.answered else None
    names = ("gen_ai.response.model", "llm.response.model_name")
    if not answered:
        model = each.asked.model if each.asked else None
        names = ("gen_ai.request.model", "llm.request.model_name", "llm.model_name")
    return model or next((value for name in names if isinstance(value := attributes.get(name), str) and value), None)


def ends(assertion: Ends, view: View) -> Assessment:
    """Decide how a run ended."""
    root = view.run.root
    if view.stopped:
        return undecided(view.stopped)
    if root is None:
        return undecided("the root of the trace is missing, which would say how it ended")
    match assertion.ending:
        case Ending.EXIT_CODE:
            code = root.span.attributes.get("process.exit.code")
            if not isinstance(code, int):
                return undecided("no exit code was recorded; `reenact run` records it")
            return (holding if code == assertion.code else failing)(f"exit code {code}")
        case Ending.RAISED:
            return _ends_raised(assertion.exception, root)
        case Ending.OK:
            return _ends_ok(root)


def _ends_raised(wanted: str, root: Node) -> Assessment:
    died, because = _died(root), _ended(root)
    if died:
        return (holding if _is_class(wanted, died) else failing)(because)
    if cut_off := cut_off_by(root.span.attributes):
        return undecided(cut_off)
    return failing(f"the run raised nothing{f'; {because}' if because else ''}")


def _ends_ok(root: Node) -> Assessment:
    attributes, because = root.span.attributes, _ended(root)
    if cut_off := cut_off_by(attributes):
        return failing(cut_off)
    if _died(root) or attributes.get("process.exit.code") not in (None, 0) or root.span.status == STATUS_ERROR:
        return failing(because or f"the root's status is an error: {root.span.status_message or 'no message'}")
    status = attributes.get("http.response.status_code")
    if isinstance(status, int) and status >= 500:
        return failing(f"it was answered HTTP {status}")
    return holding(because or "the run ended without an error")


def _ended(root: Node) -> str:
    code = root.span.attributes.get("process.exit.code")
    return f"the run ended with {died}" if (died := _died(root)) else f"exit code {code}" if code is not None else ""


def _died(root: Node) -> str:
    if isinstance(root.outcome, Raised):
        return _class_and_message(root.outcome.exception)
    if kind := root.span.attributes.get("exception.type"):
        return f"{kind}: {root.span.attributes.get('exception.message') or ''}"
    return ""


def _class_and_message(exception: ExceptionRecord) -> str:
    module = "" if exception.module in {"", "builtins"} else f"{exception.module}."
    return f"{module}{exception.qualname}: {exception.message}"


def _is_class(wanted: str, died: str) -> bool:
    class_name = died.split(":", 1)[0]
    return glob(wanted, class_name) or glob(wanted, class_name.rsplit(".", 1)[-1])
