"""A unit of work that came in from outside, as the root of its run tells it: what asked for it, how to do it again.

And the run of a server's own process, which holds what it did for nobody, beside the units that came in.

`docs/schema.md`, "Inbound units".
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.run import ANSWERED_WITH, LEAVES, PROCESS_ROOT, REPLIED, SERVED, STANDS_ON, Run

INBOUND = "reenact.inbound"
APP = "reenact.app"
_LENGTH: Final = "content-length"
_COMMANDS: Final = frozenset(
    (
        *("arq", "daphne", "dramatiq", "granian", "gunicorn", "huey_consumer", "huey_consumer.py", "hypercorn"),
        *("sanic", "uvicorn", "uwsgi", "waitress-serve"),
    )
)
"""Commands that serve until an operator stops them."""
_SUBCOMMANDS: Final[Mapping[str, frozenset[str]]] = {
    "celery": frozenset({"worker", "beat"}),
    "fastapi": frozenset({"dev", "run"}),
    "flask": frozenset({"run"}),
    "litestar": frozenset({"run"}),
    "quart": frozenset({"run"}),
    "streamlit": frozenset({"run"}),
    "taskiq": frozenset({"worker", "scheduler"}),
    "rq": frozenset({"worker", "worker-pool"}),
    "manage.py": frozenset({"runserver"}),
    "django": frozenset({"runserver"}),
    "django-admin": frozenset({"runserver"}),
}
"""Commands of which one of their own serves."""
_FIRST: Final = 3
"""Words of a command line among which the command's name is: the interpreter, `-m`, and it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """A request to an application."""

    interface: str
    """How it was handed over: `asgi` or `wsgi`."""
    method: str
    scheme: str
    version: str
    spec: str
    """Which edition of ASGI's HTTP specification the server spoke; some frameworks choose by it."""
    path: str
    """With the root path, decoded."""
    raw_path: str
    root_path: str
    query: str
    workers: tuple[bool, bool, bool]
    """Of WSGI: whether threads, whether processes may run the application at once, whether it is run just once."""
    headers: tuple[tuple[str, str], ...]
    """With `content-length` where the request is to tell one."""
    body: bytes | None
    """None where it was too large to be kept."""
    client: tuple[str, int] | None
    server: tuple[str, int] | None
    left_after: int | None
    """After how many bytes of the answer the client went away; None where it stayed."""
    left_at: int | None
    """When that was, in nanoseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAnswer:
    """What an application answered."""

    status: int
    content_type: str
    body: bytes | None
    """Unpacked; None where it was too large to be kept."""
    headers: tuple[tuple[str, str], ...] | None = None
    """Those that are compared (`boundary.answer_headers`); None where the recorder did not keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A call of a task or of a unit of the agent's own."""

    interface: str
    """How it was called: `celery` or `function`."""
    name: str
    module: str
    """The module that declares it."""
    args: tuple[Json, ...]
    """Typed JSON."""
    kwargs: dict[str, Json]
    request: dict[str, Json]
    """What it could read of the message that asked for it, in typed JSON."""


def inbound(run: Run) -> dict[str, Json] | None:
    """Give what the root says of the unit that came in, or None where the run is none."""
    return _object(run, INBOUND)


def app(run: Run) -> dict[str, Json]:
    """Give how the application that served it is made again; `import` is null where it has no name."""
    return _object(run, APP) or {}


def stands_on(run: Run) -> dict[str, Json]:
    """Give what the unit may have read of earlier ones: `state`, `units` (ids), `without_run`, `more`.

    What changed after its answer counts where it called anybody after that.
    """
    basis = _object(run, STANDS_ON) or {}
    behind = basis.pop("behind", None)
    return basis | as_object(behind) if isinstance(behind, dict) and _acts_behind_its_answer(run) else basis


def _acts_behind_its_answer(run: Run) -> bool:
    replied = run.root.span.attributes.get(REPLIED) if run.root is not None else None
    return not isinstance(replied, int) or any(
        not 0 < node.start_order < replied for node in run.nodes if node is not run.root
    )


def unseen(run: Run) -> str:
    """Say what of the state that earlier units may have left was not looked at; empty where all of it was."""
    return as_text(stands_on(run).get("unseen"))


def leaves(run: Run) -> list[Json] | None:
    """Give the names of what the unit may have changed in memory; None where its recorder did not say."""
    text = _text(run, LEAVES)
    return as_list(parsed_or_none(text)) if text else None


def around(run: Run) -> str | None:
    """Give the id of the run of the process that served it, where that had called anything by then."""
    return _text(run, "reenact.inbound.process") or None


def request_of(run: Run) -> WebRequest | None:
    """Read the request that a run served, or None where it served none."""
    fields = inbound(run)
    if fields is None or fields.get("protocol") != "http":
        return None
    interface = as_text(fields.get("interface")) or "asgi"
    body = _body(run, "input.value", "reenact.http.request.body")
    return WebRequest(
        interface=interface,
        method=as_text(fields.get("method")) or "GET",
        scheme=as_text(fields.get("scheme")) or "http",
        version=as_text(fields.get("version")) or "1.1",
        spec=as_text(fields.get("spec")) or "2.3",
        path=as_text(fields.get("path")),
        raw_path=as_text(fields.get("raw_path")),
        root_path=as_text(fields.get("root_path")),
        query=as_text(fields.get("query")),
        workers=_workers(fields.get("workers")),
        headers=_request_headers(as_object(fields.get("headers")), body or b"", interface),
        body=body,
        client=_address(fields.get("client")),
        server=_address(fields.get("server")),
        left_after=_number(run, "reenact.inbound.left_after"),
        left_at=_number(run, "reenact.inbound.left_at"),
    )


