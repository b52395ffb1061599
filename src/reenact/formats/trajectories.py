"""What agents write down of their own runs: transcripts that hold what was said, and not how it was asked.

Codex's rollouts, Claude Code's sessions and Cursor's transcripts (lines), the message streams of Claude's agent SDK
(lines, or YAML), the trajectories of SWE-agent and mini-swe-agent, tau-bench's results, and ATIF. Each is one run, or
as many as it holds; its calls are recovered as far as the messages go, and the verdict says how little of the requests
was kept.
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
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, first_count, text_or_json
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.message import Message, Text, Usage
from reenact.values.span import Attribute, SpanRecord

_YAML = re.compile(rb"(?:\xef\xbb\xbf)?(?:---[^\n]*\n|[ \t]*#[^\n]*\n)*messages:[ \t]*\r?\n[ \t]*-[ \t]+\w+:")
_SIGNS: Final = (
    (re.compile(rb'"type"\s*:\s*"(?:session_meta|response_item|turn_context|event_msg)"'), b'"payload"', 0.95),
    (re.compile(rb'"(?:sessionId|session_id)"\s*:'), b'"message"', 0.0),
    (re.compile(rb'"trajectory"\s*:\s*\['), b"", 0.9),
    (re.compile(rb'"traj"\s*:\s*\['), b"", 0.9),
    (re.compile(rb'"schema_version"\s*:\s*"ATIF'), b"", 0.97),
    (re.compile(rb'"trajectory_format"\s*:\s*"mini-swe-agent'), b"", 0.95),
    (re.compile(rb'"mini_version"\s*:'), b'"info"', 0.95),
)
_CLAUDE = re.compile(rb'"type"\s*:\s*"(?:user|assistant|system|summary|result|file-history-snapshot|queue-operation)"')
_CLAUDE_IDS = (b'"sessionId"', b'"session_id"')
_EXIT_CODE = re.compile(r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?(?:Process exited with|Exit) code:? (-?\d+)\n")
"""How what came of a command begins in rollouts that write it down as text."""
_ROLLOUT_ITEM = re.compile(
    rb'\A[^\n]*"(?:instructions|originator|git)"[^\n]*\n[^\n]*"type"\s*:\s*"(?:message|reasoning|function_call)"'
)
_SPEAKERS: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\[?\s*\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,'
    rb'(?:\s*"\w+"\s*:\s*(?:"[^"\\]*"|[\w.]+)\s*,)*+\s*"message"\s*:\s*\{'
)
"""Lines that say whose they are beside the message, as Cursor's agent writes them."""
_SPOKEN_ACTIONS: Final = lacking("tools", "what ran is told in the messages alone: actions are no tool calls there")


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.9 if _YAML.match(head) else 0.0
    for sign, beside, certainty in _SIGNS:
        if certainty and sign.search(head) and beside in head:
            return certainty
    if _CLAUDE.search(head) and any(name in head for name in _CLAUDE_IDS):
        return 0.9 if b'"uuid"' in head or b'"message"' in head or b'"subtype"' in head else 0.3
    return 0.8 if _SPEAKERS.match(head) else 0.7 if _ROLLOUT_ITEM.search(head) else 0.0


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
        lost=(_SPOKEN_ACTIONS,) if not any("tool_calls" in each for each in history) else (),
    )


def _swe_message(entry: dict[str, Json]) -> Json:
    """Spell an entry of the history as a message: the older ones answer a list of tool calls by `tool_call_ids`."""
    answered = [as_text(each) for each in as_list(entry.get("tool_call_ids"))]
    item = {name: value for name, value in entry.items() if name in ("role", "content", "tool_calls", "name") and value}
    if answered and entry.get("role") == "tool":
        item["tool_call_id"] = answered[0]
    return {"role": "user", **item}


