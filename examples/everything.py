"""The matrix program: every way in which an agent meets the outside world, in one run.

Two live runs of it never print the same. Given the same answers, released in the same order, it prints the same to the
letter, so its output is the test of a replay.

    python -m reenact.demo.provider -- reenact run -- python examples/everything.py > live.txt
    reenact replay last > replayed.txt
    diff live.txt replayed.txt

    python examples/everything.py loop stream        # only some sections; `--list` names them

The tools append to the file that `--notes` or EVERYTHING_NOTES names, by default a scratch file.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import functools
import json
import os
import random
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI, RateLimitError

import reenact

MODEL = os.environ.get("MODEL", "stand-in-everything")
BUSY = os.environ.get("MODEL", "stand-in-busy")
EMBEDDING = os.environ.get("EMBEDDING_MODEL", "stand-in-embedding")
NOTE: Any = {
    "type": "function",
    "function": {
        "name": "append_note",
        "description": "Append a line to the notes.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


class OutOfStock(Exception):
    """A tool's own exception: it carries more than its message."""

    def __init__(self, sku: str, wanted: int, left: int) -> None:
        self.sku, self.left = sku, left
        super().__init__(sku, wanted, left)


@functools.cache
def note_file() -> Path:
    """The file of notes."""
    return Path(os.environ.get("EVERYTHING_NOTES") or Path(tempfile.mkdtemp(prefix="everything-")) / "notes.txt")


@reenact.tool
def append_note(text: str) -> dict[str, Any]:
    """Append a line to the notes; the side effect that a replay must not repeat."""
    with note_file().open("a") as file:
        file.write(f"{text}\n")
    return {"lines": len(note_file().read_text().splitlines()), "receipt": random.randrange(10**6)}


@reenact.tool(name="reserve_stock")
def reserve(sku: str, wanted: int) -> int:
    """Reserve stock, of which there is never enough."""
    raise OutOfStock(sku, wanted, left=random.randrange(wanted))


@reenact.tool
async def fetch(number: int) -> str:
    """Take a random time, and say how long."""
    seconds = random.uniform(0, 0.03)
    await asyncio.sleep(seconds)
    return f"{number} waited {seconds * 1000:.3f} ms"


@reenact.tool
async def consult(number: int) -> str:
    """Take a random time, then ask the model what every other call of this tool asks it."""
    await asyncio.sleep(random.uniform(0, 0.03))
    async with AsyncOpenAI() as client:
        return f"{number} was told: {await say(client, 'Name one thing.')}"


@reenact.tool
def rows(count: int) -> Iterator[int]:
    """Yield random rows one by one."""
    for _ in range(count):
        yield random.randrange(1000)


@reenact.tool
async def ticks(count: int) -> AsyncIterator[int]:
    """Yield random ticks one by one, some time apart."""
    for _ in range(count):
        await asyncio.sleep(random.uniform(0, 0.005))
        yield random.randrange(1000)


@reenact.chain
async def say(client: AsyncOpenAI, prompt: str) -> str:
    """Ask the model one thing."""
    reply = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content or ""


