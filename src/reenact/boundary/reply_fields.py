"""The fields without which a provider's SDK, or a framework that checks its replies, takes no reply.

A reply that was built again of a foreign trace (`foreign.rebuilding`) holds what was kept. What an SDK insists on
beside that is filled in where the reply is handed to it, and nowhere else: what a trace tells of a call stays what its
emitter wrote. Required are the fields that the models of the packages `openai` and `anthropic` require.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import MADE_ID

_CHAT_ENDS: Final = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_MESSAGE_ENDS: Final = frozenset(
    {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"}
)


def completed(shape: str, body: Json, *, seed: str, at_s: int, model: str) -> Json:
    """Give a reply with the fields that are missing: ids made of `seed`, the time of `at_s`, the `model` asked for.

    A reply that lacks nothing comes back as it is; so does one of a shape that is not known here, and an error.
    """
    complete = _SHAPES.get(shape)
    if complete is None or not isinstance(body, dict) or body.get("error") is not None:
        return body
    return complete({**body, "model": body.get("model") or model}, seed, at_s)


def _chat(reply: dict[str, Json], seed: str, at_s: int) -> Json:
    choices: list[Json] = []
    for place, choice in enumerate(map(as_object, as_list(reply.get("choices")))):
        message = {"content": None, **as_object(choice.get("message")), "role": "assistant"}
        if isinstance(content := message["content"], list):
            message |= _one_text(content)
        calls = [as_object(call) for call in as_list(message.get("tool_calls"))]
        if calls:
            message["tool_calls"] = [
                {"type": "function", **call, "id": call.get("id") or f"{MADE_ID}{seed}_{place}_{at}"}
                for at, call in enumerate(calls)
            ]
        ended = as_text(choice.get("finish_reason"))
        end = ended if ended in _CHAT_ENDS else "tool_calls" if calls else "stop"
        choices.append({"index": place, "logprobs": None, **choice, "message": message, "finish_reason": end})
    filled: dict[str, Json] = {
        **reply,
        "id": reply.get("id") or f"chatcmpl-{seed}",
        "object": "chat.completion",
        "created": reply.get("created") or at_s,
        "choices": choices,
    }
    if usage := as_object(reply.get("usage")):
        filled["usage"] = _summed(usage, "prompt_tokens", "completion_tokens")
    return filled


def _one_text(content: list[Json]) -> dict[str, Json]:
    """Join the texts of a reply that was kept in pieces, as this API gives one text; other pieces stand beside it."""
    pieces = [as_object(piece) for piece in content]
    texts = [as_text(piece.get("text")) for piece in pieces if piece.get("type") == "text"]
    rest: list[Json] = [piece for piece in pieces if piece.get("type") != "text"]
    return {"content": "".join(texts) if texts else None, **({"content_parts": rest} if rest else {})}


def _summed(usage: Mapping[str, Json], *names: str) -> dict[str, Json]:
    counts = {name: count if isinstance(count := usage.get(name), int) else 0 for name in names}
    total = usage.get("total_tokens")
    return {**usage, **counts, "total_tokens": total if isinstance(total, int) else sum(counts.values())}


def _responses(reply: dict[str, Json], seed: str, at_s: int) -> Json:
    items: list[Json] = []
    for place, item in enumerate(map(as_object, as_list(reply.get("output")))):
        kind = as_text(item.get("type"))
        id_fields: dict[str, Json] = {"id": item.get("id") or f"{_PREFIXES.get(kind, 'item')}_{seed}_{place}"}
        if kind in ("function_call", "custom_tool_call"):
            call_id = as_text(item.get("call_id")) or f"{MADE_ID}{seed}_{place}"
            needs_id = as_text(id_fields["id"]) == "fc_"
            id_fields |= {"call_id": call_id, **({"id": f"fc_{call_id}"} if needs_id else {})}
        elif kind == "message":
            id_fields |= {"role": "assistant", "status": item.get("status") or "completed"}
        items.append({**item, **id_fields})
    filled: dict[str, Json] = {
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **reply,
        "id": reply.get("id") or f"resp_{seed}",
        "object": "response",
        "created_at": reply.get("created_at") or at_s,
        "output": items,
    }
    reason = as_object(reply.get("incomplete_details")).get("reason")
    if reason is not None and reason not in ("max_output_tokens", "content_filter"):
        filled["incomplete_details"] = None
    if usage := as_object(reply.get("usage")):
        summed = _summed(usage, "input_tokens", "output_tokens")
        summed["input_tokens_details"] = {
            "cached_tokens": 0,
            "cache_write_tokens": 0,
            **as_object(usage.get("input_tokens_details")),
        }
        summed["output_tokens_details"] = {"reasoning_tokens": 0, **as_object(usage.get("output_tokens_details"))}
        filled["usage"] = summed
    return filled


_PREFIXES: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids of items begin, by their type."""


def _messages(reply: dict[str, Json], seed: str, _at_s: int) -> Json:
    blocks: list[Json] = []
    for place, block in enumerate(map(as_object, as_list(reply.get("content")))):
        more: dict[str, Json] = {}
        if block.get("type") == "tool_use":
            more = {"id": block.get("id") or f"{MADE_ID}{seed}_{place}", "input": block.get("input") or {}}
        elif block.get("type") == "thinking":
            more = {"signature": block.get("signature") or ""}
        blocks.append({**block, **more})
    ended = as_text(reply.get("stop_reason"))
    calls = any(as_object(block).get("type") == "tool_use" for block in blocks)
    usage = as_object(reply.get("usage"))
    counts = {name: count if isinstance(count := usage.get(name), int) else 0 for name in _MESSAGE_COUNTS}
    return {
        "stop_sequence": None,
        **reply,
        "id": reply.get("id") or f"msg_{seed}",
        "type": "message",
        "role": "assistant",
        "content": blocks,
        "stop_reason": ended if ended in _MESSAGE_ENDS else "tool_use" if calls else "end_turn",
        "usage": {**usage, **counts},
    }


_MESSAGE_COUNTS: Final = ("input_tokens", "output_tokens")


def _embeddings(reply: dict[str, Json], _seed: str, _at_s: int) -> Json:
    data: list[Json] = [
        {"object": "embedding", "index": place, **as_object(each)} for place, each in enumerate(as_list(reply["data"]))
    ]
    usage = as_object(reply.get("usage"))
    prompt = usage.get("prompt_tokens")
    prompt = prompt if isinstance(prompt, int) else usage.get("total_tokens")
    counts: dict[str, Json] = {"prompt_tokens": prompt if isinstance(prompt, int) else 0}
    return {**reply, "object": "list", "data": data, "usage": _summed({**usage, **counts}, "prompt_tokens")}


_SHAPES: Final[Mapping[str, Callable[[dict[str, Json], str, int], Json]]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "openai.embeddings": _embeddings,
    "anthropic.messages": _messages,
}
