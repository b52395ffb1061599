import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from elasticsearch import AsyncElasticsearch, ConflictError, ConnectionError, Elasticsearch, NotFoundError
from elasticsearch import BadRequestError
from elasticsearch.helpers import BulkIndexError, bulk, scan

WHERE = f"http://127.0.0.1:{os.environ.get('ELASTIC_PORT', '9200')}"
client = Elasticsearch(WHERE)
print(client.info()["version"]["number"], client.ping())
client.options(ignore_status=404).indices.delete(index="notes")
print(client.indices.create(index="notes", mappings={"properties": {"v": {"type": "dense_vector", "dims": 2}}}))
print(client.indices.exists(index="notes").body, client.indices.exists(index="nowhere").body)
made = client.index(index="notes", document={"text": "drawn id", "n": 0})
print(len(made["_id"]), client.get(index="notes", id=made["_id"])["_source"])
notes = [{"_index": "notes", "_id": str(n), "_source": {"text": f"note {n}", "n": n, "v": [1.0, n / 4]}} for n in range(1, 8)]
print(bulk(client, notes, refresh=True), client.count(index="notes")["count"])
found = client.search(index="notes", query={"match": {"text": "note"}}, sort=[{"n": "desc"}], size=3)
print([(hit["_id"], hit["_source"]["n"]) for hit in found["hits"]["hits"]], found["hits"]["total"], found["took"])
near = client.search(index="notes", knn={"field": "v", "query_vector": [1.0, 0.9], "k": 3, "num_candidates": 10})
print([(hit["_id"], hit["_score"]) for hit in near["hits"]["hits"]], near.meta.status, near.meta.headers["x-elastic-product"])
both = client.msearch(searches=[{"index": "notes"}, {"query": {"term": {"n": 3}}}, {"index": "notes"}, {"query": {"range": {"n": {"gte": 6}}}}])
print([[hit["_id"] for hit in each["hits"]["hits"]] for each in both["responses"]])
print([hit["_id"] for hit in scan(client, index="notes", query={"query": {"range": {"n": {"gte": 1}}}}, size=2)])
print(client.update(index="notes", id="1", doc={"n": 11})["result"], client.get(index="notes", id="1")["_source"])
for ask in (
    lambda: client.get(index="notes", id="none"),
    lambda: client.create(index="notes", id="1", document={}),
    lambda: client.search(index="nowhere"),
    lambda: client.search(index="notes", query={"odd": {}}),
    lambda: bulk(client, [{"_op_type": "create", "_index": "notes", "_id": "2", "n": 1}]),
):
    try:
        ask()
    except (NotFoundError, ConflictError, BadRequestError) as error:
        print(type(error).__name__, error.status_code, error)
    except BulkIndexError as error:
        print(type(error).__name__, error.errors[0]["create"]["status"])
try:
    Elasticsearch("http://127.0.0.1:1", max_retries=1, retry_on_timeout=False).info()
except ConnectionError as error:
    print(type(error).__name__, len(error.errors))
with ThreadPoolExecutor(4) as threads:
    print([*threads.map(lambda n: client.get(index="notes", id=str(n))["_source"]["n"], range(1, 8))])
packed = Elasticsearch(WHERE, http_compress=True, node_class=os.environ.get("NODE", "urllib3"))
print(packed.delete(index="notes", id="3")["result"], packed.exists(index="notes", id="3").body)
client.close()


async def main() -> None:
    async with AsyncElasticsearch([WHERE, WHERE.replace("127.0.0.1", "localhost")]) as other:
        print((await other.search(index="notes", query={"match_all": {}}, sort=["n"]))["hits"]["total"]["value"])
        got = await asyncio.gather(*(other.get(index="notes", id=str(n)) for n in (1, 2, 4, 5, 6, 7)))
        print([each["_source"]["n"] for each in got])
        try:
            await other.get(index="notes", id="3")
        except NotFoundError as error:
            print(error.status_code, error.body["found"])


asyncio.run(main())
