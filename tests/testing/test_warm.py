"""A program in a copy of a warm interpreter is the program in a new one."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reenact.testing import warm
from reenact.testing.program_start import new_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

PROGRAM = """
import atexit, os, sys, threading, time
import beside

def late():
    time.sleep(0.05)
    print("thread")

atexit.register(print, "at exit")
kept = open("kept.txt", "w")
kept.write("written when it is closed")
print(__name__, os.path.basename(__file__), __spec__ and __spec__.name, sys.argv)
print([os.path.basename(word) for word in sys.orig_argv])
print(sys.modules["__main__"].__dict__ is globals(), os.path.basename(sys.path[0]), os.getcwd() in sys.path[1:])
print(os.environ["TZ"], time.tzname, sorted(os.environ), hash("a"), sys.stdin.read(), beside.NAME)
print("on stderr", file=sys.stderr)
threading.Thread(target=late).start()
if len(sys.argv) > 2:
    eval(sys.argv[2])
"""


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    yield
    warm.close()


def ran(tmp_path: Path, argv: Sequence[str], *, forked: bool) -> tuple[int, str, str, str]:
    environ = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = warm.forked(out, err, ["json.tool"]) if forked else new_process(out, err)
        code = start(argv, tmp_path, environ)
        out.seek(0)
        err.seek(0)
        kept = tmp_path / "kept.txt"
        held = kept.read_text() if kept.exists() else ""
        kept.unlink(missing_ok=True)
        return code, out.read().decode(), err.read().decode(), held


@pytest.mark.sample(2)
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "words",
    [
        ["program.py", "one"],
        ["-m", "program", "one"],
        ["program.py", "one", "sys.exit(3)"],
        ["program.py", "one", "sys.exit('why')"],
        ["program.py", "one", "1/0"],
        ["program.py", "one", "os.kill(os.getpid(), 9)"],
        ["program.py", "one", "os._exit(4)"],
        ["-c", "import sys; print(sys.argv, __name__, repr(sys.path[0])); beside = __import__('beside')", "x"],
    ],
    ids=" ".join,
)
def test_it_does_the_same(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    argv = [sys.executable, *words]
    cold = ran(tmp_path, argv, forked=False)
    for _ in range(2):  # the second one knows what the first one loaded
        assert ran(tmp_path, argv, forked=True) == cold


def test_what_an_interpreter_settles_at_its_start_asks_for_another(tmp_path: Path) -> None:
    (tmp_path / "seed.py").write_text("print(hash('a'), end='')")
    said: list[str] = []
    for seed in ("1", "2", "1", "3", "4"):
        with tempfile.TemporaryFile() as out:
            environ = {**os.environ, "PYTHONHASHSEED": seed}
            assert warm.forked(out, out)([sys.executable, "seed.py"], tmp_path, environ) == 0
            out.seek(0)
            said.append(out.read().decode())
    assert said[0] == said[2]
    assert len(set(said)) == 4


def test_a_test_that_is_given_up_takes_its_program_with_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)")

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(3)
    with tempfile.TemporaryFile() as out:
        with pytest.raises(TimeoutError):
            warm.forked(out, out)([sys.executable, "slow.py"], tmp_path, dict(os.environ))
        signal.signal(signal.SIGALRM, before)
        out.seek(0)
        program = int(out.read() or b"0")
    assert program == 0 or is_gone(program)


def is_gone(process: int) -> bool:
    """Wait a little for a process to end. One that nobody has buried yet has ended, too."""
    stat = Path(f"/proc/{process}/stat")
    for _ in range(600):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False
