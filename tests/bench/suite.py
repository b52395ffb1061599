"""The suite benchmark: 30 tests of 5 chat calls each, run by pytest from recordings, beside other cassette libraries.

    python tests/bench/run.py --part suite

The same agent, the same calls, the same real SDK. Each arm is a project of its own, recorded from a loopback provider
which is gone when it is measured; a round runs every arm's `pytest` once, in turn. Two styles apart: the test calls the
agent itself, or it starts the agent as a program. What stands for no library at all: the same tests without any
cassette, answered by the provider on loopback, which lives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import Figure, table

TESTS, CALLS = 30, 5
VERSIONS = ("pytest", "vcrpy", "pytest-recording", "cassetter")

_AGENT = f"""
import sys
from openai import OpenAI


def agent(number):
    client = OpenAI(max_retries=0)
    messages = [{{"role": "system", "content": "You check invoices."}}]
    for turn in range({CALLS}):
        messages.append({{"role": "user", "content": f"Invoice {{number}}, line {{turn}}: does it agree?"}})
        reply = client.chat.completions.create(model="bench-1", messages=messages, temperature=0.2)
        messages.append({{"role": "assistant", "content": reply.choices[0].message.content}})
    return messages


if __name__ == "__main__":
    with WITHIN:
        print(len(agent(int(sys.argv[1]))))
"""
_INLINE = f"""
import pytest
from agent import agent

@MARK
@pytest.mark.parametrize("number", range({TESTS}))
def test_agent(number):
    assert len(agent(number)) == {2 * CALLS + 1}
