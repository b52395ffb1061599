"""One recorded run of the agent that carries canaries, and everything that it left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import warm_python
from canaries.agent import PATHS, SERVED
from canaries.encodings import BY_NAME, ENCODINGS, Encoding
from canaries.searching import Cell, Search, Searched
from canaries.values import canary
from canaries.world import STREAMS, World
from receivers import http_receiver, running_grpc_receiver
from reenact.keep.catalog import runs_of
from reenact.stores.directory import DirectoryStore

Row: TypeAlias = tuple[str, str]
"""A class of value, and the name of the encoding in which it is spelled."""
HERE = Path(__file__).parent
OFF = HERE / "off"
"""On PYTHONPATH it turns redaction off: what shows that a path carries, and that the search finds."""
ORDINARY = [name for name in PATHS if not name.startswith("stream")]
OF_RUNS = ("run name", "run input", "run user", "run session", "run tenant", "run's own error")
"""Paths that are facts of a run."""
OF_CHILDREN = ("multiprocessing", "forked process")
OF_PROCESS = ("command line", "command line, option", "variable", "resource attribute")
"""Paths that are facts of a process."""
OF_SERVICE = tuple(f"service: {each}" for each in SERVED)


def known_in(cells: Iterable[Cell]) -> dict[str, str]:
    """Give the variables by which secrets of no known form are known."""
    return {f"CANARY_{cell.id.replace('-', '_')}_API_KEY": cell.value for cell in cells if cell.name == "known_secret"}


def planted(name: str, path: str, encoding: Encoding) -> Cell:
    """Make the cell of a path and an encoding, with a canary of its own."""
    value = canary(name, path, encoding.name)
    spelled = encoding.spell(value)
    text = spelled if encoding.alone or path in ALONE else f"Use {spelled} for it, please."
    number = f"{list(EVERY).index(path):02d}-{[each.name for each in ENCODINGS].index(encoding.name):02d}"
    return Cell(id=f"{name[:4]}{number}", name=name, path=path, encoding=encoding.name, value=value, text=text)


EVERY = (*ORDINARY, *OF_RUNS, *OF_CHILDREN, *OF_PROCESS, *OF_SERVICE)
ALONE = frozenset(["authorization header", "user in a URL", "command line, option"])
"""Paths on which a value stands alone."""


@dataclass
class Left:
    """What a recorded process left behind."""

    cells: list[Cell]
    searched: Searched
    carried: dict[str, str]
    """By cell: why it could not be carried, empty where it was."""
    folder: Path = Path()
    said: str = ""
    seen: list[bytes] = field(default_factory=list[bytes])

    def reports(self) -> Iterable[Cell]:
        return (cell for cell in self.cells if not self.carried.get(cell.id))


def plan_of(rows: Sequence[Row], paths: Sequence[str] = ()) -> tuple[list[Cell], dict[str, Any]]:
    """Plan a matrix: one run a class and encoding, in it one call a path; all paths by default."""
    paths = paths or EVERY
    cells: list[Cell] = []
    runs: list[dict[str, Any]] = []

    def cell(path: str, row: Row) -> dict[str, str]:
        made = planted(row[0], path, BY_NAME[row[1]])
        cells.append(made)
        return {"id": made.id, "path": made.path, "text": made.text}

    def fact(path: str, row: Row) -> str | None:
        return cell(path, row)["text"] if path in paths else None

    for row in rows:
        run: dict[str, Any] = {"name": fact("run name", row) or f"a run, {row[1]}"}
        run |= {each.removeprefix("run "): fact(each, row) for each in OF_RUNS[1:5]}
        run["cells"] = [cell(path, row) for path in ORDINARY if path in paths]
        if (error := fact("run's own error", row)) is not None:
            run["dies_of"] = error
        runs.append(run)
    served = [cell(path, row) for row in rows for path in OF_SERVICE if path in paths]
    below = [cell(path, row) for row in rows for path in OF_CHILDREN if path in paths]
    return cells, {"runs": runs, "served": served, "children": below}


STREAMED = (*STREAMS, "as it stands", "yielded", "yielded objects")
"""The kinds of streams: events of providers, bytes of anybody, what generators yield."""


def plan_of_streams(wanted: Iterable[tuple[str, str, str]]) -> tuple[list[Cell], dict[str, Any]]:
    """Plan streams: each spelling of a value cut at every place inside it, and once into single characters."""
    cells: list[Cell] = []
    runs: list[dict[str, Any]] = []
    for name, kind, spelling in wanted:
        encoding = BY_NAME[spelling]
        began = len(cells)
        spelled = _spelled(name, kind, encoding, 0)[1]
        for cut in range(len(spelled)):
            value, text = _spelled(name, kind, encoding, cut)
            pieces = _pieces(text, kind, cut)
            number = f"{STREAMED.index(kind)}-{[each.name for each in ENCODINGS].index(encoding.name)}-{cut}"
            told = json.dumps([kind, pieces])
            path = f"stream: {kind}"
            cells.append(
                Cell(id=f"s{name[:4]}{number}", name=name, path=path, encoding=encoding.name, value=value, text=told)
            )
        told_off = [{"id": cell.id, "path": cell.path, "text": cell.text} for cell in cells[began:]]
        runs.append({"name": f"{name}, {kind}, {encoding.name}", "cells": told_off})
    return cells, {"runs": runs}


def plan_of_deaths(rows: Iterable[Row]) -> tuple[list[Cell], list[dict[str, str]]]:
    """Plan streams that a process is killed in, at every place inside a value; its last piece never comes."""
    cells: list[Cell] = []
    for name, spelling in rows:
        encoding = BY_NAME[spelling]
        for kind in ("as it stands", "yielded"):
            for cut in range(1, len(_spelled(name, f"killed {kind}", encoding, 0)[1])):
                value, text = _spelled(name, f"killed {kind}", encoding, cut)
                told = json.dumps([kind, [*_pieces(text, kind, cut)[:-1], " now.", "."]])
                number = f"{STREAMED.index(kind)}-{[each.name for each in ENCODINGS].index(encoding.name)}-{cut}"
                path = f"killed: {kind}"
                cell = f"k{name[:4]}{number}"
                cells.append(Cell(id=cell, name=name, path=path, encoding=encoding.name, value=value, text=told))
    return cells, [{"id": cell.id, "path": cell.path, "text": cell.text} for cell in cells]


def _spelled(name: str, kind: str, encoding: Encoding, cut: int) -> tuple[str, str]:
    value = canary(name, kind, encoding.name, cut)
    return value, encoding.spell(value)


def _pieces(text: str, kind: str, cut: int) -> list[str]:
    """Cut a text in two inside; for 0 into single characters."""
    if kind == "as it stands":  # bytes: a character may be cut, too
        data = text.encode()
        parts = [data[:cut], data[cut:]] if cut else [data[at : at + 1] for at in range(len(data))]
        return ["Take ", *(part.decode("utf-8", "surrogateescape") for part in parts), " now."]
    parts = [text[:cut], text[cut:]] if cut else list(text)
    return ["Take ", *parts, " now."]


def environment(folder: Path, *, off: bool) -> dict[str, str]:
    """Give the environment of a program, with redaction off where asked."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("REENACT_", "OTEL_", "OPENAI_", "ANTHROPIC_"))}
    at = [*([str(OFF)] if off else []), str(HERE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**plain, "PYTHONPATH": os.pathsep.join(filter(None, at)), "REENACT_STORE": str(folder / "store")}


def of_process(rows: Sequence[Row], environ: dict[str, str]) -> tuple[list[Cell], list[str]]:
    """Put canaries into the facts of a process: its words, its variables, its resource."""
    cells: list[Cell] = []
    words: list[str] = []
    told: list[str] = []
    for number, (name, encoding) in enumerate(rows):
        for path in OF_PROCESS:
            cell = planted(name, path, BY_NAME[encoding])
            if "\0" in cell.text:
                continue
            cells.append(cell)
            if path == "command line":
                words.append(cell.text)
            elif path == "command line, option":
                words += ["--api-key", cell.text]
            elif path == "variable":
                environ[f"CANARY_{number}_URL"] = cell.text
            else:
                told.append(f"canary.{number}={quote(cell.text, safe='')}")
    environ["OTEL_RESOURCE_ATTRIBUTES"] = ",".join(told)
    return cells, words


def run_agent(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command that starts the agent, in the folder's `work`: both are forks of a warm interpreter."""
    work, argv = folder / "work", [sys.executable, "-m", "reenact", *words]
    work.mkdir(exist_ok=True)
    return warm_python.completed(argv, work, environ, limit_s=600)


def record(
    folder: Path,
    cells: list[Cell],
    plan: dict[str, Any],
    *,
    off: bool = False,
    words: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    more: Callable[[Left, Search], None] | None = None,
) -> Left:
    """Record the agent, and search all that it left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    search = Search(cells)
    with ExitStack() as stack:
        world = stack.enter_context(World({cell.id: cell.text for cell in cells}))
        proto, plain = stack.enter_context(http_receiver()), stack.enter_context(http_receiver())
        grpc = stack.enter_context(running_grpc_receiver())
        files = {"report": "report.json", "application_spans": "application.json", "as_it_is": "journal as it is"}
        plan |= {"url": world.url, **{key: str(folder / name) for key, name in files.items()}}
        (folder / "plan.json").write_text(json.dumps(plan))
        told = {**environment(folder, off=off), **known_in(cells), **(environ or {})}
        told |= {
            "REENACT_EXPORT": f"{proto.url},grpc://{grpc.address},file://{folder}/sent.jsonl",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": plain.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }
        agent = [sys.executable, str(HERE / "agent.py"), str(folder / "plan.json")]
        ran = run_agent(["run", "--", *agent, *words], folder, told)
    assert ran.returncode == (0 if not plan.get("dies") else 137), ran.stderr[-3000:]
    left = Left(cells, search.result, json.loads((folder / "report.json").read_text()), folder, ran.stderr, world.seen)
    for receiver, name in ((proto, "OTLP/HTTP, gzip"), (plain, "OTLP/HTTP"), (grpc, "OTLP/gRPC")):
        assert receiver.requests, f"nothing was sent by {name}"
        for request in receiver.requests:
            search.bytes(request.SerializeToString(), name)
    search.folder(folder / "store", "store")
    search.folder(folder / "journal as it is", "journal, alive")
    search.bytes((folder / "application.json").read_bytes(), "application's own spans")
    search.bytes((folder / "sent.jsonl").read_bytes(), "OTLP file")
    search.text(ran.stderr + ran.stdout, "stderr and stdout")
    search.streams(_runs(folder), "streams put together")
    if more is not None:
        more(left, search)
    return left


def _runs(folder: Path) -> Iterable[Any]:
    store = DirectoryStore(folder / "store")
    return [run for trace_id in store.trace_ids() for run in runs_of(store, trace_id)]
