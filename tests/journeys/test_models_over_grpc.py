"""Gemini over gRPC, as Google's clients ask it: a call of a model, whose tools are found, and which comes again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from desk import Desk

pytest.importorskip("grpc")
pytest.importorskip("google.protobuf")

GEMINI = """
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

kinds = descriptor_pb2.FieldDescriptorProto
package = "google.ai.generativelanguage.v1beta"
file = descriptor_pb2.FileDescriptorProto(
    name="gemini.proto", package=package, syntax="proto3", dependency=["google/protobuf/struct.proto"]
)
messages = {  # the fields of the published schema that the program uses, under their names
    "FunctionCall": {"name": "string", "args": "google.protobuf.Struct"},
    "Part": {"text": "string", "function_call": "FunctionCall"},
    "Content": {"parts": ["Part"], "role": "string"},
    "FunctionDeclaration": {"name": "string", "description": "string"},
    "Tool": {"function_declarations": ["FunctionDeclaration"]},
    "Request": {"model": "string", "contents": ["Content"], "tools": ["Tool"]},
    "Candidate": {"index": "int32", "content": "Content", "finish_reason": "FinishReason"},
    "UsageMetadata": {"prompt_token_count": "int32", "candidates_token_count": "int32", "total_token_count": "int32"},
    "Response": {"candidates": ["Candidate"], "usage_metadata": "UsageMetadata", "model_version": "string"},
}
reasons = file.enum_type.add(name="FinishReason")
for number, name in enumerate(("FINISH_REASON_UNSPECIFIED", "STOP")):
    reasons.value.add(name=name, number=number)
for name, fields in messages.items():
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        many, kind = isinstance(kind, list), kind[0] if isinstance(kind, list) else kind
        made = message.field.add(name=field, number=number, label=3 if many else 1)
        if kind in ("string", "int32"):
            made.type = kinds.TYPE_STRING if kind == "string" else kinds.TYPE_INT32
        else:
            made.type = kinds.TYPE_ENUM if kind == "FinishReason" else kinds.TYPE_MESSAGE
            made.type_name = f".{kind}" if "." in kind else f".{package}.{kind}"
pool = descriptor_pool.Default()
pool.AddSerializedFile(file.SerializeToString())
Request, Response, Content, Part = (
    message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
    for name in ("Request", "Response", "Content", "Part")
)
SERVICE = f"{package}.GenerativeService"
"""
SERVER = """
import grpc
from concurrent import futures
from gemini import SERVICE, Request, Response

def reply(**part):
    content = {"role": "model", "parts": [part]}
    counts = {"prompt_token_count": 7, "candidates_token_count": 5, "total_token_count": 12}
    return Response(candidates=[{"content": content, "finish_reason": "STOP"}], usage_metadata=counts,
                    model_version="gemini-9-001")

def whole(request, context):
    if len(request.contents) == 1:
        return reply(function_call={"name": "weather", "args": {"city": "Delft"}})
    return reply(text="It rains.")

def stream(request, context):
    for piece in ("Take ", "an ", "umbrella."):
        yield reply(text=piece)

ways = Request.FromString, Response.SerializeToString
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
    "GenerateContent": grpc.unary_unary_rpc_method_handler(whole, *ways),
    "StreamGenerateContent": grpc.unary_stream_rpc_method_handler(stream, *ways),
}),))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""
AGENT = """
import os
import grpc
from gemini import SERVICE, Request, Response

channel = grpc.insecure_channel(os.environ.get("GEMINI", "127.0.0.1:1"))
ways = dict(request_serializer=Request.SerializeToString, response_deserializer=Response.FromString)
generate = channel.unary_unary(f"/{SERVICE}/GenerateContent", **ways)
stream = channel.unary_stream(f"/{SERVICE}/StreamGenerateContent", **ways)

def weather(city):
    return f"rain in {city}"

tools = [{"function_declarations": [{"name": "weather", "description": "Tell the weather."}]}]
contents = [{"role": "user", "parts": [{"text": "Weather in Delft?"}]}]
first = generate(Request(model="models/gemini-9", contents=contents, tools=tools)).candidates[0].content
call = first.parts[0].function_call
contents += [first, {"role": "user", "parts": [{"text": weather(**dict(call.args))}]}]
print(generate(Request(model="models/gemini-9", contents=contents, tools=tools)).candidates[0].content.parts[0].text)
for each in stream(Request(model="models/gemini-9", contents=contents)):
    print(each.candidates[0].content.parts[0].text)
"""


@pytest.fixture
def gemini(desk: Desk) -> Iterator[subprocess.Popen[str]]:
    desk.write("gemini.py", GEMINI)
    desk.write("server.py", SERVER)
    argv = [sys.executable, "server.py"]
    with subprocess.Popen(argv, cwd=desk.folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        desk.environ["GEMINI"] = f"127.0.0.1:{server.stdout.readline().strip()}"
        yield server
        server.kill()


@pytest.mark.always
def test_gemini_over_grpc_is_a_call_of_a_model(desk: Desk, gemini: subprocess.Popen[str]) -> None:
    desk.write("agent.py", AGENT)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert (live.returncode, "(3 llm, 1 tool); replayable: exact" in live.stderr) == (0, True), live.stderr
    gemini.kill()
    gemini.wait()
    shown = desk.reenact("show", "last").stdout
    assert 'weather(city="Delft")' in shown
    assert (shown.count("gemini-9-001"), shown.count("7+5 tokens")) == (3, 3)
    assert "Take an umbrella." in shown
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    desk.write(
        "agent.py", AGENT.replace('"models/gemini-9", contents=contents))', '"models/gemini-8", contents=contents))')
    )
    done = desk.reenact("replay", "last")
    assert (done.returncode, 'recorded "models/gemini-9"' in done.stderr) == (1, True), done.stderr
