"""A Python that is ready: what runs in its copies behaves as what is started from nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact.pipeline.warm_python import Order, ReadyPython, fits, modules_told, telling

PROGRAMS = {
    "prints": ("import sys\nprint(__name__, __file__, sys.argv, sys.orig_argv, sys.path[0])", 0),
    "exits": ("import sys\nsys.exit(7)", 7),
    "says why": ("import sys\nsys.exit('no')", 1),
    "raises": ("def f():\n    raise ValueError('x')\nf()", 1),
    "leaves late": ("import atexit\natexit.register(print, 'bye')\nprint('hi')", 0),
    "waits for threads": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('t'))).start()",
        0,
    ),
    "looks around": ("import os, pathlib\nprint(os.environ['A'], pathlib.Path.cwd(), input.__name__)", 0),
    "is main": (
        (
            "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n    x: int\n"
            "print(pickle.loads(pickle.dumps(A(1))))"
        ),
        0,
    ),
    "is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", -15),
}


@pytest.fixture(scope="module")
def ready() -> Iterator[ReadyPython]:
    made = ReadyPython(sys.executable, {**os.environ, "PYTHONHASHSEED": "5"}, ["json", "no_such_module", "decimal"])
    yield made
    made.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_copy_does_what_a_new_process_does(ready: ReadyPython, tmp_path: Path, name: str) -> None:
    source, code = PROGRAMS[name]
    script = tmp_path / "program.py"
    script.write_text(source)
    argv = [sys.executable, str(script), "one", "two words"]
    environ = {**os.environ, "A": "here", "PYTHONHASHSEED": "5"}
    fresh = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    streams = (tmp_path / "out", tmp_path / "err")
    for path in streams:
        path.touch()
    assert ready.run(Order(argv, tmp_path, environ, streams, None), 30) == (fresh.returncode, False)
    assert (streams[0].read_text(), streams[1].read_text()) == (fresh.stdout, fresh.stderr)
    assert fresh.returncode == code


def test_a_module_runs_as_with_dash_m(ready: ReadyPython, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv[1:])")
    streams = (tmp_path / "out", tmp_path / "err")
    for path in streams:
        path.touch()
    ready.run(Order([sys.executable, "-m", "mine", "x"], tmp_path, dict(os.environ), streams, None), 30)
    assert (streams[0].read_text(), streams[1].read_text()) == ("__main__ mine ['x']\n", "")


def test_a_program_that_takes_too_long_is_ended_and_the_next_one_runs(ready: ReadyPython, tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)")
    (tmp_path / "prints.py").write_text("print('next')")
    streams = (tmp_path / "out", tmp_path / "err")
    for path in streams:
        path.touch()
    assert ready.run(
        Order([sys.executable, str(tmp_path / "sleeps.py")], tmp_path, dict(os.environ), streams, None), 0.5
    ) == (
        -9,
        True,
    )
    assert ready.run(
        Order([sys.executable, str(tmp_path / "prints.py")], tmp_path, dict(os.environ), streams, None), 30
    ) == (
        0,
        False,
    )
    assert streams[0].read_text() == "next\n"


def test_a_program_tells_which_library_modules_it_imported(ready: ReadyPython, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("X = 1")
    (tmp_path / "program.py").write_text("import own, colorsys")
    streams = (tmp_path / "out", tmp_path / "err")
    for path in streams:
        path.touch()
    environ = {**os.environ, **telling(tmp_path / "told")}
    ready.run(Order([sys.executable, str(tmp_path / "program.py")], tmp_path, environ, streams, None), 30)
    told = modules_told(tmp_path / "told")
    assert "colorsys" in told
    assert not {"own", "__main__"} & set(told)


def test_what_cannot_be_run_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    assert fits([sys.executable, str(tmp_path / "a.py")])
    assert fits([sys.executable, "-m", "a"])
    assert not fits([sys.executable, "-c", "print()"])
    assert not fits([sys.executable, "-X", "dev", str(tmp_path / "a.py")])
    assert not fits(["node", str(tmp_path / "a.py")])
    assert not fits([sys.executable, str(tmp_path / "missing.py")])


def test_a_library_that_starts_a_thread_makes_it_unfit(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()"
    )
    with pytest.raises(OSError, match="ready"):
        ReadyPython(sys.executable, {**os.environ, "PYTHONPATH": str(tmp_path)}, ["threaded"])
