"""Traces and places that somebody made to harm: refused or shown, in bounded time and memory, and never raw."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import socket
import subprocess
import sys
import tty
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from reenact.cli import main

pytestmark = pytest.mark.sample(4)

TRACE = "0123456789abcdef0123456789abcdef"
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
EVIL = "\x1b]0;pwn\x07\x1b[31m\x9b31mX\u202eY\u2066\r\x00\x08\x7f\u200b\ud800 EVIL\nreenact: forged \U000e0041"


def span(number: int, name: str, attributes: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{1:016x}"} if number > 1 else {}),
        "name": name,
        "startTimeUnixNano": str(1_790_000_000_000_000_000 + number * 10**8),
        "endTimeUnixNano": str(1_790_000_000_000_000_000 + number * 10**8 + 10**7),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        **more,
    }


def line(*spans: dict[str, Any], resource_of: dict[str, str] | None = None, scope: str = "") -> str:
    named = [{"key": key, "value": {"stringValue": value}} for key, value in (resource_of or {}).items()]
    scopes = [{"scope": {"name": scope}, "spans": list(spans)}]
    return json.dumps({"resourceSpans": [{"resource": {"attributes": named}, "scopeSpans": scopes}]}) + "\n"


def hostile() -> str:
    """Give a trace in which every name and every text acts on a terminal."""
    asked = {
        "model": f"gpt{EVIL}",
        "messages": [{"role": "system", "content": EVIL}, {"role": f"user{EVIL}", "content": EVIL}],
        "tools": [{"type": "function", "function": {"name": f"t{EVIL}", "parameters": {"properties": {EVIL: {}}}}}],
        EVIL: EVIL,
    }
    call = {"id": EVIL, "type": "function", "function": {"name": f"t{EVIL}", "arguments": json.dumps({EVIL: EVIL})}}
    message = {"role": "assistant", "content": f"a{EVIL}", "tool_calls": [call]}
    reply = {"model": f"gpt{EVIL}", "choices": [{"message": message, "finish_reason": EVIL}]}
    event = [{"key": f"exception.{part}", "value": {"stringValue": EVIL}} for part in ("type", "message", "stacktrace")]
    http = "application/json"
    return line(
        span(
            1,
            f"root{EVIL}",
            {"openinference.span.kind": "AGENT", "input.value": EVIL, "session.id": EVIL, "user.id": EVIL},
        ),
        span(
            2,
            f"llm{EVIL}",
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": f"gpt{EVIL}",
                "input.value": json.dumps(asked),
                "input.mime_type": http,
                "output.value": json.dumps(reply),
                "output.mime_type": http,
                EVIL: EVIL,
            },
        ),
        span(
            3,
            f"tool{EVIL}",
            {"openinference.span.kind": "TOOL", "tool.name": f"t{EVIL}", "input.value": json.dumps({EVIL: EVIL})},
            status={"code": 2, "message": EVIL},
            events=[{"name": "exception", "timeUnixNano": "1790000000350000000", "attributes": event}],
        ),
        span(4, f"retriever{EVIL}", {"openinference.span.kind": "RETRIEVER", "input.value": EVIL}),
        span(
            5, f"own{EVIL}", {"openinference.span.kind": "TOOL", "reenact.schema_version": EVIL, "reenact.lane": EVIL}
        ),
        resource_of={"service.name": EVIL, "process.command": EVIL, "reenact.recording.id": EVIL, EVIL: EVIL},
        scope=EVIL,
    )


@dataclass
class Shell:
    """The whole command, `main` included, in this process."""

    folder: Path
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self.patch.chdir(self.folder)
        self.patch.setenv("REENACT_STORE", str(self.folder / "store"))
        self.patch.setattr(sys, "argv", ["reenact", *words])
        self.capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.main()
        told = self.capture.readouterr()
        return int(ended.value.code or 0), told.out, told.err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


# ------------------------------------------------------------------------------------------------- before a terminal

COMMANDS = {
    "show": ("show", "h.jsonl", "--full"),
    "show, a document": ("show", "h.jsonl", "--json"),
    "step": ("step", "h.jsonl"),
    "step, a document": ("step", "h.jsonl", "--json"),
    "ls of a file": ("ls", "h.jsonl"),
    "doctor": ("doctor", "h.jsonl"),
    "doctor, a document": ("doctor", "h.jsonl", "--json"),
    "check": ("check", "h.jsonl", "--assert", 'answer contains "zzz"', "--assert", "called x before y"),
    "diff": ("diff", "h.jsonl", "other.jsonl"),
    "diff, a document": ("diff", "h.jsonl", "other.jsonl", "--json"),
    "what": ("what", "h.jsonl"),
    "what, a document": ("what", "broken.jsonl", "--json"),
    "cold": ("cold", "h.jsonl"),
    "cold, as metrics": ("cold", "h.jsonl", "--metric", "-"),
    "incident": ("incident", "h.jsonl", "-o", "page.html"),
    "incident, a document": ("incident", "h.jsonl", "-o", "page.html", "--json"),
    "redact": ("redact", "h.jsonl", "-o", "clean.jsonl"),
    "export": ("export", "h.jsonl", "-o", "out.jsonl"),
    "replay": ("replay", "h.jsonl"),
    "replay, all": ("replay", "--all", "folder"),
    "fork": ("fork", "h.jsonl", "--at", "#2", "--set", "text=hi"),
    "fork, no such call": ("fork", "h.jsonl", "--at", "nosuch", "--set", "text=hi"),
    "fuzz": ("fuzz", "h.jsonl"),
    "promote": ("promote", "h.jsonl", "--untried"),
    "a broken file": ("show", "broken.jsonl"),
    "a file whose name acts": ("show", f"{EVIL[:12]}.jsonl"),
    "no such file": ("show", "no\x1b[31m\x9b.jsonl"),
    "no such run": ("show", "h.jsonl#\x1b[31mzz"),
    "no such command": ("frob\x1b[31mnicate",),
    "no such option": ("show", "--fro\x1b[31mb"),
    "import": ("import", "h.jsonl"),
    "import, a document": ("import", "h.jsonl", "--json"),
}
OF_THE_STORE = [
    ("ls",),
    ("ls", "--json"),
    ("ls", "--text", "EVIL"),
    ("show", "last"),
    ("step", "last"),
    ("doctor", "last"),
    ("cold",),
    ("status",),
    ("store", "check"),
    ("recover",),
    ("replay", "last"),
]


def clean(told: str) -> None:
    assert (found := RAW.search(told)) is None, repr(told[max(0, found.start() - 60) : found.end() + 20])
    assert not any(each.startswith("reenact: forged") for each in told.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_a_trace_reaches_a_terminal_raw(shell: Shell, name: str) -> None:
    (shell.folder / "folder").mkdir()
    for file in ("h.jsonl", "folder/h.jsonl"):
        (shell.folder / file).write_text(hostile())
    (shell.folder / "other.jsonl").write_text(hostile().replace("gpt", "other"))
    (shell.folder / "broken.jsonl").write_text(hostile()[:3000] + "\n" + hostile())
    code, out, err = shell(*COMMANDS[name])
    clean(out)
    clean(err)
    assert out + err
    assert "Traceback" not in err
    if "document" in name and code in {0, 1}:
        json.loads(out)


def test_nor_does_what_the_store_holds_of_it(shell: Shell) -> None:
    (shell.folder / "h.jsonl").write_text(hostile())
    assert shell("import", "h.jsonl")[0] == 0
    for words in OF_THE_STORE:
        _, out, err = shell(*words)
        clean(out)
        clean(err)
        assert "Traceback" not in err, words


def test_a_document_says_the_same_in_escapes(shell: Shell) -> None:
    (shell.folder / "h.jsonl").write_text(hostile())
    (run,) = json.loads(shell("ls", "h.jsonl", "--json")[1])["runs"]
    assert run["session"] == EVIL


PRINTS = re.compile(r"\bclick\.s?echo\(|\bprint\(|\bsys\.(?:stdout|stderr)\.write\(|sys\.__std|\bclick\.echo\b")
DOORS = {
    "cli/options.py": "the door",
    "values/terminal.py": "the door of recorded processes",
    "find/big_files.py": "cleans the name that it writes",
    "deliver/delivering.py": "what the program gave out",
    "pipeline/warm_python.py": "what the program ended with",
    "testing/warm_interpreter.py": "as that",
    "bootstrap/sitecustomize.py": "before anything of ours can be imported; it names no trace",
    "record/standard_input.py": "names the standard input, and prints nothing",
    "demo/provider.py": "a program of its own",
    "demo/story.py": "as that",
    "demo/script.py": "as that",
    "report/paint.py": "prints to a text, which a command prints",
}


@pytest.mark.parametrize("words", [("export", "h.jsonl"), ("redact", "h.jsonl")], ids=["export", "redact"])
def test_spans_that_are_written_to_a_terminal_say_the_same_in_escapes(tmp_path: Path, words: tuple[str, str]) -> None:
    (tmp_path / "h.jsonl").write_text(hostile())
    command = [sys.executable, "-m", "reenact", *words, "-o", "-", "--store", "s"]
    piped = subprocess.run(command, capture_output=True, cwd=tmp_path, check=True).stdout
    screen, terminal = pty.openpty()
    tty.setraw(terminal)
    with subprocess.Popen(command, stdout=terminal, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # EIO: the other end is closed
            while data := os.read(screen, 1 << 16):
                shown += data
        said = process.stderr.read() if process.stderr else b""
    os.close(screen)
    assert process.returncode == 0, said
    assert not RAW.search(shown.decode())
    documents = [[json.loads(each) for each in data.splitlines()] for data in (shown, piped)]
    assert len(documents[0]) == len(documents[1]) > 0
    assert documents[0] == documents[1] or words[0] == "redact", "two redactions draw two salts"


def test_spans_that_are_no_text_are_not_written_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(hostile())
    command = [sys.executable, "-m", "reenact", "export", "h.jsonl", "-o", "-", "--format", "otlp-proto"]
    screen, terminal = pty.openpty()
    done = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(terminal)
    os.close(screen)
    assert done.returncode == 2
    assert b"`-o FILE`" in done.stderr


def test_whoever_prints_goes_through_a_door(root: Path) -> None:
    package = root / "src" / "reenact"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if PRINTS.search(path.read_text(encoding="utf-8")) and "demo" not in path.parts
    }
    assert found - set(DOORS) == set()


# --------------------------------------------------------------------------------------------------- what is nested

DEEP: dict[str, str] = {
    "brackets.json": "[" * 400_000,
    "closed.json": "[" * 200_000 + "]" * 200_000,
    "objects.json": '{"a":' * 80_000,
    "mixed.json": '[{"a":' * 60_000,
    "lines.json": "[\n" * 20_000 + "]\n" * 20_000,
    "within.jsonl": '{"resourceSpans":' + "[" * 400_000 + "\n",
    "quotes.json": '{"a":"' + '\\"' * 1_000_000,
    "sequence.yaml": "interactions:\n- request: " + "[" * 100_000 + "]" * 100_000 + "\n",
    "dashes.yaml": "interactions:\n" + "- " * 50_000 + "a\n",
    "aliases.yaml": "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))
    + "interactions:\n- request: *i\n",
}
SHOWN: dict[str, Callable[[], dict[str, str]]] = {
    "an argument": lambda: {"input.value": '{"a":' * 400_000 + "1" + "}" * 400_000},
    "a long number": lambda: {"input.value": "[" * 1010 + "1" * 30 + "]" * 1010},
    "nearly too deep": lambda: {"input.value": "[" * 1010 + "]" * 1010},
    "a repr": lambda: {"input.value": "(" * 5000 + ")" * 5000, "output.value": "content='" + "[" * 3000},
}


def bounded(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may have a gigabyte of memory, and twenty seconds of a processor."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    return subprocess.run(
        [sys.executable, "-m", "reenact", *words, "--store", "store"],
        cwd=folder,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.sample(10)
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_without_end_is_refused_before_it_costs_anything(tmp_path: Path, name: str) -> None:
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(DEEP[name])
    done = bounded(tmp_path, "show", name)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"reenact: {name}")
    assert "Traceback" not in done.stderr


@pytest.mark.sample(8)
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("command", [("show", "--json"), ("step",), ("incident", "-o", "page.html")])
def test_one_deep_value_keeps_nobody_from_the_rest(tmp_path: Path, name: str, command: tuple[str, ...]) -> None:
    kind = {"openinference.span.kind": "TOOL", "output.value": '"ok"'}
    (tmp_path / "t.jsonl").write_text(line(span(1, "x", {**kind, **SHOWN[name]()})))
    done = bounded(tmp_path, command[0], "t.jsonl", *command[1:])
    assert done.returncode in {0, 3}, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "called x where a = " + "[" * 300 + "]" * 300,
        "called x where a = " + "9" * 6000,
        "called x at least " + "9" * 6000 + " times",
        'answer matches "(a+)+$(?=b)"',
        'answer matches "' + "(" * 500 + ")" * 500 + '"',
        "called " + "x" * 200_000,
    ],
    ids=["brackets", "a number", "a count", "looks ahead", "groups", "a name"],
)
def test_an_assertion_without_measure_is_refused(shell: Shell, text: str) -> None:
    (shell.folder / "t.jsonl").write_text(line(span(1, "x", {})))
    code, _, err = shell("check", "t.jsonl", "--assert", text)
    assert code == 3
    assert err.startswith("reenact: assertion:1")
    assert "Traceback" not in err


def test_a_pattern_of_many_ways_is_judged_at_once(tmp_path: Path) -> None:
    reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": "a" * 100_000 + "!"}}]})
    asked = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "q"}]})
    kind = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    types = {"input.mime_type": "application/json", "output.mime_type": "application/json"}
    (tmp_path / "t.jsonl").write_text(
        line(span(1, "llm", {**kind, **types, "input.value": asked, "output.value": reply}))
    )
    done = bounded(tmp_path, "check", "t.jsonl", "--assert", 'answer matches "(a+)+$"')
    assert done.returncode == 1, done.stderr
    assert "fails" in done.stdout


# ------------------------------------------------------------------------------------------------------ where it is

PLACES = ("show", "ls", "doctor", "step", "import", "cold", "redact", "replay", "fork", "fuzz", "promote", "incident")


@pytest.mark.parametrize("command", PLACES)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_is_refused_and_not_waited_for(shell: Shell, command: str, kind: str) -> None:
    path = shell.folder / "t.jsonl"
    listening = socket.socket(socket.AF_UNIX)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        shell.patch.chdir(shell.folder)
        listening.bind("t.jsonl")
    else:
        path = Path("/dev/zero")
    code, _, err = shell(command, str(path))
    listening.close()
    assert code == 3
    assert f"reenact: {path}: this is a" in err


def test_assertions_and_policies_are_no_pipes_either(shell: Shell) -> None:
    (shell.folder / "t.jsonl").write_text(line(span(1, "x", {})))
    os.mkfifo(shell.folder / "pipe")
    for words in (
        ("check", "t.jsonl", "--check", "pipe"),
        ("policy", "pipe"),
        ("redact", "t.jsonl", "--policy", "pipe"),
    ):
        code, _, err = shell(*words)
        assert code == 3, words
        assert "is no regular file" in err, words


def test_what_the_shell_opened_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(line(span(1, "named", {})))
    command = f"{sys.executable} -m reenact show <(cat t.jsonl) --store store"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "named" in done.stdout


def test_the_memory_of_a_process_is_no_trace(shell: Shell) -> None:
    assert shell("show", "/proc/self/mem")[0] == 3


def test_folders_in_a_circle_end(shell: Shell) -> None:
    (shell.folder / "a").mkdir()
    (shell.folder / "a" / "again").symlink_to("..")
    (shell.folder / "a" / "loop").symlink_to("loop")
    (shell.folder / "a" / "t.jsonl").write_text(line(span(1, "x", {})))
    assert shell("show", "a")[0] == 0


# ---------------------------------------------------------------------------------------------------- options

MEANT = [
    ("show", "last", "--jsn"),
    ("--jsn", "ls"),
    ("replay", "last", "--wriets", "allow"),
    ("replay", "--wriets", "allow"),
    ("replay", "last", "--wriets", "allow", "--", "touch", "ran"),
    ("replay", "last", "-x"),
    ("replay", "last", "touch", "ran", "--flag"),
    ("run", "--foo", "--", "touch", "ran"),
    ("run", "--foo", "touch", "ran"),
    ("run", "-z", "touch", "ran"),
    ("fork", "last", "--seet", "a=b", "--", "touch", "ran"),
    ("fuzz", "last", "--sed", "3", "--", "touch", "ran"),
    ("promote", "last", "--nme", "x", "--", "touch", "ran"),
    ("incident", "last", "--reply", "last"),
]


@pytest.mark.parametrize("words", MEANT, ids=" ".join)
def test_an_option_that_is_not_known_is_a_usage_error_and_no_program(shell: Shell, words: tuple[str, ...]) -> None:
    (shell.folder / "last").write_text(line(span(1, "x", {})))
    code, _, err = shell(*words)
    assert code == 2
    assert "No such option" in err
    assert not (shell.folder / "ran").exists()


def test_what_stands_behind_two_hyphens_is_the_program_s(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    said = desk.write("said.py", "import sys; print(sys.argv[1:])")
    done = desk.reenact("run", "--store", "store", "--", sys.executable, said, "--foo", "--", "-q")
    assert done.stdout == "['--foo', '--', '-q']\n"
    done = desk.reenact("run", "--store", "store", sys.executable, said, "--foo")
    assert done.stdout == "['--foo']\n"
