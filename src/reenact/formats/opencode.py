"""Sessions of OpenCode: what `opencode export` prints, and its messages one a line.

A message holds `info` and `parts`. Of the model's the parts are what it thought and said, the tools that it called and
what came of each; a message may hold several steps, each a reply. Where it names no steps, what stands behind a tool
is the next reply. The system prompt and the tools that the model was given are not there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import blocks, conversations, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, text_or_json
from reenact.values.message import Message, Part, Text, ToolCall, Usage
from reenact.values.span import Attribute, SpanRecord

_START: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\[?\s*\{\s*"\w+"')
_SIGNS: Final = (
    re.compile(rb'"info"\s*:\s*\{'),
    re.compile(rb'"role"\s*:\s*"(?:user|assistant)"'),
    re.compile(rb'"parts"\s*:\s*\[\s*(?:\]|\{)'),
)
_UNSAID: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "compaction", "retry", "agent", "subtask"}
)
"""Parts that are the program's own notes: the model neither said nor read them."""
_LOST: Final = (
    lacking("system", "the system prompt", "record the program: `reenact run -- …`"),
    lacking("request", "how the messages were spelled when the model was asked, and what was put in their place"),
)


def _recognises(head: bytes) -> float:
    return 0.9 if _START.match(head) and all(sign.search(head) for sign in _SIGNS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    loose: list[dict[str, Json]] = []
    for line, document in documents(stream, str(path)):
        for each in document if isinstance(document, list) else [document]:
            record = as_object(each)
            if isinstance(record.get("messages"), list):
                messages = [as_object(message) for message in as_list(record["messages"])]
                yield from _session(record, messages, f"{path}:{line}")
            elif "parts" in record:
                loose.append(record)
            else:
                raise InputError(f"{path}:{line}", "this is no message of OpenCode: it has no `parts`")
    if loose:
        yield from _session({}, loose, str(path))


def _session(record: dict[str, Json], messages: Sequence[dict[str, Json]], place: str) -> Iterator[SpanRecord]:
    turns = tuple(turn for message in messages for turn in _turns(as_object(message.get("info")), message))
    if not any(turn.replies for turn in turns):
        raise InputError(place, "this session of OpenCode holds no reply of a model")
    info = as_object(record.get("info")) or {name: value for name, value in record.items() if name != "messages"}
    named = [as_object(message.get("info")) for message in messages]
    provider, model = _model([info, *reversed(named)])
    session = as_text(info.get("id")) or next((each for one in named if (each := as_text(one.get("sessionID")))), "")
    facts: dict[str, Attribute] = {"session.id": session} if session else {}
    if info:
        facts["opencode.info"] = compact(info)
    digest = hashlib.blake2b(canonical([info, *messages]), digest_size=16).hexdigest()
    chat = Conversation(
        seed=f"opencode:{digest}",
        name=as_text(info.get("title")) or "opencode session",
        turns=turns,
        model=model,
        system=provider or ("anthropic" if "claude" in model else "openai"),
        attributes=facts,
        failure=as_text(at(named[-1], "error", "data", "message")) or as_text(at(named[-1], "error", "name")),
        lost=_LOST,
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _model(places: Sequence[dict[str, Json]]) -> tuple[str, str]:
    """Find who was asked and for which model, the first place that says so."""
    for info in places:
        inner = as_object(info.get("model"))
        spelled = as_text(info.get("model"))
        names = (info.get("modelID"), info.get("model_id"), inner.get("modelID"), spelled.rpartition("/")[2])
        if model := next((name for each in names if (name := as_text(each))), ""):
            provider = as_text(info.get("providerID")) or as_text(inner.get("providerID"))
            return provider or spelled.rpartition("/")[0], model
    return "", ""


# ------------------------------------------------------------------------------------------------------------ messages


def _turns(info: dict[str, Json], message: dict[str, Json]) -> Iterator[Turn]:
    """Read a message: a user's, or the replies of a model, each with what came of the tools that it called."""
    role = as_text(info.get("role")) or "user"
    at_ns = records.nanoseconds(at(info, "time", "created")) or records.nanoseconds(info.get("timestamp"))
    parts = [as_object(each) for each in as_list(message.get("parts"))]
    if role != "assistant":
        yield Turn(message=Message(role=role, parts=tuple(part for each in parts for part in _said(each))), at_ns=at_ns)
        return
    steps = _steps(parts)
    name, model = as_text(info.get("id")) or str(at_ns), _model([info])[1]
    for number, step in enumerate(steps):
        finish = next((each for each in step if each.get("type") == "step-finish"), dict[str, Json]())
        tokens = as_object(finish.get("tokens")) or (as_object(info.get("tokens")) if step is steps[-1] else {})
        starts = (records.nanoseconds(at(each, "time", "start")) for each in step)
        at_ns = (at_ns if not number else next((each for each in starts if each), 0)) or at_ns
        yield Turn(
            message=Message(role=role, parts=tuple(part for each in step for part in _said(each))),
            at_ns=at_ns,
            reply=f"{name}:{number}",
            model=model,
            usage=_usage(tokens) if tokens else None,
            finish=as_text(finish.get("reason")) or (as_text(info.get("finish")) if step is steps[-1] else ""),
        )
        for answer in [turn for each in step if each.get("type") == "tool" for turn in _answers(each, at_ns)]:
            at_ns = max(at_ns, answer.at_ns)
            yield answer


def _steps(parts: Sequence[dict[str, Json]]) -> list[list[dict[str, Json]]]:
    """Cut the parts of a message into replies: where a step starts, else where words follow a tool."""
    named = any(part.get("type") == "step-start" for part in parts)
    steps: list[list[dict[str, Json]]] = [[]]
    for part in parts:
        kind, last = part.get("type"), steps[-1][-1].get("type") if steps[-1] else None
        begins = kind == "step-start" if named else last == "tool" and kind in ("text", "reasoning")
        if begins and any(_said(each) for each in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    return [step for step in steps if any(_said(each) for each in step)]


def _said(part: dict[str, Json]) -> tuple[Part, ...]:
    """Read a part as what was said: words, a thought, a file, the call of a tool. The program's own notes are none."""
    kind = as_text(part.get("type"))
    if kind in _UNSAID or part.get("ignored") is True:
        return ()
    if kind == "tool":
        state = as_object(part.get("state"))
        arguments = state.get("input", part.get("input", part.get("args")))
        call_id, name = as_text(part.get("callID")), as_text(part.get("tool"))
        return (ToolCall(id=call_id, name=name, arguments=text_or_json({} if arguments is None else arguments)),)
    if kind == "file":
        return blocks.parts({**part, "mime_type": part.get("mime")})
    return blocks.parts(part)


def _answers(part: dict[str, Json], at_ns: int) -> Iterator[Turn]:
    """Give what came of a tool, where it came to an end."""
    state = as_object(part.get("state")) or part
    status = as_text(state.get("status"))
    answer = next((state[name] for name in ("error", "output", "result") if state.get(name) is not None), None)
    if answer is None and status not in ("completed", "error"):
        return
    message = Message(
        role="tool",
        parts=(Text(text_or_json("" if answer is None else answer)),),
        tool_call_id=as_text(part.get("callID")) or None,
        name=as_text(part.get("tool")),
        is_error=True if status == "error" else None,
    )
    start_ns, end_ns = (records.nanoseconds(at(state, "time", name)) for name in ("start", "end"))
    yield Turn(message=message, at_ns=end_ns or at_ns, start_ns=start_ns)


def _usage(tokens: dict[str, Json]) -> Usage:
    """Read the tokens. OpenCode counts those of the cache apart, and of thoughts where its total says so."""
    fresh, completion, reasoning = (as_count(tokens.get(name)) for name in ("input", "output", "reasoning"))
    read, write = (as_count(at(tokens, "cache", name)) for name in ("read", "write"))
    total = as_count(tokens.get("total"))
    prompt = None if fresh is None else fresh + (read or 0) + (write or 0)
    if total is not None and total == (prompt or 0) + (completion or 0) + (reasoning or 0):
        completion = (completion or 0) + (reasoning or 0)
    return Usage(
        prompt=prompt,
        completion=completion,
        total=total,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
    )


FORMAT = Format(
    name="opencode",
    suffix=".opencode.json",
    recognises=_recognises,
    decode=_decode,
    most=0.9,
    marks=HeadMarks(texts=(('"info"', '"role"', '"parts"'),)),
)
