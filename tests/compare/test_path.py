from __future__ import annotations

from made import Made, user
from reenact.compare.path import path_of
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned


def test_a_path_names_calls_and_what_functions_were_asked() -> None:
    made = Made()
    chain = made.tool("turn", {"n": 1}, 1, kind=CallKind.CHAIN)
    made.llm([user("x")], "y", parent=chain)
    outer = made.tool("gather", {"b": 1, "a": [2]}, 1, parent=chain)
    made.tool("fetch", {}, 1, parent=outer)
    made.tool("runbook", {"query": "q"}, [], kind=CallKind.RETRIEVER)
    assert path_of(made.run()) == ("llm", "gather(a=[2], b=1)", 'runbook(query="q")')


def test_a_frame_around_a_provider_s_call_is_no_step() -> None:
    made = Made()
    frame = made.tool("ask", {}, "y", kind=CallKind.LLM)
    made.llm([user("x")], "y", parent=frame)
    assert path_of(made.run()) == ("llm",)


def test_plain_http_is_named_by_method_and_address() -> None:
    made = Made()
    request = HttpRequest(shape="http", method="GET", url="https://api.example/prices", body=Body(b""))
    made.add(CallKind.UNKNOWN, "GET", request, Returned(payload=HttpReply(status=200, headers=(), body=Body(b"{}"))))
    assert path_of(made.run()) == ("GET https://api.example/prices",)


def test_wording_is_no_part_of_a_path() -> None:
    left, right = Made(1), Made(2)
    for made, text in ((left, "one"), (right, "two")):
        made.llm([user(text)], text)
        made.tool("fetch", {"item": "tea"}, text)
    assert path_of(left.run()) == path_of(right.run())
