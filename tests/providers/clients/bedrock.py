"""Converse whole, with a tool, and as a stream; a model whose name has slashes; invoke; embeddings; an error."""

import json
import os

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

MODEL = os.environ.get("MODEL", "us.amazon.small-v1:0")
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/small"
client = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url=os.environ["BASE"],
    aws_access_key_id="AKIDSTANDIN",
    aws_secret_access_key="none",
    config=Config(retries={"max_attempts": 1}),
)


def get_weather(city: str) -> str:
    return f"rain in {city}"


def user(words: str) -> list[dict]:
    return [{"role": "user", "content": [{"text": words}]}]


reply = client.converse(modelId=MODEL, messages=user("how warm?"), system=[{"text": "Be short."}])
print(reply["output"], reply["usage"], reply["stopReason"])
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
spec = {"name": "get_weather", "description": "Weather.", "inputSchema": {"json": schema}}
tools = {"tools": [{"toolSpec": spec}]}
turns = user("weather?")
turns.append(client.converse(modelId=MODEL, messages=turns, toolConfig=tools)["output"]["message"])
called = [block["toolUse"] for block in turns[-1]["content"] if "toolUse" in block]
results = [
    {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": get_weather(**call["input"])}]}}
    for call in called
]
print(
    client.converse(modelId=MODEL, messages=[*turns, {"role": "user", "content": results}], toolConfig=tools)["output"]
)
print([*client.converse_stream(modelId=MODEL, messages=user("count"))["stream"]])
print(client.converse(modelId=PROFILE, messages=user("by profile"))["output"])
asked = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
reply = client.invoke_model(modelId="anthropic.small", body=json.dumps(asked))
print(reply["body"].read(), reply["ResponseMetadata"]["HTTPHeaders"]["x-amzn-bedrock-input-token-count"])
stream = client.invoke_model_with_response_stream(modelId="anthropic.small", body=json.dumps(asked))["body"]
print([json.loads(piece["chunk"]["bytes"])["type"] for piece in stream])
try:
    client.converse(modelId=MODEL, messages=user("fail"))
except ClientError as error:
    print(error.response["Error"])
