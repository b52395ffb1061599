import asyncio
import datetime as dt
import os
import sys
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy import exc, orm
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

WHERE = f"u@127.0.0.1:{os.environ.get('MYSQL_PORT', '3306')}/shop?charset=utf8mb4"


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "so"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)
    made = orm.mapped_column(mysql.DATETIME(fsp=6))
    cents = orm.mapped_column(sa.Numeric(10, 2))
    facts = orm.mapped_column(sa.JSON)
    lines: orm.Mapped[list["Line"]] = orm.relationship(back_populates="order", lazy="selectin", order_by="Line.id")


class Line(Base):
    __tablename__ = "sol"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id = orm.mapped_column(sa.ForeignKey("so.id"))
    what: orm.Mapped[str] = orm.mapped_column(sa.String(20))
    order: orm.Mapped[Order] = orm.relationship(back_populates="lines")


def rows() -> list[Order]:
    at = dt.datetime(2024, 1, 1, 2, 3, 4, 5)
    own = [{"a": [1, None]}, None, {"é": True}]
    return [
        Order(name=f"n{each}", made=at, cents=Decimal(each) / 3, facts=own[each], lines=[Line(what=f"l{each}-{of}") for of in range(2)])
        for each in range(3)
    ]


def work(session: orm.Session) -> None:
    session.add_all(rows())
    session.commit()
    for order in session.scalars(sa.select(Order).order_by(Order.id)):
        print(order.id, order.name, order.made, order.cents, order.facts, [line.what for line in order.lines])
    order = session.get(Order, 2)
    order.name = "changed"
    session.commit()
    try:
        session.add(Order(name="n0"))
        session.commit()
    except exc.IntegrityError as error:
        session.rollback()
        print(type(error.orig).__name__, error.orig.args[0])
    with session.begin_nested():
        session.execute(sa.update(Order).where(Order.id == 1).values(cents=Order.cents + 1))
    session.commit()
    print(session.execute(sa.text("select name, cents from so where id in (:a, :b)"), {"a": 1, "b": 2}).all())
    ins = mysql.insert(Order).values(name="n0", cents=9)
    session.execute(ins.on_duplicate_key_update(cents=ins.inserted.cents))
    session.commit()
    print(session.scalar(sa.select(sa.func.sum(Order.cents))), session.scalar(sa.select(sa.func.count()).select_from(Line)))


def blocking() -> None:
    engine = sa.create_engine(f"mysql+pymysql://{WHERE}", pool_pre_ping=True)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        work(session)
    with engine.connect() as connection:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=3).execute(sa.text("select id from sol order by id"))
        print(streamed.fetchmany(2), streamed.all())
        print([each["name"] for each in sa.inspect(engine).get_columns("so")])
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        print(connection.execute(sa.text("delete from sol where id = 6")).rowcount)
    engine.dispose()


async def asynchronous() -> None:
    engine = create_async_engine(f"mysql+aiomysql://{WHERE}", pool_size=2)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        await session.run_sync(work)

    async def ask(number: int) -> int:
        async with engine.connect() as connection:
            return (await connection.execute(sa.text("select :n * 2"), {"n": number})).scalar_one()

    print(await asyncio.gather(*map(ask, range(6))))
    async with engine.connect() as connection:
        streamed = await connection.stream(sa.text("select id from sol order by id"))
        print([row.id async for row in streamed])
    await engine.dispose()


if sys.argv[1:] == ["aiomysql"]:
    asyncio.run(asynchronous())
else:
    blocking()
