import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import chromadb
from chromadb import EmbeddingFunction
from chromadb.errors import ChromaError

PORT = int(os.environ.get("CHROMA_PORT", "8000"))


class Lengths(EmbeddingFunction):
    def __init__(self):
        pass

    def __call__(self, input):
        return [[float(len(text)), float(text.count("e")) + 1] for text in input]

    @staticmethod
    def name():
        return "lengths"

    def get_config(self):
        return {}

    @staticmethod
    def build_from_config(config):
        return Lengths()


def work(client):
    try:
        client.delete_collection("notes")
    except (ChromaError, ValueError) as error:
        print(type(error).__name__)
    notes = client.create_collection("notes", embedding_function=Lengths(), metadata={"hnsw:space": "l2"})
    texts = [f"note {'e' * number}" for number in range(6)]
    notes.add(ids=[f"i{n}" for n in range(6)], documents=texts, metadatas=[{"n": n, "odd": bool(n % 2)} for n in range(6)])
    print(notes.id, notes.count(), notes.name, notes.metadata)
    found = notes.query(query_texts=["note ee", "note"], n_results=2, where={"n": {"$gte": 1}})
    print(found["ids"], found["distances"], found["documents"], found["metadatas"])
    got = notes.get(ids=["i1", "i3"], include=["embeddings", "documents"])
    print(got["ids"], got["documents"], [[float(each) for each in row] for row in got["embeddings"]])
    notes.upsert(ids=["i1", "new"], documents=["other", "text"])
    notes.update(ids=["i2"], metadatas=[{"n": 20}])
    notes.delete(where={"odd": True})
    print(sorted(notes.get()["ids"]), notes.get(where={"n": 20})["documents"], notes.peek(1)["ids"])
    print([each.name for each in client.list_collections()], client.count_collections(), client.heartbeat())
    for ask in (lambda: client.get_collection("nowhere"), lambda: client.create_collection("notes")):
        try:
            ask()
        except (ChromaError, ValueError) as error:
            print(type(error).__name__, error)
    with ThreadPoolExecutor(3) as threads:
        print([*threads.map(lambda name: notes.get(ids=[name])["documents"], ("i0", "i2", "i4"))])


work(chromadb.HttpClient(host="127.0.0.1", port=PORT))
work(chromadb.EphemeralClient())
work(chromadb.PersistentClient("notes.chroma"))
try:
    chromadb.HttpClient(host="127.0.0.1", port=1)
except ValueError as error:
    print(error)


async def main() -> None:
    client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=PORT)
    notes = await client.get_collection("notes", embedding_function=Lengths())
    asked = (notes.query(query_texts=[f"note {'e' * number}"], n_results=1) for number in (0, 2, 4))
    print([each["ids"] for each in await asyncio.gather(*asked)], await notes.count())


asyncio.run(main())
