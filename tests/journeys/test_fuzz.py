"""`reenact fuzz`: bugs beside the recorded run, found offline, each shown by a run that replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

pytestmark = pytest.mark.timeout(600)
"""One command tries many replays of a program."""
NOTHING_NEW = {"run", "again", "seconds", "runs", "ready"}


def recorded(desk: Desk, name: str, *words: str, slip: float = 1.0) -> str:
    """Record an example that goes wrong, take the provider away, and give the run's id."""
    (desk.folder / "files").mkdir()
    with StandIn(slip=slip) as provider:
        desk.environ.update(provider.environment)
        done = desk.reenact("run", "-q", "--", "python", str(EXAMPLES / f"{name}.py"), *words)
    assert done.returncode == 0, done.stderr
    desk.environ.clear()
    return newest(desk)


def own(desk: Desk, source: str) -> str:
    """Record a program of the test's own."""
    desk.write("program.py", "from __future__ import annotations\nimport reenact\n" + source)
    done = desk.reenact("run", "-q", "--", "python", "program.py")
    assert done.returncode == 0, done.stderr
    return newest(desk)


def newest(desk: Desk) -> str:
    runs: list[dict[str, Any]] = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return str(runs[0]["id"])


def fuzzed(desk: Desk, run: str, *words: str, code: int = 1) -> dict[str, Any]:
    desk.limit_s = 290.0
    done = desk.reenact("fuzz", run, "--json", *words)
    assert done.returncode == code, (done.stdout, done.stderr)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def described(found: dict[str, Any]) -> str:
    return f"{found['harm']} {found['what']} {found['where'] or ''}"


def replays(desk: Desk, found: dict[str, Any]) -> None:
    """The run of a discovery is in the store, says what was varied, and is met again when it is replayed."""
    done = desk.reenact("replay", found["run"])
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("same: ") for line in done.stderr.splitlines()), done.stderr
    shown = json.loads(desk.reenact("show", found["run"], "--json").stdout)
    assert any("reenact.varied" in call["attributes"] for call in shown["calls"])
    assert shown["run"]["notes"] == []


@pytest.mark.slow
def test_the_cleanup_agent_takes_half_a_stream_for_all_of_it(desk: Desk) -> None:
    run = recorded(desk, "cleanup_agent", "--data", "files")
    told = fuzzed(desk, run, "--only", "timing", "--cases", "6")
    unnoticed = [each for each in told["found"] if each["harm"] == "swallowed"]
    assert unnoticed, [described(each) for each in told["found"]]
    assert {each["basis"] for each in unnoticed} == {"evidence"}
    assert any("recorded calls were not made any more" in each["because"] for each in unnoticed)
    replays(desk, unnoticed[0])


@pytest.mark.slow
def test_the_order_desk_stops_at_the_first_tool_that_fails(desk: Desk) -> None:
    run = recorded(desk, "order_desk")
    told = fuzzed(desk, run, "--only", "tools", "--cases", "6")
    crash = next(each for each in told["found"] if each["harm"] == "crash" and "order_desk.py:76" in each["where"])
    assert crash["basis"] == "evidence"
    assert crash["case"]["variations"][0]["kind"] == "raises"


@pytest.mark.slow
def test_the_guard_of_the_price_agent_falls_over_a_quote_without_a_price(desk: Desk) -> None:
    run = recorded(desk, "price_agent")
    fixed = ["--", "python", str(EXAMPLES / "price_agent.py"), "--guarded"]
    told = fuzzed(desk, run, "--only", "tools", "--cases", "17", *fixed)
    assert told["before"]["result"] == "diverged"
    crash = next(each for each in told["found"] if each["what"] == "KeyError: 'price'")
    assert "price_agent.py:71" in crash["where"]
    assert crash["basis"] == "evidence"


