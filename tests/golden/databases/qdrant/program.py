import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

PORT = int(os.environ.get("QDRANT_PORT", "6333"))
client = QdrantClient(host="127.0.0.1", port=PORT)
if client.collection_exists("notes"):
    client.delete_collection("notes")
print(client.create_collection("notes", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE)))
points = [
    models.PointStruct(id=n, vector=[1.0, n / 4], payload={"text": f"note {n}", "n": n, "tags": ["odd"] * (n % 2)})
    for n in range(1, 8)
]
print(client.upsert("notes", points, wait=True))
print(client.create_payload_index("notes", "n", field_schema=models.PayloadSchemaType.INTEGER).status)
found = client.query_points("notes", query=[1.0, 0.9], limit=3)
print([(point.id, round(point.score, 4), point.payload["text"]) for point in found.points])
odd = models.Filter(must=[models.FieldCondition(key="tags", match=models.MatchValue(value="odd"))])
print([point.id for point in client.query_points("notes", query=[1.0, 0.0], query_filter=odd, limit=2).points])
print([point.id for point in client.query_points("notes", query=1, limit=2, with_payload=False).points])
several = [models.QueryRequest(query=[1.0, n / 4], limit=1, with_payload=True) for n in (2, 5)]
print([[point.id for point in each.points] for each in client.query_batch_points("notes", several)])
print([(record.id, record.payload) for record in client.retrieve("notes", ids=[2, 3])])
offset, seen = None, []
while True:
    page, offset = client.scroll("notes", scroll_filter=odd, limit=2, offset=offset)
    seen += [record.id for record in page]
    if offset is None:
        break
print(seen, client.count("notes").count)
client.upload_collection("notes", vectors=[[0.0, 1.0], [0.0, 2.0]], payload=[{"text": "drawn"}, {"text": "ids"}])
drawn = client.query_points("notes", query=[0.0, 1.0], limit=2).points
print(client.count("notes").count, sorted(len(str(point.id)) for point in drawn))
print(client.set_payload("notes", {"seen": True}, points=[1]).status, client.retrieve("notes", ids=[1])[0].payload["seen"])
print(client.delete("notes", points_selector=models.PointIdsList(points=[3])).status, client.count("notes").count)
for ask in (
    lambda: client.get_collection("nowhere"),
    lambda: client.create_collection("notes", vectors_config=models.VectorParams(size=2, distance="Dot")),
    lambda: QdrantClient(host="127.0.0.1", port=1, check_compatibility=False).get_collections(),
):
    try:
        ask()
    except UnexpectedResponse as error:
        print(type(error).__name__, error.status_code, error.reason_phrase, error.structured()["status"])
    except ResponseHandlingException as error:
        print(type(error).__name__, type(error.source).__name__)
with ThreadPoolExecutor(4) as threads:
    print([*threads.map(lambda n: client.retrieve("notes", ids=[n])[0].payload["n"], (1, 2, 4, 5, 6, 7))])
client.close()


async def main() -> None:
    other = AsyncQdrantClient(url=f"http://127.0.0.1:{PORT}", check_compatibility=False)
    asked = (other.query_points("notes", query=[1.0, n / 4], limit=1) for n in (1, 2, 4))
    print([each.points[0].id for each in await asyncio.gather(*asked)])
    print([each.name for each in (await other.get_collections()).collections])
    try:
        await other.query_points("nowhere", query=[1.0, 0.0])
    except UnexpectedResponse as error:
        print(error.status_code, error.content[:60])
    await other.close()


asyncio.run(main())
