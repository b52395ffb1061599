import os
import sys

import psycopg

how = sys.argv[1:]
charged = 1170 if "fixed" in how else -11700
with psycopg.connect(f"host=127.0.0.1 port={os.environ.get('PG_PORT', '5432')} user=u dbname=postgres") as db:
    db.execute("create temp table orders(id serial primary key, cents int)")
    db.execute("create temp table rates(percent int)")
    with db.transaction():
        [made] = db.execute("insert into orders(cents) values (%s) returning id", (charged,)).fetchone()
        db.execute("select percent from rates").fetchall()
        if charged < 0 and "guarded" in how:
            print("refused")
            raise psycopg.Rollback
        print("order", made, "charged", charged)
    if "read" in how:
        [kept] = db.execute("select cents from orders where id = %s", (made,)).fetchone()
        print("kept", kept)
