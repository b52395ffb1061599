import asyncio
import json
import os

import asyncpg
import redis.asyncio

PLACE = f"postgresql://u@127.0.0.1:{os.environ.get('PG_PORT', '5432')}/postgres"


async def work(pool, queue):
    while (got := await queue.blpop(["jobs"], timeout=1)) is not None:
        job = json.loads(got[1])
        async with pool.acquire() as held, held.transaction():
            made = await held.fetchrow(
                "INSERT INTO jobs (who, cents) VALUES ($1, $2) RETURNING id, at", job["who"], job["cents"]
            )
            total = await held.fetchval("SELECT sum(cents) FROM jobs WHERE who = $1", job["who"])
        await queue.rpush("done", json.dumps({"who": job["who"], "id": made["id"], "total": total}))
        print(job["who"], made["id"], made["at"], total, flush=True)


async def main():
    pool = await asyncpg.create_pool(PLACE, min_size=2, max_size=4)
    queue = redis.asyncio.Redis(port=int(os.environ.get("REDIS_PORT", "6379")), decode_responses=True)
    await pool.execute(
        "CREATE TABLE IF NOT EXISTS jobs (id serial PRIMARY KEY, who text, cents int, at timestamptz DEFAULT now())"
    )
    await asyncio.gather(*(work(pool, queue) for _ in range(4)))
    await pool.close()
    await queue.aclose()


asyncio.run(main())
