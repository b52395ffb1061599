"""Logs of OpenAI's evals framework (`oaieval`): a line for the run, a line an event, a run a sample.

An event `sampling` is a call of a model, with its whole prompt and what was sampled; the events beside it (what
matched, metrics) stand on the root of their sample. Tokens are there where the completion function wrote them down;
parameters, and whatever else was not kept, are named as lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, records
from reenact.foreign.conversations import Conversation, Question, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.foreign.spelled_messages import turns
from reenact.values.json import Json, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, text_or_json
from reenact.values.message import Answered, Asked, Message, Text, Usage
from reenact.values.span import Attribute, SpanRecord

_SIGNS: Final = (b'"run_id"', b'"sample_id"', b'"event_id"')
_SPEC: Final = (b'"spec"', b'"completion_fns"', b'"eval_name"')
_LOST: Final = (
    lacking("parameters", "the parameters of the request", "record the program: `reenact run -- …`"),
    lacking("reply.id", "the reply's id, and how it ended"),
)


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return 0.0
    return 0.95 if any(all(sign in head for sign in signs) for signs in (_SIGNS, _SPEC)) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    spec: dict[str, Json] = {}
    samples: dict[tuple[str, str], list[dict[str, Json]]] = {}
    for line, document in documents(stream, str(path)):
        if not isinstance(document, dict):
            raise InputError(f"{path}:{line}", "this is no log of evals: expected an object")
        spec = as_object(document.get("spec")) or spec
        if "sample_id" in document and document["sample_id"] is not None:
            key = as_text(document.get("run_id")), text_or_json(document["sample_id"])
            samples.setdefault(key, []).append(document)
    has_spans = False
    for (run_id, sample_id), events in samples.items():
        for span in _sample(spec, run_id, sample_id, events):
            has_spans = True
            yield span
    if not has_spans:
        raise InputError(str(path), "this log of evals holds no sample of a model")


def _sample(
    spec: dict[str, Json], run_id: str, sample_id: str, events: Sequence[dict[str, Json]]
) -> Iterator[SpanRecord]:
    model = text_or_json(next(iter(as_list(spec.get("completion_fns"))), spec.get("model_name")) or "")
    questions = [_question(event, model) for event in events if event.get("type") == "sampling"]
    beside = [event for event in events if event.get("type") != "sampling"]
    facts: dict[str, Attribute] = {
        "openai_evals.eval": as_text(spec.get("eval_name")),
        "openai_evals.run_id": run_id,
        "openai_evals.sample_id": sample_id,
        "openai_evals.events": compact([{"type": each.get("type"), "data": each.get("data")} for each in beside]),
    }
    chat = Conversation(
        seed=f"openai-evals:{run_id}:{sample_id}",
        name=sample_id,
        turns=tuple(question.turn for question in questions),
        model=model,
        api="chat",
        attributes={name: value for name, value in facts.items() if value and value != "[]"},
        lost=_LOST,
    )
    yield from conversations.run_of(chat, FORMAT.name, questions)


def _question(event: dict[str, Json], model: str) -> Question:
    data = as_object(event.get("data"))
    prompt, sampled = data.get("prompt"), data.get("sampled")
    messages = turns(prompt) if isinstance(prompt, list) else (Message(role="user", parts=(Text(as_text(prompt)),)),)
    model_id = as_text(data.get("model")) or model
    first = next(iter(as_list(sampled)), None) if isinstance(sampled, list) else sampled
    message = Message(role="assistant", parts=(Text(text_or_json(first)),) if first is not None else ())
    usage = as_object(data.get("usage"))
    answered = Answered(
        model=model_id or None,
        messages=(message,),
        usage=Usage(
            prompt=as_count(usage.get("prompt_tokens")),
            completion=as_count(usage.get("completion_tokens")),
            total=as_count(usage.get("total_tokens")),
        ),
    )
    return Question(
        asked=Asked(model=model_id or None, messages=messages, parameters={"model": model_id} if model_id else {}),
        answered=answered if first is not None else None,
        turn=Turn(message=message, at_ns=records.nanoseconds(event.get("created_at"))),
    )


FORMAT = Format(
    name="openai-evals",
    suffix=".evals.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.95,
    marks=HeadMarks(texts=tuple(tuple(sign.decode() for sign in signs) for signs in (_SIGNS, _SPEC))),
)
