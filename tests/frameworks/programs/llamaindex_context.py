import asyncio
import os
from pathlib import Path

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    model="small",
    api_base=os.environ["OPENAI_BASE_URL"],
    api_key="sk",
    is_chat_model=True,
    is_function_calling_model=True,
)


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


async def keep(ctx, text):
    effect(text)
    async with ctx.store.edit_state() as state:
        state["done"] = [*state.get("done", []), text]


async def look_up(ctx: Context, city: str) -> str:
    """Look a city up."""
    await keep(ctx, f"looked {city} up")
    return f"{city} is rainy"


async def book(ctx: Context, city: str) -> str:
    """Book a trip."""
    await keep(ctx, f"booked {city}")
    return f"booked {city}"


async def note(ctx: Context, text: str) -> str:
    """Note something down."""
    await keep(ctx, f"noted {text}")
    return f"noted after {len(await ctx.store.get('done'))}"


async def main():
    agent = FunctionAgent(llm=model, tools=[look_up, book, note], system_prompt="You book trips.")
    context = Context(agent)
    print(await agent.run("Book me a trip.", ctx=context))
    print(sorted(await context.store.get("done")))


asyncio.run(main())
