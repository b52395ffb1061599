"""A stand-in model provider on the loopback interface. It is not a model.

It speaks the wire protocol of the OpenAI API (`POST /v1/chat/completions`, whole and streamed, `POST /v1/embeddings`,
error replies with `Retry-After`), so the real SDK talks to it over real sockets. What it says comes from a script that
samples its answers, so live runs differ from one another; the request's `model` field selects the script
(`reenact.demo.policies.SCRIPTS`). Beside it stands a small pricing service, `GET /pricing/quote?sku=...`.

In process::

    with StandIn() as provider:
        client = OpenAI(base_url=provider.base_url, api_key="stand-in")

From a shell, either by itself or around one command, which then finds it in its environment::

    python -m reenact.demo.provider --port 8817
    python -m reenact.demo.provider -- python examples/cleanup_agent.py
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random, SystemRandom
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlsplit

from reenact.demo import policies, wire
from reenact.demo.script import Question, Refuses, Says, Script, Served
from reenact.pipeline.parentage import bound_to_us
from reenact.values.json import Json, compact, parsed_or_none

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

NOTICE = "reenact stand-in provider: scripted answers, sampled anew on every request. This is not a model."
_JSON = "application/json"
_EVENTS = "text/event-stream; charset=utf-8"
_CHUNK_PAUSE_MS = 2.0


class StandIn:
    """The stand-in provider, serving while its `with` block runs.

    Args:
        seed: Makes the answers to requests made one after another repeat. None draws from the operating system.
        slip: The odds, 0 to 1, that a script slips, in place of each script's own.
        max_delay_ms: Each reply waits a random time up to this many milliseconds, so completion order varies.
        port: A port of 127.0.0.1; 0 takes a free one.
        scripts: Further scripts by model name, or other scripts for the names in `policies.SCRIPTS`.

    Raises `OSError` where the port is taken.

    """

    def __init__(
        self,
        seed: int | None = None,
        *,
        slip: float | None = None,
        max_delay_ms: float = 30.0,
        port: int = 0,
        scripts: Mapping[str, Script] | None = None,
    ) -> None:
        self.slip, self.max_delay_ms = slip, max_delay_ms
        self.scripts: dict[str, Script] = {**policies.SCRIPTS, **(scripts or {})}
        self.served = Served()
        self._seed, self._lock = seed, threading.Lock()
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="stand-in", daemon=True)

    @property
    def origin(self) -> str:
        """Scheme, host and port, such as `http://127.0.0.1:8817`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its `base_url`."""
        return f"{self.origin}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which a program finds this provider."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": "stand-in",
            "PRICING_URL": f"{self.origin}/pricing",
        }

    def __enter__(self) -> Self:
        """Start serving on a thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def chance(self, model: str) -> Random:
        """Count one request for `model` and give the source of chance for its answer."""
        with self._lock:
            self.served.requests += 1
            self.served.by_model[model] = self.served.by_model.get(model, 0) + 1
            if self._seed is None:
                return SystemRandom()
            return Random(f"{self._seed}/{self.served.requests}")  # noqa: S311 - a seed is asked for to repeat answers

    def count(self, *, refused: int = 0, prompt: int = 0, completion: int = 0) -> None:
        """Add what one request came to."""
        with self._lock:
            self.served.refused += refused
            self.served.prompt_tokens += prompt
            self.served.completion_tokens += completion


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # an agent may open forty connections at once; the default backlog is five

    def __init__(self, stand_in: StandIn, port: int) -> None:
        self.stand_in = stand_in
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave out the traceback where a client went away in the middle of a reply: that is its good right."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]  # handed on as it came


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "reenact-stand-in/1 (scripted, not a model)"
    sys_version = ""
    disable_nagle_algorithm = True

    @property
    def stand_in(self) -> StandIn:
        return cast("_Server", self.server).stand_in

    def version_string(self) -> str:
        return self.server_version

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Keep quiet: the counts in `StandIn.served` tell what was served."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        chance = self.stand_in.chance(url.path)
        if url.path != "/pricing/quote":
            self._refuse(_no_such_path("GET", url.path))
            return
        sku = parse_qs(url.query).get("sku", [""])[0]
        status, body = policies.quote(sku, self.stand_in.slip, chance)
        self.stand_in.count(refused=int(status != 200))
        self._send(status, body, {"Retry-After": "30"} if status == 429 else {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, body = urlsplit(self.path).path, parsed_or_none(raw)
        payload = body if isinstance(body, dict) else {}
        chance = self.stand_in.chance(str(payload.get("model", path)))
        time.sleep(chance.uniform(0.0, self.stand_in.max_delay_ms) / 1000)
        if not self.headers.get("Authorization", "").startswith("Bearer "):
            self._refuse(_NO_KEY)
        elif not payload:
            self._refuse(_NO_JSON)
        elif path == "/v1/chat/completions":
            self._chat(payload, chance)
        elif path == "/v1/embeddings":
            self.stand_in.count(prompt=sum(len(wire.pieces(str(text))) for text in [payload.get("input")]))
            self._send(200, compact(wire.embeddings(payload, chance)).encode())
        else:
            self._refuse(_no_such_path("POST", path))

    def _chat(self, body: dict[str, Json], chance: Random) -> None:
        script = self.stand_in.scripts.get(str(body.get("model")))
        if script is None:
            self._refuse(_no_such_model(body, self.stand_in.scripts))
            return
        retries = self.headers.get("x-stainless-retry-count", "0")
        attempt = int(retries) if retries.isdecimal() else 0
        question = Question(body=body, attempt=attempt, slip=self.stand_in.slip)
        choices = body.get("n")
        replies: list[Says] = []
        for _ in range(choices if isinstance(choices, int) else 1):
            reply = script(question, chance)
            if isinstance(reply, Refuses):
                self._refuse(reply)
                return
            replies.append(reply)
        self.stand_in.count(prompt=wire.prompt_tokens(body), completion=wire.completion_tokens(replies))
        if body.get("stream") is True:
            self._stream(wire.events(body, replies, chance), replies[0].breaks_after, chance)
        else:
            self._send(200, compact(wire.completion(body, replies, chance)).encode())

    def _refuse(self, refusal: Refuses) -> None:
        self.stand_in.count(refused=1)
        self._send(refusal.status, wire.error(refusal), wire.retry_headers(refusal))

    def _open(self, status: int, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("openai-version", "2020-10-01")
        self.send_header("x-request-id", wire.token("req_", 32, SystemRandom(), "0123456789abcdef"))

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._open(status, _JSON)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[dict[str, Json]], breaks_after: int | None, chance: Random) -> None:
        self._open(200, _EVENTS)
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if number == breaks_after:
                self.close_connection = True
                return
            self._piece(f"data: {compact(event)}\n\n")
            time.sleep(chance.uniform(0.0, _CHUNK_PAUSE_MS) / 1000)
        self._piece("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


_NO_KEY = Refuses(
    status=401,
    type="invalid_request_error",
    code=None,
    message="You didn't provide an API key. Any key will do here: this is a stand-in.",
)
_NO_JSON = Refuses(
    status=400,
    type="invalid_request_error",
    code=None,
    message="We could not parse the JSON body of your request: it must be one non-empty object.",
)


def _no_such_path(method: str, path: str) -> Refuses:
    message = f"Unknown request URL: {method} {path}. The stand-in serves POST /v1/chat/completions and /v1/embeddings."
    return Refuses(status=404, type="invalid_request_error", code="unknown_url", message=message)


def _no_such_model(body: Mapping[str, Json], scripts: Mapping[str, Script]) -> Refuses:
    message = f"The model `{body.get('model')}` does not exist here. The stand-in has scripts for {', '.join(scripts)}."
    return Refuses(status=404, type="invalid_request_error", code="model_not_found", param="model", message=message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted, or for as long as one command runs; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reenact.demo.provider", description=NOTICE)
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1 (default: a free one)")
    parser.add_argument("--seed", type=int, help="repeat the same answers")
    parser.add_argument("--slip", type=float, help="odds that a script slips, 0 to 1 (default: each script's own)")
    parser.add_argument("--max-delay-ms", type=float, default=30.0, help="longest random delay of a reply")
    parser.add_argument("command", nargs="*", help="run this command against the provider, then stop")
    options = parser.parse_args(arguments)
    try:
        stand_in = StandIn(options.seed, slip=options.slip, max_delay_ms=options.max_delay_ms, port=options.port)
    except OSError as error:
        parser.error(f"port {options.port} of 127.0.0.1 cannot be taken ({error.strerror}); leave --port out for any")
    with stand_in:
        sys.stderr.write(f"{NOTICE}\n")
        code = _surround(stand_in, options.command) if options.command else _serve(stand_in)
    served = stand_in.served
    sys.stderr.write(
        f"stand-in: {served.requests} requests ({served.refused} refused), "
        f"{served.prompt_tokens} prompt and {served.completion_tokens} completion tokens\n"
    )
    return code


def _surround(stand_in: StandIn, command: list[str]) -> int:
    try:
        environ = os.environ | stand_in.environment
        code = subprocess.run(command, env=environ, check=False, preexec_fn=bound_to_us()).returncode
    except OSError as error:
        sys.stderr.write(f"{command[0]}: cannot be started ({error.strerror})\n")
        return 127
    return 128 - code if code < 0 else code  # killed by a signal: as a shell says it


def _serve(stand_in: StandIn) -> int:
    sys.stdout.write(f"{stand_in.base_url}\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
