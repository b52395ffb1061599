from __future__ import annotations

import pytest

from came_in import came_in
from reenact.values.json import Json
from reenact.values.unit import request_of


@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
@pytest.mark.parametrize(
    ("told", "body", "length"),
    [
        ([], b"", None),
        ([], b"came in chunks", None),
        (["0"], b"", "0"),
        (["2"], b"", "2"),
        (["2"], b"{}", "2"),
        (["2"], b"redaction makes it longer", "25"),
        (["40"], b"REDACTED_e_mail", "15"),
        (["odd"], b"{}", "2"),
    ],
)
def test_a_request_tells_the_length_that_it_told(
    interface: str, told: list[Json], body: bytes, length: str | None
) -> None:
    said: dict[str, Json] = {"interface": interface, "headers": {"content-length": told, "x-tenant": ["a", "b"]}}
    request = request_of(came_in(body, inbound=said))
    assert request is not None
    lengths = [] if length is None else [("content-length", length)]
    assert request.headers == (("x-tenant", "a"), ("x-tenant", "b"), *lengths)


@pytest.mark.parametrize(
    ("interface", "body", "length"),
    [("asgi", b"", None), ("asgi", b"{}", "2"), ("wsgi", b"", "0"), ("wsgi", b"{}", "2")],
)
def test_a_request_whose_length_no_recorder_kept_tells_that_of_its_body(
    interface: str, body: bytes, length: str | None
) -> None:
    request = request_of(came_in(body, inbound={"interface": interface, "headers": {"host": ["x"]}}))
    assert request is not None
    assert dict(request.headers).get("content-length") == length
