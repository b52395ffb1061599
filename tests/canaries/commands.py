"""Everything that the command line says of recorded runs, or makes of them, searched like all the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from click.testing import CliRunner

from canaries.recorded import HERE, Left, environment, run_agent
from canaries.searching import Search
from reenact.cli.main import reenact as command_line

_OF_THE_STORE = (
    ["ls"],
    ["ls", "--json"],
    ["cold"],
    ["cold", "--json"],
    ["cold", "--metric", "-"],
    ["status"],
    ["status", "--json"],
    ["recover", "--json"],
)
_OF_A_RUN = (
    ["show"],
    ["show", "--full"],
    ["show", "--json"],
    ["doctor"],
    ["doctor", "--json"],
    ["step"],
    ["step", "--json"],
)
_FORMATS = ("otlp-json", "otlp-proto", "collector-proto", "collector-zstd", "jaeger", "phoenix-json")


def said(store: Path, words: Sequence[str], search: Search, *codes: int) -> str:
    """Run one command in this process, and search what it says."""
    ran = CliRunner().invoke(command_line, [*words, "--store", str(store)], catch_exceptions=True)
    told = ran.output + str(ran.exception or "")
    assert ran.exit_code in (0, *codes), f"{words}: {ran.exit_code}\n{told[-2000:]}"
    where = f"reenact {words[0]}{' --json' if '--json' in words else ''}"
    search.text(told, where)
    search.result.size += len(told)
    return told


def everything(left: Left, search: Search, runs: Iterable[str]) -> None:
    """Look at runs in every way, and make of them all that can be made."""
    store, out = left.folder / "store", left.folder / "out"
    out.mkdir()
    for words in _OF_THE_STORE:
        said(store, words, search)
    before = ""
    for number, run in enumerate(runs):
        for words in _OF_A_RUN:
            said(store, [words[0], run, *words[1:]], search)
        for form in _FORMATS if number == 0 else _FORMATS[:1]:
            said(store, ["export", run, "-o", str(out / f"{number}.{form}"), "--format", form], search)
        said(store, ["export", run, "-o", str(out / f"{number}.zip"), "--blobs", "bundle"], search)
        said(store, ["incident", run, "-o", str(out / f"{number}.html")], search)
        said(store, ["promote", run, "-o", str(out / "tests"), "--name", f"run_{number}", "--untried"], search, 3)
        said(store, ["check", run, "--assert", "never called no_such_tool"], search, 1, 125)
        if before:
            said(store, ["diff", before, run], search, 1)
            said(store, ["diff", before, run, "--json"], search, 1)
        before = run
    search.folder(out, "made of runs")


def again(left: Left, search: Search, words: Sequence[str], plan: Path, *, off: bool) -> str:
    """Replay or fork with another plan, in which each canary is another one, and search what is said and written."""
    agent = [sys.executable, str(HERE / "agent.py"), str(plan)]
    ran = run_agent([*words, "--", *agent], left.folder, environment(left.folder, off=off))
    where = f"reenact {words[0]}{' --json' if '--json' in words else ''}"
    search.text(ran.stdout + ran.stderr, where)
    search.folder(left.folder / "store", "store")
    return ran.stdout + ran.stderr
