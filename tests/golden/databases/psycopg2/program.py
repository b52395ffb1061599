import datetime as dt
import io
import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg2
from psycopg2 import errors, extras, pool, sql

WHERE = f"host=127.0.0.1 port={os.environ.get('PG_PORT', '5432')} user=u dbname=postgres"
extras.register_uuid()
db = psycopg2.connect(WHERE)
print(db.closed, db.autocommit, db.encoding, db.server_version > 0, db.info.dbname, db.get_parameter_status("DateStyle"))
with db, db.cursor() as cur:
    cur.execute("drop table if exists p2")
    cur.execute(
        "create table p2(id serial primary key, name text, u uuid, n numeric(10,2), j jsonb, a int[], t timestamptz, d date, "
        "tm time, iv interval, b bytea, r int4range, f float8, ok bool)"
    )
    row = (
        *("ann", uuid.UUID(int=5), Decimal("1.50"), extras.Json({"a": [1, None]}), [1, 2, None]),
        *(dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.timezone.utc), dt.date(2024, 5, 6), dt.time(1, 2, 3)),
        *(dt.timedelta(days=1, seconds=3), b"\x00\xff", extras.NumericRange(1, 5), 1.25, True),
    )
    cur.execute("insert into p2(name,u,n,j,a,t,d,tm,iv,b,r,f,ok) values (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s) returning id", row)
    print(cur.fetchone(), cur.rowcount, cur.statusmessage)
    cur.executemany("insert into p2(name, n) values (%s, %s)", [(name, number) for number, name in enumerate("bcde")])
    print(cur.rowcount)
    extras.execute_values(cur, "insert into p2(name, n) values %s", [("it's", 7), ("\\", 8)])
    extras.execute_batch(cur, "update p2 set ok = %(ok)s where name = %(name)s", [{"ok": False, "name": "b"}] * 3, page_size=2)
with db, db.cursor() as cur:
    cur.execute("select * from p2 order by id limit 1")
    [found] = cur
    print([bytes(each) if isinstance(each, memoryview) else each for each in found])
    print([(each.name, each.type_code) for each in cur.description], cur.rownumber)
    cur.execute("select id, name from p2 order by id")
    print(cur.fetchone(), cur.fetchmany(2), cur.rownumber)
    cur.scroll(0, "absolute")
    print(cur.fetchall(), cur.fetchone())
    cur.execute(sql.SQL("select {} from {} where name = {}").format(sql.Identifier("n"), sql.Identifier("p2"), sql.Literal("it's")))
    print(cur.fetchall())
    print(cur.mogrify("%s %s", ("x", 5)))
    cur.execute("select null::text, %s::int, %s", (None, "é"))
    print(cur.fetchall())
for kind in (extras.DictCursor, extras.RealDictCursor, extras.NamedTupleCursor):
    with db.cursor(cursor_factory=kind) as cur:
        cur.execute("select id, name, n from p2 where id < 4 order by id")
        first = cur.fetchone()
        print(type(first).__name__, first, first.name if kind is extras.NamedTupleCursor else first["name"], cur.fetchall())
db.commit()
with db.cursor() as cur:
    try:
        cur.execute("insert into p2(id) values (1)")
    except errors.UniqueViolation as error:
        print(type(error).__name__, error.pgcode, error.diag.constraint_name, str(error).splitlines()[0], db.info.transaction_status)
    db.rollback()
    try:
        cur.execute("select nope")
    except psycopg2.ProgrammingError as error:
        print(type(error).__name__, error.pgcode, error.pgerror.splitlines()[0])
    db.rollback()
    cur.callproc("abs", [-5])
    print(cur.fetchone())
    out = io.StringIO()
    cur.copy_expert("copy (select id, name from p2 order by id limit 2) to stdout", out)
    print(repr(out.getvalue()))
    cur.copy_from(io.StringIO("x\t1\ny\t2\n"), "p2", columns=("name", "n"))
    print(cur.rowcount)
    cur.copy_expert("copy p2(name) from stdin", io.BytesIO(b"z\n"))
db.commit()
with db.cursor("own") as cur:
    cur.itersize = 3
    cur.execute("select id from p2 order by id")
    print(cur.fetchone(), cur.fetchmany(2), [each for each in cur])
db.commit()
db.autocommit = True
with db.cursor() as cur:
    cur.execute("select count(*) from p2")
    print(cur.fetchone(), db.info.transaction_status)
db.close()
print(db.closed)
try:
    psycopg2.connect(WHERE.replace("dbname=postgres", "dbname=nope"))
except psycopg2.OperationalError as error:
    print(type(error).__name__, "does not exist" in str(error))
pooled = pool.ThreadedConnectionPool(1, 4, WHERE)


def ask(number: int) -> str:
    taken = pooled.getconn()
    try:
        with taken, taken.cursor(cursor_factory=extras.RealDictCursor) as cur:
            cur.execute("select %s::int * 2 as twice", (number,))
            return json.dumps(cur.fetchone())
    finally:
        pooled.putconn(taken)


with ThreadPoolExecutor(4) as threads:
    print([*threads.map(ask, range(12))])
pooled.closeall()
