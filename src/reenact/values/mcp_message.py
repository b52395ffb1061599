"""A message to an MCP server: what is asked, what kind of call that is, and which of its attributes are OTel's.

`tools/call` is a TOOL, whose question are the arguments; `resources/read` is a RETRIEVER and `prompts/get` a PROMPT.
All else is a step: a session is opened, a list is asked for, a request of the server's is answered. Which request a
message was, counted from the start of its session, is no part of a question, nor is what a client adds to each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reenact.values import typed
from reenact.values.call import MCP, MCP_ERROR, Call, CallKind, FunctionCall
from reenact.values.json import Json, compact
from reenact.values.lenient import as_object, as_text
from reenact.values.query import address

REQUEST_ID: Final = "jsonrpc.request.id"
SESSION_ID: Final = "mcp.session.id"
CREATED: Final = "reenact.mcp.created"
"""The id of a session that was known when the connection stood, as a list of one."""
_CLIENTS: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
"""What a client adds to the `_meta` of a request, beside keys of the protocol's own."""
_PROTOCOL: Final = "io.modelcontextprotocol/"
_TOOL, _RESOURCE, _PROMPT = "tools/call", "resources/read", "prompts/get"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where messages go, as far as it is known."""

    name: str
    """How the server calls itself; until it was asked, how it is reached."""
    transport: str
    """The network transport, in OpenTelemetry's words: `pipe` or `tcp`."""
    address: str = ""
    """`host:port` of one that is reached over HTTP."""
    version: str = ""
    """The version of the protocol that was agreed on."""
    session: str = ""
    """The id that the server gave to the session."""

    def attributes(self, method: str) -> dict[str, Json]:
        """Say what OpenTelemetry says of each message."""
        attributes: dict[str, Json] = {"mcp.method.name": method, "network.transport": self.transport}
        if self.address:
            attributes |= address(self.address)
        optional_attributes = {"mcp.protocol.version": self.version, SESSION_ID: self.session}
        return attributes | {name: value for name, value in optional_attributes.items() if value}


def connection(server: Server, about: Mapping[str, Json]) -> Call:
    """Make the call of a connection: what the server says unasked are the pieces of its answer."""
    request = FunctionCall(function=f"{MCP}{server.name}", arguments=typed.encode(dict(about)))
    attributes: dict[str, Json] = {"network.transport": server.transport}
    if server.address:
        attributes |= address(server.address)
    return Call(kind=CallKind.UNKNOWN, name=f"session {server.name}", request=request, attributes=attributes)


def request(server: Server, method: str, params: Mapping[str, Json], number: object) -> Call:
    """Make the call of a request."""
    attributes = server.attributes(method)
    if number is not None:
        attributes[REQUEST_ID] = str(number)
    kind, name, asked = CallKind.UNKNOWN, method, _less(params)
    if method == _TOOL:
        kind, name = CallKind.TOOL, as_text(params.get("name"))
        asked = {**as_object(asked.pop("arguments", None)), **{key: asked[key] for key in asked if key != "name"}}
        attributes |= {"gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool"}
    elif method == _RESOURCE:
        kind = CallKind.RETRIEVER
        attributes["mcp.resource.uri"] = as_text(params.get("uri"))
    elif method == _PROMPT:
        kind, name = CallKind.PROMPT, as_text(params.get("name"))
        attributes["gen_ai.prompt.name"] = name
    function = FunctionCall(function=f"{MCP}{server.name}", arguments=typed.encode(asked))
    return Call(kind=kind, name=name or method, request=function, attributes=attributes)


def one_way(server: Server, method: str, said: Mapping[str, Json]) -> Call:
    """Make the call of what is sent to a server that answers nothing: a notification, or the answer to its request."""
    function = FunctionCall(function=f"{MCP}{server.name}", arguments=typed.encode(_less(said)))
    return Call(kind=CallKind.UNKNOWN, name=method, request=function, attributes=server.attributes(method))


def facts(method: str, reply: Mapping[str, Json]) -> dict[str, Json]:
    """Say what OpenTelemetry says of a reply, and keep the error that it holds."""
    if "error" in reply:
        code, error_text = str(as_object(reply["error"]).get("code")), compact(typed.encode(reply["error"]))
        return {"error.type": code, "rpc.response.status_code": code, MCP_ERROR: [error_text]}
    failed = method == _TOOL and as_object(reply.get("result")).get("isError") is True
    return {"error.type": "tool_error"} if failed else {}


def _less(params: Mapping[str, Json]) -> dict[str, Json]:
    """Give parameters less what the client itself adds to each request."""
    asked = dict(params)
    meta = {
        key: value
        for key, value in as_object(asked.pop("_meta", None)).items()
        if key not in _CLIENTS and not key.startswith(_PROTOCOL)
    }
    return {**asked, "_meta": meta} if meta else asked
