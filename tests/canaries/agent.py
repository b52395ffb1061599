"""An agent that carries a canary along every path there is.

    python agent.py PLAN [further words that are themselves canaries]

PLAN is a file of JSON: `url` of the outside world; `runs`, one an encoding: `name`, `cells` (path to `id` and `text`)
and what identifies the run; `report`, a file that gets what became of each cell. Nothing of PLAN is printed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import http.client
import json
import linecache
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import requests
from anthropic import Anthropic
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import reenact

Path_ = Callable[["Carrier", str], Any]
PATHS: dict[str, Path_] = {}
HEADERS = frozenset[str](["request header", "authorization header", "reply header", "reply cookie", "request cookie"])
"""Paths that take what a header takes."""
NAMES = frozenset(["file name", "file name, found tool", "command line of a child"])
"""Paths that take what a name of a file takes."""


class CannotCarry(Exception):
    """A text cannot go this way: a header holds no line feed."""


class Carrier:
    """What a path needs to know: where the world is, and which cell it serves."""

    def __init__(self, url: str, cell: str) -> None:
        self.url, self.cell = url, cell

    def at(self, kind: str) -> str:
        return f"{self.url}/{kind}/{self.cell}"

    def openai(self, kind: str = "nothing", **options: Any) -> OpenAI:
        options.setdefault("api_key", "stand-in")
        return OpenAI(base_url=self.at(kind), max_retries=0, http_client=_shared("openai"), **options)

    def chat(self, kind: str = "nothing", client: Any = None, **asked: Any) -> Any:
        asked.setdefault("messages", [{"role": "user", "content": "Look into it."}])
        return (client or self.openai(kind)).chat.completions.create(model="stand-in", **asked)

    def messages(self, kind: str = "nothing", **asked: Any) -> Any:
        client = Anthropic(base_url=self.at(kind), api_key="stand-in", max_retries=0, http_client=_shared("anthropic"))
        asked.setdefault("messages", [{"role": "user", "content": "Look into it."}])
        return client.messages.create(model="stand-in", max_tokens=9, **asked)


_clients: dict[str, Any] = {}


def _shared(sdk: str) -> Any:
    if sdk not in _clients:
        _clients[sdk] = __import__(sdk).DefaultHttpxClient()
    return _clients[sdk]


def path(name: str) -> Callable[[Path_], Path_]:
    def declare(fn: Path_) -> Path_:
        PATHS[name] = fn
        return fn

    return declare


def tolerate(work: Callable[[], Any]) -> None:
    """Let the agent get over the error that a path is about."""
    with contextlib.suppress(Exception):
        work()


# Model calls: what goes out.
def user(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


@path("chat prompt")
def _(to: Carrier, text: str) -> None:
    to.chat(messages=user(text))


@path("chat system prompt")
def _(to: Carrier, text: str) -> None:
    to.chat(messages=[{"role": "system", "content": text}, *user("Go on.")])


@path("chat tool schema")
def _(to: Carrier, text: str) -> None:
    function = {"name": "look_up", "description": text, "parameters": {"type": "object", "properties": {}}}
    to.chat(tools=[{"type": "function", "function": function}])


@path("chat tool result")
def _(to: Carrier, text: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    asked = [*user("Go."), {"role": "assistant", "tool_calls": [call]}]
    to.chat(messages=[*asked, {"role": "tool", "tool_call_id": "c1", "content": text}])


@path("chat image URL")
def _(to: Carrier, text: str) -> None:
    url = f"https://img.example/p.png?note={quote(text, safe='')}"
    to.chat(messages=user([{"type": "image_url", "image_url": {"url": url}}]))


@path("chat metadata")
def _(to: Carrier, text: str) -> None:
    to.chat(metadata={"ticket": text})


@path("chat extra body")
def _(to: Carrier, text: str) -> None:
    to.chat(extra_body={"further": {"deep": [text]}})


@path("request header")
def _(to: Carrier, text: str) -> None:
    to.chat(extra_headers={"x-note": text})


@path("authorization header")
def _(to: Carrier, text: str) -> None:
    to.chat(client=to.openai(api_key=text))


@path("query of a model call")
def _(to: Carrier, text: str) -> None:
    to.chat(client=to.openai(default_query={"note": text}))


@path("responses input")
def _(to: Carrier, text: str) -> None:
    to.openai().responses.create(model="stand-in", input=text)


@path("embeddings input")
def _(to: Carrier, text: str) -> None:
    to.openai().embeddings.create(model="stand-in", input=[text], encoding_format="float")


@path("messages prompt")
def _(to: Carrier, text: str) -> None:
    to.messages(messages=user(text))


@path("messages system")
def _(to: Carrier, text: str) -> None:
    to.messages(system=[{"type": "text", "text": text}])


@path("messages metadata")
def _(to: Carrier, text: str) -> None:
    to.messages(metadata={"user_id": text})


@path("messages MCP authorization_token")
def _(to: Carrier, text: str) -> None:
    server = {"type": "url", "url": "https://mcp.example", "name": "m", "authorization_token": text}
    to.messages(extra_body={"mcp_servers": [server]})


# Model calls: what comes back.
@path("chat answer")
def _(to: Carrier, text: str) -> None:
    del text
    to.chat("content")


@path("chat tool call")
def _(to: Carrier, text: str) -> None:
    del text
    to.chat("calls")


@path("responses answer")
def _(to: Carrier, text: str) -> None:
    del text
    to.openai("content").responses.create(model="stand-in", input="Go on.")


@path("messages answer")
def _(to: Carrier, text: str) -> None:
    del text
    to.messages("content")


@path("messages tool call")
def _(to: Carrier, text: str) -> None:
    del text
    to.messages("calls")


@path("error of status 400")
def _(to: Carrier, text: str) -> None:
    del text
    tolerate(lambda: to.chat("error"))


@path("error of status 429, inside a tool")
def _(to: Carrier, text: str) -> None:
    del text
    tolerate(lambda: asking(f"{to.at('error')}/429"))


@path("a proxy's page in place of an answer")
def _(to: Carrier, text: str) -> None:
    del text
    tolerate(lambda: to.chat("page"))


@reenact.chain
def asking(url: str) -> Any:
    client = OpenAI(base_url=url, api_key="stand-in", max_retries=0, http_client=_shared("openai"))
    return client.chat.completions.create(model="stand-in", messages=user("Go."))  # type: ignore[arg-type]


# Functions.
@reenact.tool
def echo(value: Any) -> Any:
    return value


@reenact.tool
def take(value: Any) -> None:
    del value


class Refused(Exception):
    def __init__(self, note: str) -> None:
        self.note = note
        super().__init__(f"refused: {note}")


@dataclasses.dataclass
class Note:
    text: str
    of: dict[str, Any]


@path("tool argument")
def _(to: Carrier, text: str) -> None:
    del to
    take(text)


@path("tool argument, nested")
def _(to: Carrier, text: str) -> None:
    del to
    take({"a": [{"b": {text: ["x", text]}}]})


def _tool_of(text: str) -> Callable[..., Any]:
    """Make a tool that gives a text without being given it."""
    return reenact.tool(name="given")(lambda: text)


@path("tool result")
def _(to: Carrier, text: str) -> None:
    del to
    _tool_of(text)()


@path("tool result, bytes")
def _(to: Carrier, text: str) -> None:
    del to
    reenact.tool(name="raw")(lambda: bytes(text, "utf-8"))()


@path("tool result, an object")
def _(to: Carrier, text: str) -> None:
    del to
    reenact.tool(name="made")(lambda: Note(text, {"again": text}))()


@path("exception of a tool")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.tool
    def fail() -> None:
        try:
            {}[text]
        except KeyError as error:
            failure = Refused(text)
            failure.add_note(f"noted: {text}")
            raise failure from error

    tolerate(fail)


@path("generator")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.tool
    def count() -> Generator[Any, None, str]:
        yield "one"
        yield {"two": text}
        return text

    list(count())


@path("generator, asynchronous")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.tool
    async def count() -> AsyncIterator[str]:
        yield "one"
        yield text

    async def all_of() -> list[str]:
        return [each async for each in count()]

    asyncio.run(all_of())


@path("generator that fails")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.tool
    def count() -> Iterator[str]:
        yield "one"
        raise Refused(text)

    tolerate(lambda: list(count()))


@path("coroutine in a task")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.tool
    async def wait(value: str) -> str:
        await asyncio.sleep(0)
        return value

    async def all_of() -> None:
        await asyncio.gather(*(asyncio.create_task(wait(text)) for _ in range(2)))

    asyncio.run(all_of())


@path("thread")
def _(to: Carrier, text: str) -> None:
    del to
    thread = threading.Thread(target=take, args=(text,))
    thread.start()
    thread.join()


@path("thread pool")
def _(to: Carrier, text: str) -> None:
    del to
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(take, [text, text]))


@path("retriever")
def _(to: Carrier, text: str) -> None:
    del to

    @reenact.retriever
    def find(query: str) -> list[dict[str, Any]]:
        return [{"id": "d1", "score": 0.5, "text": query, "metadata": {"source": text}}]

    find(text)


@path("agent, chain and llm functions")
def _(to: Carrier, text: str) -> None:
    del to
    reenact.agent(reenact.chain(reenact.llm(lambda prompt: prompt)))(text)  # type: ignore[type-var]


@path("facts of a decorator")
def _(to: Carrier, text: str) -> None:
    del to
    reenact.tool(owner=text)(lambda: 1)()


@path("name of a tool")
def _(to: Carrier, text: str) -> None:
    del to
    reenact.tool(name=text)(lambda: 1)()


# Plain HTTP.
@path("query of a plain call")
def _(to: Carrier, text: str) -> None:
    httpx.get(to.at("nothing"), params={"note": text})


@path("path of a plain call")
def _(to: Carrier, text: str) -> None:
    requests.get(f"{to.at('nothing')}/{quote(text, safe='')}", timeout=9)


@path("user in a URL")
def _(to: Carrier, text: str) -> None:
    scheme, _, rest = to.at("nothing").partition("://")
    httpx.get(f"{scheme}://{quote(text, safe='')}:x@{rest}")


@path("body of a plain call, JSON")
def _(to: Carrier, text: str) -> None:
    requests.post(to.at("nothing"), json={"note": {"text": text}}, timeout=9)


@path("body of a plain call, form")
def _(to: Carrier, text: str) -> None:
    requests.post(to.at("nothing"), data={"note": text, "page": "2"}, timeout=9)


@path("body of a plain call, parts")
def _(to: Carrier, text: str) -> None:
    requests.post(to.at("nothing"), files={"file": ("a.txt", text.encode(), "text/plain")}, timeout=9)


@path("answer of a plain call")
def _(to: Carrier, text: str) -> None:
    del text
    with urllib.request.urlopen(to.at("text"), timeout=9) as reply:
        reply.read()


@path("answer of a plain call, zipped")
def _(to: Carrier, text: str) -> None:
    del text
    requests.get(to.at("zipped"), timeout=9).json()


@path("answer of a plain call, among bytes")
def _(to: Carrier, text: str) -> None:
    del text
    httpx.get(to.at("mixed")).read()


@path("answer of a plain call, lines of JSON")
def _(to: Carrier, text: str) -> None:
    del text
    with httpx.stream("GET", to.at("lines")) as reply:
        list(reply.iter_lines())


@path("redirect")
def _(to: Carrier, text: str) -> None:
    del text
    requests.get(to.at("moved"), timeout=9)


@path("reply header")
def _(to: Carrier, text: str) -> None:
    del text
    httpx.get(to.at("header"))


@path("reply cookie")
def _(to: Carrier, text: str) -> None:
    del text
    requests.get(to.at("cookie"), timeout=9)


@path("request cookie")
def _(to: Carrier, text: str) -> None:
    httpx.get(to.at("nothing"), headers={"cookie": f"note={text}"})


@path("failed connection")
def _(to: Carrier, text: str) -> None:
    tolerate(lambda: httpx.get("http://127.0.0.1:1/", params={"note": text}))
    tolerate(lambda: requests.get(to.at("hangup"), params={"note": text}, timeout=9))


@path("http.client")
def _(to: Carrier, text: str) -> None:
    host = to.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=9)
    connection.request("PUT", f"/nothing/{to.cell}", json.dumps([text]).encode(), {"content-type": "application/json"})
    connection.getresponse().read()
    connection.close()


# What is done past every boundary.
@path("file name")
def _(to: Carrier, text: str) -> None:
    del to
    folder = Path("written")
    folder.mkdir(exist_ok=True)
    (folder / text).write_text("x")


@path("command line of a child")
def _(to: Carrier, text: str) -> None:
    del to
    subprocess.run(["true", text], check=False)
    tolerate(lambda: subprocess.run([f"./{text}"], check=False, capture_output=True))


def look_at(name: str) -> str:
    """Look at a file; a tool that nobody declares."""
    with contextlib.suppress(OSError):
        return Path(name).read_text()
    return "nothing there"


TOOLS = {"look_at": look_at}


@path("file name, found tool")
def _(to: Carrier, text: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    to.chat(tools=[{"type": "function", "function": {"name": "look_at", "parameters": schema}}])
    TOOLS["look_at"](f"notes/{text}")


# Streams. A cell's text is JSON: the stream's name and the pieces.
@path("stream")
def _(to: Carrier, text: str) -> None:
    name, pieces = json.loads(text)
    if name == "yielded":
        list(_yielding(pieces))
    elif name == "yielded objects":
        list(reenact.tool(name="said")(lambda: (yield from ({"delta": {"content": each}} for each in pieces)))())
    elif name == "as it stands":
        with httpx.stream("GET", to.at("pieces")) as reply:
            list(reply.iter_raw())
    elif name == "responses text":
        list(to.openai("stream").responses.create(model="stand-in", input="Go on.", stream=True))
    elif name.startswith("messages"):
        list(to.messages("stream", stream=True))
    else:
        list(to.chat("stream", stream=True))


@path("stream that is given up")
def _(to: Carrier, text: str) -> None:
    del text
    stream = to.chat("stream", stream=True)
    for seen, _ in enumerate(stream):
        if seen == 3:
            break
    stream.close()


# Entry by HTTP.
async def application(scope: Any, receive: Any, send: Any) -> None:
    """Serve a request that says what to do in its path, query, headers and body."""
    message = await receive()
    take("something")
    body = b"you said " + message.get("body", b"")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body if scope["path"].startswith("/back") else b"fine"})


@contextlib.contextmanager
def service() -> Iterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not (server.started and server.servers):
        threading.Event().wait(0.01)
    yield "http://127.0.0.1:%d" % server.servers[0].sockets[0].getsockname()[1]  # noqa: UP031
    server.should_exit = True
    thread.join()


def ask_service(url: str, where: str, text: str) -> None:
    """Ask from another process: what this one asks would be its own plain call."""
    request = {"path": "/x", "query": "", "headers": {}, "body": ""}
    if where == "path":
        request["path"] = f"/x/{quote(text, safe='')}"
    elif where == "query":
        request["query"] = f"?note={quote(text, safe='')}"
    elif where == "header":
        request["headers"] = {"x-user-note": text, "user-agent": text, "authorization": f"Bearer {text}"}
    else:
        request["path"], request["body"] = ("/back" if where == "answer" else "/x"), text
    ASKED.append([url, request])


ASKED: list[Any] = []
_ASKER = """
import http.client, json, sys
for url, request in json.load(sys.stdin):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=9)
    try:
        connection.request("POST", request["path"] + request["query"], request["body"].encode(), request["headers"])
        connection.getresponse().read()
    except (ValueError, UnicodeError, http.client.HTTPException):
        pass
    connection.close()
