"""A call: one crossing of a boundary between the agent and the outside world, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from reenact.values.json import Json


class CallKind(StrEnum):
    """What a call is, in OpenInference's own words (`openinference.span.kind`)."""

    LLM = "LLM"
    EMBEDDING = "EMBEDDING"
    TOOL = "TOOL"
    RETRIEVER = "RETRIEVER"
    RERANKER = "RERANKER"
    AGENT = "AGENT"
    CHAIN = "CHAIN"
    GUARDRAIL = "GUARDRAIL"
    EVALUATOR = "EVALUATOR"
    PROMPT = "PROMPT"
    DECISION = "DECISION"
    UNKNOWN = "UNKNOWN"


STRUCTURE = frozenset({CallKind.AGENT, CallKind.CHAIN, CallKind.PROMPT, CallKind.UNKNOWN})
"""Kinds whose functions only say where other calls hang; a replay runs their code again."""

CHILD: Final = "reenact:child"
"""The function of a call that is the start of another program: a child process that is none of the agent's Pythons."""

DATABASE: Final = "reenact:database"
"""The function of a call that is a question to a database or a cache (`values.query`)."""

GRPC: Final = "grpc://"
"""How the address of a call over gRPC begins."""

MCP: Final = "reenact:mcp:"
"""How the function of a call begins that is a message to an MCP server; behind it stands how the server is named."""

MCP_ERROR: Final = "reenact.mcp.error"
"""The attribute that holds the error of an MCP server, as a list of one JSON text."""

MCP_LISTS: Final = "tools/list"
"""The method by which a session asks for the tools of an MCP server."""
MCP_UNHEARD: Final = "reenact.mcp.unheard"
"""The attribute that says that a server spoke unasked meanwhile, over a session of another run."""
MCP_OWN_CODE: Final = "reenact.mcp.own_code"
"""The attribute that names the arguments of a transport in which code of the agent's stands; no replay runs it."""

SQLITE: Final = "sqlite"
"""OpenTelemetry's `db.system.name` of a database that lives in the process."""
_READY: Final = frozenset({"connect", "prepare", "ping", "columns", "aside", "set_up"})
"""The operations of a query that only make a connection ready, or tell of the server (`values.query`)."""

_APART: Final = frozenset({CHILD, DATABASE})
"""Functions of calls that are none of the agent's own functions."""


def _is_apart(function: str) -> bool:
    return function in _APART or function.startswith(MCP)


_FRAMES = frozenset({CallKind.LLM, CallKind.EMBEDDING, CallKind.RERANKER})
"""Kinds whose functions may be no more than a frame around a provider's call."""


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a request or reply after content decoding (RFC 9110, section 8.4)."""

    data: bytes

    @property
    def text(self) -> str | None:
        """The body as text, or None where it is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as the provider's SDK handed it to its HTTP client. Credentials are never carried."""

    shape: str
    """The name of the shape that the body speaks, such as `openai.chat`."""
    method: str
    url: str
    body: Body
    attempt: int = 0
    """0 for the first try, n for the n-th retry by the SDK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call of one of the agent's own functions: a tool, retriever, or a piece of structure."""

    function: str
    """`module:qualname` of the function."""
    arguments: Json
    """Parameter name to typed JSON (`values.typed`), defaults applied, `self` left out."""


