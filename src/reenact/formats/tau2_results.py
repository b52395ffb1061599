"""Results of tau2-bench: a document with its simulations, or one simulation alone. Each is a run of the agent.

A simulation holds the messages between agent, user and tools, with the tokens of each. The simulated user calls tools
of its own, which the agent never sees: neither do its requests here. The greeting that comes first no model said. The
agent's prompt is made of the policy by its program and is not there, nor are the tools. A full-duplex simulation
consists of ticks that hold no message, and is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, text_or_json
from reenact.values.message import Message, Text, ToolCall, Usage
from reenact.values.skeleton import holds
from reenact.values.span import Attribute, SpanRecord

_RESULTS: Final = "info.agent_info", "info.user_info", "info.environment_info"
_SIMULATION: Final = "termination_reason", "task_id", "messages|ticks"
_LOST: Final = (
    lacking("system prompt", "the agent's prompt, which its program makes of the policy"),
    lacking("tools", "the tools that were offered"),
)


def _recognises(head: bytes) -> float:
    return 0.95 if holds(head, *_RESULTS) or holds(head, *_SIMULATION) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in documents(stream, str(path)):
        record = as_object(document)
        simulations = [as_object(each) for each in as_list(record.get("simulations"))] or [record]
        if all("ticks" in each and not each.get("messages") for each in simulations):
            raise InputError(f"{path}:{line}", "this simulation is full-duplex: its ticks hold no messages to read")
        for simulation in simulations:
            yield from conversations.run_of(_run(simulation, as_object(record.get("info"))), FORMAT.name)


def _run(simulation: dict[str, Json], info: Mapping[str, Json]) -> Conversation:
    agent = as_object(info.get("agent_info"))
    model = as_text(agent.get("llm"))
    facts: dict[str, Attribute] = {
        "tau2.task_id": text_or_json(simulation.get("task_id")),
        "tau2.simulation": as_text(simulation.get("id")),
        "tau2.domain": as_text(at(dict(info), "environment_info", "domain_name")),
        "tau2.termination": as_text(simulation.get("termination_reason")),
        "tau2.reward": compact(simulation["reward_info"]) if simulation.get("reward_info") else "",
    }
    messages = [each for each in as_list(simulation.get("messages")) if isinstance(each, dict)]
    return Conversation(
        seed=as_text(simulation.get("id")) or hashlib.blake2b(canonical(simulation), digest_size=16).hexdigest(),
        name=f"task {text_or_json(simulation.get('task_id'))}",
        turns=tuple(turn for message in messages for turn in _turns(message)),
        model=model.rpartition("/")[2],
        system="anthropic" if "claude" in model else "openai",
        parameters=as_object(agent.get("llm_args")),
        attributes={name: value for name, value in facts.items() if value},
        lost=_LOST,
    )


def _turns(message: dict[str, Json]) -> Iterator[Turn]:
    """Read a message of the agent's side: what the user's own tools were asked and said is none."""
    role, text = as_text(message.get("role")), as_text(message.get("content"))
    at_ns, usage = records.nanoseconds(message.get("timestamp")), as_object(message.get("usage"))
    if role == "tool" and isinstance(message.get("tool_messages"), list):
        for each in as_list(message["tool_messages"]):
            yield from _turns(as_object(each))
    elif role == "tool" and message.get("requestor", "assistant") == "assistant":
        yield Turn(
            message=Message(role="tool", parts=(Text(text),), tool_call_id=as_text(message.get("id"))), at_ns=at_ns
        )
    elif role == "assistant":
        calls = tuple(_call(as_object(each)) for each in as_list(message.get("tool_calls")))
        texts = (Text(text),) if text or not calls else ()
        counts = Usage(prompt=as_count(usage.get("prompt_tokens")), completion=as_count(usage.get("completion_tokens")))
        yield Turn(
            message=Message(role="assistant", parts=(*texts, *calls)),
            at_ns=at_ns,
            reply=text_or_json(message.get("turn_idx")),
            usage=counts if usage else None,
            is_greeting=not (usage or message.get("cost") or calls) and not message.get("turn_idx"),
        )
    elif role in ("user", "system") and text:
        yield Turn(message=Message(role=role, parts=(Text(text),)), at_ns=at_ns)


def _call(call: dict[str, Json]) -> ToolCall:
    return ToolCall(
        id=as_text(call.get("id")), name=as_text(call.get("name")), arguments=text_or_json(call.get("arguments"))
    )


FORMAT = Format(
    name="tau2",
    suffix=".tau2.json",
    recognises=_recognises,
    decode=_decode,
    most=0.95,
    marks=HeadMarks(keys=(_RESULTS, _SIMULATION)),
)
