"""Policies on the command line: recorded under, replayed under, applied to what is there, proved, and refused."""

from __future__ import annotations

import json
import stat
import sys
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

PROGRAM = """
import os, subprocess, sys
import reenact

@reenact.tool
def find(name: str) -> dict:
    return {"name": name, "mail": "ada@analytical-engines.example.org", "number": "ACME-123456", "visits": 3}

@reenact.tool
def write(to: str, text: str) -> str:
    return f"sent to {to}"

found = find("Ada Lovelace")
said = write(found["mail"], f"Dear {found['name']}, call +1 415 555 2671 about {found['number']} and Project Falcon.")
print(said)
if "child" not in sys.argv and len(sys.argv) > 1:
    subprocess.run([sys.executable, "program.py", "child"], cwd=os.getcwd(), check=True)
"""
SECRETS = ("Ada Lovelace", "ada@analytical-engines.example.org", "415 555 2671", "ACME-123456", "Project Falcon")
OURS = """name = "ours"
[[find]]
class = "customer_number"
pattern = 'ACME-[0-9]{6,10}'
do = "mask"

[[find]]
class = "project"
words = ["Project Falcon"]

[[rule]]
class = "phone"
tool = "write"
do = "keep"
"""
EVERYTHING = 'payloads = "pseudonymise"\n'
STRUCTURE = 'payloads = "drop"\n'


def everything_written(desk: Desk) -> str:
    """All bytes that a recording left, less the program and the policies themselves."""
    left = [file for file in desk.folder.rglob("*") if file.is_file() and file.suffix not in {".py", ".toml", ".pyc"}]
    return "\n".join(file.read_bytes().decode("latin-1") for file in left)


def root_of(desk: Desk) -> dict[str, Any]:
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    return shown["run"]["redaction"]


@pytest.fixture
def told(desk: Desk) -> Desk:
    desk.write("program.py", PROGRAM)
    desk.write("ours.toml", OURS)
    desk.write("everything.toml", EVERYTHING)
    desk.write("structure.toml", STRUCTURE)
    return desk


def test_the_default_replaces_replays_and_is_told_on_the_trace(told: Desk) -> None:
    done = told.reenact("run", "-q", "--", "python", "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sent to ada@analytical-engines.example.org\n"
    written = everything_written(told)
    assert "analytical-engines" not in written
    assert "555 2671" not in written
    redaction = root_of(told)
    assert redaction["name"] == "default"
    assert redaction["replaced"] == {"e_mail": 3, "phone": 1}
    replayed = told.reenact("replay", "last")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.startswith("sent to REDACTED_e_mail_")
    assert "redacted under default" in told.reenact("doctor", "last").stdout


@pytest.mark.slow
def test_a_policy_of_ones_own_is_followed_by_children_and_by_the_replay(told: Desk) -> None:
    done = told.reenact("run", "-q", "--policy", "ours.toml", "--", "python", "program.py", "with")
    assert done.returncode == 0, done.stderr
    written = everything_written(told)
    for secret in ("ACME-123456", "Project Falcon", "analytical-engines"):
        assert secret not in written, secret
    assert "415 555 2671" in written  # kept for this tool
    assert "REDACTED_customer_number" in written
    assert "REDACTED_customer_number_" not in written  # masked
    redaction = root_of(told)
    assert redaction["name"] == "ours"
    replayed = told.reenact("replay", "last")
    assert replayed.returncode == 1, replayed.stdout
    assert "policy 'ours' has 1 words that its trace does not hold: set REENACT_REDACTION_POLICY" in replayed.stderr
    told.environ["REENACT_REDACTION_POLICY"] = "ours.toml"
    replayed = told.reenact("replay", "last")
    assert replayed.returncode == 0, replayed.stderr


@pytest.mark.parametrize(
    "where", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("variable", "project", "store")), "call"]
)
def test_a_policy_is_found_where_it_says(told: Desk, where: str) -> None:
    command = [sys.executable, "-m", "reenact", "run", "-q", "--", "python", "program.py"]
    if where == "variable":
        told.environ["REENACT_REDACTION_POLICY"] = "everything.toml"
    elif where == "project":
        told.write("pyproject.toml", '[tool.reenact]\nredaction-policy = "everything.toml"\n')
    elif where == "store":
        (told.folder / ".reenact").mkdir()
        told.write(".reenact/policy.toml", 'name = "everything"\n' + EVERYTHING)
    else:
        lines = ("import reenact, runpy", "with reenact.record(policy='everything.toml'):")
        told.write("own.py", "\n".join([*lines, "    runpy.run_path('program.py')", ""]))
        command = [sys.executable, "own.py"]
    done = told.run(command)
    assert done.returncode == 0, done.stderr
    assert root_of(told)["name"] == "everything"
    written = everything_written(told)
    for secret in SECRETS:
        assert secret not in written, secret


