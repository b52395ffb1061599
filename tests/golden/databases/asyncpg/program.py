import os
PG = os.environ.get("PG_PORT", "5432")
import asyncio, asyncpg, uuid, datetime, decimal, json, sys
DSN=f"postgresql://u@127.0.0.1:{PG}/postgres"
async def main():
    c=await asyncpg.connect(DSN)
    print(c.get_server_version())
    await c.execute("drop table if exists q; drop type if exists pt; create type pt as (x int, y text); create table q(id serial primary key, u uuid, n numeric, j jsonb, a int[], t timestamptz, d date, tm time, iv interval, b bytea, r int4range, bits bit(3), p point, c pt, inet int)")
    print(await c.fetchrow("insert into q(u,n,j,a,t,d,tm,iv,b,r,bits,p,c,inet) values($1,$2,$3,$4,$5,$6,$7,$8,$9,'[1,4)',B'101','(1,2)',ROW(1,'z')::pt,10) returning *", uuid.UUID(int=9), decimal.Decimal("1.20"), json.dumps({"a":1}), [1,None,3], datetime.datetime(2024,1,1,tzinfo=datetime.timezone.utc), datetime.date(2024,1,2), datetime.time(1,2,3), datetime.timedelta(days=2,hours=1), b"\x00\xff"))
    await c.executemany("insert into q(n) values($1)", [(i,) for i in range(5)])
    print(await c.fetchval("select count(*) from q"), await c.fetch("select id,n from q order by id limit 3"))
    for i in range(4): print(await c.fetchval("select $1::int+1", i))
    async with c.transaction():
        async for r in c.cursor("select generate_series(1,7) g", prefetch=3): print(r["g"], end=" ")
        try:
            async with c.transaction(): await c.execute("insert into q(id) values(1)")
        except asyncpg.UniqueViolationError as e: print(type(e).__name__, e.constraint_name, e.sqlstate, e)
    st=await c.prepare("select $1::text || 'x' as v"); print(await st.fetchval("a"), await st.fetch("b"))
    await c.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    print(await c.fetchval("select j from q where id=1"), await c.fetchval("select $1::jsonb", {"k":[1]}))
    print(await c.copy_records_to_table("q", records=[(decimal.Decimal(7),)], columns=["n"]))
    import io; f=io.BytesIO(); print(await c.copy_from_query("select id,n from q order by id", output=f), f.getvalue()[:20])
    try: await c.fetch("select nope")
    except asyncpg.UndefinedColumnError as e: print(e)
    try: await c.fetch("select pg_sleep(3)", timeout=0.1)
    except TimeoutError: print("to")
    await c.close()
    out=[]
    async with asyncpg.create_pool(DSN, min_size=2, max_size=5) as pool:
        async def one(i):
            async with pool.acquire() as con:
                async with con.transaction():
                    await con.execute("select pg_sleep($1)", ((i*3)%4)*0.01)
                    r=await con.fetchval("select $1::int*2", i); out.append(i); return r
        print(await asyncio.gather(*[one(i) for i in range(15)])); print(out)
if sys.argv[1:]==["uv"]:
    import uvloop; uvloop.run(main())
else: asyncio.run(main())
