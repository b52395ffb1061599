"""From an incident to the page that everybody can read, and back from the page to a replay."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

RULE = 'never called delete_accounts where target = "production"'
AGENT = str(EXAMPLES / "cleanup_agent.py")


@pytest.fixture
def incident(desk: Desk) -> Desk:
    """A desk with the clean-up that went to production in its store, and nothing to talk to."""
    with StandIn(slip=1.0) as provider:
        done = desk.reenact(
            "run", "--", "python", AGENT, "--data", "files", environ={**provider.environment, **clean()}
        )
    assert done.returncode == 0, done.stderr
    return desk


def clean() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_", "OPENAI_"))}


@pytest.mark.slow
def test_an_incident_and_its_fix_are_one_page(incident: Desk) -> None:
    fixed = incident.reenact("replay", "last", "--", "python", AGENT, "--guarded", "--data", "files")
    assert fixed.returncode == 1, fixed.stderr
    done = incident.reenact("incident", "last", "--replay", "last", "--assert", RULE, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (
        told["headline"]
        == "The agent called delete_accounts with account_ids a-104, a-117, a-123 and target production."
    )
    assert told["fix"]["word"] == "fixed"
    assert told["compared"] == "diverged"
    page = (incident.folder / told["page"]).read_text(encoding="utf-8")
    assert len(page.encode()) == told["bytes"]
    for said in ("That breaks the rule", "This call is not made.", "Clean up the inactive accounts in staging."):
        assert said in page
    assert not re.search(r'(?:src|href)="(?!#)', page.partition("<main>")[2].partition("<script")[0])


@pytest.mark.slow
def test_a_replay_made_for_the_page_says_the_same(incident: Desk) -> None:
    rules = Path(incident.write("rules.txt", f"{RULE}\ncalled list_inactive_accounts\n")).name
    words = ["incident", "last", "--check", rules, "--json", "-o", "now.html"]
    done = incident.reenact(*words, "--", "python", AGENT, "--guarded", "--data", "files")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["fix"]["word"] == "fixed"
    assert [each["standing"] for each in told["findings"]["recorded"]] == ["fails", "holds"]
    assert (incident.folder / "now.html").exists()


@pytest.mark.slow
def test_the_recording_in_the_page_is_enough_to_replay(incident: Desk) -> None:
    assert incident.reenact("incident", "last").returncode == 0
    page = (incident.folder / "incident.html").read_text(encoding="utf-8")
    trace = json.loads(page.partition('id="data-trace">')[2].partition("</script>")[0])
    elsewhere = Desk(incident.folder / "elsewhere")
    elsewhere.folder.mkdir()
    (elsewhere.folder / trace["name"]).write_bytes(base64.b64decode(trace["base64"]))
    done = elsewhere.reenact("replay", trace["name"], "--", "python", AGENT, environ=elsewhere.bare())
    assert done.returncode == 0, done.stderr
    assert "DELETED FROM PRODUCTION" in done.stdout


IMPOSSIBLE: list[tuple[list[str], int, str]] = [
    (["--replay", "last"], 3, "holds no replay of"),
    (["--replay", "last", "--", "python", AGENT], 2, "not both"),
    (["--assert", "never called"], 3, "the line ends before"),
    (["-o", "no/such/page.html"], 3, "cannot be written"),
]


def test_what_cannot_be_done_is_said_in_a_sentence(incident: Desk) -> None:
    for words, code, said in IMPOSSIBLE:
        done = incident.reenact("incident", "last", *words)
        assert (done.returncode, done.stdout) == (code, ""), words
        assert said in done.stderr, words
        assert "Traceback" not in done.stderr, words
