import datetime as dt
import json
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pymysql
from pymysql import cursors

WHERE = {"host": "127.0.0.1", "port": int(os.environ.get("MYSQL_PORT", "3306")), "user": "u", "database": "shop"}
db = pymysql.connect(**WHERE)
print(db.open, db.get_autocommit(), db.get_server_info() > "5", db.thread_id() > 0, db.character_set_name(), db.host_info[:6])
with db.cursor() as cur:
    cur.execute("drop table if exists m")
    cur.execute(
        "create table m(id int primary key auto_increment, name varchar(40) unique, n decimal(10,2), big bigint unsigned, "
        "f double, j json, t datetime(6), d date, tm time(3), y year, b blob, bits bit(5), ok bool, e enum('x', 'y'), "
        "s set('p', 'q'), ts timestamp default '2024-01-02 03:04:05') charset utf8mb4"
    )
    row = (
        *("ann", Decimal("1.50"), 2**64 - 1, 1.25, json.dumps({"a": [1, None]}), dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
        *(dt.date(2024, 5, 6), dt.timedelta(hours=-30, milliseconds=5), 2024, b"\x00\xff'\\", 5, True, "x", "p,q"),
    )
    print(cur.execute(f"insert into m(name,n,big,f,j,t,d,tm,y,b,bits,ok,e,s) values ({','.join(['%s'] * 14)})", row))
    print(cur.lastrowid, cur.rowcount, cur.description, db.insert_id(), db.affected_rows())
    print(cur.executemany("insert into m(name, n) values (%s, %s)", [(name, number) for number, name in enumerate("bcde")]))
    print(cur.lastrowid, cur.rowcount)
    cur.max_stmt_length = 60
    print(cur.executemany("insert into m(name, n) values (%(name)s, %(n)s)", [{"name": f"it's {at}", "n": at} for at in range(4)]))
    print(cur.executemany("update m set ok = %s where name = %s", [(False, "b"), (True, "c"), (None, "nobody")]))
    db.commit()
    cur.execute("select * from m order by id limit 1")
    print(cur.fetchone(), cur.rownumber, cur.fetchone())
    print([(each[0], each[1], each[6]) for each in cur.description])
    print(cur.execute("select id, name from m order by id"), cur.fetchone(), cur.fetchmany(2), cur.rownumber)
    cur.scroll(0, "absolute")
    print(cur.fetchall(), cur.fetchone())
    print(cur.mogrify("%s %s %s", ("x'", 5, None)))
    cur.execute("select %s, %s, 5 %% 3, %s", (None, "é\U0001f600", [1, 2][0]))
    print(cur.fetchall())
    cur.execute("select name from m where id in %s order by id", ((1, 2, 3),))
    print([*cur])
for kind in (cursors.DictCursor, cursors.SSCursor, cursors.SSDictCursor):
    with db.cursor(kind) as cur:
        print(cur.execute("select id, name, n from m where id < %s order by id", (8,)), cur.rowcount)
        print(type(cur.fetchone()).__name__, cur.fetchmany(2), cur.rownumber, [each for each in cur], cur.fetchone())
with db.cursor(cursors.DictCursor) as cur:
    cur.execute("select a.id, b.id from m a join m b on a.id = b.id where a.id = 1")
    print(cur.fetchall())
with db.cursor(cursors.SSCursor) as cur:
    cur.execute("select id from m order by id")
    print(cur.fetchone())
with db.cursor() as cur:
    try:
        cur.execute("insert into m(name) values ('ann')")
    except pymysql.IntegrityError as error:
        print(type(error).__name__, error.args, isinstance(error, pymysql.DatabaseError))
    try:
        cur.execute("select nope from m")
    except pymysql.OperationalError as error:
        print(type(error).__name__, error.args[0])
    try:
        cur.execute("selec 1")
    except pymysql.ProgrammingError as error:
        print(type(error).__name__, error.args[0])
    try:
        cur.execute("select * from nowhere")
    except pymysql.err.ProgrammingError as error:
        print(error)
    try:
        cur.execute("insert into m(e) values ('zzz')")
    except pymysql.DataError as error:
        print(type(error).__name__, error.args)
    cur.execute("select 1/0")
    print(cur.fetchall(), cur.warning_count, db.show_warnings())
db.begin()
with db.cursor() as cur:
    cur.execute("insert into m(name) values ('gone')")
    cur.execute("savepoint one")
    cur.execute("insert into m(name) values ('gone, too')")
    cur.execute("rollback to savepoint one")
db.rollback()
db.autocommit(True)
print(db.get_autocommit())
with db.cursor() as cur:
    cur.execute("select count(*) from m")
    print(cur.fetchone())
    cur.execute("drop procedure if exists both_of")
    cur.execute("create procedure both_of(a int, b varchar(9)) begin select a; select b, a; end")
    print(cur.callproc("both_of", (5, "x")), cur.fetchall(), cur.nextset(), cur.fetchall(), cur.nextset(), cur.nextset())
db.ping(False)
db.select_db("shop")
db.set_character_set("utf8mb4")
print(db.character_set_name())
db.close()
print(db.open)
several = pymysql.connect(**WHERE, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS, autocommit=True, init_command="set @a = 7")
with several.cursor() as cur:
    print(cur.execute("select @a; select 2 union select 3; update m set n = 5 where id = 2"), cur.fetchall())
    while cur.nextset():
        print(cur.rowcount, cur.fetchall())
    cur.execute("select 1; select 2")
    cur.execute("select 3")
    print(cur.fetchall())
    try:
        cur.execute("select 1; select nope")
        cur.nextset()
    except pymysql.OperationalError as error:
        print(error.args[0])
with several.cursor(cursors.SSCursor) as cur, warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    cur.execute("select 1 union select 2; select 3")
    print(cur.fetchall(), cur.nextset(), cur.fetchall(), cur.nextset())
    cur.execute("select 1 union select 2")
    print(cur.fetchone())
    cur.execute("select 4")
    print(cur.fetchall(), [str(each.message) for each in said])
several.close()
try:
    several.cursor().execute("select 1")
except pymysql.InterfaceError as error:
    print(type(error).__name__, error.args)
for changed in ({"database": "nope"}, {"user": "nobody", "password": "wrong"}):
    try:
        pymysql.connect(**WHERE | changed)
    except pymysql.OperationalError as error:
        print(type(error).__name__, error.args[0])




own = pymysql.connect(**WHERE, conv={**pymysql.converters.conversions, pymysql.constants.FIELD_TYPE.NEWDECIMAL: float})
with own, own.cursor() as cur:
    cur.execute("select n from m where id = 1")
    print(cur.fetchall())


def ask(number: int) -> str:
    with pymysql.connect(**WHERE, cursorclass=cursors.DictCursor) as taken, taken.cursor() as cur:
        cur.execute("select %s * 2 as twice", (number,))
        return json.dumps(cur.fetchone())


with ThreadPoolExecutor(4) as threads:
    print([*threads.map(ask, range(12))])
