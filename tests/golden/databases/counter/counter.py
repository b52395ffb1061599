import os
from datetime import datetime

import sqlalchemy as sa
from flask import Flask, jsonify, request
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

PLACE = f"u@127.0.0.1:{os.environ.get('PG_PORT', '5432')}/postgres"
engine = sa.create_engine(f"postgresql+{os.environ.get('DRIVER', 'psycopg2')}://{PLACE}", pool_size=4, pool_pre_ping=True)


@sa.event.listens_for(engine, "connect")
def set_up(connection, record):
    cursor = connection.cursor()
    cursor.execute("SET statement_timeout = 5000")
    cursor.close()
    connection.commit()


class Base(DeclarativeBase):
    pass


class Sale(Base):
    __tablename__ = "sales"
    id: Mapped[int] = mapped_column(primary_key=True)
    who: Mapped[str]
    cents: Mapped[int]
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), default=lambda: datetime.now().astimezone())


app = Flask(__name__)


@app.post("/sales/<who>")
def sell(who):
    with Session(engine) as session:
        sale = Sale(who=who, cents=request.json["cents"])
        session.add(sale)
        session.commit()
        total = session.scalar(sa.select(sa.func.sum(Sale.cents)).where(Sale.who == who))
        return jsonify(id=sale.id, total=int(total), at=sale.at.isoformat())
