"""Calling a WSGI application as a server would (PEP 3333)."""

from __future__ import annotations

import io
import sys
from typing import Any, cast

from reenact.deliver.answers import Answer
from reenact.deliver.turns_on_threads import one_by_one
from reenact.deliver.unit_turns import Turns
from reenact.errors import CannotJudge
from reenact.integrations import wsgi
from reenact.values import unit
from reenact.values.run import Run
from reenact.values.unit import WebRequest

_UNMARKED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


def deliver(app: Any, request: WebRequest, answer: Answer, turns: Turns) -> None:
    """Deliver `request`, and fill in `answer` as it comes. Raises what the application raises."""
    if not callable(app):
        raise CannotJudge(f"a {type(app).__name__} is no WSGI application")

    def earlier(run: Run) -> None:
        if (asked := unit.request_of(run)) is not None:
            _request(app, asked, Answer(), run, turns)

    if not one_by_one(turns, earlier):
        _request(app, request, answer, turns.asked_for, turns)


def _request(app: Any, request: WebRequest, answer: Answer, run: Run, turns: Turns) -> None:
    def start_response(status: str, headers: Any, _exc_info: Any = None) -> Any:
        answer.begun(int(status.split(None, 1)[0]), headers)
        return answer.pieces.append

    with turns.does(run):
        pieces = wsgi.serve(cast("wsgi.App", app), _environ(request), start_response)
    try:
        for piece in pieces:
            answer.pieces.append(piece)
            if request.left_after is not None and answer.size >= request.left_after:
                break
        turns.reply(run)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
        answer.delivered()


def _environ(request: WebRequest) -> dict[str, Any]:
    body = request.body or b""
    server, client = request.server or ("localhost", 80), request.client or ("127.0.0.1", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": _native(request.root_path),
        "PATH_INFO": _native(request.path.removeprefix(request.root_path)),
        "QUERY_STRING": request.query,
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": request.workers[0],
        "wsgi.multiprocess": request.workers[1],
        "wsgi.run_once": request.workers[2],
    }
    for name, value in request.headers:
        key = _UNMARKED.get(name, f"HTTP_{name.upper().replace('-', '_')}")
        environ[key] = f"{environ[key]},{value}" if key in environ and key.startswith("HTTP_") else value
    return environ


def _native(text: str) -> str:
    """Spell text as PEP 3333 has it: its UTF-8 bytes, as latin-1."""
    return text.encode("utf-8", "replace").decode("latin-1")
