"""qdrant-client over gRPC: its calls come again with the server stopped.

The server stands in for Qdrant's: it is made of the client's own stubs, and says what Qdrant's API says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk

pytestmark = pytest.mark.slow
pytest.importorskip("qdrant_client")

SERVER = """
import grpc
from concurrent import futures
from pathlib import Path
import qdrant_client.grpc.collections_service_pb2_grpc as collections
import qdrant_client.grpc.points_service_pb2_grpc as points
from qdrant_client import grpc as api

count = 0

def hear():
    global count
    count += 1
    Path("hits").write_text(str(count))

class Points(points.PointsServicer):
    def Upsert(self, request, context):
        hear()
        return api.PointsOperationResponse(result=api.UpdateResult(operation_id=1, status=2), time=0.1)

    def Query(self, request, context):
        hear()
        point = api.ScoredPoint(id=api.PointId(num=7), score=0.91, version=count)
        point.payload["city"].string_value = "Ghent"
        return api.QueryResponse(result=[point], time=0.01)

class Collections(collections.CollectionsServicer):
    def Create(self, request, context):
        hear()
        return api.CollectionOperationResponse(result=True, time=0.1)

    def Get(self, request, context):
        hear()
        context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: Collection `{request.collection_name}` doesn't exist!")

server = grpc.server(futures.ThreadPoolExecutor(4))
points.add_PointsServicer_to_server(Points(), server)
collections.add_CollectionsServicer_to_server(Collections(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""
AGENT = """
import asyncio, os
from qdrant_client import AsyncQdrantClient, QdrantClient, models

about = dict(host="127.0.0.1", port=1, grpc_port=int(os.environ["PORT"]), prefer_grpc=True, check_compatibility=False)
client = QdrantClient(**about)
size = models.VectorParams(size=2, distance=models.Distance.COSINE)
print(client.create_collection("cities", vectors_config=size))
print(client.upsert("cities", [models.PointStruct(id=7, vector=[0.1, 0.2], payload={"city": "Ghent"})]))
print(client.query_points("cities", query=[0.1, 0.2], limit=1).points)
try:
    client.get_collection("none")
except Exception as error:
    print(type(error).__name__, error.code(), error.details())

async def main():
    client = AsyncQdrantClient(**about)
    print((await client.query_points("cities", query=[0.2, 0.1], limit=1)).points)
    await client.close()

asyncio.run(main())
"""


def test_searches_over_grpc_come_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("server.py", SERVER)
    desk.write("agent.py", AGENT)
    argv = [sys.executable, "server.py"]
    with subprocess.Popen(argv, cwd=desk.folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        desk.environ["PORT"] = server.stdout.readline().strip()
        live = desk.reenact("run", "--", "python", "agent.py")
        server.kill()
    assert live.returncode == 0, live.stderr
    assert "(5 grpc); replayable: exact" in live.stderr
    hits = Path(tmp_path, "hits")
    assert hits.read_text() == "5"
    for world in ("", "landlock", "off"):
        done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": world})
        assert (done.returncode, done.stdout) == (0, live.stdout), (world, done.stderr)
    assert hits.read_text() == "5"
    shown = desk.reenact("show", "last", "--json").stdout
    assert '"db.system.name":"qdrant"' in shown.replace(" ", "")
    assert '"db.collection.name":"cities"' in shown.replace(" ", "")
