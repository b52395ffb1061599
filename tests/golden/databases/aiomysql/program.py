import asyncio
import datetime as dt
import json
import os
import sys
import warnings
from decimal import Decimal

import aiomysql
import pymysql

warnings.simplefilter("ignore")  # the client makes one of each that the server has
WHERE = {"host": "127.0.0.1", "port": int(os.environ.get("MYSQL_PORT", "3306")), "user": "u", "db": "shop"}


async def ask(db: aiomysql.Connection) -> None:
    async with db.cursor() as cur:
        await cur.execute("drop table if exists am")
        await cur.execute(
            "create table am(id int primary key auto_increment, name varchar(40) unique, n decimal(10,2), big bigint unsigned, "
            "f double, j json, t datetime(6), d date, tm time(3), y year, b blob, bits bit(5), ok bool) charset utf8mb4"
        )
        row = (
            *("ann", Decimal("1.50"), 2**64 - 1, 1.25, json.dumps({"a": [1, None]}), dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
            *(dt.date(2024, 5, 6), dt.timedelta(hours=30, milliseconds=5), 2024, 5, True),
        )
        columns = "name,n,big,f,j,t,d,tm,y,bits,ok"
        print(await cur.execute(f"insert into am({columns},b) values ({','.join(['%s'] * 11)}, x'00ff27')", row))
        print(cur.lastrowid, cur.rowcount, cur.description, db.insert_id(), db.affected_rows())
        rows = [(name, number) for number, name in enumerate("bcde")]
        print(await cur.executemany("insert into am(name, n) values (%s, %s)", rows), cur.lastrowid)
        cur.max_stmt_length = 60
        named = [{"name": f"it's {at}", "n": at} for at in range(4)]
        print(await cur.executemany("insert into am(name, n) values (%(name)s, %(n)s)", named))
        print(await cur.executemany("update am set ok = %s where name = %s", [(False, "b"), (True, "c"), (None, "nobody")]))
        await db.commit()
        await cur.execute("select * from am order by id limit 1")
        print(await cur.fetchone(), cur.rownumber, await cur.fetchone())
        print([(each[0], each[1], each[6]) for each in cur.description])
        print(await cur.execute("select id, name from am order by id"), await cur.fetchone(), await cur.fetchmany(2))
        await cur.scroll(0, "absolute")
        print(await cur.fetchall(), await cur.fetchone())
        await cur.execute("select %s, %s, 5 %% 3, 'a%%b'", (None, "é\U0001f600"))
        print(await cur.fetchall(), cur.mogrify("%s", ("x'",)))
    for kind in (aiomysql.DictCursor, aiomysql.SSCursor, aiomysql.SSDictCursor):
        async with db.cursor(kind) as cur:
            print(await cur.execute("select id, name, n from am where id < %s order by id", (8,)), cur.rowcount)
            print(type(await cur.fetchone()).__name__, await cur.fetchmany(2), [each async for each in cur], await cur.fetchone())
    async with db.cursor(aiomysql.SSCursor) as cur:
        await cur.execute("select id from am order by id")
        print(await cur.fetchone())


async def fail(db: aiomysql.Connection) -> None:
    async with db.cursor() as cur:
        for statement in ("insert into am(name) values ('ann')", "select nope from am", "selec 1", "select * from nowhere"):
            try:
                await cur.execute(statement)
            except pymysql.MySQLError as error:
                print(type(error).__name__, error.args[0], isinstance(error, aiomysql.IntegrityError))
        await cur.execute("select 1/0")
        print(await cur.fetchall(), await db.show_warnings())
        await db.begin()
        await cur.execute("insert into am(name) values ('gone')")
        print(db.get_transaction_status())
        await db.rollback()
        await db.autocommit(True)
        print(db.get_autocommit(), db.get_transaction_status())
        await cur.execute("select count(*) from am")
        print(await cur.fetchone())
        await cur.execute("drop procedure if exists both_of_a")
        await cur.execute("create procedure both_of_a(a int, b varchar(9)) begin select a; select b, a; end")
        print(await cur.callproc("both_of_a", (5, "x")), await cur.fetchall(), await cur.nextset(), await cur.fetchall())
        print(await cur.nextset(), await cur.nextset())
        await cur.execute("select 1; select 2 union select 3; select 4")
        print(await cur.fetchall(), await cur.nextset(), await cur.fetchall())
        await cur.execute("select 5")
        print(await cur.fetchall())
    await db.ping()
    await db.select_db("shop")
    await db.set_charset("utf8mb4")
    for changed in ({"db": "nope"}, {"user": "nobody", "password": "wrong"}):
        try:
            await aiomysql.connect(**WHERE | changed)
        except pymysql.OperationalError as error:
            print(type(error).__name__, error.args[0])


async def share(pool: aiomysql.Pool, number: int) -> str:
    async with pool.acquire() as db, db.cursor(aiomysql.DictCursor) as cur:
        await cur.execute("select %s * 2 as twice", (number,))
        return json.dumps(await cur.fetchone())


async def main() -> None:
    db = await aiomysql.connect(**WHERE)
    print(db.closed, db.get_autocommit(), db.thread_id() > 0, db.charset, db.host_info[:6])
    await ask(db)
    await fail(db)
    await db.ensure_closed()
    print(db.closed)
    try:
        await db.ping(reconnect=False)
    except pymysql.Error as error:
        print(type(error).__name__, error)
    async with aiomysql.create_pool(**WHERE, minsize=1, maxsize=3, autocommit=True, init_command="set @a = 7") as pool:
        print(await asyncio.gather(*(share(pool, number) for number in range(12))))
        async with pool.acquire() as taken, taken.cursor() as cur:
            await cur.execute("select @a")
            print(await cur.fetchone(), taken.get_autocommit())
            try:
                await asyncio.wait_for(cur.execute("select sleep(9)"), 0.2)
            except asyncio.TimeoutError:
                print("too slow", taken.closed)
        print(await share(pool, 50), pool.maxsize)


if sys.argv[1:] == ["uv"]:
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
