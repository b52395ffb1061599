import asyncio

import instructor
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, field_validator


class Trip(BaseModel):
    city: str
    number: int

    @field_validator("city")
    @classmethod
    def is_a_city(cls, value):
        if value.islower():
            raise ValueError("a city begins with a capital")
        return value


ASKED = {"model": "small", "response_model": Trip, "messages": [{"role": "user", "content": "Which trip?"}]}
client = instructor.from_openai(OpenAI())
print("after a retry", client.chat.completions.create(**ASKED, max_retries=2))
for piece in client.chat.completions.create_partial(**ASKED):
    print("partial", piece)
aclient = instructor.from_openai(AsyncOpenAI())


async def main():
    print("awaited", await aclient.chat.completions.create(**ASKED))
    async for piece in aclient.chat.completions.create_iterable(**ASKED | {"stream": True}):
        print("one of them", piece)


asyncio.run(main())
