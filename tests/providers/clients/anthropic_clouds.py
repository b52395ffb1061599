"""Anthropic's SDK to Bedrock and to Vertex AI: whole, and as a stream."""

import os

import anthropic

BASE, MODEL = os.environ["BASE"], os.environ.get("MODEL", "small")
clients = (
    anthropic.AnthropicBedrock(aws_access_key="AKID", aws_secret_key="none", aws_region="us-east-1", base_url=BASE),
    anthropic.AnthropicVertex(region="us-east5", project_id="p-1", access_token="none", base_url=f"{BASE}/v1"),
)
for client in clients:
    asked = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "how warm?"}]}
    print(client.messages.create(**asked).content)
    with client.messages.stream(**asked) as stream:
        print([*stream.text_stream])