def _mini_swe_agent(record: dict[str, Json]) -> Conversation:
    """Read a trajectory of mini-swe-agent: its messages, each with what the model's own reply said beside it."""
    info = as_object(record.get("info"))
    configured = as_object(at(info, "config", "model"))
    model = as_text(configured.get("model_name"))
    messages = [as_object(each) for each in as_list(record.get("messages"))]
    facts = {
        "mini_swe_agent.exit_status": as_text(info.get("exit_status")),
        "mini_swe_agent.info": compact(info) if info else "",
    }
    return Conversation(
        seed="",
        name=as_text(record.get("instance_id")) or "mini-swe-agent",
        turns=tuple(turn for each in messages for turn in _mini_turns(each)),
        model=model.rpartition("/")[2],
        system=model.partition("/")[0] if "/" in model else "anthropic" if "claude" in model else "openai",
        parameters=as_object(configured.get("model_kwargs")),
        attributes={name: value for name, value in facts.items() if value},
        lost=(_SPOKEN_ACTIONS,) if not any("tool_calls" in each or "output" in each for each in messages) else (),
    )


def _mini_turns(message: dict[str, Json]) -> Iterator[Turn]:
    """Read a message, or the response of OpenAI's that stands in its place."""
    extra, is_response = as_object(message.get("extra")), isinstance(message.get("output"), list)
    response = message if is_response else as_object(extra.get("response"))
    usage = as_object(response.get("usage"))
    returned = as_count(extra.get("returncode"))
    for each in turns(message["output"] if is_response else message, "assistant" if is_response else "user"):
        turn = Turn(message=each, at_ns=records.nanoseconds(extra.get("timestamp")))
        if each.role == "tool":
            yield replace(turn, message=replace(each, is_error=True)) if returned else turn
            continue
        yield replace(
            turn,
            id=as_text(response.get("id")),
            model=as_text(response.get("model")),
            usage=_chat_usage(usage) if usage else None,
            finish=as_text(as_object((as_list(response.get("choices")) or [None])[0]).get("finish_reason")),
        )


def _chat_usage(usage: dict[str, Json]) -> Usage:
    """Read the tokens of a reply as OpenAI's chat or responses, or litellm, counts them."""
    return Usage(
        prompt=first_count(usage, ("prompt_tokens",), ("input_tokens",)),
        completion=first_count(usage, ("completion_tokens",), ("output_tokens",)),
        total=as_count(usage.get("total_tokens")),
        cache_read=first_count(
            usage, ("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens")
        ),
        reasoning=first_count(
            usage,
            ("completion_tokens_details", "reasoning_tokens"),
            ("output_tokens_details", "reasoning_tokens"),
        ),
    )


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
    results = [as_object(each) for each in as_list(at(step, "observation", "results"))]
    for result, call_id in zip(results, _atif_sources(results, calls), strict=True):
        tool_message: Json = {"role": "tool", "tool_call_id": call_id, "content": result.get("content")}
        step_turns += [Turn(message=each, at_ns=at_ns) for each in turns(tool_message)]
    return step_turns


def _atif_sources(results: Sequence[dict[str, Json]], calls: Sequence[dict[str, Json]]) -> list[Json]:
    """Give the call that each result of a step answers; where none says so they are as many, or there is one call."""
    sources: list[Json] = [result.get("source_call_id") for result in results]
    ids: list[Json] = [call.get("tool_call_id") for call in calls]
    if any(sources) or not ids:
        return sources
    if len(ids) == 1:
        return ids * len(results)
    return ids if len(ids) == len(results) else sources


def _is_mini(record: dict[str, Json]) -> bool:
    named = as_text(record.get("trajectory_format")).startswith("mini-swe-agent")
    return named or "mini_version" in as_object(record.get("info"))


def _turned(messages: Sequence[Json]) -> tuple[Turn, ...]:
    return tuple(Turn(message=message) for message in turns([*messages]))


