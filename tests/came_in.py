"""Runs of services made up for tests."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from made import Made
from reenact.graph.build import build
from reenact.values.json import Json, compact
from reenact.values.run import Run


def came_in(
    body: bytes | None = b"{}",
    *,
    status: int | None = 200,
    answer: bytes | None = b"",
    app: Json = None,
    main: str | None = "service.py",
    inbound: dict[str, Json] | None = None,
    **more: Any,
) -> Run:
    """Make the run of a request in which one tool was called."""
    made = Made(1)
    made.tool("a", {"target": "a"}, 1)
    run = made.run(exit_code=None)
    assert run.root is not None
    said: dict[str, Json] = {"protocol": "http", "interface": "asgi", "method": "POST", "path": "/ask", "headers": {}}
    facts: dict[str, Any] = {
        "reenact.inbound": compact({**said, **(inbound or {})}),
        "reenact.app": compact(app if app is not None else {"import": "service:app"}),
        "reenact.entry": compact({"argv": ["python"], **({"main": main} if main else {})}),
        "reenact.outcome": "returned",
        **_body("input.value", "reenact.http.request.body", body),
        **more,
    }
    if status is not None:
        facts |= {"http.response.status_code": status, **_body("output.value", "reenact.http.response.body", answer)}
    root = replace(run.root.span, attributes={**run.root.span.attributes, **facts})
    (again,) = build([root, *(node.span for node in run.nodes if node is not run.root)])
    return again


def _body(text: str, binary: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {f"{binary}.too_large": 99_000_000}
    try:
        return {text: data.decode()}
    except UnicodeDecodeError:
        return {binary: base64.b64encode(data).decode()}
