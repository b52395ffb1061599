import os
PG = os.environ.get("PG_PORT", "5432")
import psycopg, uuid, datetime, decimal, json, sys
from psycopg.types.json import Jsonb
from psycopg.rows import dict_row
out=[]
with psycopg.connect(f"host=127.0.0.1 port={PG} user=u dbname=postgres") as c:
    out.append(c.info.server_version)
    with c.cursor() as cur:
        cur.execute("drop table if exists o"); cur.execute("create table o(id serial primary key, name text, u uuid, n numeric(10,2), j jsonb, a int[], t timestamptz, d date, b bytea, iv interval, r int4range, f float8, ok bool)")
        cur.execute("insert into o(name,u,n,j,a,t,d,b,iv,r,f,ok) values (%s,%s,%s,%s,%s,%s,%s,%s,%s,'[1,5)',%s,%s) returning id",
          ("ann", uuid.UUID(int=5), decimal.Decimal("1.50"), Jsonb({"a":[1,None]}), [1,2,None], datetime.datetime(2024,1,1,tzinfo=datetime.timezone.utc), datetime.date(2024,2,3), b"\x00\xff", datetime.timedelta(days=1,seconds=3), 1.25, True))
        out.append(cur.fetchone())
        cur.executemany("insert into o(name,n) values (%s,%s)", [("b",1),("c",2),("d",3)])
        out.append(cur.rowcount)
        cur.execute("select * from o order by id"); out.append(cur.fetchall()); out.append([ (d.name,d.type_code) for d in cur.description])
    for i in range(8): out.append(c.execute("select %s::int+1", (i,)).fetchone())
    try:
        with c.transaction():
            c.execute("insert into o(id) values (1)")
    except psycopg.errors.UniqueViolation as e:
        out.append((type(e).__name__, e.diag.constraint_name, str(e), e.sqlstate))
    with c.transaction():
        out.append(c.execute("select count(*) from o").fetchone())
    cur=c.cursor(row_factory=dict_row); cur.execute("select id,name from o order by 1"); out.append(cur.fetchmany(2)); out.append(cur.fetchone()); out.append(list(cur))
    with c.cursor("srv") as s:
        s.execute("select generate_series(1,%s)", (7,)); s.itersize=3
        out.append([r for r in s])
    out.append([r for r in c.cursor().stream("select generate_series(1,4)")])
    with c.cursor().copy("copy (select id,name from o order by id) to stdout") as cp:
        out.append([r for r in cp.rows()])
    with c.cursor().copy("copy o(name) from stdin") as cp:
        for n in ("x","y"): cp.write_row((n,))
    with c.pipeline() as p:
        a=c.execute("select 1"); b=c.execute("select %s::text", ("zz",))
        out.append((a.fetchone(), b.fetchone()))
    out.append(c.execute("select count(*) from o").fetchone())
    cc=psycopg.ClientCursor(c); cc.execute("select %s, %s", ("it's", 5)); out.append(cc.fetchone())
    c.commit()
try: psycopg.connect("host=127.0.0.1 port=1 user=u dbname=postgres")
except psycopg.OperationalError as e: out.append(type(e).__name__)
for o in out: print(o)
