"""Recordings of strangers that name programs, modules, folders and settings, and who watches what comes of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from reenact.seal import standby
from reenact.values.json import compact
from reenact.values.span import SpanEvent, SpanRecord

EVIL = "reenact_evil"
"""How the modules are called that nobody may import."""

AGENT = """
import json, os, sys
import reenact

@reenact.tool
def add(a, b):
    return a + b

print("sum", add(1, 2))
if told := os.environ.get("TELL_ENVIRONMENT"):
    with open(told, "w") as file:
        json.dump({os.fsdecode(name): os.fsdecode(value) for name, value in os.environ._data.items()}, file)
"""


class _Counting(BaseHTTPRequestHandler):
    asked: list[str]

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_HEAD = _answer  # noqa: N815 - the names are http.server's

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@dataclass
class Lair:
    """A folder of canaries outside the user's project, and a server that counts what is asked of it."""

    folder: Path
    url: str = ""
    asked: list[str] = field(default_factory=list)

    @property
    def canary(self) -> Path:
        """What hostile code makes when it runs."""
        return self.folder / "executed"

    def code(self, what: str) -> str:
        """Python code that leaves a trace of itself."""
        return f"open({str(self.canary)!r}, 'a').write({what!r} + chr(10))"

    def furnish(self, project: Path) -> None:
        """Lay out everything that a trace may name."""
        for name in ("cwd", "path", "home"):
            (self.folder / name).mkdir()
        (self.folder / "cwd" / "pyproject.toml").write_text("")
        script = self.folder / "evil.sh"
        script.write_text(f"#!/bin/sh\necho executable >> {self.canary}\n")
        script.chmod(0o755)
        (self.folder / "evil.py").write_text(self.code("main"))
        (self.folder / "path" / f"{EVIL}_path.py").write_text(self.code("app path") + "\napp = object()\n")
        (project / f"{EVIL}_import.py").write_text(self.code("app import") + "\napp = object()\n")
        (project / f"{EVIL}_job.py").write_text(self.code("job module"))
        for name in ("sitecustomize.py", "usercustomize.py", "agent.py", "json.py"):
            (self.folder / "path" / name).write_text(self.code(f"environment {name}"))
            (self.folder / "cwd" / name).write_text(self.code(f"cwd {name}"))
        (self.folder / "bashrc").write_text(f"echo bash >> {self.canary}\n")
        (self.folder / "restored.txt").write_text("as it was\n")

    def seen(self, *more: Path) -> dict[str, tuple[int, str]]:
        """Look at every file here and in further folders, stores and byte code left out."""
        found: dict[str, tuple[int, str]] = {}
        for top in (self.folder, *more):
            for path in sorted(top.rglob("*")):
                parts = path.relative_to(top).parts
                if any(part in {".reenact", "__pycache__", ".pytest_cache"} for part in parts) or not path.is_file():
                    continue
                data = path.read_bytes()
                found[str(path)] = (path.stat().st_mtime_ns, hashlib.sha256(data).hexdigest())
        return found


