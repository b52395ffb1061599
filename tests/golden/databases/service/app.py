import os
PG = os.environ.get("PG_PORT", "5432")
REDIS = int(os.environ.get("REDIS_PORT", "6379"))
from contextlib import asynccontextmanager
from fastapi import FastAPI
import asyncpg, redis.asyncio as ra
from sqlalchemy.ext.asyncio import create_async_engine, async_sessionmaker
import sqlalchemy as sa
engine=create_async_engine(f"postgresql+asyncpg://u@127.0.0.1:{PG}/postgres", pool_size=3)
@asynccontextmanager
async def lifespan(app):
    app.state.pool=await asyncpg.create_pool(f"postgresql://u@127.0.0.1:{PG}/postgres", min_size=2, max_size=4)
    app.state.redis=ra.Redis(port=REDIS)
    await app.state.pool.execute("create table if not exists orders(id serial primary key, who text, n int)")
    async with engine.begin() as c: await c.execute(sa.text("select 1"))
    yield
    await app.state.pool.close(); await app.state.redis.aclose()
app=FastAPI(lifespan=lifespan)
@app.get("/order/{who}/{n}")
async def order(who: str, n: int):
    async with app.state.pool.acquire() as c:
        oid=await c.fetchval("insert into orders(who,n) values($1,$2) returning id", who, n)
    hits=await app.state.redis.incr(f"hits:{who}")
    async with engine.connect() as c:
        total=(await c.execute(sa.text("select coalesce(sum(n),0) from orders where who=:w"),{"w":who})).scalar()
    if n==13: raise ValueError(f"unlucky {who} {oid}")
    return {"id":oid,"hits":hits,"total":int(total)}
