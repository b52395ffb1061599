"""OpenAI's completions, images and moderation; Voyage's embeddings and ranking; Mistral's middle."""

import os

import openai
import voyageai

BASE, MODEL = os.environ["BASE"], os.environ.get("MODEL", "small")
client = openai.OpenAI(api_key="none", base_url=f"{BASE}/v1", max_retries=0)
print(client.completions.create(model=MODEL, prompt="two?").choices[0].text)
print([piece.choices[0].text for piece in client.completions.create(model=MODEL, prompt="three?", stream=True)])
print(client.images.generate(model=MODEL, prompt="a pen").data[0].b64_json)
print(client.moderations.create(model=MODEL, input="a pen").results[0].flagged)
voyage = voyageai.Client(api_key="none", base_url=f"{BASE}/v1")
print(voyage.embed(["a"], model="embed").embeddings)
print([each.index for each in voyage.rerank("q", ["a", "b"], model="rank").results])
