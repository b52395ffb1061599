from __future__ import annotations

import pytest

from came_in import came_in
from made import Made
from reenact.graph.verdict import judge
from reenact.values.history import History
from reenact.values.json import Json, compact
from reenact.values.run import WRITTEN, Grade, KitItem, Run


def kit(run: Run) -> dict[str, KitItem]:
    return {item.name: item for item in judge(run).kit}


def lost(run: Run) -> dict[str, str]:
    return {reason.field: reason.fix for reason in judge(run).reasons}


def test_a_request_that_was_kept_whole_can_be_delivered_again() -> None:
    run = came_in(b'{"a": 1}')
    assert judge(run).grade is Grade.EXACT
    items = kit(run)
    assert (items["request"].state, items["request"].detail) == ("present", "POST /ask, 8 bytes")
    assert (items["application"].state, items["application"].detail) == ("present", "service:app")


def test_headers_that_were_left_out_are_named() -> None:
    item = kit(came_in(inbound={"headers": {"host": ["x"]}, "left_out": ["x-odd", "x-even"]}))["request headers"]
    assert (item.state, item.detail) == ("partial", "without x-odd, x-even")
    assert "REENACT_KEEP_HEADERS" in item.fix
    assert kit(came_in())["request headers"].state == "present"


def test_a_session_that_redaction_replaced_is_a_reason_and_a_value_that_a_program_is_given() -> None:
    token = "session=REDACTED_cookie_" + "0a" * 10
    verdict = judge(came_in(inbound={"headers": {"cookie": [token], "host": ["x"]}}))
    assert verdict.grade is Grade.PARTIAL
    (reason,) = verdict.reasons
    assert "cookie" in reason.lost
    assert 'attribute = "reenact.inbound"' in reason.fix
    assert [(each.field, each.classes) for each in verdict.replaced_inputs] == [("request headers", {"cookie": 1})]
    assert judge(came_in(inbound={"headers": {"cookie": ["theme=dark"]}})).grade is Grade.EXACT


def test_too_large_a_body_is_a_reason() -> None:
    run = came_in(None)
    assert judge(run).grade is Grade.PARTIAL
    assert "request" in lost(run)
    assert kit(run)["request"].state == "missing"
    assert "answer" in lost(came_in(answer=None))


def test_an_application_without_a_name_is_named_by_its_program() -> None:
    run = came_in(app={"import": None})
    assert "application" not in lost(run)
    assert kit(run)["application"].state == "partial"


def test_an_application_that_cannot_be_made_is_a_reason() -> None:
    run = came_in(app={"import": None}, main=None)
    assert "--app" in lost(run)["application"]
    assert kit(run)["application"].state == "missing"


def test_a_script_has_nothing_to_deliver() -> None:
    made = Made(1)
    made.tool("a", {}, 1)
    assert "request" not in kit(made.run())


@pytest.mark.parametrize(
    ("then", "written", "said"),
    [("one", [], False), ("another", [], True), ("another", ["flags.json"], False)],
    ids=["as it was", "changed", "by a request"],
)
def test_a_file_that_changed_between_units_that_stand_on_each_other(then: str, written: list[str], said: bool) -> None:  # noqa: FBT001 - of a table
    def reading(digest: str, *paths: str) -> Run:
        read: Json = {"path": "/app/flags.json", "before": {"size": 1, "mtime": "1", "digest": digest}}
        files: list[Json] = [{"path": f"/app/{path}", "before": None, "after": None} for path in paths]
        return came_in(**{WRITTEN: compact({"files": files, "reads": [read]})})

    history = History(units=(reading("one", *written),))
    reasons = [reason.lost for reason in judge(reading(then), history).reasons if reason.field == "files"]
    assert any("it changed between them" in each for each in reasons) is said
