import os
from contextlib import asynccontextmanager
from typing import Annotated

import redis.asyncio
import sqlalchemy as sa
from fastapi import Body, FastAPI
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

engine = create_async_engine(f"postgresql+asyncpg://u@127.0.0.1:{os.environ.get('PG_PORT', '5432')}/postgres", pool_size=5)
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    who: Mapped[str]
    cents: Mapped[int]
    at = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())


@asynccontextmanager
async def lifespan(app):
    async with engine.begin() as made:
        await made.run_sync(Base.metadata.create_all)
    app.state.cache = redis.asyncio.Redis(port=int(os.environ.get("REDIS_PORT", "6379")), decode_responses=True)
    await app.state.cache.set("rate", "10")
    yield
    await app.state.cache.aclose()
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{who}")
async def order(who: str, cents: Annotated[int, Body()]):
    rate = int(await app.state.cache.get("rate"))
    discount = cents * rate // 100 if cents < 1000 else cents * rate  # the bug: of dear orders the rate is no percentage
    async with sessions.begin() as session:
        made = Order(who=who, cents=cents - discount)
        session.add(made)
        await session.flush()
        total = await session.scalar(sa.select(sa.func.sum(Order.cents)).where(Order.who == who))
    seen = await app.state.cache.incr(f"orders:{who}")
    return {"id": made.id, "charged": made.cents, "total": int(total), "seen": seen}