"""
SERVED = ("path", "query", "header", "body", "answer")


def serve_all(cells: list[dict[str, Any]], report: dict[str, str]) -> None:
    """Have a service asked by a process that is not recorded."""
    if not cells:
        return
    with service() as url:
        for cell in cells:
            report[cell["id"]] = "" if cell["path"] != "service: header" else _not_in_a_header(cell["text"])
            ask_service(url, cell["path"].removeprefix("service: "), cell["text"])
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("REENACT_", "PYTHONPATH"))}
        subprocess.run([sys.executable, "-c", _ASKER], input=json.dumps(ASKED), text=True, env=plain, check=True)


def child(text: str) -> None:
    take(text)


def children(cells: list[dict[str, Any]]) -> None:
    """Call tools in other processes."""
    for cell in cells:
        if cell["path"] == "multiprocessing":
            process = multiprocessing.get_context("fork").Process(target=child, args=(cell["text"],), name="worker")
            process.start()
            process.join()
        elif (pid := os.fork()) == 0:
            take(cell["text"])
            os._exit(0)
        else:
            os.waitpid(pid, 0)


def _yielding(pieces: list[str]) -> Iterator[str]:
    """Make a tool that yields pieces without being given them."""
    return reenact.tool(name="said")(lambda: (yield from pieces))()  # type: ignore[no-any-return]


def killed(cells: list[dict[str, Any]], url: str) -> None:
    """Have processes killed in the middle of a stream, when they have all but its last piece."""
    for cell in cells:
        if (pid := os.fork()) == 0:
            name, pieces = json.loads(cell["text"])
            to = Carrier(url, cell["id"])
            if name == "yielded":
                stream = _yielding(pieces)
            else:
                stream = httpx.Client().send(httpx.Request("GET", to.at("pieces")), stream=True).iter_raw()
            for _ in range(len(pieces) - 1):
                next(stream)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)


def _not_in_a_header(text: str) -> str:
    return "" if text.isascii() and text.isprintable() else "a header does not hold it"


def carried(cell: dict[str, Any], url: str) -> str:
    """Carry one canary; give why not, where that cannot be."""
    name, text = cell["path"].partition(": ")[0], cell["text"]
    if name in HEADERS and (why := _not_in_a_header(text)):
        return why
    if name in NAMES and (len(text.encode()) > 200 or "/" in text or "\0" in text):
        return "a file's name does not hold it"
    try:
        PATHS[name](Carrier(url, cell["id"]), text)
    except Exception as error:  # noqa: BLE001 - told to the harness
        return f"{type(error).__name__}: {error}"
    return ""


def as_it_is(journals: Path, to: Path) -> None:
    """Copy the journals at this moment; those of children that ended may just be carried into the store."""
    to.mkdir()
    for journal in journals.iterdir():
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(journal, to)


def main() -> None:
    plan = json.loads("".join(linecache.getlines(sys.argv[1])))  # as a loader reads: it is no data of the agent's
    if plan.get("application_spans"):
        provider = TracerProvider(resource=Resource({}))  # what OTEL_RESOURCE_ATTRIBUTES says is its own
        out = Path(plan["application_spans"]).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        trace.set_tracer_provider(provider)
    report: dict[str, str] = {}
    for run in plan["runs"]:
        identity = {key: run.get(key) for key in ("user", "session", "tenant", "input")}
        with contextlib.suppress(Refused), reenact.run(run["name"], **identity):
            for cell in run["cells"]:
                report[cell["id"]] = carried(cell, plan["url"])
            if "dies_of" in run:
                raise Refused(run["dies_of"])
    serve_all(plan.get("served", []), report)
    children(plan.get("children", []))
    killed(plan.get("killed", []), plan["url"])
    Path(plan["report"]).write_text(json.dumps(report))
    if "as_it_is" in plan:
        as_it_is(Path(os.environ["REENACT_STORE"]) / "journal", Path(plan["as_it_is"]))
    if plan.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