"""
_APART = f"""
import subprocess, sys
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_agent(number):
    done = subprocess.run([sys.executable, "agent.py", str(number)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "{2 * CALLS + 1}\\n"), done.stderr
"""
_BODY_TOO = """
import pytest

@pytest.fixture(scope="module")
def vcr_config():
    return {"match_on": ["method", "scheme", "host", "port", "path", "query", "body"]}
"""
_TAPE = 'f"tapes/{sys.argv[1]}.yaml", record_mode="once"'
_VCR = f'__import__("vcr").use_cassette({_TAPE}, match_on=["method", "uri", "body"])'
_CASSETTER = f'__import__("cassetter").use_cassette({_TAPE})'


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to keep the calls of a suite."""

    style: str
    """`in the test` or `in a process`."""
    plugins: tuple[str, ...]
    """Those of pytest's plugins that it needs; the others are off."""
    mark: str = "pytest.mark.filterwarnings('default')"
    """Stands before every test; by default one that does nothing."""
    within: str = "__import__('contextlib').nullcontext()"
    """What the agent's program runs in."""
    conftest: str = ""
    record: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    promoted: bool = False
    live: bool = False


_PLUGINS = ("reenact", "recording", "cassetter")
ARMS: Mapping[str, Arm] = {
    "none, live on loopback": Arm("in the test", (), live=True),
    "reenact": Arm("in the test", ("reenact",), mark="pytest.mark.reenact", record=("--reenact-mode=once",)),
    "vcrpy": Arm(
        "in the test",
        ("recording",),
        mark="pytest.mark.vcr",
        record=("--record-mode=once",),
        replay=("--record-mode=none",),
    ),
    "vcrpy, bodies matched": Arm(
        "in the test",
        ("recording",),
        mark="pytest.mark.vcr",
        conftest=_BODY_TOO,
        record=("--record-mode=once",),
        replay=("--record-mode=none",),
    ),
    "cassetter": Arm(
        "in the test",
        ("cassetter",),
        mark="pytest.mark.vcr",
        record=("--record-mode=once",),
        replay=("--record-mode=none",),
    ),
    "none, live on loopback ": Arm("in a process", (), live=True),
    "reenact, promoted": Arm("in a process", ("reenact",), promoted=True),
    "reenact, promoted, --reenact-cold": Arm("in a process", ("reenact",), promoted=True, replay=("--reenact-cold",)),
    "vcrpy in the program": Arm("in a process", (), within=_VCR),
    "cassetter in the program": Arm("in a process", (), within=_CASSETTER),
}
_OURS = {"in the test": "reenact", "in a process": "reenact, promoted"}
_BESIDE = {
    "in the test": ("vcrpy", "vcrpy, bodies matched", "cassetter"),
    "in a process": ("vcrpy in the program", "cassetter in the program"),
}

Serving = Callable[[], Any]


def measured(rounds: int, serving: Serving) -> dict[str, list[float]]:
    """Record every arm's suite, then run each once a round; give the seconds of each run."""
    found: dict[str, list[float]] = {name: [] for name in ARMS}
    promoted: Path | None = None
    with tempfile.TemporaryDirectory() as folder:
        for number, arm in enumerate(ARMS.values()):
            place = Path(folder) / f"arm{number}"
            if arm.promoted and promoted is not None:
                shutil.copytree(promoted, place)
                continue
            promoted = place if arm.promoted else promoted
            _written(place, arm)
            with serving() as port:
                _recorded(place, arm, _provider(port))
        for number in range(rounds):
            sys.stderr.write(f"\rround {number + 1} of {rounds}: suites      ")
            for place, (name, arm) in enumerate(ARMS.items()):
                with _answering(arm, serving) as environ:
                    began = time.perf_counter()
                    _pytest(Path(folder) / f"arm{place}", arm, arm.replay, environ)
                    found[name].append(time.perf_counter() - began)
    sys.stderr.write("\r" + " " * 60 + "\r")
    return found


@contextmanager
def _answering(arm: Arm, serving: Serving) -> Iterator[Mapping[str, str]]:
    if arm.live:
        with serving() as port:
            yield _provider(port)
    else:
        yield {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"} if not arm.promoted else {}


def _provider(port: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}


def _written(place: Path, arm: Arm) -> None:
    (place / "recordings").mkdir(parents=True)
    (place / "tapes").mkdir()
    (place / "pyproject.toml").write_text("")
    (place / "agent.py").write_text(_AGENT.replace("WITHIN", arm.within))
    (place / "conftest.py").write_text(arm.conftest)
    if arm.promoted:
        return
    (place / "test_suite.py").write_text(_INLINE.replace("MARK", arm.mark) if arm.style == "in the test" else _APART)


def _recorded(place: Path, arm: Arm, environ: Mapping[str, str]) -> None:
    """Record what the arm's tests call. A program's own address of the provider is the same when it is measured."""
    if not arm.promoted:
        _pytest(place, arm, arm.record, environ)
        for tape in [*place.rglob("*.yaml")]:
            port = environ["OPENAI_BASE_URL"].split(":")[2].partition("/")[0]
            tape.write_text(tape.read_text().replace(f"127.0.0.1:{port}", "127.0.0.1:9"))
        return
    for number in range(TESTS):
        _reenact(place, environ, "run", "-q", "--", sys.executable, "agent.py", str(number))
        _reenact(place, environ, "promote", "last", "-o", ".", "--name", f"agent_{number}")


def _reenact(place: Path, environ: Mapping[str, str], *words: str) -> None:
    _run([sys.executable, "-m", "reenact", *words], place, environ)


def _pytest(place: Path, arm: Arm, words: tuple[str, ...], environ: Mapping[str, str]) -> None:
    off = [word for name in _PLUGINS if name not in arm.plugins for word in ("-p", f"no:{name}")]
    said = _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *off, *words], place, environ)
    if f"{TESTS} passed" not in said:
        sys.exit(f"{place}: not all passed:\n{said}")


def _run(command: list[str], place: Path, environ: Mapping[str, str]) -> str:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_", "REENACT_"))
    }
    done = subprocess.run(command, cwd=place, env=inherited | environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed in {place}:\n{done.stdout}{done.stderr}")
    return done.stdout


def laid_out(found: Mapping[str, list[float]]) -> tuple[str, list[dict[str, Any]]]:
    """Lay out how long each suite took, and how ours relates to it."""
    rows: list[list[str]] = []
    documents: list[dict[str, Any]] = []
    for style, ours in _OURS.items():
        rows.append([f"the agent {style}", "", ""])
        own = Figure.of(found[ours])
        for name, arm in ARMS.items():
            if arm.style == style:
                took = Figure.of(found[name])
                ratio = own.median / took.median
                rows.append([f"  {name.strip()}", took.shown(2), f"{ratio:.2f}" if name in _BESIDE[style] else ""])
                document = {"style": style, "arm": name.strip(), "seconds": took.json(), "ours_of_it": round(ratio, 4)}
                documents.append(document)
    return table([f"s, median (quartiles), {TESTS} tests of {CALLS} calls", "wall", "reenact / it"], rows), documents
