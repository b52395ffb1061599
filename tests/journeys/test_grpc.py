"""Calls over gRPC are recorded, blocking and asynchronous, and a replay answers them with the server stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from desk import Desk

pytestmark = pytest.mark.sample(3)
pytest.importorskip("grpc")
pytest.importorskip("google.protobuf")

MESSAGES = """
import os
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
kinds = descriptor_pb2.FieldDescriptorProto
fields = {
    "Query": ((kinds.TYPE_STRING, "text"), (kinds.TYPE_INT64, "limit"), (kinds.TYPE_FLOAT, "weight"),
              (kinds.TYPE_BYTES, "blob")),
    "Answer": ((kinds.TYPE_STRING, "text"), (kinds.TYPE_DOUBLE, "score"), (kinds.TYPE_UINT64, "id"),
               (kinds.TYPE_BYTES, "raw")),
}
for name, members in fields.items():
    message = file.message_type.add(name=name)
    for number, (kind, member) in enumerate(members, 1):
        message.field.add(name=member, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
file.message_type[0].field.add(name="tags", number=5, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
file.message_type[1].field.add(name="asked", number=5, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL,
                               type_name=".shop.Query")
pool = descriptor_pool.Default()
pool.AddSerializedFile(file.SerializeToString())
Query, Answer = (message_factory.GetMessageClass(pool.FindMessageTypeByName("shop." + name)) for name in fields)
ADDRESS = os.environ.get("SHOP", "127.0.0.1:1")


class Stub:
    def __init__(self, channel):
        ways = dict(request_serializer=Query.SerializeToString, response_deserializer=Answer.FromString)
        self.Ask = channel.unary_unary("/shop.Shop/Ask", **ways)
        self.List = channel.unary_stream("/shop.Shop/List", **ways)
        self.Sum = channel.stream_unary("/shop.Shop/Sum", **ways)
"""
SERVER = """
import grpc
import time
from concurrent import futures
from pathlib import Path
from messages import Answer, Query

count = 0

def hear():
    global count
    count += 1
    Path("hits").write_text(str(count))

def ask(request, context):
    hear()
    context.send_initial_metadata((("x-node", "n1"), ("x-raw-bin", bytes([0, 255])), ("x-session-token", "hush-hush")))
    context.set_trailing_metadata((("x-cost", "7"),))
    if request.text == "bad":
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
    if request.text == "slow":
        time.sleep(0.5)
    return Answer(text=f"hello {request.text} {count}", score=0.1 + request.limit, id=2**63 + count, raw=b"\\0\\1\\xfe",
                  asked=request)

def list_(request, context):
    hear()
    for number in range(request.limit):
        if request.text == "bad" and number == 2:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        if request.text == "slow":
            time.sleep(0.4)
        yield Answer(text=f"{request.text} {number} of {count}", id=number)
    context.set_trailing_metadata((("x-end", "yes"),))

def total(requests, context):
    hear()
    return Answer(id=sum(each.limit for each in requests))

ways = Query.FromString, Answer.SerializeToString
handler = grpc.method_handlers_generic_handler("shop.Shop", {
    "Ask": grpc.unary_unary_rpc_method_handler(ask, *ways),
    "List": grpc.unary_stream_rpc_method_handler(list_, *ways),
    "Sum": grpc.stream_unary_rpc_method_handler(total, *ways),
})
server = grpc.server(futures.ThreadPoolExecutor(8))
server.add_generic_rpc_handlers((handler,))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""
HEAD = "import asyncio, grpc\nfrom messages import ADDRESS, Answer, Query, Stub\n"
BLOCKING = """
stub = Stub(grpc.insecure_channel(ADDRESS))
answer = stub.Ask(Query(text="a", limit=9007199254740993, weight=0.1, blob=b"\\xff\\0", tags=["x", "y"]))
print(answer, answer.id)
answer, call = stub.Ask.with_call(Query(text="b"), metadata=(("authorization", "Bearer hush-hush-hush"),))
print(answer.text, call.code(), call.details(), call.trailing_metadata())
print([each for each in call.initial_metadata() if "token" not in each.key])
try:
    stub.Ask(Query(text="bad"), timeout=5)
except grpc.RpcError as error:
    print(type(error).__name__, error.code(), error.details(), error.trailing_metadata(), error)
slow, quick = stub.Ask.future(Query(text="slow")), stub.Ask.future(Query(text="c"))
print(quick.result().text[:7], slow.result(timeout=5).text[:10], slow.done(), slow.code())
for each in stub.List(Query(text="list", limit=4)):
    print(each.text, each.id)
stream = stub.List(Query(text="more", limit=5))
print(next(stream).text, stream.initial_metadata())
stream.cancel()
try:
    for each in stub.List(Query(text="bad", limit=4)):
        print(each.text)
except grpc.RpcError as error:
    print(type(error).__name__, error.code(), error.details())
stream = stub.List(Query(text="last", limit=1))
print([each.text for each in stream], stream.trailing_metadata(), stream.code())
"""
ASYNCHRONOUS = """
class Prints(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, go_on, details, request):
        print("asks", details.method)
        call = await go_on(details, request)
        print("has", (await call).text)
        return call

async def main():
    async with grpc.aio.insecure_channel(ADDRESS) as channel:
        await channel.channel_ready()
        stub = Stub(channel)
        answers = await asyncio.gather(*(stub.Ask(Query(text=f"q{number}")) for number in range(5)))
        print([each.text[:8] for each in answers])
        call = stub.Ask(Query(text="m"))
        print((await call).text, await call.code(), await call.trailing_metadata())
        try:
            await stub.Ask(Query(text="bad"))
        except grpc.aio.AioRpcError as error:
            print(type(error), error.code(), error.details(), error.trailing_metadata(), error)
        async for each in stub.List(Query(text="l", limit=3)):
            print(each.text)
        call = stub.List(Query(text="r", limit=2))
        while (each := await call.read()) is not grpc.aio.EOF:
            print("read", each.text)
        print(await call.trailing_metadata(), await call.code())
        try:
            async for each in stub.List(Query(text="bad", limit=4)):
                print(each.text)
        except grpc.RpcError as error:
            print(error.code())
        try:
            await asyncio.wait_for(stub.Ask(Query(text="slow")), 0.1)
        except asyncio.TimeoutError:
            print("too slow")
        try:
            async with asyncio.timeout(0.6):
                async for each in stub.List(Query(text="slow", limit=3)):
                    print(each.text)
        except TimeoutError:
            print("stopped")
    async with grpc.aio.insecure_channel(ADDRESS, interceptors=[Prints()]) as channel:
        print((await Stub(channel).Ask(Query(text="i"))).text)

asyncio.run(main())
"""
INTERCEPTED = """
class Prints(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, go_on, details, request):
        print("asks", details.method)
        call = go_on(details, request)
        print("has", call.result().text)
        return call

channel = grpc.intercept_channel(grpc.insecure_channel(ADDRESS), Prints())
grpc.channel_ready_future(channel).result(timeout=5)
print(Stub(channel).Ask(Query(text="a")).text)
try:
    grpc.channel_ready_future(grpc.insecure_channel("127.0.0.1:1")).result(timeout=0.2)
except grpc.FutureTimeoutError as error:
    print("nobody", type(error).__name__)
"""
THREADS = """
from concurrent.futures import ThreadPoolExecutor
stub = Stub(grpc.insecure_channel(ADDRESS))
with ThreadPoolExecutor(4) as pool:
    print(sorted(each.text for each in pool.map(lambda number: stub.Ask(Query(text=f"t{number}")), range(12))))
"""
PROGRAMS = {
    "blocking": (BLOCKING, 9),
    "asynchronous": (ASYNCHRONOUS, 14),
    "intercepted": (INTERCEPTED, 3),
    "threads": (THREADS, 12),
}
WORLDS = ("", "landlock", "off")


@pytest.fixture
def shop(desk: Desk) -> Iterator[subprocess.Popen[str]]:
    """Give a server over gRPC, which counts what it is asked in the file `hits`."""
    for name, text in (("messages.py", MESSAGES), ("server.py", SERVER)):
        desk.write(name, text)
    argv = [sys.executable, "server.py"]
    with subprocess.Popen(argv, cwd=desk.folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        desk.environ["SHOP"] = f"127.0.0.1:{server.stdout.readline().strip()}"
        yield server
        server.kill()


def stop(desk: Desk, server: subprocess.Popen[str]) -> str:
    """Stop the server, and say how often it was asked."""
    server.kill()
    server.wait()
    return (desk.folder / "hits").read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_come_again_with_the_server_stopped(desk: Desk, shop: subprocess.Popen[str], name: str) -> None:
    code, count = PROGRAMS[name]
    desk.write("agent.py", HEAD + code)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.returncode == 0, live.stderr
    assert f"({count} grpc); replayable: exact" in live.stderr
    hits = stop(desk, shop)
    for world in WORLDS:
        done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": world})
        assert (done.returncode, done.stdout) == (0, live.stdout), (world, done.stderr)
        assert f"same: {count} grpc calls answered from the recording, 0 live" in done.stderr
    assert (desk.folder / "hits").read_text() == hits


def test_another_question_is_a_divergence_at_its_field(desk: Desk, shop: subprocess.Popen[str]) -> None:
    text = HEAD + 'print(Stub(grpc.insecure_channel(ADDRESS)).Ask(Query(text="a", limit=3)).text)\n'
    desk.write("agent.py", text)
    assert desk.reenact("run", "--", "python", "agent.py").returncode == 0
    hits = stop(desk, shop)
    desk.write("agent.py", text.replace("limit=3", "limit=4"))
    done = json.loads(desk.reenact("replay", "last", "--json").stdout)
    (divergence, *_) = done["divergences"]
    assert (done["result"], divergence["field"]) == ("diverged", "body.limit")
    assert (divergence["a"], divergence["b"]) == ("3", "4")
    assert (desk.folder / "hits").read_text() == hits


def test_what_a_message_says_is_redacted(desk: Desk, shop: subprocess.Popen[str]) -> None:
    secret = "sk-ant-api03-" + "Zx9" * 31 + "AA"
    text = f'stub = Stub(grpc.insecure_channel(ADDRESS))\nprint(len(stub.Ask(Query(text="key {secret}")).text) > 9)\n'
    desk.write("agent.py", HEAD + text + 'print(next(stub.List(Query(text="b", limit=1))).text)\n')
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "2 grpc" in live.stderr
    stop(desk, shop)
    stored = b"".join(path.read_bytes() for path in (desk.folder / ".reenact").rglob("*") if path.is_file())
    for word in (secret, "hush-hush"):
        assert word.encode() not in stored
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr


def test_a_server_of_the_program_s_own_runs_again(desk: Desk) -> None:
    desk.write("messages.py", MESSAGES)
    own_server = SERVER.replace("server.wait_for_termination()", "").replace("print(server", "port = (server")
    own_server = own_server.replace(", flush=True)", ")").replace("    hear()\n", "    print('asked')\n")
    asks = 'print(Stub(grpc.insecure_channel(f"127.0.0.1:{port}")).Ask(Query(text="a")).text)\nserver.stop(None)\n'
    desk.write("agent.py", f"{HEAD}{own_server}{asks}import reenact\nprint(reenact.tool(len)('abc'))\n")
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.stdout == "asked\nhello a 0\n3\n", live.stderr
    assert "(1 tool); replayable: exact" in live.stderr
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr


@pytest.mark.usefixtures("shop")
def test_a_stream_to_the_server_is_said_and_refused(desk: Desk) -> None:
    text = "stub = Stub(grpc.insecure_channel(ADDRESS))\nprint(stub.Ask(Query(text='a')).text)\n"
    desk.write("agent.py", HEAD + text + "print(stub.Sum(iter([Query(limit=1), Query(limit=2)])).id)\n")
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.stdout == "hello a 1\n3\n"
    assert "replayable: partial" in live.stderr
    assert "by grpc at" in live.stderr
    hits = (desk.folder / "hits").read_text()
    done = desk.reenact("replay", "last")
    assert done.returncode == 125, done.stderr
    assert (desk.folder / "hits").read_text() == hits
