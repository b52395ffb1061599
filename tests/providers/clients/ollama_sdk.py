"""Whole, streams, a tool, the completion of a prompt, embeddings, async, and an error."""

import asyncio
import os

import ollama

MODEL, BASE = os.environ.get("MODEL", "small"), os.environ["BASE"]
client = ollama.Client(host=BASE)


def get_weather(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: the city
    """
    return f"rain in {city}"


def user(words: str) -> list[dict]:
    return [{"role": "user", "content": words}]


print(client.chat(model=MODEL, messages=user("how warm?")).message.content)
print([piece.message.content for piece in client.chat(model=MODEL, messages=user("count"), stream=True)])
called = client.chat(model=MODEL, messages=user("weather?"), tools=[get_weather]).message
turns = [*user("weather?"), called]
turns += [
    {"role": "tool", "content": get_weather(**call.function.arguments), "tool_name": call.function.name}
    for call in called.tool_calls
]
print(client.chat(model=MODEL, messages=turns, tools=[get_weather]).message.content)
print(client.generate(model=MODEL, prompt="two?").response)
print([piece.response for piece in client.generate(model=MODEL, prompt="three?", stream=True)])
print(client.embed(model="embed", input=["a"]).embeddings)


async def main() -> None:
    print((await ollama.AsyncClient(host=BASE).chat(model=MODEL, messages=user("async?"))).message.content)


asyncio.run(main())
try:
    client.chat(model=MODEL, messages=user("fail"))
except ollama.ResponseError as error:
    print(error.status_code, error.error)
