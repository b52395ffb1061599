"""Asks three APIs, whole and streamed, sync and async, and prints what each SDK made of the answers, as JSON lines."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import anthropic
import openai

ASKED = {"model": "recorded-model"}
TURN = {"role": "user", "content": "Look it up."}


def said(shape: str, way: str, text: str | None, calls: list[Any], finish: str | None) -> None:
    """Print what a program sees of one answer."""
    print(json.dumps({"shape": shape, "way": way, "text": text, "calls": calls, "finish": finish}))


def of_chat(way: str, reply: Any) -> None:
    choice = reply.choices[0]
    calls = [[call.function.name, json.loads(call.function.arguments)] for call in choice.message.tool_calls or []]
    said("chat", way, choice.message.content, calls, choice.finish_reason)


def of_response(way: str, reply: Any) -> None:
    calls = [[item.name, json.loads(item.arguments)] for item in reply.output if item.type == "function_call"]
    said("responses", way, reply.output_text or None, calls, reply.status)


def of_message(way: str, reply: Any) -> None:
    texts = [block.text for block in reply.content if block.type == "text"]
    calls = [[block.name, block.input] for block in reply.content if block.type == "tool_use"]
    said("messages", way, "".join(texts) or None, calls, reply.stop_reason)


def question(way: str) -> list[Any]:
    return [{**TURN, "content": f"{TURN['content']} ({way})"}]


def sync() -> None:
    client, claude = openai.OpenAI(max_retries=0), anthropic.Anthropic(max_retries=0)
    asked = {**ASKED, "messages": question("sync")}
    of_chat("sync", client.chat.completions.create(**asked))
    with client.chat.completions.stream(**asked) as chat:
        of_chat("sync stream", chat.get_final_completion())
    given = {**ASKED, "input": question("sync")}
    of_response("sync", client.responses.create(**given))
    with client.responses.stream(**given) as response:
        of_response("sync stream", response.get_final_response())
    of_message("sync", claude.messages.create(max_tokens=9, **asked))
    with claude.messages.stream(max_tokens=9, **asked) as message:
        of_message("sync stream", message.get_final_message())


async def not_sync() -> None:
    client, claude = openai.AsyncOpenAI(max_retries=0), anthropic.AsyncAnthropic(max_retries=0)
    asked = {**ASKED, "messages": question("async")}
    of_chat("async", await client.chat.completions.create(**asked))
    async with client.chat.completions.stream(**asked) as chat:
        of_chat("async stream", await chat.get_final_completion())
    given = {**ASKED, "input": question("async")}
    of_response("async", await client.responses.create(**given))
    async with client.responses.stream(**given) as response:
        of_response("async stream", await response.get_final_response())
    of_message("async", await claude.messages.create(max_tokens=9, **asked))
    async with claude.messages.stream(max_tokens=9, **asked) as message:
        of_message("async stream", await message.get_final_message())


if __name__ == "__main__":
    sync()
    if "ONLY_SYNC" not in os.environ:
        asyncio.run(not_sync())
