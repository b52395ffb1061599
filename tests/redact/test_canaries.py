"""Secrets put wherever an agent may meet one; afterwards no byte on disk may hold any."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from openai import OpenAI

import reenact
from held import Held, attempted
from reenact.demo.provider import StandIn
from reenact.errors import Miss

CANARIES = {
    place: f"ghp_{place.replace(' ', '0').ljust(36, 'x')}"
    for place in ("prompt", "tool argument", "tool result", "exception", "query", "attribute", "run input", "yielded")
}
ENVIRONMENT = "canary-of-the-environment-1"
ALL = (*CANARIES.values(), ENVIRONMENT)


class Failed(Exception):
    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(token)


@reenact.tool
def fetch(key: str) -> dict[str, str]:
    del key
    return {"found": CANARIES["tool result"]}


@reenact.tool
def fail() -> None:
    raise Failed(CANARIES["exception"]) from KeyError(CANARIES["exception"])


@reenact.tool(owner=CANARIES["attribute"])
def listed() -> Iterator[str]:
    yield CANARIES["yielded"]


def agent(base_url: str, environment: str) -> list[object]:
    seen: list[object] = []
    with reenact.run("agent", input={"key": CANARIES["run input"]}, user=f"user of {CANARIES['attribute']}"):
        seen += [fetch(CANARIES["tool argument"]), *listed()]
        with pytest.raises(Failed):
            fail()
        for stream in (False, True):
            with OpenAI(base_url=base_url, api_key=environment, default_query={"key": CANARIES["query"]}) as client:
                messages = [{"role": "user", "content": f"Use {CANARIES['prompt']} and {environment}."}]
                reply = client.chat.completions.create(model="stand-in-everything", messages=messages, stream=stream)  # type: ignore[call-overload]
                seen.append(list(reply) if stream else reply)
    return seen


def found_in(folder: Path) -> dict[str, list[str]]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return {
        canary: [str(file) for file in files if canary.encode() in file.read_bytes()]
        for canary in ALL
        if any(canary.encode() in file.read_bytes() for file in files)
    }


def test_no_secret_reaches_the_disk_and_the_recording_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", ENVIRONMENT)
    held = Held(tmp_path)
    with StandIn(max_delay_ms=0) as provider:
        made = held.start(os.environ)
        value, error = attempted(lambda: agent(provider.base_url, ENVIRONMENT))
        assert error is None
        shutil.copytree(held.store / "journal", tmp_path / "as killed")
        runs = held.finish(made)
        for folder in (tmp_path / "as killed", held.store):
            assert found_in(folder) == {}
        url = provider.base_url
    (run,) = runs
    assert run.root is not None
    assert int(str(run.root.span.attributes["reenact.redaction.count"])) >= len(CANARIES)

    again = None
    with reenact.replay(reenact.load(run.id, store=held.store), store=held.store, strict=False) as handle:
        again, error = attempted(lambda: agent(url, ENVIRONMENT))
    assert not isinstance(error, Miss)
    assert handle.result is not None
    assert handle.result.misses == []
    assert value[0] != again[0], "a secret that was a result is its token in the replay"
    assert found_in(held.store) == {}


def test_a_provider_s_error_reply_and_a_failed_connection(tmp_path: Path) -> None:
    held = Held(tmp_path)
    key = CANARIES["prompt"]
    answers = iter([httpx2.Response(401, json={"error": {"message": f"Incorrect API key provided: {key}."}})])

    def transport(request: httpx2.Request) -> httpx2.Response:
        if (answer := next(answers, None)) is not None:
            return answer
        raise httpx2.ConnectError(f"cannot reach {request.url}?key={key}", request=request)

    def work() -> None:
        with httpx2.Client(transport=httpx2.MockTransport(transport)) as client:
            url, body = "http://test/v1/chat/completions", {"model": "m", "messages": []}
            assert client.post(url, json=body).status_code == 401
            with pytest.raises(httpx2.ConnectError):
                client.post(f"{url}?key={key}", json=body)

    did = held.record(work)
    assert did.error is None
    assert len(did.calls) == 2
    assert found_in(held.store) == {}
