"""Walking a run without its code: in a pipe all of it, on a terminal by keys."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from desk import Desk
from inside import Inside
from reenact.formats import otlp_json
from reenact.values.span import SpanRecord

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"
CASSETTE = str(GOLDEN / "vcr_cassette/vcrpy/input.yaml")
TALK = str(GOLDEN / "trajectory/claude_session/input.jsonl")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    return Inside(tmp_path, monkeypatch)


def test_a_pipe_gets_every_step_numbered(inside: Inside) -> None:
    shown = inside.reenact("step", CASSETTE).stdout
    heads = re.findall(r"^step (\d) of 5 · (\w+ \w+)", shown, re.MULTILINE)
    assert heads == [
        ("1", "llm ChatCompletion"),
        ("2", "tool lookup_order"),
        ("3", "llm ChatCompletion"),
        ("4", "tool order_status"),
        ("5", "llm ChatCompletion"),
    ]
    assert "+ user: Where is my order?" in shown
    assert 'in      query="my order", user_id="u-17"' in shown
    assert "because llm ChatCompletion" in shown
    assert "\x1b" not in shown


def test_the_document_has_state_and_io_before_and_after(inside: Inside) -> None:
    said = json.loads(inside.reenact("step", CASSETTE, "--json").stdout)
    steps = said["steps"]
    assert [each["step"] for each in steps] == [1, 2, 3, 4, 5]
    assert [len(each["before"]["messages"]) for each in steps] == [2, 3, 4, 5, 6]
    assert [len(each["after"]["messages"]) for each in steps] == [3, 4, 5, 6, 7]
    assert [each["before"]["new"] for each in steps] == [2, 0, 0, 0, 0]
    first, tool = steps[0], steps[1]
    assert first["before"]["tools"] == ["lookup_order", "order_status"]
    assert first["after"]["messages"][-1]["tool_calls"][0]["name"] == "lookup_order"
    assert tool["caused_by"] == first["call"]
    assert tool["input"]["arguments"] == {"query": "my order", "user_id": "u-17"}
    assert "A-1001" in json.dumps(tool["output"])
    assert tool["after"]["messages"][-1]["role"] == "tool"
    roles = [([told["role"] for told in each[side]["messages"]]) for each in steps for side in ("before", "after")]
    assert roles[1:-1:2] == roles[2::2]  # each step begins where the one before it ended


def test_one_call_alone(inside: Inside) -> None:
    said = json.loads(inside.reenact("step", CASSETTE, "--json", "--at", "first tool").stdout)
    assert [(each["step"], each["name"]) for each in said["steps"]] == [(2, "lookup_order")]
    assert inside.reenact("step", CASSETTE, "--at", "tool nobody").returncode == 2


def test_a_run_without_calls_says_why(inside: Inside) -> None:
    span = SpanRecord(trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="idle", start_ns=1, end_ns=2)
    assert otlp_json.FORMAT.encode is not None
    (inside.folder / "idle.jsonl").write_bytes(otlp_json.FORMAT.encode([span]))
    shown = inside.reenact("step", "idle.jsonl").stdout
    assert "no call to step through" in shown
    assert "no call of a model or tool was recorded" in shown


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, desk: Desk, *words: str) -> None:
        self.master, slave = pty.openpty()
        environ = {**os.environ, **desk.environ, "TERM": "dumb", "COLUMNS": "100", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "reenact", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=desk.folder,
            env=environ,
        )
        os.close(slave)

    def until(self, mark: str, seconds: float = 60) -> str:
        """Read up to a text."""
        found, end = "", time.monotonic() + seconds
        while mark not in found and time.monotonic() < end:
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    found += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:  # the other end is closed
                    break
        assert mark in found, found
        return found.replace("\r", "")

    def type(self, keys: str, mark: str = " q > ") -> str:
        """Type keys and read what comes up to the next prompt."""
        os.write(self.master, keys.encode())
        return self.until(mark)


def test_keys_walk_forward_and_back(desk: Desk) -> None:
    terminal = Terminal(desk, "step", CASSETTE)
    assert "step 1 of 5" in terminal.until(" q > ")
    assert "step 2 of 5" in terminal.type("n\n")
    assert "step 3 of 5" in terminal.type("\n")
    assert "step 2 of 5" in terminal.type("p\n")
    assert "step 5 of 5" in terminal.type("g 5\n")
    assert "this is the last step" in terminal.type("n\n")
    assert "step 1 of 5" in terminal.type("f\n")
    assert "this is the first step" in terminal.type("p\n")
    assert "step 2 of 5" in terminal.type("/A-1001\n")
    terminal.type("f\n")
    assert "You are the order desk" in terminal.type("m\n")
    assert '"lookup_order"' in terminal.type("o\n")
    assert "tool order_status" in terminal.type("s\n")
    assert "next step" in terminal.type("h\n")
    assert "no step says that" in terminal.type("/this is said nowhere\n")
    os.write(terminal.master, b"q\n")
    assert terminal.process.wait(100) == 0


def test_a_hostile_payload_cannot_act_on_the_terminal(desk: Desk, inside: Inside) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\x1b]52;c;aGk=\x07"
    lines = [
        {"role": "user", "content": evil},
        {"role": "assistant", "content": evil, "tool_calls": []},
    ]
    (desk.folder / "evil.json").write_text(json.dumps({"messages": lines, "name": evil}))
    for words in (("step",), ("show",), ("show", "--full"), ("doctor",), ("cold", "--by", "model,reason")):
        shown = inside.reenact(words[0], "evil.json", *words[1:]).stdout
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), words
    terminal = Terminal(desk, "step", "evil.json")
    seen = terminal.until(" q > ") + terminal.type("m\n") + terminal.type("a\n") + terminal.type("i\n")
    assert "evil" in seen
    assert not re.search("\x1b\\]|\x1b\\[2J|\x9b|\u202e", seen)
    os.write(terminal.master, b"q\n")
    assert terminal.process.wait(100) == 0
