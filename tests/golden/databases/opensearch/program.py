import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from opensearchpy import (
    AsyncOpenSearch,
    ConflictError,
    ConnectionError,
    NotFoundError,
    OpenSearch,
    RequestError,
    RequestsHttpConnection,
)
from opensearchpy.helpers import BulkIndexError, bulk, scan

PORT = int(os.environ.get("ELASTIC_PORT", "9200"))
HOSTS = [{"host": "127.0.0.1", "port": PORT}]
client = OpenSearch(HOSTS)
print(client.info()["version"]["number"], client.ping())
client.indices.delete(index="pages", ignore=404)
print(client.indices.create(index="pages", body={"settings": {"index.knn": True}}), client.indices.exists(index="nowhere"))
made = client.index(index="pages", body={"text": "drawn id", "n": 0})
print(len(made["_id"]), client.get(index="pages", id=made["_id"])["_source"])
pages = [{"_index": "pages", "_id": str(n), "_source": {"text": f"page {n}", "n": n, "v": [1.0, n / 4]}} for n in range(1, 8)]
print(bulk(client, pages, refresh=True), client.count(index="pages")["count"])
found = client.search(index="pages", body={"query": {"match": {"text": "page"}}, "sort": [{"n": "desc"}]}, size=3)
print([hit["_id"] for hit in found["hits"]["hits"]], found["took"])
near = client.search(index="pages", body={"knn": {"field": "v", "query_vector": [1.0, 0.9], "k": 3}})
print([(hit["_id"], hit["_score"]) for hit in near["hits"]["hits"]])
print([hit["_id"] for hit in scan(client, index="pages", query={"query": {"range": {"n": {"gte": 1}}}}, size=2)])
for ask in (
    lambda: client.get(index="pages", id="none"),
    lambda: client.create(index="pages", id="1", body={}),
    lambda: client.search(index="pages", body={"query": {"odd": {}}}),
    lambda: OpenSearch([{"host": "127.0.0.1", "port": 1}], max_retries=1).info(),
    lambda: bulk(client, [{"_op_type": "create", "_index": "pages", "_id": "2", "n": 1}]),
):
    try:
        ask()
    except (NotFoundError, ConflictError, RequestError) as error:
        print(type(error).__name__, error.status_code, error.error)
    except ConnectionError as error:
        print(type(error).__name__, error.status_code)
    except BulkIndexError as error:
        print(type(error).__name__, error.errors[0]["create"]["status"])
with ThreadPoolExecutor(4) as threads:
    print([*threads.map(lambda n: client.get(index="pages", id=str(n))["_source"]["n"], range(1, 8))])
other = OpenSearch(HOSTS, http_compress=True, connection_class=RequestsHttpConnection, http_auth=("u", "of nobody"))
print(other.delete(index="pages", id="3")["result"], other.exists(index="pages", id="3"))


async def main() -> None:
    async with AsyncOpenSearch(HOSTS) as third:
        print((await third.search(index="pages", body={"query": {"match_all": {}}}))["hits"]["total"]["value"])
        got = await asyncio.gather(*(third.get(index="pages", id=str(n)) for n in (1, 2, 4, 5, 6, 7)))
        print([each["_source"]["n"] for each in got])
        try:
            await third.get(index="pages", id="3")
        except NotFoundError as error:
            print(error.status_code, error.info["found"])


asyncio.run(main())
