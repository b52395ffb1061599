"""What changes a file by another way than its own name: it is refused where no copy stands for it, and so said."""

from __future__ import annotations

import json

import pytest

from desk import Desk

HEAD = """
import logging.handlers, os, shutil, socket, sqlite3, subprocess, sys, tempfile
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
outside = os.path.join(os.path.dirname(os.getcwd()), "outside")
kept, folder = os.path.join(outside, "kept.txt"), tempfile.mkdtemp()
"""
ACTS = {
    "moved into a temporary folder": "shutil.move(kept, folder)",
    "moved to a name of byte code": "os.rename(kept, 'x.pyc')",
    "by a link in a temporary folder": "os.symlink(kept, folder + '/l'); open(folder + '/l', 'a').write('more')",
    "by a second name in a temporary folder": "os.link(kept, folder + '/l'); open(folder + '/l', 'a').write('more')",
    "by the descriptor of its folder": (
        "f = os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=os.open(outside, os.O_RDONLY)); os.write(f, b'x')"
    ),
    "below the descriptor of its folder": "open(f'/proc/self/fd/{os.open(outside, os.O_RDONLY)}/new', 'w').write('x')",
    "by a descriptor that reads, opened once more": (
        "f = os.open(kept, os.O_RDONLY); open(f'/proc/self/fd/{f}', 'a').write('x')"
    ),
    "its mode by a descriptor that reads": "os.fchmod(os.open(kept, os.O_RDONLY), 0o600)",
    "a name of byte code": "import pathlib; pathlib.Path(outside, 'a.pyc').write_text('x')",
    "the history of a shell": "import readline; readline.write_history_file(outside + '/history')",
    "a named pipe": "os.mkfifo(outside + '/pipe')",
    "by the folder of the process": "os.chdir(outside); open('/proc/self/cwd/new', 'w').write('x')",
    "past the devices": "open('/dev/..' + outside + '/new', 'w').write('x')",
    "an attached database": (
        "sqlite3.connect(':memory:').executescript(f\"ATTACH '{outside}/data.db' AS o; CREATE TABLE o.t (a)\")"
    ),
    "an attached database past an authorizer": (
        "c = sqlite3.connect(':memory:'); c.set_authorizer(lambda *_: 0)\n"
        "c.executescript(f\"ATTACH '{outside}/data.db' AS o; CREATE TABLE o.t (a)\")"
    ),
    "a copy of a database": "sqlite3.connect(':memory:').execute('VACUUM INTO ?', (outside + '/data.db',))",
    "a socket": "socket.socket(socket.AF_UNIX).bind(outside + '/s')",
    "shared memory": (
        "from multiprocessing import shared_memory\n"
        "m = shared_memory.SharedMemory('reenact-of-a-test', create=True, size=9); m.close(); m.unlink()"
    ),
    "a child that is shut off": (
        "subprocess.run([sys.executable, '-X', 'dev', '-I', '-c', f'open({kept!r}, \"w\").write(\"x\")'], check=True)"
    ),
    "a cache": (
        "above = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')\n"
        "cache = above + '/reenact-of-a-test'\n"
        "os.makedirs(os.path.dirname(cache), exist_ok=True); open(cache, 'w').close(); os.remove(cache)"
    ),
    "a child": "subprocess.run([sys.executable, '-c', f'open({kept!r}, \"w\").write(\"x\")'], check=True)",
    "a log that rotates": (
        "log, to = logging.getLogger('a'), logging.handlers.RotatingFileHandler(kept, maxBytes=9, backupCount=1)\n"
        "log.addHandler(to)\n"
        "log.warning('some words'); log.warning('more words')"
    ),
    "a file in the folder of temporary files": (
        "name = os.path.join(tempfile.gettempdir(), 'reenact-of-a-test.txt'); open(name, 'w').close(); os.remove(name)"
    ),
}
TOLD = {"a socket", "shared memory", "a cache"}
"""What a watched replay lets be, and tells."""
OWN = {"shared memory"}
"""What Landlock's world has one of its own of."""


def laid(desk: Desk) -> dict[str, str]:
    outside = desk.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    for path in outside.iterdir():
        path.unlink()
    (outside / "kept.txt").write_text("kept")
    return seen(desk)


def seen(desk: Desk) -> dict[str, str]:
    paths = (desk.folder.parent / "outside").iterdir()
    return {path.name: f"{path.stat().st_mode:o} {path.read_text() if path.is_file() else ''}" for path in paths}


def tried(desk: Desk, act: str, levels: tuple[str, ...]) -> None:
    laid(desk)
    done = desk.reenact("run", "-q", "--", "python", desk.write("agent.py", f"{HEAD}{ACTS[act]}\n"))
    assert done.returncode == 0, done.stderr
    for level in levels:
        before = laid(desk)
        environ = {**desk.settings(), "REENACT_ENFORCE": level}
        again = desk.reenact("replay", "last", "--json", environ=environ, cold=level == "landlock")
        told = json.loads(again.stdout)
        is_told = act in TOLD and level == "off"
        assert told["result"] == ("same" if is_told or act in OWN else "unjudged"), again.stderr
        assert bool(told["unwatched"]) == is_told
        assert is_told or seen(desk) == before


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "act",
    [
        "by a second name in a temporary folder",
        "an attached database past an authorizer",
        "a copy of a database",
        "a named pipe",
        "by the descriptor of its folder",
        "its mode by a descriptor that reads",
        "a child that is shut off",
        "a cache",
    ],
)
def test_what_changes_a_file_by_another_way_than_its_name_does_not_get_out(desk: Desk, act: str) -> None:
    tried(desk, act, ("off",))


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_so_it_is_where_the_kernel_keeps_rights_small(desk: Desk, act: str) -> None:
    tried(desk, act, ("landlock", "off"))
