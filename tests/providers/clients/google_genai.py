"""Whole, streams, a tool by the SDK's own loop, embeddings, token counts, async, and an error."""

import asyncio
import os

from google import genai
from google.genai import errors, types

MODEL = os.environ.get("MODEL", "small")
client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=os.environ["BASE"]))


def get_weather(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: the city
    """
    return f"rain in {city}"


def user(words: str) -> list[types.Content]:
    return [types.Content(role="user", parts=[types.Part(text=words)])]


short = types.GenerateContentConfig(system_instruction="Be short.", temperature=0)
print(client.models.generate_content(model=MODEL, contents=user("how warm?"), config=short).text)
tools = types.GenerateContentConfig(tools=[get_weather])
print(client.models.generate_content(model=MODEL, contents=user("weather?"), config=tools).text)
print([piece.text for piece in client.models.generate_content_stream(model=MODEL, contents=user("count"))])
print([each.values for each in client.models.embed_content(model="embed", contents=["a", "b"]).embeddings])
print(client.models.count_tokens(model=MODEL, contents=user("how many?")).total_tokens)


async def main() -> None:
    print((await client.aio.models.generate_content(model=MODEL, contents=user("async?"))).text)
    stream = await client.aio.models.generate_content_stream(model=MODEL, contents=user("in pieces?"))
    print([piece.text async for piece in stream])


asyncio.run(main())
try:
    client.models.generate_content(model=MODEL, contents=user("fail"))
except errors.APIError as error:
    print(error.code, error.message)