def _workers(value: Json) -> tuple[bool, bool, bool]:
    """Read what a WSGI server said of its workers; recorders of before did not keep it."""
    match value:
        case [bool() as threads, bool() as processes, bool() as once]:
            return threads, processes, once
        case _:
            return False, False, True


def _request_headers(recorded: Mapping[str, Json], body: bytes, interface: str) -> tuple[tuple[str, str], ...]:
    """List the headers to deliver, with the length that the request told; an older recorder did not keep that."""
    headers = [
        (name, as_text(value)) for name, values in recorded.items() if name != _LENGTH for value in as_list(values)
    ]
    if _LENGTH not in recorded:
        lengths = [str(len(body))] if body or interface == "wsgi" else []
    else:
        lengths = [_length(as_text(value), body) for value in as_list(recorded[_LENGTH])[:1]]
    return (*headers, *((_LENGTH, length) for length in lengths))


def _length(told: str, body: bytes) -> str:
    """Give the length that a request told: of its body, of which the application may have read a part, or nothing.

    Where redaction made another body, its own: whoever reads as much as was told reads all of it.
    """
    from reenact.values.known_secrets import MARK  # commands that only read list no request

    if not told.isdecimal() or MARK.encode() in body:
        return str(len(body))
    return str(max(int(told), len(body)))


def job_of(run: Run) -> Job | None:
    """Read the job that a run did, or None where it did none."""
    fields = inbound(run)
    if fields is None or fields.get("protocol") != "job":
        return None
    arguments = as_object(parsed_or_none(_text(run, "input.value")))
    return Job(
        interface=as_text(fields.get("interface")),
        name=as_text(fields.get("name")),
        module=as_text(fields.get("module")),
        args=tuple(as_list(arguments.get("args"))),
        kwargs=as_object(arguments.get("kwargs")),
        request=as_object(fields.get("request")),
    )


def result_of(run: Run) -> Json | Absent:
    """Give what a job returned, in typed JSON; ABSENT where it did not return."""
    text = _text(run, "output.value")
    return parsed_or_none(text) if text else ABSENT


def answer_of(run: Run) -> WebAnswer | None:
    """Read what a run answered, or None where it did not come to that."""
    status = _number(run, "http.response.status_code")
    if inbound(run) is None or status is None:
        return None
    headers = as_list(parsed_or_none(_text(run, "reenact.http.response.headers")))
    headers_by_name = {as_text(pair[0]): as_text(pair[1]) for each in headers if len(pair := as_list(each)) == 2}
    body = _body(run, "output.value", "reenact.http.response.body")
    if body is not None and (encoding := headers_by_name.get("content-encoding")):
        from reenact.values.content_encoding import unpacked  # most answers are not packed

        body = unpacked(body, encoding)
    header_pairs = parsed_or_none(_text(run, ANSWERED_WITH))
    pairs = [(as_text(pair[0]), as_text(pair[1])) for each in as_list(header_pairs) if len(pair := as_list(each)) == 2]
    return WebAnswer(
        status=status,
        content_type=headers_by_name.get("content-type", ""),
        body=body,
        headers=tuple(pairs) if isinstance(header_pairs, list) else None,
    )


def _object(run: Run, name: str) -> dict[str, Json] | None:
    decoded = parsed_or_none(_text(run, name))
    return decoded if isinstance(decoded, dict) else None


def _text(run: Run, name: str) -> str:
    value = run.root.span.attributes.get(name) if run.root is not None else None
    return value if isinstance(value, str) else ""


def _number(run: Run, name: str) -> int | None:
    value = run.root.span.attributes.get(name) if run.root is not None else None
    if isinstance(value, str):
        return int(value) if value.isdigit() else None
    return as_count(value) if isinstance(value, int | float) else None


def _body(run: Run, value: str, binary: str) -> bytes | None:
    if _number(run, f"{binary}.too_large") is not None:
        return None
    if coded := _text(run, binary):
        try:
            return base64.b64decode(coded)
        except (binascii.Error, ValueError):
            return None
    return _text(run, value).encode("utf-8", "surrogatepass")


def _address(value: Json) -> tuple[str, int] | None:
    pair = as_list(value)
    return (as_text(pair[0]), as_count(pair[1]) or 0) if len(pair) == 2 else None


# servers


def units_served(run: Run) -> int | None:
    """Give how many units of work came in to the process of a run; None where it is no server's own."""
    processes = [node for node in run.nodes if node.span.attributes.get(PROCESS_ROOT)]
    counts = [count for node in processes if isinstance(count := node.span.attributes.get(SERVED), int)]
    if counts:
        return sum(counts)
    return 0 if run.root in processes and serves(run.entry) else None


def serves(entry: Mapping[str, Json]) -> bool:
    """Tell whether a program was started by the command of a known server of applications or of jobs."""
    words = [as_text(word) for word in as_list(entry.get("argv"))]
    for number, word in enumerate(words[:_FIRST]):
        name = Path(word).name
        if name in _COMMANDS or not _SUBCOMMANDS.get(name, frozenset()).isdisjoint(words[number + 1 :]):
            return True
    return False
