import asyncio
import json
from pathlib import Path

import litellm


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def look_up(city: str) -> str:
    effect(f"looked {city} up")
    return f"{city} is rainy"


def book(city: str) -> str:
    effect(f"booked {city}")
    return f"booked {city}"


def note(text: str) -> str:
    effect(f"noted {text}")
    return "noted"


TOOLS = {"look_up": look_up, "book": book, "note": note}


def schema(name, parameter):
    properties = {parameter: {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


SCHEMAS = [schema("look_up", "city"), schema("book", "city"), schema("note", "text")]


def answered(message):
    told = [message.model_dump()]
    for call in message.tool_calls:
        said = TOOLS[call.function.name](**json.loads(call.function.arguments))
        told.append({"role": "tool", "tool_call_id": call.id, "content": said})
    return told


def run(model):
    messages = [{"role": "user", "content": "Book me a trip."}]
    while True:
        message = litellm.completion(model=model, messages=messages, tools=SCHEMAS).choices[0].message
        if not message.tool_calls:
            return message.content
        messages += answered(message)


def streamed(model):
    messages = [{"role": "user", "content": "Book me a trip."}]
    while True:
        chunks = []
        for chunk in litellm.completion(model=model, messages=messages, tools=SCHEMAS, stream=True):
            chunks.append(chunk)
            print("piece", repr(chunk.choices[0].delta.content))
        message = litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message
        if not message.tool_calls:
            return message.content
        messages += answered(message)


async def asked(city):
    messages = [{"role": "user", "content": f"Tell me of {city}."}]
    chunks = await litellm.acompletion(model="openai/small", messages=messages, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])


async def main():
    print("awaited", await asyncio.gather(asked("Oslo"), asked("Bergen")))


print("sync", run("openai/small"))
print("claude", run("anthropic/small"))
print("streamed", streamed("openai/small"))
asyncio.run(main())
