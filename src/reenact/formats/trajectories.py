"""What agents write down of their own runs: transcripts that hold what was said, and not how it was asked.

Codex's rollouts and Claude Code's sessions (lines), the message streams of Claude's agent SDK (lines, or YAML),
SWE-agent's `.traj`, tau-bench's results, and ATIF. Each is one run, or as many as it holds; its calls are recovered as
far as the messages go, and the verdict says how little of the requests was kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, plain_yaml, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, text_or_json
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.message import Message, Usage
from reenact.values.span import Attribute, SpanRecord

_YAML = re.compile(rb"(?:\xef\xbb\xbf)?(?:---[^\n]*\n|[ \t]*#[^\n]*\n)*messages:[ \t]*\r?\n[ \t]*-[ \t]+\w+:")
_SIGNS: Final = (
    (re.compile(rb'"type"\s*:\s*"(?:session_meta|response_item|turn_context|event_msg)"'), b'"payload"', 0.95),
    (re.compile(rb'"(?:sessionId|session_id)"\s*:'), b'"message"', 0.0),
    (re.compile(rb'"trajectory"\s*:\s*\['), b"", 0.9),
    (re.compile(rb'"traj"\s*:\s*\['), b"", 0.9),
    (re.compile(rb'"schema_version"\s*:\s*"ATIF'), b"", 0.97),
)
_CLAUDE = re.compile(rb'"type"\s*:\s*"(?:user|assistant|system|summary|result|file-history-snapshot|queue-operation)"')
_CLAUDE_IDS = (b'"sessionId"', b'"session_id"')
_ROLLOUT_ITEM = re.compile(
    rb'\A[^\n]*"(?:instructions|originator|git)"[^\n]*\n[^\n]*"type"\s*:\s*"(?:message|reasoning|function_call)"'
)


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.9 if _YAML.match(head) else 0.0
    for sign, beside, certainty in _SIGNS:
        if certainty and sign.search(head) and beside in head:
            return certainty
    if _CLAUDE.search(head) and any(name in head for name in _CLAUDE_IDS):
        return 0.9 if b'"uuid"' in head or b'"message"' in head or b'"subtype"' in head else 0.3
    return 0.7 if _ROLLOUT_ITEM.search(head) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    lines: list[Json] = []
    whole = hashlib.blake2b(digest_size=16)
    for line, document in _documents(stream, path):
        chats = _whole_runs(document)
        if chats is None:
            whole.update(canonical(document))
            lines += document if isinstance(document, list) else [document]
            continue
        for chat in chats:
            if not chat.turns:
                raise InputError(f"{path}:{line}", "this trajectory holds no messages")
            yield from conversations.run_of(chat, FORMAT.name)
    if lines:
        for chat in _of_lines([as_object(each) for each in lines], whole.hexdigest(), str(path)):
            yield from conversations.run_of(chat, FORMAT.name)


def _documents(stream: BinaryIO, path: Path) -> Iterator[tuple[int, Json]]:
    start = stream.read(1)
    rest = _Again(start, stream)
    if start in (b"{", b"[", b" ", b"\n", b"\r", b"\t"):
        yield from documents(cast("BinaryIO", rest), str(path))
        return
    data = rest.read(max_record_bytes() + 1)
    if len(data) > max_record_bytes():
        raise InputError(str(path), f"longer than the limit of {spelled(max_record_bytes())}", hint=RAISE_THE_LIMIT)
    if data.lstrip(b"\xef\xbb\xbf")[:1] in (b"{", b"["):
        import io

        yield from documents(io.BytesIO(data), str(path))
        return
    transcript = plain_yaml.loaded(data, str(path))
    if not isinstance(transcript, dict) or not isinstance(cast("dict[str, object]", transcript).get("messages"), list):
        raise InputError(str(path), "this is no transcript: it has no list of `messages`")
    if not plain_yaml.spelled_out(cast("object", transcript)):
        raise InputError(str(path), "its aliases make it a million values and more")
    for each in cast("dict[str, list[object]]", transcript)["messages"]:
        yield 1, _plain(each)


def _plain(value: object) -> Json:
    """Make JSON of what YAML gives: dates become text, and names of fields too."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


