"""A file that native code writes by its path is noted and compared like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk

WRITERS = {
    "pyarrow.parquet": "import pyarrow.parquet as pq\npq.write_table(pa.table(rows()), 'out.bin')",
    "pyarrow.csv": "import pyarrow.csv as pc\npc.write_csv(pa.table(rows()), output_file='out.bin')",
    "pyarrow.feather": "import pyarrow.feather as pf\npf.write_feather(pa.table(rows()), 'out.bin')",
    "pyarrow.ipc": (
        "import pathlib\nt = pa.table(rows())\n"
        "with pa.ipc.new_file(pathlib.Path('out.bin'), t.schema) as out:\n    out.write_table(t)"
    ),
}
PROGRAM = """
import pyarrow as pa
import reenact

@reenact.tool
def ask():
    return [1, 2]

def rows():
    return {"a": ask(), "b": [5, 6]}

"""


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.sample(2)
def test_what_native_code_writes_is_compared(tmp_path: Path, writer: str) -> None:
    pytest.importorskip("pyarrow")
    desk = Desk(tmp_path)
    live = desk.reenact("run", "--", "python", desk.write("agent.py", PROGRAM + WRITERS[writer]))
    assert "replayable: exact" in live.stderr, live.stderr
    written = (tmp_path / "out.bin").read_bytes()
    (tmp_path / "out.bin").unlink()
    done = desk.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert "wrote as recorded: out.bin" in done.stderr
    assert not (tmp_path / "out.bin").exists()
    (tmp_path / "out.bin").write_bytes(written)
    desk.write("agent.py", PROGRAM.replace("[5, 6]", "[5, 7]") + WRITERS[writer])
    done = desk.reenact("replay", "last")
    assert done.returncode == 1, done.stderr
    assert "diverged: run: wrote out.bin" in done.stderr
    assert (tmp_path / "out.bin").read_bytes() == written


FOLDER = """
import pyarrow.dataset as ds
ds.write_dataset(pa.table(rows()), "folder", format="csv", existing_data_behavior="overwrite_or_ignore")
"""


@pytest.mark.always
def test_a_file_that_no_note_names_leaves_a_replay_unjudged(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    desk = Desk(tmp_path)
    live = desk.reenact("run", "--", "python", desk.write("agent.py", PROGRAM + FOLDER))
    assert "replayable: exact" in live.stderr, live.stderr
    same = desk.reenact("replay", "last")
    assert same.returncode == 0, same.stderr
    desk.write("agent.py", PROGRAM.replace("[5, 6]", "[5, 7]") + FOLDER)
    said = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert said["result"] == "unjudged"
    assert said["unwitnessed"] == [f"{tmp_path}/folder/part-0.csv"]
    assert "wrote what the recording does not hold" in said["why"]
    assert json.loads(desk.reenact("replay", "last", "--json", "--outcome", "ignore").stdout)["result"] == "same"
