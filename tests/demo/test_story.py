from __future__ import annotations

import json

import pytest

from desk import Desk


@pytest.mark.slow
@pytest.mark.parametrize("environ", [{}, {"REENACT_KEY": "of a container"}], ids=["key file", "REENACT_KEY"])
def test_the_demo_leaves_a_page_that_says_what_happened(desk: Desk, environ: dict[str, str]) -> None:
    desk.environ.update(environ)
    done = desk.reenact("demo", "--keep", "kept", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    page = desk.folder / "kept" / "incident.html"
    assert told["page"] == str(page)
    assert told["exit_codes"] == {"replay": 0, "replay of the fixed agent, judged by the rule": 0}
    assert told["first_divergence"].startswith("diverged: tool delete_accounts #7: call: recorded ")
    source = page.read_text(encoding="utf-8")
    assert "The agent called delete_accounts with account_ids a-104, a-117, a-123 and target production." in source
    assert "That breaks the rule" in source
    assert str(page) in done.stderr


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("demo"))
