import asyncio
import datetime as dt
import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pymongo
from bson import Binary, Int64, ObjectId
from pymongo import AsyncMongoClient, MongoClient, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

WHERE = f"mongodb://127.0.0.1:{os.environ.get('MONGO_PORT', '27017')}/?directConnection=true"
client = MongoClient(WHERE, uuidRepresentation="standard", tz_aware=True)
shop = client.get_database("shop")
shop.drop_collection("orders")
orders = shop.orders
whole = {
    "who": "ann",
    "u": uuid.UUID(int=5),
    "at": dt.datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=dt.timezone.utc),
    "b": Binary(b"\x00\xff"),
    "long": Int64(5_000_000_000),
    "f": 1.0,
    "deep": {"a": [1, None, {"ok": True}], "é": "ü"},
}
print(orders.insert_one(whole).acknowledged, type(whole["_id"]).__name__)
made = orders.insert_many([{"who": f"u{number}", "cents": number} for number in range(5)])
print(len(made.inserted_ids), made.inserted_ids[0])
found = orders.find_one({"who": "ann"})
print({name: value for name, value in found.items() if name != "_id"}, found["_id"] == whole["_id"])
print([each["who"] for each in orders.find({"cents": {"$gte": 1}}).sort("cents", pymongo.DESCENDING)])
print([each["cents"] for each in orders.find({"cents": {"$exists": True}}, batch_size=2).sort("cents", 1)])
print(orders.count_documents({}), sorted(orders.distinct("who")))
print(orders.update_one({"who": "u1"}, {"$set": {"cents": 10}}).modified_count)
print(orders.find_one_and_update({"who": "u2"}, {"$inc": {"cents": 5}}, return_document=True)["cents"])
print(orders.bulk_write([UpdateOne({"who": "u3"}, {"$set": {"x": 1}}), UpdateOne({"who": "new"}, {"$set": {"x": 2}}, upsert=True)]).bulk_api_result["nModified"])
print([each["n"] for each in orders.aggregate([{"$group": {"_id": None, "n": {"$sum": "$cents"}}}])])
for ask in (lambda: orders.insert_one({"_id": whole["_id"]}), lambda: shop.command("nope")):
    try:
        ask()
    except (DuplicateKeyError, OperationFailure, BulkWriteError) as error:
        print(type(error).__name__, error.code)
orders.create_index("who")
print(sorted(orders.index_information()))
print(orders.delete_many({"cents": {"$lt": 5}}).deleted_count, ObjectId() is not None)
with ThreadPoolExecutor(4) as threads:
    print([*threads.map(lambda number: orders.count_documents({"cents": number}), range(8))])
client.close()


async def main() -> None:
    async with AsyncMongoClient(WHERE) as other:
        jobs = other.shop.jobs
        await jobs.drop()
        await jobs.insert_many([{"n": number} for number in range(4)])
        print([each["n"] async for each in jobs.find().sort("n", -1)])
        print(await asyncio.gather(*(jobs.count_documents({"n": {"$gt": number}}) for number in range(4))))


asyncio.run(main())
