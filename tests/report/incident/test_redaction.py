from __future__ import annotations

from incidents import incident
from made import Made, user
from reenact.redact.engine import Engine
from reenact.report.incident.evidence import redacted
from reenact.report.incident.redaction import redaction

ONE, TWO = "sk-proj-" + "Ab3" * 12, "sk-proj-" + "Cd4" * 12


def test_values_are_counted_by_class_with_how_often_they_stand() -> None:
    engine = Engine(salt="00" * 16)
    made = Made(1)
    made.llm([user(engine.text(f"{ONE} and {TWO}"))], engine.text(f"again {ONE}"))
    made.tool("look", {"url": engine.text("https://u:hunter2@host/")}, "x", more={"reenact.redaction.failed": True})
    found = redaction(made.run())
    assert found.values == {"openai_key": 2, "url_password": 1}
    assert found.places == {"openai_key": 3, "url_password": 1}
    assert found.failed == 1
    assert found.policy is None
    said = redacted(incident(made.run(), replaced={"jwt": 4}))
    assert "names no redaction policy of reenact" in said
    for name in ("openai_key", "url_password", "jwt"):
        assert name in said
    assert "The values of 1 call could not be scrubbed" in said
    assert "What this does not promise" in said


def test_where_nothing_was_replaced_that_is_said() -> None:
    assert "No replaced value stands in it." in redacted(incident(Made(1).run()))
