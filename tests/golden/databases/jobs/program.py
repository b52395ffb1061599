import asyncio
import json
import os

import asyncpg
import chromadb
import redis.asyncio
from chromadb import EmbeddingFunction

PLACE = f"postgresql://u@127.0.0.1:{os.environ.get('PG_PORT', '5432')}/postgres"


class Lengths(EmbeddingFunction):
    def __init__(self):
        pass

    def __call__(self, input):
        return [[float(len(text)), float(text.count("e")) + 1] for text in input]

    @staticmethod
    def name():
        return "lengths"

    def get_config(self):
        return {}

    @staticmethod
    def build_from_config(config):
        return Lengths()


async def work(pool, queue, notes):
    while (got := await queue.blpop(["jobs"], timeout=1)) is not None:
        job = json.loads(got[1])
        near = await notes.query(query_texts=[job["who"] * (job["cents"] % 3 + 1)], n_results=1)
        async with pool.acquire() as held, held.transaction():
            made = await held.fetchrow(
                "INSERT INTO jobs (who, cents) VALUES ($1, $2) RETURNING id, at", job["who"], job["cents"]
            )
            total = await held.fetchval("SELECT sum(cents) FROM jobs WHERE who = $1", job["who"])
        await queue.rpush("done", json.dumps({"who": job["who"], "id": made["id"], "total": total}))
        print(job["who"], made["id"], made["at"], total, near["documents"][0][0], flush=True)


async def main():
    pool = await asyncpg.create_pool(PLACE, min_size=2, max_size=4)
    queue = redis.asyncio.Redis(port=int(os.environ.get("REDIS_PORT", "6379")), decode_responses=True)
    client = await chromadb.AsyncHttpClient("127.0.0.1", int(os.environ.get("CHROMA_PORT", "8000")))
    notes = await client.get_or_create_collection("notes", embedding_function=Lengths())
    await notes.upsert(ids=["a", "b", "c"], documents=["ee", "a longer note", "the longest of the notes"])
    await pool.execute(
        "CREATE TABLE IF NOT EXISTS jobs (id serial PRIMARY KEY, who text, cents int, at timestamptz DEFAULT now())"
    )
    await asyncio.gather(*(work(pool, queue, notes) for _ in range(4)))
    await pool.close()
    await queue.aclose()


asyncio.run(main())
