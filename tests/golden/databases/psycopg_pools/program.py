import os
PG = os.environ.get("PG_PORT", "5432")
import asyncio, psycopg, psycopg_pool, sys
DSN=f"host=127.0.0.1 port={PG} user=u dbname=postgres"
async def main():
    out=[]
    async with psycopg_pool.AsyncConnectionPool(DSN, min_size=2, max_size=4, open=False) as pool:
        await pool.wait()
        async with pool.connection() as c:
            await c.execute("create table if not exists p(i int, w text)"); await c.execute("delete from p")
        async def one(i):
            async with pool.connection() as c:
                async with c.cursor() as cur:
                    await cur.execute("insert into p values (%s,%s) returning i", (i,f"w{i}"))
                    r=await cur.fetchone()
                    await cur.execute("select pg_sleep(%s)", (0.01*((i*7)%5),))
                    out.append(("done",i))
                    return r
        rs=await asyncio.gather(*[one(i) for i in range(12)])
        print(sorted(rs)); print(out)
        async with pool.connection() as c:
            cur=await c.execute("select count(*) from p"); print(await cur.fetchone())
            try: await c.execute("select 1/0")
            except psycopg.errors.DivisionByZero as e: print(type(e), e)
        c=await psycopg.AsyncConnection.connect(DSN, autocommit=True)
        async for row in c.cursor().stream("select generate_series(1,3)"): print(row)
        async with c.cursor().copy("copy p to stdout") as cp:
            n=0
            async for b in cp: n+=1
            print(n)
        try:
            async with asyncio.timeout(0.2): await c.execute("select pg_sleep(2)")
        except TimeoutError: print("timeout")
        print(await (await c.execute("select 5")).fetchone())
        await c.close()
    with psycopg_pool.ConnectionPool(DSN, min_size=1, max_size=3) as pool:
        import threading
        res={}
        def w(i):
            with pool.connection() as c: res[i]=c.execute("select %s::int*2",(i,)).fetchone()
        ts=[threading.Thread(target=w,args=(i,)) for i in range(6)]
        [t.start() for t in ts]; [t.join() for t in ts]
        print(sorted(res.items()))
import sys; (__import__("uvloop").run if "uv" in sys.argv else asyncio.run)(main())