@contextmanager
def lair(folder: Path, project: Path) -> Iterator[Lair]:
    """Furnish a lair and serve."""
    folder.mkdir()
    made = Lair(folder)
    made.furnish(project)
    handler = type("Handler", (_Counting,), {"asked": made.asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()


@dataclass(frozen=True)
class Acts:
    """What this process did that an observer of Python sees, while it was watched."""

    started: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)


_watching: list[Acts] = []
_hooked: list[bool] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching:
        return
    acts = _watching[-1]
    if event == "subprocess.Popen" and str(args[0]) == "git":  # whether a bisection is under way
        return
    if event == "subprocess.Popen" and standby.BOOT in args[1]:  # it does nothing without an order
        return
    if event == "socket.sendmsg":
        acts.started.append("by an order to a launcher")
    elif event in {"subprocess.Popen", "os.posix_spawn", "os.exec"}:
        acts.started.append(" ".join(map(str, args[1] if isinstance(args[1], list | tuple) else [args[0]])))
    elif event == "os.system":
        acts.started.append(str(args[0]))
    elif event == "import" and EVIL in str(args[0]):
        acts.imported.append(str(args[0]))


@contextmanager
def watched() -> Iterator[Acts]:
    """Watch this process by an audit hook, which cannot be taken away again and then looks on no more."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
    acts = Acts()
    _watching.append(acts)
    try:
        yield acts
    finally:
        _watching.remove(acts)


# ------------------------------------------------------------------------------------------- what a trace may name


def _root(spans: list[SpanRecord]) -> SpanRecord:
    return next(span for span in spans if span.attributes.get("reenact.run.root") is True)


def _with(spans: list[SpanRecord], **attributes: Any) -> list[SpanRecord]:
    root = _root(spans)
    named = {f"reenact.{name}" if "." not in name else name: value for name, value in attributes.items()}
    changed = replace(root, attributes={**root.attributes, **named})
    return [changed if span is root else span for span in spans]


def _entry(spans: list[SpanRecord], **changes: Any) -> list[SpanRecord]:
    entry = json.loads(str(_root(spans).attributes["reenact.entry"])) | changes
    return _with(spans, entry=compact(entry))


def _around(spans: list[SpanRecord], **changes: Any) -> list[SpanRecord]:
    around = json.loads(str(_root(spans).attributes["reenact.surroundings"])) | changes
    return _with(spans, surroundings=compact(around))


def _unit(spans: list[SpanRecord], app: Mapping[str, Any], **said: Any) -> list[SpanRecord]:
    inbound = {"protocol": "http", "interface": "asgi", "method": "GET", "path": "/", "headers": {}} | said
    further = {"inbound": compact(inbound), "app": compact(dict(app)), "input.value": '{"args":[],"kwargs":{}}'}
    return _with(spans, **further)


def argv(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    return _entry(spans, argv=[sys.executable, "-c", here.code("argv")])


def executable(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    return _entry(spans, executable=str(here.folder / "evil.sh"))


def cwd(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    return _entry(spans, cwd=str(here.folder / "cwd"), argv=["python", "agent.py"], executable=sys.executable)


def environment(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    path = str(here.folder / "path")
    settings = {
        "PYTHONPATH": path,
        "PYTHONSTARTUP": f"{path}/agent.py",
        "PYTHONHOME": path,
        "LD_PRELOAD": f"{path}/evil.so",
        "LD_LIBRARY_PATH": path,
        "BASH_ENV": str(here.folder / "bashrc"),
        "PATH": path,
        "HOME": str(here.folder / "home"),
        "TZ": f":{here.folder}/zone",
        "LANG": "../../evil",
        "OPENAI_BASE_URL": f"{here.url}/v1",
        "EVIL_MODEL": "evil",
        "REENACT_STORE": str(here.folder / "store"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": here.url,
        "HTTPS_PROXY": here.url,
        "OPENAI_API_KEY": "sk-evil-not-a-token",
    }
    return _around(spans, environment=settings, hash_seed="1; evil")


def main(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    return _unit(_entry(spans, main=str(here.folder / "evil.py")), {"interface": "asgi", "import": None, "path": []})


def app_path(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    return _unit(spans, {"import": f"{EVIL}_path:app", "path": [str(here.folder / "path")]})


def app_import(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    del here
    return _unit(spans, {"import": f"{EVIL}_import:app", "path": []})


def job_module(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    said = {"protocol": "job", "interface": "celery", "name": "evil.task", "module": f"{EVIL}_job"}
    return _unit(spans, {"import": f"{EVIL}_job:app", "path": [str(here.folder)]}, **said)


def fixture_path(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    name = f"../../{here.folder}/x'''\"\"\"\nimport os; os.system('touch {here.canary}')\n"
    root = _root(_entry(spans, test=f"{here.folder}/test_evil.py", cwd=str(here.folder / "cwd"), project_words=[0, 1]))
    return [replace(root, name=name) if span.span_id == root.span_id else span for span in spans]


def blob_url(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    references = {
        "evil.url": {"reenact.blob": f"{here.url}/blob", "size": 9, "type": "string"},
        "evil.path": {"reenact.blob": "sha256:../../../../../../etc/passwd", "size": 9, "type": "string"},
        "evil.entry": {"reenact.blob": f"sha256:{'0' * 64}", "size": 9, "type": "string", "url": f"{here.url}/b"},
    }
    held = {name: compact(told) for name, told in references.items()}
    seen = {"llm.input_messages.0.message.contents.0.message_content.image.image.url": f"{here.url}/image.png"}
    return _with(spans, **{"reenact.blobs": [*held], **held, **seen})


def second_root(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    forged = _root(argv(spans, here))
    forged = replace(forged, span_id="f" * 16, parent_id=None, start_ns=1, end_ns=2)
    return [forged, *spans]


def restored_file(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    place = str(here.folder / "restored.txt")
    told = {"path": place, "mode": "w", "content": "evil", "sha256": hashlib.sha256(b"evil").hexdigest()}
    attributes = {
        "reenact.touched": compact([f"write {place}"]),
        "reenact.undeclared": compact([f"write {place} at agent.py:1"]),
        "reenact.files": compact([told]),
        "reenact.state": compact({"files": {place: "evil"}, "changes": [told]}),
        "reenact.file.written": compact(told),
    }
    event = SpanEvent(name="file", time_ns=1, attributes=attributes)
    return [replace(span, attributes={**span.attributes, **attributes}, events=(event,)) for span in spans]


CARRIERS: Mapping[str, Callable[[list[SpanRecord], Lair], list[SpanRecord]]] = {
    "argv": argv,
    "executable": executable,
    "cwd": cwd,
    "environment": environment,
    "main": main,
    "app path": app_path,
    "app import": app_import,
    "job module": job_module,
    "fixture path": fixture_path,
    "blob URL": blob_url,
    "second root": second_root,
    "restored file": restored_file,
}
"""Where a trace may name what is started, imported, written or fetched."""

OF_PROGRAMS = ("argv", "executable", "cwd", "environment", "fixture path", "blob URL", "restored file", "second root")
"""Those that one trace can hold all at once, without being a unit that came in."""


def everything(spans: list[SpanRecord], here: Lair) -> list[SpanRecord]:
    """Give one trace with all of it that fits into a script's run."""
    for name in ("executable", "cwd", "environment", "argv", "blob URL", "restored file", "second root"):
        spans = CARRIERS[name](spans, here)
    return spans


def renamed(spans: list[SpanRecord], trace_id: str) -> list[SpanRecord]:
    """Give spans another trace."""
    return [replace(span, trace_id=trace_id) for span in spans]


def plain() -> dict[str, str]:
    """Give the environment of the tests less our own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_", "OPENAI_"))}