@pytest.mark.slow
def test_everything_becomes_tokens_and_the_replay_is_the_same(told: Desk) -> None:
    done = told.reenact("run", "-q", "--policy", "everything.toml", "--", "python", "program.py")
    assert done.returncode == 0, done.stderr
    shown = json.loads(told.reenact("show", "last", "--json").stdout)
    find, write = (call for call in shown["calls"] if call["kind"] == "tool")
    assert [find["name"], write["name"]] == ["find", "write"]
    assert find["outcome"]["returned"]["visits"] == 3
    assert find["outcome"]["returned"]["name"].startswith("REDACTED_value_")
    assert find["outcome"]["returned"]["name"] == find["request"]["arguments"]["name"]
    replayed = told.reenact("replay", "last", "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["misses"] == []


@pytest.mark.slow
def test_an_agent_of_a_model_replays_without_a_miss_when_all_texts_are_tokens(told: Desk) -> None:
    policy = str(EXAMPLES / "policies" / "pseudonymise-everything.toml")
    with StandIn(slip=1.0) as provider:
        told.environ.update(provider.environment)
        done = told.reenact("run", "-q", "--policy", policy, "--", "python", str(EXAMPLES / "cleanup_agent.py"))
    assert done.returncode == 0, done.stderr
    told.environ.clear()
    written = everything_written(told)
    assert "inactive" not in written.replace("list_inactive_accounts", "")
    replayed = told.reenact("replay", "last", "--json")
    assert replayed.returncode == 0, replayed.stdout
    assert json.loads(replayed.stdout)["misses"] == []


def test_a_policy_that_cannot_be_read_costs_the_payloads_and_never_the_agent(told: Desk) -> None:
    told.write("bad.toml", 'name = "bad"\n[[rule]]\nclass = "e_mail"\ndo = "kepe"\n')
    told.environ["REENACT_REDACTION_POLICY"] = "bad.toml"
    done = told.reenact("run", "--", "python", "program.py", "with")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sent to ada@analytical-engines.example.org\n") == 2
    assert done.stderr.count("bad.toml:4:1: 'do' cannot be 'kepe'") == 2, done.stderr  # once, and in the verdict
    written = everything_written(told)
    for secret in SECRETS:
        assert secret not in written, secret
    redaction = root_of(told)
    assert redaction["failed"] == "bad.toml:4:1: 'do' cannot be 'kepe'"
    shown = json.loads(told.reenact("show", "last", "--json").stdout)
    assert [call["name"] for call in shown["calls"] if call["kind"] == "tool"][:2] == ["find", "write"]
    verdict = shown["run"]["verdict"]
    assert verdict["grade"] == "none"
    assert [reason["field"] for reason in verdict["reasons"]] == ["payloads"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", [["policy"], ["redact", "last"], ["redact", "last", "--check"]])
def test_commands_stop_at_a_policy_that_cannot_be_read(told: Desk, command: list[str]) -> None:
    assert told.reenact("run", "-q", "--", "python", "program.py").returncode == 0
    told.write("bad.toml", '[classes]\ne_male = "keep"\n')
    told.environ["REENACT_REDACTION_POLICY"] = "bad.toml"
    done = told.reenact(*command)
    assert done.returncode == 3
    assert "bad.toml:2:1: there is no class or group 'e_male'\n  did you mean 'e_mail'?" in done.stderr
    assert not list(told.folder.glob("*.jsonl"))


@pytest.mark.slow
def test_structure_alone_is_kept_where_a_policy_drops_payloads(told: Desk) -> None:
    done = told.reenact("run", "-q", "--policy", "structure.toml", "--", "python", "program.py")
    assert done.returncode == 0, done.stderr
    written = everything_written(told)
    for secret in (*SECRETS, "Dear", "sent to"):
        assert secret not in written, secret
    shown = json.loads(told.reenact("show", "last", "--json").stdout)
    assert [call["name"] for call in shown["calls"] if call["kind"] == "tool"] == ["find", "write"]


@pytest.mark.slow
def test_the_key_is_the_store_s_and_nowhere_else(told: Desk) -> None:
    assert told.reenact("run", "-q", "--", "python", "program.py", "with").returncode == 0
    file = told.folder / ".reenact" / "redaction.key"
    key = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = root_of(told)["key"]
    assert told.reenact("export", "last", "--blobs", "bundle", "-o", "bundle.zip").returncode == 0
    assert told.reenact("incident", "last", "-o", "page.html").returncode == 0
    said = told.reenact("policy").stdout + told.reenact("policy", "--json").stdout
    file.unlink()
    assert key not in everything_written(told) + said
    assert first in said
    assert bytes.fromhex(key).decode("latin-1") not in everything_written(told)
    assert told.reenact("run", "-q", "--", "python", "program.py").returncode == 0
    assert root_of(told)["key"] != first


def test_a_trace_of_a_stranger_is_redacted_and_proved(told: Desk) -> None:
    assert told.reenact("run", "-q", "--", "python", "program.py").returncode == 0
    assert told.reenact("export", "last", "-o", "plain.jsonl").returncode == 0
    (told.folder / "plain.jsonl").write_text(STRANGER)
    checked = told.reenact("redact", "plain.jsonl", "--check")
    assert checked.returncode == 1, checked.stdout
    assert "analytical" not in checked.stdout
    counted = {line.split()[0]: line.split()[1:] for line in checked.stdout.splitlines()[1:]}
    assert counted["e_mail"][-1].startswith("REDACTED_e_mail_")
    assert not (told.folder / "plain.redacted.jsonl").exists()
    done = told.reenact("redact", "plain.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["replaced"] == {"e_mail": 3, "openai_key": 2}
    assert {(each["class"], each["place"]) for each in said["places"]} == {
        ("e_mail", "gen_ai.prompt.*.content"),
        ("e_mail", "event note"),
        ("e_mail", "status"),
        ("openai_key", "resource deployment.note"),
        ("openai_key", "nested"),
    }
    clean = (told.folder / "plain.redacted.jsonl").read_text()
    assert "analytical" not in clean
    assert "sk-proj" not in clean
    assert "0102030405060708" in clean
    assert "1700000000000000001" in clean
    again = told.reenact("redact", "plain.redacted.jsonl", "--check")
    assert (again.returncode, again.stdout.splitlines()[1:]) == (0, [])
    assert told.reenact("doctor", "plain.redacted.jsonl").stdout.count("redacted under default") == 1


@pytest.mark.slow
def test_an_import_takes_traces_as_they_are_unless_told_otherwise(told: Desk) -> None:
    told.write("plain.jsonl", STRANGER)
    assert told.reenact("import", "plain.jsonl").returncode == 0
    assert "analytical" in told.reenact("export", "last", "-o", "-").stdout
    told.environ["REENACT_STORE"] = "other"
    assert told.reenact("import", "plain.jsonl", "--redact").returncode == 0
    clean = told.reenact("export", "last", "-o", "-").stdout
    assert "analytical" not in clean
    assert "REDACTED_e_mail_" in clean
    told.environ["REENACT_STORE"] = "third"
    assert told.reenact("import", "plain.jsonl", "--policy", "everything.toml").returncode == 0
    assert "Hello" not in told.reenact("export", "last", "-o", "-").stdout


@pytest.mark.slow
def test_what_is_redacted_again_by_more_still_replays(told: Desk) -> None:
    assert told.reenact("run", "-q", "--", "python", "program.py").returncode == 0
    done = told.reenact("redact", "last", "--policy", "everything.toml", "-o", "all.jsonl")
    assert done.returncode == 0, done.stderr
    assert "Ada" not in (told.folder / "all.jsonl").read_text()
    replayed = told.reenact("replay", "--trust", "all.jsonl", "--json")
    assert replayed.returncode == 0, replayed.stdout
    assert json.loads(replayed.stdout)["misses"] == []


def test_a_stream_is_redacted_across_its_pieces(told: Desk) -> None:
    chunks = [[at, at, piece] for at, piece in enumerate(STREAM)]
    attributes = {
        "reenact.boundary": "http",
        "openinference.span.kind": "LLM",
        "reenact.stream.chunks": json.dumps(chunks),
    }
    told.write("stream.jsonl", otlp(attributes))
    assert told.reenact("redact", "stream.jsonl", "--check").returncode == 1
    assert told.reenact("redact", "stream.jsonl", "-o", "clean.jsonl").returncode == 0
    clean = (told.folder / "clean.jsonl").read_text()
    assert "engines.example" not in clean
    assert "REDACTED_e_mail_" in clean
    (span,) = json.loads(clean)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    (kept,) = [each["value"]["stringValue"] for each in span["attributes"] if each["key"] == "reenact.stream.chunks"]
    assert len(json.loads(kept)) == len(STREAM)
    for _, _, piece in json.loads(kept):
        assert json.loads(piece.removeprefix("data: "))["choices"]
    assert told.reenact("redact", "clean.jsonl", "--check").returncode == 0


def otlp(attributes: dict[str, str], **span: object) -> str:
    told = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    ids = {"traceId": "0" * 31 + "a", "spanId": "0102030405060708", "name": "chat", "kind": 3}
    times = {"startTimeUnixNano": "1700000000000000001", "endTimeUnixNano": "1700000000000000009"}
    note = {"key": "deployment.note", "value": {"stringValue": f"key {KEY}"}}
    spans = [{**ids, **times, "attributes": told, **span}]
    resource = {"attributes": [note] if "status" in span else []}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}) + "\n"


KEY = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6kL8nP1"
STREAM = [
    "data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) + "\n\n"
    for text in ("Write to ada", "@analytical-", "engines.example", ".org, please", ".")
]
STRANGER = otlp(
    {
        "gen_ai.system": "openai",
        "gen_ai.prompt.0.content": "Hello, I am ada@analytical-engines.example.org",
        "nested": json.dumps({"a": json.dumps({"b": [f"Bearer {KEY}"]})}),
    },
    status={"code": 2, "message": "no mail to ada@analytical-engines.example.org"},
    events=[
        {
            "name": "told",
            "timeUnixNano": "1700000000000000002",
            "attributes": [{"key": "note", "value": {"stringValue": "cc ada@analytical-engines.example.org"}}],
        }
    ],
)
