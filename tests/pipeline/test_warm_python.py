"""A Python that is ready: what runs in its copies behaves as what is started from nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact.change.variation_runs import _fits
from reenact.pipeline.warm_python import Ending, Order, WarmPython

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
def ready() -> Iterator[WarmPython]:
    python = WarmPython(sys.executable, {**os.environ, "PYTHONHASHSEED": "5"})
    python.learn(["json", "no_such_module", "decimal"])
    yield python
    python.close()


def ran(
    ready: WarmPython, folder: Path, words: list[str], limit_s: float | None = 30, **environ: str
) -> tuple[Ending, str, str]:
    """Run a program there; give its end, its output and its errors."""
    streams = (folder / "out", folder / "err")
    with streams[0].open("wb") as out, streams[1].open("wb") as err:
        files = (out.fileno(), err.fileno())
        order = Order([sys.executable, *words], folder, {**os.environ, **environ}, files, leads_session=True)
        ending = ready.run(order, limit_s)
    return ending, streams[0].read_text(), streams[1].read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_copy_does_what_a_new_process_does(ready: WarmPython, tmp_path: Path, name: str) -> None:
    source, code = PROGRAMS[name]
    script = tmp_path / "program.py"
    script.write_text(source)
    words = [str(script), "one", "two words"]
    environ = {**os.environ, "A": "here", "PYTHONHASHSEED": "5"}
    fresh = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    ending, out, err = ran(ready, tmp_path, words, A="here", PYTHONHASHSEED="5")
    assert (ending.code, ending.is_over_time) == (fresh.returncode, False)
    assert (out, err) == (fresh.stdout, fresh.stderr)
    assert fresh.returncode == code


def test_a_module_runs_as_with_dash_m(ready: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv[1:])")
    assert ran(ready, tmp_path, ["-m", "mine", "x"])[1:] == ("__main__ mine ['x']\n", "")


def test_a_program_that_takes_too_long_is_ended_and_the_next_one_runs(ready: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)")
    (tmp_path / "prints.py").write_text("print('next')")
    over, _, _ = ran(ready, tmp_path, ["sleeps.py"], 0.5)
    assert (over.code, over.is_over_time) == (-9, True)
    after, out, _ = ran(ready, tmp_path, ["prints.py"])
    assert (after.code, after.is_over_time, out) == (0, False, "next\n")


def test_a_program_tells_which_library_modules_it_imported(ready: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("X = 1")
    (tmp_path / "program.py").write_text("import own, colorsys")
    ending, _, _ = ran(ready, tmp_path, ["program.py"])
    assert "colorsys" in ending.modules
    assert not {"own", "__main__"} & {*ending.modules}
    ready.learn(ending.modules)
    assert "colorsys" not in ran(ready, tmp_path, ["program.py"])[0].modules


def test_chance_is_another_in_each_copy(ready: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text("import random\nprint(random.random())")
    assert len({ran(ready, tmp_path, ["draws.py"])[1] for _ in range(3)}) == 3


def test_a_python_that_is_gone_says_so(tmp_path: Path) -> None:
    python = WarmPython(sys.executable, os.environ)
    python.learn(())
    python.end()
    with pytest.raises(OSError, match=r"."):
        ran(python, tmp_path, ["-m", "site"])
    python.close()


def test_what_cannot_be_run_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    assert _fits([sys.executable, str(tmp_path / "a.py")])
    assert _fits([sys.executable, "-m", "a"])
    assert not _fits([sys.executable, "-c", "print()"])
    assert not _fits([sys.executable, "-X", "dev", str(tmp_path / "a.py")])
    assert not _fits(["node", str(tmp_path / "a.py")])
    assert not _fits([sys.executable, str(tmp_path / "missing.py")])


def test_a_library_that_starts_a_thread_makes_it_unfit(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()"
    )
    python = WarmPython(sys.executable, {**os.environ, "PYTHONPATH": str(tmp_path)})
    with pytest.raises(OSError, match="ready"):
        python.learn(["threaded"])
    assert not python.is_alive