class _Again:
    """A stream whose first byte was read, read from its beginning."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        return first + self._stream.read(size if size < 0 else max(0, size - len(first)))

    def readline(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        if first == b"\n":
            return first
        return first + self._stream.readline(size if size < 0 else max(0, size - len(first)))


# --------------------------------------------------------------------------------------------------- whole documents


def _whole_runs(document: Json) -> list[Conversation] | None:
    """Read a document that is a run, or a list of them; None for a line of a transcript."""
    if isinstance(document, list):
        chats = [each for item in document if (each := _whole(as_object(item))) is not None]
        return chats if chats and len(chats) == len(document) else None
    chat = _whole(as_object(document))
    return None if chat is None else [chat]


def _whole(record: dict[str, Json]) -> Conversation | None:
    for sign, read in _READERS:
        if sign(record):
            return replace(read(record), seed=hashlib.blake2b(canonical(record), digest_size=16).hexdigest())
    return None


def _swe_agent(record: dict[str, Json]) -> Conversation:
    """Read a trajectory of SWE-agent: its `history` is what the model saw; without one, its steps are."""
    history = [as_object(each) for each in as_list(record.get("history"))]
    steps = [as_object(each) for each in as_list(record.get("trajectory"))]
    messages: list[Json] = [_swe_message(each) for each in history]
    if not messages:
        for step in steps:
            messages += as_list(step.get("query"))[-1:] if not messages else []
            messages.append({"role": "assistant", "content": step.get("response")})
            messages.append({"role": "user", "content": step.get("observation")})
    info, config = as_object(record.get("info")), as_object(records.unwrapped(record.get("replay_config")))
    model = as_text(at(config, "agent", "model", "name"))
    facts = {"swe_agent.exit_status": as_text(info.get("exit_status")), "swe_agent.info": compact(info) if info else ""}
    return Conversation(
        seed="",
        name=as_text(record.get("environment")) or "swe-agent",
        turns=_turned(messages),
        model=model.rpartition("/")[2],
        system=model.partition("/")[0] if "/" in model else "anthropic" if "claude" in model else "openai",
        attributes={name: value for name, value in facts.items() if value},
        lost=(lacking("tools", "what ran is told in the messages alone: actions are no tool calls there"),)
        if not any("tool_calls" in each for each in history)
        else (),
    )


def _swe_message(entry: dict[str, Json]) -> Json:
    """Spell an entry of the history as a message: the older ones answer a list of tool calls by `tool_call_ids`."""
    answered = [as_text(each) for each in as_list(entry.get("tool_call_ids"))]
    item = {name: value for name, value in entry.items() if name in ("role", "content", "tool_calls", "name") and value}
    if answered and entry.get("role") == "tool":
        item["tool_call_id"] = answered[0]
    return {"role": "user", **item}


def _tau_bench(record: dict[str, Json]) -> Conversation:
    facts: dict[str, Attribute] = {
        f"tau_bench.{name}": text_or_json(record.get(name))
        for name in ("task_id", "trial", "reward", "info")
        if name in record
    }
    return Conversation(
        seed="",
        name=f"task {text_or_json(record.get('task_id'))}" if "task_id" in record else "trajectory",
        turns=_turned(as_list(record.get("traj"))),
        api="chat",
        attributes=facts,
    )


def _atif(record: dict[str, Json]) -> Conversation:
    """Read the Agent Trajectory Interchange Format: steps of the system, the user and the agent."""
    agent = as_object(record.get("agent"))
    turn_list: list[Turn] = []
    for each in as_list(record.get("steps")):
        turn_list += _atif_step(as_object(each))
    model = as_text(agent.get("model_name"))
    return Conversation(
        seed="",
        name=as_text(agent.get("name")) or "trajectory",
        turns=tuple(turn_list),
        model=model,
        system="anthropic" if "claude" in model else "openai",
        tools=tool_schema.tools(agent.get("tool_definitions")),
        attributes={"session.id": session} if (session := as_text(record.get("session_id"))) else {},
    )


def _atif_step(step: dict[str, Json]) -> list[Turn]:
    source, at_ns = as_text(step.get("source")), records.nanoseconds(step.get("timestamp"))
    role = {"agent": "assistant"}.get(source, source or "user")
    message: dict[str, Json] = {"role": role, "content": step.get("message")}
    if reasoning := as_text(step.get("reasoning_content")):
        message["reasoning_content"] = reasoning
    if calls := [as_object(each) for each in as_list(step.get("tool_calls"))]:
        message["tool_calls"] = [
            {
                "id": as_text(call.get("tool_call_id")),
                "type": "function",
                "function": {"name": call.get("function_name"), "arguments": text_or_json(call.get("arguments"))},
            }
            for call in calls
        ]
    metrics = as_object(step.get("metrics"))
    usage = Usage(
        prompt=as_count(metrics.get("prompt_tokens")),
        completion=as_count(metrics.get("completion_tokens")),
        cache_read=as_count(metrics.get("cached_tokens")),
    )
    label = f"step {text_or_json(step.get('step_id'))}" if role == "assistant" else ""
    step_turns = [
        Turn(
            message=each, at_ns=at_ns, id=label, model=as_text(step.get("model_name")), usage=usage if metrics else None
        )
        for each in turns(message)
    ]
    for result in as_list(at(step, "observation", "results")):
        answer = as_object(result)
        tool_message: Json = {
            "role": "tool",
            "tool_call_id": answer.get("source_call_id"),
            "content": answer.get("content"),
        }
        step_turns += [Turn(message=each, at_ns=at_ns) for each in turns(tool_message)]
    return step_turns


def _turned(messages: Sequence[Json]) -> tuple[Turn, ...]:
    return tuple(Turn(message=message) for message in turns([*messages]))


_READERS: Final[Sequence[tuple[Callable[[dict[str, Json]], bool], Callable[[dict[str, Json]], Conversation]]]] = (
    (lambda held: isinstance(held.get("trajectory"), list), _swe_agent),
    (lambda held: isinstance(held.get("traj"), list), _tau_bench),
    (lambda held: "steps" in held and as_text(held.get("schema_version")).startswith("ATIF"), _atif),
)


# ------------------------------------------------------------------------------------------------ lines of transcripts


@dataclass(slots=True)
class _Gathered:
    """What the lines of one session said so far."""

    turns: list[Turn] = field(default_factory=list[Turn])
    facts: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    tools: tuple[Json, ...] = ()
    model: str = ""
    name: str = ""
    counts_ahead: bool | None = None
    """Tokens stand before the reply that they are of; None as long as none were counted."""
    ahead: Usage | None = None
    """Tokens of the reply that comes next."""
    total: Json = None
    """All tokens at the last count."""


def _of_lines(lines: Sequence[dict[str, Json]], seed: str, place: str) -> Iterator[Conversation]:
    claude = any("message" in line or as_text(line.get("subtype")) for line in lines) and not any(
        "payload" in line for line in lines
    )
    sessions: dict[str, _Gathered] = {}
    for line in lines:
        session = as_text(line.get("sessionId")) or as_text(line.get("session_id")) if claude else ""
        gathered = sessions.setdefault(session or next(iter(sessions), ""), _Gathered())
        (_claude_line if claude else _codex_line)(gathered, line)
    if not any(gathered.turns for gathered in sessions.values()):
        raise InputError(place, "this transcript holds no messages")
    for session, gathered in sessions.items():
        if not gathered.turns:
            continue
        facts = {**gathered.facts, **({"session.id": session} if session else {})}
        yield Conversation(
            seed=f"{seed}:{session}",
            name=gathered.name or ("claude session" if claude else "codex rollout"),
            turns=tuple(gathered.turns),
            model=gathered.model,
            system="anthropic" if claude else "openai",
            api="" if claude else "responses",
            tools=gathered.tools,
            attributes=facts,
            lost=(lacking("system prompt", "the agent's own instructions, unless the transcript repeats them"),)
            if claude
            else (),
        )


def _codex_line(gathered: _Gathered, line: dict[str, Json]) -> None:
    """Read a line of a rollout: wrapped by type since version 0.32, bare items before."""
    payload, kind = as_object(line.get("payload")), as_text(line.get("type"))
    at_ns = records.nanoseconds(line.get("timestamp"))
    if kind == "session_meta" or (not payload and "instructions" in line and "type" not in line):
        meta = payload or line
        facts: Mapping[str, Attribute] = {
            "session.id": as_text(meta.get("id")),
            "codex.cwd": as_text(meta.get("cwd")),
            "codex.version": as_text(meta.get("cli_version")),
        }
        gathered.facts |= {name: value for name, value in facts.items() if value}
        instructions = as_text(meta.get("instructions")) or as_text(at(meta, "base_instructions", "text"))
        if instructions and not gathered.turns:
            gathered.turns += _turns_at({"role": "system", "content": instructions}, at_ns)
    elif kind == "turn_context":
        gathered.model = as_text(payload.get("model")) or gathered.model
    elif kind == "event_msg" and payload.get("type") == "token_count":
        _count(gathered, as_object(payload.get("info")))
    elif kind == "response_item" or (not payload and kind):
        item = payload or line
        if as_text(item.get("type")) in ("local_shell_call", "web_search_call", "ghost_snapshot"):
            item = dict[str, Json](
                {
                    "type": "function_call",
                    "name": as_text(item.get("type")).removesuffix("_call"),
                    "call_id": as_text(item.get("call_id")) or as_text(item.get("id")),
                    "arguments": text_or_json(item.get("action")),
                }
            )
        for turn in _turns_at(item, at_ns):
            usage = gathered.ahead if turn.message.role == "assistant" else None
            gathered.turns.append(replace(turn, model=gathered.model, usage=usage))
            gathered.ahead = None if usage is not None else gathered.ahead


def _count(gathered: _Gathered, info: dict[str, Json]) -> None:
    """Put tokens to the reply that they are of: the last one, or the next where the file's first count is ahead of all.

    A count that is said again, as when a limit is told, is none.
    """
    usage, total = as_object(info.get("last_token_usage")), info.get("total_token_usage")
    if not usage or (total is not None and total == gathered.total):
        return
    gathered.total = total
    counts = Usage(
        prompt=as_count(usage.get("input_tokens")),
        completion=as_count(usage.get("output_tokens")),
        total=as_count(usage.get("total_tokens")),
        cache_read=as_count(usage.get("cached_input_tokens")),
        reasoning=as_count(usage.get("reasoning_output_tokens")),
    )
    replies = [place for place, turn in enumerate(gathered.turns) if turn.message.role == "assistant"]
    if gathered.counts_ahead is None:
        gathered.counts_ahead = not replies
    if gathered.counts_ahead:
        gathered.ahead = counts
    else:
        gathered.turns[replies[-1]] = replace(gathered.turns[replies[-1]], usage=counts)


def _claude_line(gathered: _Gathered, line: dict[str, Json]) -> None:
    """Read a line of Claude Code's session, or a message of the agent SDK's stream."""
    kind, message = as_text(line.get("type")), as_object(line.get("message"))
    if kind == "system" and line.get("subtype") == "init":
        gathered.model = as_text(line.get("model")) or gathered.model
        gathered.facts |= {"claude.tools": text_or_json(line.get("tools")), "claude.cwd": as_text(line.get("cwd"))}
    elif kind == "summary":
        gathered.name = as_text(line.get("summary")) or gathered.name
    elif kind == "result":
        fields = {name: value for name, value in line.items() if name not in ("type", "result", "usage", "modelUsage")}
        gathered.facts["claude.result"] = compact(fields)
    if kind not in ("user", "assistant") or not message or line.get("isSidechain") is True:
        return
    at_ns = records.nanoseconds(line.get("timestamp"))
    usage = as_object(message.get("usage"))
    fresh, read, cache_write = (
        as_count(usage.get(f"{name}input_tokens")) for name in ("", "cache_read_", "cache_creation_")
    )
    counts = Usage(
        prompt=fresh + (read or 0) + (cache_write or 0) if fresh is not None else None,  # Anthropic counts them apart
        completion=as_count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=cache_write,
    )
    for turn in _turns_at({"role": kind, **message}, at_ns):
        if turn.message.role != "assistant":
            gathered.turns.append(turn)
            continue
        gathered.turns.append(
            replace(
                turn,
                id=as_text(message.get("id")),
                model=as_text(message.get("model")),
                usage=counts if usage else None,
                finish=as_text(message.get("stop_reason")),
            )
        )


def _turns_at(message: Json, at_ns: int) -> list[Turn]:
    return [Turn(message=each, at_ns=at_ns) for each in turns(message) if _says(each)]


def _says(message: Message) -> bool:
    return bool(message.parts) or message.role == "tool"


FORMAT = Format(
    name="trajectory",
    suffix=".trajectory.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.97,
    marks=HeadMarks(
        texts=(
            *(
                (f'"{key}"', '"type"')
                for key in ("payload", "sessionId", "session_id", "instructions", "originator", "git")
            ),
            *((f'"{key}"',) for key in ("trajectory", "traj", "schema_version")),
        ),
        plain=(("messages:",),),
    ),
)
