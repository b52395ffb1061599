import os
PG = os.environ.get("PG_PORT", "5432")
import sqlalchemy as sa, sys, asyncio, uuid, datetime, decimal
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, Session
from sqlalchemy.dialects.postgresql import JSONB, ARRAY, UUID
class B(DeclarativeBase): pass
class T(B):
    __tablename__="st"
    id: Mapped[int]=mapped_column(primary_key=True)
    name: Mapped[str]
    u=mapped_column(UUID(as_uuid=True)); j=mapped_column(JSONB); a=mapped_column(ARRAY(sa.Integer)); n=mapped_column(sa.Numeric(10,2)); t=mapped_column(sa.DateTime(timezone=True))
drv=sys.argv[1]
e=sa.create_engine(f"postgresql+{drv}://u@127.0.0.1:{PG}/postgres")
B.metadata.drop_all(e); B.metadata.create_all(e)
with Session(e) as s:
    for i in range(3): s.add(T(name=f"n{i}", u=uuid.UUID(int=i), j={"i":i}, a=[i,i+1], n=decimal.Decimal(i)/3, t=datetime.datetime(2024,1,1,tzinfo=datetime.timezone.utc)))
    s.commit()
    for r in s.scalars(sa.select(T).order_by(T.id)): print(r.id,r.name,r.u,r.j,r.a,r.n,r.t)
    r=s.get(T,2); r.name="changed"; s.commit()
    try:
        s.add(T(id=1,name="dup")); s.commit()
    except sa.exc.IntegrityError as x: s.rollback(); print(type(x.orig).__name__)
with e.connect() as c:
    print(c.execute(sa.text("select name from st where id=:i"),{"i":2}).all())
    print(c.execution_options(stream_results=True).execute(sa.text("select generate_series(1,5)")).fetchmany(2))
    print(sa.inspect(e).get_columns("st")[0]["name"])
