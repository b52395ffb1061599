import os
from datetime import UTC, datetime
from typing import Annotated

import sqlalchemy as sa
from fastapi import Body, Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

PLACE = f"u@127.0.0.1:{os.environ.get('PG_PORT', '5432')}/postgres"
engine = create_async_engine(
    f"postgresql+{os.environ.get('DRIVER', 'asyncpg')}://{PLACE}",
    pool_pre_ping=True,
    pool_size=3,
    isolation_level="REPEATABLE READ",
)
sessions = async_sessionmaker(engine)


class Base(DeclarativeBase):
    pass


class Sale(Base):
    __tablename__ = "sales"
    id: Mapped[int] = mapped_column(primary_key=True)
    who: Mapped[str]
    cents: Mapped[int]
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), default=lambda: datetime.now(UTC))


async def session():
    async with sessions() as opened:
        yield opened


app = FastAPI()


@app.post("/sales/{who}")
async def sell(
    who: str, cents: Annotated[int, Body(embed=True)], opened: Annotated[AsyncSession, Depends(session)]
):
    sale = Sale(who=who, cents=cents)
    opened.add(sale)
    await opened.commit()
    await opened.refresh(sale)
    total = await opened.scalar(sa.select(sa.func.sum(Sale.cents)).where(Sale.who == who))
    return {"id": sale.id, "total": int(total), "at": sale.at.isoformat()}
