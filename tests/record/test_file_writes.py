"""What a program writes: of a log, what is its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import reenact
from held import Held
from reenact.boundary import flows
from reenact.boundary.files import PathChange
from reenact.record import console
from reenact.record.file_writes import Writes
from reenact.values.file_writes import writes_of


@pytest.fixture
def writes() -> Iterator[Writes]:
    def redacted(attributes: Mapping[str, Any]) -> dict[str, Any]:
        return dict(attributes)

    def heard(_stream: str, _text: str, _source: console.Source | None) -> None:
        return None

    made = Writes(redacted, lambda: None)
    console.listen(heard)
    console.listen_to_logs(made.logged)
    yield made
    console.leave_logs(made.logged)
    console.leave(heard)


def _said(handler: logging.Handler, source: str | None, text: str, *args: object) -> None:
    said = {"pathname": source, "msg": text, "args": args, "levelname": "DEBUG", "name": "x"}
    handler.handle(logging.makeLogRecord(said))


@pytest.mark.parametrize(
    "form", [None, lambda record: f"<{record.getMessage()}>"], ids=["its own form", "another form"]
)
def test_what_an_installed_library_logs_to_a_file_is_left_out_of_it(
    writes: Writes, tmp_path: Path, form: Callable[[logging.LogRecord], str] | None
) -> None:
    path = tmp_path / "agent.log"
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    if form is not None:
        vars(handler)["format"] = form
    writes.note(PathChange(str(path)), "agent.py:1", handler=handler, is_log=True)
    _said(handler, __file__, "begins")
    _said(handler, httpx.__file__, "connects to %s\nand %s", "a", "b")
    _said(handler, __file__, "ends")
    _said(handler, httpx.__file__, "ends")
    handler.close()
    (file,) = json.loads(writes.report([None], alone=True))["files"]
    own = "<begins>\n<ends>\n" if form is not None else "DEBUG begins\nDEBUG ends\n"
    assert (file["after"]["text"], file["after"]["of_libraries"]) == (own, 2)
    assert path.read_text().count("ends") == 2
    assert vars(handler).get("format") is form


@reenact.tool
def look_up() -> int:
    return 1


def test_threads_that_wrote_to_a_file_that_was_opened_before_them_are_known(tmp_path: Path) -> None:
    def work() -> None:
        look_up()
        with (tmp_path / "out.txt").open("w") as file, ThreadPoolExecutor(2) as pool:
            list(pool.map(file.write, ["a", "b"]))

    told = writes_of(Held(tmp_path / "store").record(work).runs[0])
    assert told is not None
    assert told.threads


def test_the_text_of_a_long_file_is_there_to_be_looked_through_where_libraries_drew_anything(
    writes: Writes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, text = tmp_path / "long.txt", "word " * 20_000
    for held in (False, True):
        monkeypatch.setattr(flows, "are_held", lambda held=held: held)
        writes.note(PathChange(str(path)), "agent.py:1")
        path.write_text(text)
        (file,) = json.loads(writes.report([None], alone=True))["files"]
        assert "text" not in file["after"]
        assert writes.unspelled() == [text] * held
    assert writes.unspelled() == []
