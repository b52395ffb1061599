"""What an answered tool wrote to a database and a file, and took of the input, is so again in a replay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from asking import is_sealed
from desk import Desk

PROGRAM = """
import sqlite3, sys
import reenact

@reenact.tool
def order(item: str) -> str:
    with sqlite3.connect("orders.db") as db:
        db.execute("insert into orders values (?)", (item,))
    with open("log.txt", "a") as log:
        print("ordered", item, file=log)
    return input(f"{item}? ")

with sqlite3.connect("orders.db") as db:
    db.execute("create table orders(item)")
for item in ("lamp", "rug"):
    print(order(item), sqlite3.connect("orders.db").execute("select item from orders").fetchall())
    print(open("log.txt").read().split())
print(input("all? "))
"""


@pytest.mark.always
def test_what_a_tool_did_to_files_and_took_of_the_input_comes_again(desk: Desk) -> None:
    desk.write("agent.py", PROGRAM)
    command = [sys.executable, "-m", "reenact", "run", "--", "python", "agent.py"]
    done = subprocess.run(
        command,
        cwd=desk.folder,
        env=desk.settings(),
        input="yes\nno\nall\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "replayable: exact" in done.stderr
    before = {path.name: path.read_bytes() for path in desk.folder.glob("*.*") if path.is_file()}
    again = desk.reenact("replay", "last", "--json")
    told = json.loads(again.stdout)
    if not is_sealed(told):
        pytest.skip("no sealed world can be made here, so no file is copied: tests/seal says why")
    assert (told["result"], again.returncode) == ("same", 0), again.stderr
    assert "('rug',)" in done.stdout
    assert {path.name: path.read_bytes() for path in desk.folder.glob("*.*") if path.is_file()} == before


TEMPORARY = """
import os, tempfile
from pathlib import Path
import reenact

drafts = tempfile.mkdtemp()

@reenact.tool
def draft(text):
    Path(drafts, "draft.txt").write_text(text)
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(text.upper())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "gone.txt").write_text(text)
    return file.name

path = draft("dear")
print(os.listdir(drafts), Path(drafts, "draft.txt").read_text(), open(path).read())
os.unlink(path)
"""


@pytest.mark.always
@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_temporary_files_that_a_tool_leaves_are_there_again(desk: Desk, level: str) -> None:
    live = desk.reenact("run", "--", "python", desk.write("agent.py", TEMPORARY))
    assert "replayable: exact" in live.stderr
    again = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_ENFORCE": level})
    told = json.loads(again.stdout)
    if told["level"] == "watched":
        pytest.skip("no sealed world can be made here, so no file is copied: tests/seal says why")
    assert (told["result"], again.returncode) == ("same", 0), again.stderr


@pytest.mark.always
def test_outside_of_a_copy_what_differs_behind_files_that_a_tool_wrote_is_not_put_down_to_the_program(
    desk: Desk,
) -> None:
    program = TEMPORARY.replace("print(os.listdir(drafts), Path(drafts, ", "print(os.path.exists(Path(drafts, ")
    program = program.replace('"draft.txt").read_text(), open(path).read())', '"draft.txt")), os.path.exists(path))')
    live = desk.reenact("run", "--", "python", desk.write("agent.py", program.replace("os.unlink(path)", "open(path)")))
    assert (live.stdout, "replayable: exact" in live.stderr) == ("True True\n", True), live.stderr
    done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert (done.returncode, "other code reads what it wrote there" in done.stderr) == (125, True), done.stderr


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