@pytest.mark.slow
def test_the_guard_of_the_trader_is_blind_where_the_quote_has_no_price(desk: Desk) -> None:
    run = recorded(desk, "trader_agent", "--orders", "files/orders.jsonl")
    fixed = ["--", "python", str(EXAMPLES / "trader_agent.py"), "--guarded", "--orders", "files/orders.jsonl"]
    limit = "never called place_order where quantity > 100"
    told = fuzzed(desk, run, "--only", "tools", "--cases", "20", "--assert", limit, *fixed)
    violated = next(each for each in told["found"] if each["harm"] == "assertion")
    assert violated["what"] == f"does not hold: {limit}"
    assert violated["basis"] == "nearest"  # what the model says to another quote is not known
    assert violated["case"]["size"] == 1
    replays(desk, violated)
    assert not (desk.folder / "files" / "orders.jsonl").read_text().count("\n") > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cleanup_agent", "order_desk", "price_agent", "trader_agent"])
def test_by_default_every_example_has_a_bug_on_evidence_and_the_seed_gives_the_same_list(desk: Desk, name: str) -> None:
    run = recorded(desk, name)
    told = [fuzzed(desk, run, "--seed", "4") for _ in range(2)]
    assert any(each["basis"] == "evidence" for each in told[0]["found"])
    assert all(each["steady"] for each in told[0]["found"])
    first, second = (lasting(each) for each in told)
    assert first == second


def lasting(value: Any) -> Any:
    """Leave out what is another every time: ids of new runs, times."""
    if isinstance(value, list):
        return [lasting(each) for each in value]
    if isinstance(value, dict):
        return {key: lasting(each) for key, each in value.items() if key not in NOTHING_NEW}
    return value


PIPELINE = """
@reenact.tool
def find(name):
    return [{"id": "o-17", "owner": "u-1"}, {"id": "o-23", "owner": "u-2"}]
@reenact.tool
def audit(what):
    return "ok"
@reenact.tool
def refund(order_id):
    return {"refunded": order_id}
orders = find("lamp")
try:
    audit("refund")
except Exception:
    pass
mine = [order for order in orders if order["owner"] == "u-1"]
print(refund(mine[0]["id"]))
"""


@pytest.mark.slow
def test_a_swallowed_error_and_an_id_that_is_passed_on(desk: Desk) -> None:
    run = own(desk, PIPELINE)
    told = fuzzed(desk, run, "--only", "tools", "--cases", "16")
    found = {each["harm"]: each for each in reversed(told["found"])}
    assert "tool audit" in found["swallowed"]["what"]
    assert found["tool"]["what"].startswith("tool refund was called with arguments.order_id = ")
    assert {each["basis"] for each in told["found"]} == {"evidence"}
    for harm in ("swallowed", "crash"):
        replays(desk, found[harm])


RACE = """
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
@reenact.tool
def quote(carrier):
    time.sleep(0.05 if carrier == "swift" else 0.25)
    return {"carrier": carrier, "price": 5}
@reenact.tool
def book(carrier):
    return "booked"
with ThreadPoolExecutor(2) as pool:
    futures = [pool.submit(quote, name) for name in ("swift", "slow")]
    first = next(as_completed(futures)).result()
print(book(first["carrier"]))
"""


@pytest.mark.slow
def test_a_race_that_went_well_is_lost_when_the_answers_come_the_other_way_round(desk: Desk) -> None:
    run = own(desk, RACE)
    rule = 'never called book where carrier = "slow"'
    told = fuzzed(desk, run, "--only", "timing", "--assert", rule)
    (violated,) = told["found"]
    assert (violated["harm"], violated["basis"]) == ("assertion", "evidence")
    assert violated["case"]["variations"][0]["kind"] == "completion"
    replays(desk, violated)


BUDGET = """
from openai import OpenAI
client = OpenAI()
def ask(text):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="stand-in-everything", messages=messages, user="u-17")
first = ask("Name it.")
print(ask("Vote even." if first.usage.total_tokens % 2 == 0 else "Vote odd.").choices[0].message.content)
"""