def loop() -> None:
    """A tool loop with a side effect; ids and token counts are printed too, since a replay is exact to the byte."""
    client = OpenAI()
    messages: list[Any] = [{"role": "user", "content": "Keep some notes."}]
    while True:
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[NOTE])
        message = reply.choices[0].message
        print(reply.id, reply.usage.total_tokens if reply.usage else None, message.content)
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = append_note(**json.loads(call.function.arguments))
            print(" ", call.id, call.function.arguments, result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def stream() -> None:
    """A stream read to its end, usage included."""
    prompt: Any = [{"role": "user", "content": "Tell me a story."}]
    options: Any = {"include_usage": True}
    for chunk in OpenAI().chat.completions.create(model=MODEL, messages=prompt, stream=True, stream_options=options):
        print(chunk.choices[0].delta.content or "" if chunk.choices else f"\n{chunk.id} {chunk.usage}", end="|")
    print()


def abandoned() -> None:
    """A stream that the agent walks away from."""
    prompt: Any = [{"role": "user", "content": "Tell me a story."}]
    with OpenAI().chat.completions.create(model=MODEL, messages=prompt, stream=True) as chunks:
        for number, chunk in enumerate(chunks, 1):
            print(number, repr(chunk.choices[0].delta.content))
            if number == 3:
                break


async def gather() -> None:
    """Four calls at once; the first and the third ask the same and are answered differently."""
    async with AsyncOpenAI() as client:
        prompts = ("Name an animal.", "Name a place.", "Name an animal.", "Name a colour.")
        for prompt, answer in zip(prompts, await asyncio.gather(*(say(client, p) for p in prompts)), strict=True):
            print(prompt, answer)


async def order() -> None:
    """Answers appended as they come; the next prompt is built from that order, so it matters."""
    async with AsyncOpenAI() as client:
        arrived: list[str] = []

        async def one(number: int) -> None:
            arrived.append(f"{number}: {await say(client, f'Describe item {number}.')}")

        await asyncio.gather(*(one(number) for number in range(5)))
        prompt = f"Sum up, in this order: {'; '.join(arrived)}"
        print(prompt, "=>", await say(client, prompt))


async def completed() -> None:
    """`asyncio.as_completed`: whoever is first is printed first."""
    async with AsyncOpenAI() as client:
        for done in asyncio.as_completed([say(client, f"Race {number}.") for number in range(5)]):
            print(await done)


def threads() -> None:
    """A pool of threads, printed in order of completion."""

    def ask(number: int) -> str:
        prompt: Any = [{"role": "user", "content": f"Thread {number % 3}."}]
        reply = client.chat.completions.create(model=MODEL, messages=prompt)
        return f"{number} {reply.choices[0].message.content}"

    with OpenAI() as client, ThreadPoolExecutor(4) as pool:
        for future in as_completed([pool.submit(ask, number) for number in range(6)]):
            print(future.result())


async def delayed() -> None:
    """Equal calls that follow tools of random duration: the order of asking says nothing about who asks."""

    async def branch(number: int) -> str:
        waited = await fetch(number)
        return f"{waited}: {await say(client, 'Name one thing.')}"

    async with AsyncOpenAI() as client:
        print(*await asyncio.gather(*(branch(number) for number in range(5))), sep="\n")


async def nested() -> None:
    """The same inside the tools: a tool that asks the model itself."""
    print(*await asyncio.gather(*(consult(number) for number in range(5))), sep="\n")


def raising() -> None:
    """A tool's exception, caught by class and read by attribute."""
    try:
        reserve("KETTLE-2L", 40)
    except OutOfStock as error:
        print(type(error).__name__, error.args, error.sku, error.left)


def retried() -> None:
    """A rate limit that the SDK retries by itself; only the answer is seen."""
    reply = OpenAI().chat.completions.create(model=BUSY, messages=[{"role": "user", "content": "Are you there?"}])
    print(reply.choices[0].message.content)


def limited() -> None:
    """A rate limit that reaches the agent."""
    try:
        client = OpenAI(max_retries=0)
        print(client.chat.completions.create(model=BUSY, messages=[{"role": "user", "content": "Are you there?"}]))
    except RateLimitError as error:
        print(error.status_code, error.code, error.response.headers["retry-after-ms"], error.message)


async def votes() -> None:
    """Forty equal prompts at once, counted."""
    async with AsyncOpenAI() as client:
        cast = await asyncio.gather(*(say(client, "Vote for A, B or C.") for _ in range(40)))
    print("".join(cast), Counter(cast).most_common(1)[0])


def embedding() -> None:
    """Embeddings: the nearest text, and a component to the last bit."""
    texts = ["a red fox", "a blue whale", "the price of tea", "fox in the snow"]
    vectors = [item.embedding for item in OpenAI().embeddings.create(model=EMBEDDING, input=texts).data]
    likeness = [sum(a * b for a, b in zip(vectors[0], vector, strict=True)) for vector in vectors[1:]]
    print(texts[1 + likeness.index(max(likeness))], likeness, vectors[0][0])


async def generators() -> None:
    """Tools that yield."""
    print(list(rows(4)), [tick async for tick in ticks(4)])


def clock() -> None:
    """Time and chance in the prompt itself. Not run unless named: a replay of it needs both given back."""
    seen = f"{dt.datetime.now(dt.UTC).isoformat()} {time.time()} {uuid.uuid4()} {random.random()}"
    reply = OpenAI().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": f"It is {seen}."}])
    print(seen, reply.choices[0].message.content)


SECTIONS: dict[str, Callable[[], Any]] = {
    section.__name__: section
    for section in (
        *(loop, stream, abandoned, gather, order, completed, threads, delayed, nested, raising, retried, limited),
        *(votes, embedding, generators, clock),
    )
}
UNASKED = [name for name in SECTIONS if name != "clock"]


def main() -> None:
    """Run the named sections, or all but `clock`."""
    parser = argparse.ArgumentParser(description="Every way in which an agent meets the outside world.")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--notes", default=os.environ.get("EVERYTHING_NOTES", ""), help="file to append notes to")
    parser.add_argument("--list", action="store_true", help="name the sections and stop")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    os.environ["EVERYTHING_NOTES"] = options.notes
    if options.list:
        print(*SECTIONS, sep="\n")
        return
    with reenact.run("everything", user="u-17", session="s-5", tenant="acme"):
        for name in options.sections or UNASKED:
            print(f"== {name}")
            result = SECTIONS[name]()
            if asyncio.iscoroutine(result):
                asyncio.run(result)


if __name__ == "__main__":
    main()