_READERS: Final[Sequence[tuple[Callable[[dict[str, Json]], bool], Callable[[dict[str, Json]], Conversation]]]] = (
    (lambda held: isinstance(held.get("trajectory"), list), _swe_agent),
    (lambda held: isinstance(held.get("traj"), list), _tau_bench),
    (lambda held: isinstance(held.get("messages"), list) and _is_mini(held), _mini_swe_agent),
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
    words: dict[str, str] = field(default_factory=dict[str, str])
    """All that the items of a rollout say, by role."""
    failure: str = ""
    """The error that nothing came after."""
    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Where the turns of a line stand, by its id."""
    kept: list[Turn] = field(default_factory=list[Turn])
    """What stands behind the summary that comes next."""
    is_compacted: bool = False
    """The next turn begins the conversation anew."""

    def add(self, turn: Turn) -> None:
        """Take in a turn."""
        self.turns.append(replace(turn, begins_anew=True) if self.is_compacted else turn)
        self.is_compacted = False
        self.failure = ""


def _of_lines(lines: Sequence[dict[str, Json]], seed: str, place: str) -> Iterator[Conversation]:
    claude = any("message" in line or as_text(line.get("subtype")) for line in lines) and not any(
        "payload" in line for line in lines
    )
    words = {} if claude else _words(lines)
    sessions: dict[str, _Gathered] = {}
    for line in lines:
        session = as_text(line.get("sessionId")) or as_text(line.get("session_id")) if claude else ""
        gathered = sessions.setdefault(session or next(iter(sessions), ""), _Gathered(words=words))
        (_claude_line if claude else _codex_line)(gathered, line)
    if not any(gathered.turns for gathered in sessions.values()):
        raise InputError(place, "this transcript holds no messages")
    for session, gathered in sessions.items():
        if not gathered.turns:
            continue
        facts = {**gathered.facts, **({"session.id": session} if session else {})}
        yield Conversation(
            seed=f"{seed}:{session}",
            name=gathered.name or (_name(lines) if claude else "codex rollout"),
            turns=tuple(gathered.turns),
            model=gathered.model,
            system="anthropic" if claude else "openai",
            api="" if claude else "responses",
            tools=gathered.tools,
            attributes=facts,
            failure=gathered.failure,
            lost=(lacking("system prompt", "the agent's own instructions, unless the transcript repeats them"),)
            if claude
            else (),
        )


def _name(lines: Sequence[dict[str, Json]]) -> str:
    return "claude session" if any("type" in line for line in lines) else "transcript"


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
    elif kind == "event_msg":
        _event(gathered, payload, at_ns)
    elif kind == "compacted":
        _compact(gathered, payload, at_ns)
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
            if turn.message.role == "tool":
                gathered.add(replace(turn, message=replace(turn.message, is_error=_failed(item) or None)))
                continue
            usage = gathered.ahead if turn.message.role == "assistant" else None
            gathered.add(replace(turn, model=gathered.model, usage=usage))
            gathered.ahead = None if usage is not None else gathered.ahead


def _words(lines: Sequence[dict[str, Json]]) -> dict[str, str]:
    """Give all that the items of a rollout say, by role."""
    said: dict[str, list[str]] = {}
    for line in lines:
        item = as_object(line.get("payload")) or line
        if item.get("type") == "message":
            for message in turns(item):
                said.setdefault(message.role, []).extend(part.text for part in message.parts if isinstance(part, Text))
    return {role: "\0".join(texts) for role, texts in said.items()}


_SAYINGS: Final = {
    "user_message": ("user", "message"),
    "agent_message": ("assistant", "message"),
    "task_complete": ("assistant", "last_agent_message"),
}
"""Events that say something, whose words these are and where they stand."""


def _event(gathered: _Gathered, payload: dict[str, Json], at_ns: int) -> None:
    """Read an event of a rollout: tokens, words that no item repeats, an error."""
    kind = as_text(payload.get("type"))
    if kind == "token_count":
        _count(gathered, as_object(payload.get("info")))
    elif kind == "turn_aborted":
        gathered.failure = f"turn aborted: {as_text(payload.get('reason')) or 'no reason given'}"
    elif kind == "error":
        gathered.failure = as_text(payload.get("message")) or "error"
    elif kind in _SAYINGS:
        role, name = _SAYINGS[kind]
        text = as_text(payload.get(name)).strip()
        if text and text not in gathered.words.get(role, ""):
            gathered.words[role] = f"{gathered.words.get(role, '')}\0{text}"
            gathered.add(Turn(message=Message(role=role, parts=(Text(text),)), at_ns=at_ns, model=gathered.model))


def _failed(item: dict[str, Json]) -> bool:
    """Tell whether what came of a tool says that it failed."""
    output = records.unwrapped(item.get("output"))
    if isinstance(output, str):
        match = _EXIT_CODE.match(output)
        return match is not None and match[1] != "0"
    exit_code = at(output, "metadata", "exit_code")
    return at(output, "success") is False or (isinstance(exit_code, int) and exit_code != 0)


def _compact(gathered: _Gathered, payload: dict[str, Json], at_ns: int) -> None:
    """Put what a conversation was compacted to in its place: a history, or in older rollouts a summary alone."""
    gathered.is_compacted = bool(gathered.turns)
    summary: Json = {"role": "user", "content": payload.get("message")}
    history = payload.get("replacement_history")
    for item in history if isinstance(history, list) else [summary]:
        for turn in _turns_at(item, at_ns):
            gathered.add(replace(turn, is_kept=True))


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
    """Read a line of Claude Code's session or of Cursor's transcript, or a message of the agent SDK's stream."""
    kind, message = as_text(line.get("type")) or as_text(line.get("role")), as_object(line.get("message"))
    if kind == "system" and line.get("subtype") == "init":
        gathered.model = as_text(line.get("model")) or gathered.model
        gathered.facts |= {"claude.tools": text_or_json(line.get("tools")), "claude.cwd": as_text(line.get("cwd"))}
    elif kind == "system" and line.get("subtype") == "compact_boundary":
        gathered.is_compacted = True
        gathered.kept = _kept(gathered, line)
    elif kind == "summary":
        gathered.name = as_text(line.get("summary")) or gathered.name
    elif kind == "result":
        fields = {name: value for name, value in line.items() if name not in ("type", "result")}
        gathered.facts["claude.result"] = compact(fields)
        gathered.failure = _failure(line)
    if kind not in ("user", "assistant") or not message or line.get("isSidechain") is True:
        return
    gathered.is_compacted = gathered.is_compacted or _is_summary(gathered, line)
    first = len(gathered.turns)
    for turn in _claude_turns(line, kind, message):
        gathered.add(turn)
    gathered.places[as_text(line.get("uuid"))] = (first, len(gathered.turns))
    if line.get("isCompactSummary") is True:
        for turn in gathered.kept:
            gathered.add(replace(turn, is_kept=True, begins_anew=False))
        gathered.kept = []


def _claude_turns(line: dict[str, Json], kind: str, message: dict[str, Json]) -> Iterator[Turn]:
    """Read the message of a line, with what the line says beside it."""
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
            yield turn
            continue
        yield replace(
            turn,
            id=as_text(message.get("id")),
            reply="" if as_text(message.get("id")) else _reply_key(line, usage),
            model=as_text(message.get("model")),
            usage=counts if usage else None,
            finish=as_text(message.get("stop_reason")),
            is_greeting=message.get("model") == "<synthetic>",
        )


def _kept(gathered: _Gathered, boundary: dict[str, Json]) -> list[Turn]:
    """Give the last messages before a compaction that stay as they were, behind the summary of all others."""
    meta = as_object(boundary.get("compactMetadata")) or as_object(boundary.get("compact_metadata"))
    segment = as_object(meta.get("preservedSegment")) or as_object(meta.get("preserved_segment"))
    head, tail = (as_text(segment.get(f"{end}Uuid") or segment.get(f"{end}_uuid")) for end in ("head", "tail"))
    if head not in gathered.places or tail not in gathered.places or not head or not tail:
        return []
    return gathered.turns[gathered.places[head][0] : gathered.places[tail][1]]


def _failure(result: dict[str, Json]) -> str:
    """Give the error that a run ended with, or nothing where it ended well."""
    subtype = as_text(result.get("subtype"))
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return ""
    errors = [text_or_json(each) for each in as_list(result.get("errors"))]
    return "\n".join(errors) or as_text(result.get("result")) or subtype or "error"


def _reply_key(line: dict[str, Json], usage: dict[str, Json]) -> str:
    """Tell pieces of a reply without an id from those of the next: by its request, its time and tokens, or the line."""
    key = as_text(line.get("requestId")) or as_text(line.get("request_id"))
    if key or not (usage or line.get("timestamp")):
        return key or as_text(line.get("uuid"))
    return compact([line.get("timestamp"), usage])


def _is_summary(gathered: _Gathered, line: dict[str, Json]) -> bool:
    """Tell a summary that takes the place of what was said before; the boundary before it may have told it already."""
    last = gathered.turns[-1] if gathered.turns else None
    return line.get("isCompactSummary") is True and last is not None and not last.begins_anew


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
            ('"role"', '"message"'),
            *((f'"{key}"',) for key in ("trajectory", "traj", "schema_version", "trajectory_format", "mini_version")),
        ),
        plain=(("messages:",),),
    ),
)