Request: TypeAlias = HttpRequest | FunctionCall


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Stands where a replay's answer would: the request is to go out, with this body instead of its own."""

    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What was asked."""

    kind: CallKind
    name: str
    request: Request
    attributes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Further facts for the span that are no part of the question: session, user, tags, a tool's description."""

    @property
    def is_child(self) -> bool:
        """It is another program that was started."""
        return isinstance(self.request, FunctionCall) and self.request.function == CHILD

    @property
    def is_query(self) -> bool:
        """It is a question to a database or a cache."""
        return isinstance(self.request, FunctionCall) and self.request.function == DATABASE

    @property
    def is_mcp(self) -> bool:
        """It is a message to an MCP server, or a connection to one."""
        return isinstance(self.request, FunctionCall) and self.request.function.startswith(MCP)

    @property
    def is_handshake(self) -> bool:
        """It only makes a connection ready: pools make as many as they like, whenever they like.

        So does a list of tools: sessions ask for it by themselves, where no earlier call did.
        """
        return self._operation in _READY or (self.is_mcp and self.name == MCP_LISTS)

    @property
    def places_draws(self) -> bool:
        """What its lane draws of the clock and of chance is noted as drawn before it, or behind it.

        Nobody knows when a replay connects; what a database in the process was asked is written down at the end.
        """
        asked = self.request.arguments if self.is_query and isinstance(self.request, FunctionCall) else None
        return not (self.is_handshake or (isinstance(asked, dict) and asked.get("system") == SQLITE))

    @property
    def is_set_up(self) -> bool:
        """A library asks it while it connects, as often as it does so: at least once, where it did when recorded."""
        return self._operation == "set_up"

    @property
    def is_aside(self) -> bool:
        """A client makes it by itself, on a thread that nobody waits for: it may not have begun when the run ended."""
        return self._operation == "aside"

    @property
    def _operation(self) -> Json:
        asked = self.request.arguments if self.is_query and isinstance(self.request, FunctionCall) else None
        return asked.get("operation") if isinstance(asked, dict) else None

    @property
    def is_structure(self) -> bool:
        """It only says where other calls hang, and its code runs again. No plain HTTP call or other program is that."""
        request = self.request
        return isinstance(request, FunctionCall) and self.kind in STRUCTURE and not _is_apart(request.function)

    @property
    def is_whole(self) -> bool:
        """Its outcome stands for all the I/O inside it, which is not recorded piece by piece."""
        if isinstance(self.request, HttpRequest) or _is_apart(self.request.function):
            return True
        return self.kind not in STRUCTURE | _FRAMES

    @property
    def word(self) -> str:
        """What people are told it is: its kind; else `http`, `grpc`, `child`, `database`, `mcp`."""
        if self.kind != "UNKNOWN":
            return self.kind.lower()
        if isinstance(self.request, HttpRequest):
            return "grpc" if self.request.url.startswith(GRPC) else "http"
        return "child" if self.is_child else "database" if self.is_query else "mcp" if self.is_mcp else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A whole reply of a provider."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """Allow-listed headers in the order of arrival; content and transfer encodings are gone from the body."""
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a function returned."""

    json: Json
    """Typed JSON (`values.typed`)."""
    text: str | None = field(default=None, compare=False)
    """What a model was told of it, where another emitter's trace does not tell whether that is the value itself."""


Payload: TypeAlias = HttpReply | Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRecord:
    """An exception, kept so that the same class can be raised again."""

    module: str
    qualname: str
    message: str
    bases: tuple[str, ...] = ()
    """`module:qualname` of each class of the MRO after the first, for a stand-in where the class is not loaded."""
    args: Json = None
    """Typed JSON list of the exception's `args`."""
    state: Json = None
    """Typed JSON object of the exception's instance attributes."""
    cause: ExceptionRecord | None = None
    context: ExceptionRecord | None = None
    """What was being handled when it was raised, where it has no cause and does not hide that (PEP 3134, PEP 409)."""
    stacktrace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One piece of a stream, as it was handed to the agent."""

    offset_us: int
    """Microseconds since the call began."""
    order: int
    """Place in the run's one sequence of releases to agent code."""
    data: bytes | None = None
    """A piece of an HTTP body."""
    value: Json = None
    """Typed JSON of what a generator yielded; meaningful only where `data` is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The outside world answered, whole."""

    payload: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The outside world, or the way to it, failed."""

    exception: ExceptionRecord


class StreamEnd(StrEnum):
    """How a stream came to its end."""

    FINISHED = "finished"
    ABANDONED = "abandoned"
    RAISED = "raised"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """The outside world answered piece by piece."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[Chunk, ...] = ()
    end: StreamEnd = StreamEnd.FINISHED
    exception: ExceptionRecord | None = None
    """Set exactly where `end` is RAISED."""
    result: Json = None
    """Typed JSON of what a generator returned at its end; `yield from` and `StopIteration` give it to the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """The process ended, or the emitter was silent, before an outcome was written down."""


Outcome: TypeAlias = Returned | Streamed | Raised | Unfinished
