from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

PROGRAM = """
import reenact

@reenact.tool
def delete_accounts(target: str, account_ids: list[str]) -> int:
    return len(account_ids)

@reenact.tool
def list_accounts(target: str) -> int:
    return 3

for user, tenant, target in (("ann", "acme", "staging"), ("bob", "acme", "production"), ("ann", "other", "production")):
    with reenact.run("clean-up", user=user, session=f"s-{user}", tenant=tenant):
        list_accounts(target)
        if user == "bob" or target == "staging":
            delete_accounts(target, ["a-104", "a-117"])
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Three runs, seen from Kathmandu, in the store and in one file."""
    made = Desk(tmp_path_factory.mktemp("desk"), {"TZ": "<+0545>-5:45"})
    (made.folder / ".git").mkdir()
    (made.folder / ".git" / "HEAD").write_text("c0ffee" + "12" * 17 + "\n")
    done = made.reenact("run", "--", "python", made.write("clean_up.py", PROGRAM))
    assert done.returncode == 0, done.stderr
    data = b"".join(path.read_bytes() for path in sorted((made.folder / ".reenact" / "traces").rglob("*.jsonl")))
    (made.folder / "all.jsonl").write_bytes(data)
    return made


@pytest.fixture(params=["the store", "a file"])
def source(request: pytest.FixtureRequest) -> list[str]:
    return ["all.jsonl"] if request.param == "a file" else []


def listed(desk: Desk, *words: str) -> list[dict[str, Any]]:
    done = desk.reenact("ls", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["runs"]  # type: ignore[no-any-return]


def who(desk: Desk, *words: str) -> list[str]:
    return [f"{run['user']} at {run['tenant']}" for run in listed(desk, *words)]


def minute(desk: Desk, *, utc: bool) -> str:
    """The minute in which the runs began, on a clock on the wall of Kathmandu, or in UTC."""
    started = datetime.fromisoformat(listed(desk)[0]["started"])
    east = started.timestamp() + (0 if utc else 5.75 * 3600)
    return f"{datetime.fromtimestamp(east, UTC):%Y-%m-%dT%H:%M}{'Z' if utc else ''}"


@pytest.mark.sample(2)
def test_the_user_the_minute_and_the_tool_lead_to_the_run(desk: Desk, source: list[str]) -> None:
    for at in (minute(desk, utc=False), minute(desk, utc=True)):
        words = ["--user", "bob", "--at", at, "--tool", "delete_accounts", "--arg", "target=production", *source]
        assert who(desk, *words) == ["bob at acme"]
    assert who(desk, "--at", minute(desk, utc=False) + "Z", *source) == [], "a zone that is named is not the local one"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", ["ann at other", "bob at acme", "ann at acme"]),
        ("--limit 1", ["ann at other"]),
        ("--limit 1 --skip 1", ["bob at acme"]),
        ("--skip 2", ["ann at acme"]),
        ("--user ann", ["ann at other", "ann at acme"]),
        ("--tenant acme --session s-ann", ["ann at acme"]),
        ("--tool delete_accounts", ["bob at acme", "ann at acme"]),
        ("--tool delete_accounts --arg target=production --user ann", []),
        ("--arg account_ids=a-117 --arg target=staging", ["ann at acme"]),
        ("--arg account_ids.0=a-117", []),
        ("--status error", []),
        ("--entry clean_up.py", ["ann at other", "bob at acme", "ann at acme"]),
        ("--entry clean-up --user bob", ["bob at acme"]),
        ("--entry other.py", []),
        ("--commit c0ffee1 --tool delete_accounts", ["bob at acme", "ann at acme"]),
        ("--commit 0ffee", []),
        ("--text A-117 --status ok", ["bob at acme", "ann at acme"]),
        ("--text A-117 --limit 1 --skip 1", ["ann at acme"]),
        ("--since 2h", ["ann at other", "bob at acme", "ann at acme"]),
        ("--until 2h", []),
        ("--since 2020-01-01 --until 2020-12-31", []),
    ],
)
def test_every_filter_means_the_same_on_a_store_and_on_a_file(
    desk: Desk, source: list[str], words: str, expected: list[str]
) -> None:
    assert who(desk, *words.split(), *source) == expected


def test_a_time_that_was_listed_can_be_asked_for(desk: Desk) -> None:
    rows = desk.reenact("ls").stdout.splitlines()
    started = rows[1][rows[0].index("STARTED") :].split("  ")[0]
    assert started.endswith("Z")
    assert "bob at acme" in who(desk, "--at", started, "--within", "2s")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--at noon", "--at takes a time such as"),
        ("--within 5m", "there is no --at"),
        ("--arg target", "--arg takes PATH=VALUE"),
        ("--limit -1", "0 or more"),
        ("--skip -1", "0 or more"),
    ],
)
def test_what_makes_no_sense_is_told(desk: Desk, words: str, said: str) -> None:
    done = desk.reenact("ls", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_nothing_found_is_said_on_stderr(desk: Desk) -> None:
    done = desk.reenact("ls", "--user", "nobody")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no run fits\n")


def test_a_damaged_index_is_mended_and_the_json_stays_one_document(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.reenact("run", "--", "python", desk.write("clean_up.py", PROGRAM))
    (index,) = (tmp_path / ".reenact").glob("index-*.sqlite")
    index.write_bytes(b"this is no database, " * 500)
    done = desk.reenact("ls", "--json", "--user", "bob")
    assert len(json.loads(done.stdout)["runs"]) == 1
    assert "the index is damaged" in done.stderr
    assert "made again from the traces" in done.stderr


@pytest.mark.bench
def test_listing_takes_no_time_worth_noticing(desk: Desk, record_property: Any) -> None:
    began = time.perf_counter()
    assert desk.reenact("ls", "--user", "bob").returncode == 0
    record_property("figure", f"reenact ls, the whole command: {(time.perf_counter() - began) * 1000:.0f} ms")
