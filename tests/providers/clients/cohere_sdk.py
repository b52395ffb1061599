"""Whole, a stream, a tool, embeddings, a ranking, and an error."""

import json
import os

import cohere

MODEL = os.environ.get("MODEL", "small")
client = cohere.ClientV2(api_key="none", base_url=os.environ["BASE"])


def get_weather(city: str) -> str:
    return f"rain in {city}"


def user(words: str) -> list[dict]:
    return [{"role": "user", "content": words}]


print(client.chat(model=MODEL, messages=user("how warm?")).message.content[0].text)
print(
    [
        event.delta.message.content.text
        for event in client.chat_stream(model=MODEL, messages=user("count"))
        if event.type == "content-delta"
    ]
)
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": schema}}]
message = client.chat(model=MODEL, messages=user("weather?"), tools=tools).message
turns = [*user("weather?"), {"role": "assistant", "tool_calls": message.tool_calls, "tool_plan": message.tool_plan}]
for call in message.tool_calls:
    told = get_weather(**json.loads(call.function.arguments))
    turns.append({"role": "tool", "tool_call_id": call.id, "content": told})
print(client.chat(model=MODEL, messages=turns, tools=tools).message.content[0].text)
embedded = client.embed(model="embed", texts=["a"], input_type="search_query", embedding_types=["float"])
print(embedded.embeddings.float_)
print([each.index for each in client.rerank(model="rank", query="q", documents=["a", "b"]).results])
try:
    client.chat(model=MODEL, messages=user("fail"))
except cohere.core.ApiError as error:
    print(error.status_code)