@pytest.mark.slow
def test_an_ignored_field_that_the_program_heeds_is_named(desk: Desk, provider: StandIn) -> None:
    desk.environ.update(provider.environment)
    run = own(desk, BUDGET)
    told = fuzzed(desk, run, "--keys")
    paths = {each["field"]: each["path"] for each in told["keys"]}
    assert paths["reply.usage"] == "altered"
    assert {paths[name] for name in ("reply.id", "reply.created", "request.user", "request.url")} == {"same"}
    altered = next(each for each in told["keys"] if each["path"] == "altered")
    assert "llm ChatCompletion" in altered["first"]


@pytest.mark.slow
def test_where_nothing_is_found_it_says_what_was_tried(desk: Desk) -> None:
    run = own(desk, "@reenact.tool\ndef now():\n    return None\nprint(now() is None)\n")
    done = desk.reenact("fuzz", run, "--only", "chunks,timing")
    assert done.returncode == 125, done.stderr  # nothing tried is not nothing there
    assert done.stdout.startswith("nothing tried: program.py")
    assert "not tried: chunks: no retrieval is in the recording" in done.stdout
    assert done.stderr == ""


def test_what_cannot_be_judged_is_125_and_a_wrong_group_is_2(desk: Desk) -> None:
    run = own(desk, "@reenact.tool\ndef now():\n    return 1\nprint(now())\n")
    Path(desk.folder / "other.sh").write_text("true")
    assert desk.reenact("fuzz", run, "--", "sh", "other.sh").returncode == 125
    assert desk.reenact("fuzz", run, "--only", "weather").returncode == 2


WAITING = """
import time
@reenact.retriever
def queue(name):
    return ["a job"]
jobs = queue("all")
while not jobs:
    time.sleep(0.01)
print(jobs)
"""


@pytest.mark.slow
def test_a_program_that_waits_for_ever_is_ended(desk: Desk) -> None:
    told = fuzzed(desk, own(desk, WAITING), "--only", "chunks", "--seed", "10", "--case", "1", "--limit", "8")
    hang = next(each for each in told["found"] if each["harm"] == "hang")
    assert hang["what"] == "the program did not end within 8 s; the last it did was retriever queue #2"


@pytest.mark.slow
def test_a_case_is_run_again_by_its_number_and_all_of_them_by_their_seed(desk: Desk) -> None:
    run = own(desk, PIPELINE)
    of = ["--only", "tools", "--limit", "60", "--seed", "2"]
    told = fuzzed(desk, run, *of, "--cases", "4")
    first = told["found"][0]
    again = fuzzed(desk, run, *of, "--case", str(first["case"]["number"]))
    assert first["what"] in {each["what"] for each in again["found"]}
    assert again["cases"] == 1
    assert lasting(fuzzed(desk, run, *of, "--cases", "4")) == lasting(told)


SLOW = """
from openai import OpenAI

client = OpenAI(max_retries=0)

@reenact.tool
def weigh(parcel: str) -> dict:
    return {"grams": 500, "parcel": parcel, "label": "blue"}

def ask(text):
    said = client.chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content

found = weigh("P-1")
print(ask("Name an animal."), found["grams"] / 2)
"""


def slow(desk: Desk) -> str:
    with StandIn() as provider:
        desk.environ.update(provider.environment)
        run = own(desk, SLOW)
    desk.environ.clear()
    return run


def test_nothing_tried_is_not_nothing_found(desk: Desk) -> None:
    run = slow(desk)
    for words in (("--cases", "0", "--only", "tools"), ("--case", "99999"), ("--only", "chunks")):
        done = desk.reenact("fuzz", run, *words)
        assert done.returncode == 125, (words, done.stdout, done.stderr)
        assert done.stdout.startswith("nothing tried: "), done.stdout
