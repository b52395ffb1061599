from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.deliver import applications
from reenact.errors import CannotJudge
from reenact.graph.build import build
from reenact.values.json import compact
from reenact.values.run import Run
from reenact.values.span import SpanRecord

MODULE = """
app = object()
class holder:
    inner = app
def make(*args, **kwargs):
    return args, kwargs
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "made_service.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield
    sys.modules.pop("made_service", None)


def made(tmp_path: Path, name: str | None, named: str | None = None, **more: Any) -> Any:
    entry = more.pop("entry", {})
    app = {"import": name, "path": [str(tmp_path), "/nowhere"], **more}
    return applications.make_application(applications.Making.of(served(app, entry)).with_given(named))


def served(app: dict[str, Any], entry: dict[str, Any]) -> Run:
    """A run whose root says that this application served it."""
    span = SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name="GET /",
        start_ns=1,
        end_ns=2,
        attributes={"reenact.run.root": True, "reenact.app": compact(app), "reenact.entry": compact(entry)},
    )
    (run,) = build([span])
    return run


def test_it_is_imported_by_its_name(tmp_path: Path) -> None:
    app = made(tmp_path, "made_service:app")
    assert app is sys.modules["made_service"].app
    assert "/nowhere" not in sys.path
    assert made(tmp_path, "made_service:holder.inner") is app
    assert made(tmp_path, "made_service:make", factory=True) == ((), {})
    assert made(tmp_path, "made_service:make('x', n=2)") == (("x",), {"n": 2})


def test_the_one_that_is_named_goes_first(tmp_path: Path) -> None:
    assert made(tmp_path, "nowhere:app", "made_service:app") is sys.modules["made_service"].app
    assert made(tmp_path, None, "made_service:make()") == ((), {})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere:app", "nowhere:app cannot be imported: No module named 'nowhere'"),
        ("made_service:other", "there is no made_service:other"),
        ("made_service", "there is no made_service:application"),
        ("made_service:1 +", "does not name an application"),
        (None, "does not say how its application is made"),
    ],
)
def test_one_that_cannot_be_made_is_said(tmp_path: Path, name: str | None, why: str) -> None:
    with pytest.raises(CannotJudge) as caught:
        made(tmp_path, name)
    assert why in caught.value.message
    assert "--app" in caught.value.hint


def program(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "program.py"
    path.write_text(text)
    return {"main": str(path), "argv": [sys.executable, "program.py", "--name", "x"]}


@pytest.mark.parametrize(
    "serve",
    [
        "import uvicorn\nuvicorn.run(app, port=1)",
        "import uvicorn, asyncio\nasyncio.run(uvicorn.Server(uvicorn.Config(app)).serve())",
        "from wsgiref.simple_server import make_server\nmake_server('127.0.0.1', 1, app).serve_forever()",
        "from werkzeug.serving import run_simple\nrun_simple('127.0.0.1', 1, app)",
        "import flask\nouter = flask.Flask('x')\nouter.kept = app\napp = outer\nouter.run(port=1)",
    ],
    ids=["uvicorn.run", "Server.serve", "wsgiref", "werkzeug", "Flask.run"],
)
def test_one_without_a_name_is_what_its_program_would_serve(tmp_path: Path, serve: str) -> None:
    text = "import sys\nasync def app(scope, receive, send):\n    return sys.argv\ndef main(app):\n"
    entry = program(tmp_path, text + "".join(f"    {line}\n" for line in serve.split("\n")) + "main(app)\n")
    served = made(tmp_path, None, entry=entry)
    kept = sys.modules["__main__"].app
    assert served is kept or served.kept is kept
    assert sys.argv != ["program.py", "--name", "x"], "the words are the program's own for as long as it runs"


def test_a_program_s_own_variable_is_taken_by_its_name(tmp_path: Path) -> None:
    entry = program(tmp_path, "import sys\napp = [*sys.argv]\nif __name__ != '__main__':\n    app = None\n")
    app = made(tmp_path, "__main__:app", entry=entry, file=entry["main"])
    assert app == [entry["main"], "--name", "x"]


@pytest.mark.parametrize(
    "text",
    ["pass", "raise SystemExit(3)", "import socket\nsocket.socket().bind(('127.0.0.1', 0))\nraise ValueError"],
    ids=["ends", "exits", "opens a port for a server that nobody knows"],
)
def test_a_program_that_serves_nothing_we_know_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(CannotJudge, match="cannot be found"):
        made(tmp_path, None, entry=program(tmp_path, text))
