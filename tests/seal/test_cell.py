"""The cell, looked at from outside: whatever a program tries in it, nothing but the copy of its folder has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seal.cells import Cells, cells
from seal.ordinary import HEAD as BEGIN
from seal.ordinary import PROGRAMS
from seal.outside import Outside, files, outside
from seal.probes import EFFECTS, ESCAPES, HEAD, SIDE_WAYS

made_cells = pytest.fixture(name="cell")(cells)

pytestmark = pytest.mark.sample(3)
IN_THE_FOLDER = ("append", "remove", "remove a tree", "rename", "mode", "times", "C", "sqlite WAL", "log that rotates")
IN_THE_FOLDER += ("mmap", "hard link", "socket file", "unix", "unix in C", "a shell", "symbolic link")
LEAD = "from reenact.replay.path_redirection import lead; lead()\n"
"""What the start-up hook does in a replay."""
STAYS_INSIDE = {"socket file", "fork", "multiprocessing", "shared memory", "every process"}
"""The cell has a place of its own for it, or the one that tries is a child."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with outside(tmp_path_factory.mktemp("cell") / "outside") as made:
        yield made


def probe(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", f"{HEAD}\n{code}"]


PROBES = {**EFFECTS, **ESCAPES, **SIDE_WAYS}
PROBES["the key of the user"] = "open(os.environ['SECRET'] + '/key')"  # its folder can be listed


@pytest.mark.parametrize("name", PROBES)
def test_nothing_outside_has_changed(
    world: Outside, cell: Cells, name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("k")
    before = world.seen()
    environ = {**world.environ(), "TOP": "/", "SECRET": str(secret)}
    done, told = cell.run(probe(PROBES[name]), world.folder, environ, hidden=[str(secret)])
    assert world.seen() == before, done.stderr
    assert told["copied"] == [str(world.folder)]
    assert done.returncode != 0 or name in STAYS_INSIDE, "whoever tries is told"
    assert "AssertionError" not in done.stderr
    assert not Path("/new").exists()
    record_property("counted", "probes in a cell that changed nothing outside")


@pytest.mark.parametrize("name", IN_THE_FOLDER)
def test_by_a_relative_path_it_happens_in_the_copy(world: Outside, cell: Cells, name: str) -> None:
    before = world.seen()
    done, told = cell.run(probe(EFFECTS[name]), world.folder, {**world.environ(), "FOLDER": "."})
    assert world.seen() == before, done.stderr
    if name not in {"unix", "unix in C"}:
        assert done.returncode == 0, done.stderr
        assert {path.name for path in cell.copy(told, world.folder).iterdir()} != {"kept.txt", "sub", "app.log"}


def fill(folder: Path) -> Path:
    """Make a project as a user has it, under git."""
    (folder / "sub").mkdir(parents=True)
    (folder / "data.txt").write_text("the user's own\n")
    (folder / "sub" / "in.txt").write_text("inner\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    return folder


def held(folder: Path) -> dict[str, object]:
    """Give what a folder holds, git's own files and bytecode aside."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.is_file() and path.suffix in {"", ".txt", ".log"}
        else path.is_dir()
        for path in folder.rglob("*")
        if ".git" not in path.parts and "__pycache__" not in path.parts
    }


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_ordinary_program_comes_to_the_same(cell: Cells, tmp_path: Path, name: str) -> None:
    plain, sealed = fill(tmp_path / "plain" / "project"), fill(tmp_path / "sealed" / "project")
    for folder in (plain, sealed):
        code = LEAD + BEGIN + PROGRAMS[name]
        (folder.parent / "program.py").write_text(code)
    before = files(sealed)
    program = [sys.executable, "../program.py"]
    unsealed = subprocess.run(program, cwd=plain, capture_output=True, text=True, check=False, timeout=60)
    done, told = cell.run(program, sealed)
    assert (unsealed.returncode, unsealed.stderr) == (0, "")
    assert done.stderr == ""
    assert done.stdout.replace(str(sealed), str(plain)) == unsealed.stdout
    assert done.returncode == 0
    assert held(cell.copy(told, sealed)) == held(plain)
    assert files(sealed) == before, "the original is untouched"


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize(
    "name",
    ["truncate", "kill another process", "kill by pidfd", "abstract", "tcp", "tcp in C", "append", "every process"],
)
def test_what_an_older_kernel_lacks_is_kept_shut_otherwise(
    world: Outside, cell: Cells, name: str, version: int
) -> None:
    before = world.seen()
    code = {**EFFECTS, **ESCAPES}[name]
    done, told = cell.run(probe(code), world.folder, world.environ(), newest=version)
    assert world.seen() == before, done.stderr
    assert told["abi"] == version
    assert done.returncode != 0


def test_on_an_older_kernel_a_program_signals_itself_and_its_children(cell: Cells, tmp_path: Path) -> None:
    code = f"{LEAD}{BEGIN}{PROGRAMS['its own limits']}\n{PROGRAMS['children']}"
    folder = fill(tmp_path / "project")
    done, _ = cell.run([sys.executable, "-c", code], folder, newest=2)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-15" in done.stdout


def test_a_file_is_not_emptied_by_opening_it_to_read(world: Outside, cell: Cells) -> None:
    before = world.seen()
    for version in (2, 6):
        done, _ = cell.run(
            probe("os.open(kept, os.O_RDONLY | os.O_TRUNC)"), world.folder, world.environ(), newest=version
        )
        assert done.returncode == 1, done.stderr
    assert world.seen() == before


NO_NAMESPACES = [sys.executable, str(Path(__file__).with_name("no_namespaces.py"))]


def test_where_namespaces_are_refused_the_cell_is_next(cell: Cells, tmp_path: Path) -> None:
    probe = subprocess.run([*NO_NAMESPACES, "unshare", "-Urn", "true"], capture_output=True, text=True, check=False)
    assert "Operation not permitted" in probe.stderr
    folder = fill(tmp_path / "project")
    script = "echo $REENACT_GUARDED; echo new >> data.txt; cat data.txt"
    done, told = cell.run(["/bin/sh", "-c", script], folder, levels=("world", "cell"), prefix=NO_NAMESPACES)
    assert done.stdout == f"sealed-in:{folder}\nthe user's own\nnew\n", done.stderr
    assert (folder / "data.txt").read_text() == "the user's own\n"
    assert told["copied"] == [str(folder)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_than_root_is_sealed_as_well(cell: Cells) -> None:
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    started = subprocess.run([*as_nobody, sys.executable, "-c", ""], cwd="/", capture_output=True, check=False)
    if started.returncode != 0:
        pytest.skip(f"another user cannot start this Python: {started.stderr!r}")
    with tempfile.TemporaryDirectory(prefix="reenact-others-") as top:
        Path(top).chmod(0o755)
        folder, other = fill(Path(top, "project")), Path(top, "other")
        other.mkdir()
        for path in (other, folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        script = f"echo new >> data.txt; cat data.txt; chmod 600 data.txt; id -u; echo x > {other}/made"
        done, _ = cell.run(
            ["/bin/sh", "-c", script],
            folder,
            levels=("world", "cell"),
            prefix=[*NO_NAMESPACES, *as_nobody],
            owner=65534,
        )
        assert done.stdout == "the user's own\nnew\n65534\n", done.stderr
        assert not [*other.iterdir()]
        assert (folder / "data.txt").read_text() == "the user's own\n"


@pytest.mark.parametrize(("bound", "why"), [({"most_files": 3}, "3 files"), ({"most_megabytes": 0}, "0 MiB")])
def test_a_folder_that_holds_too_much_is_not_copied(
    cell: Cells, tmp_path: Path, bound: dict[str, int], why: str
) -> None:
    folder = fill(tmp_path / "project")
    done, told = cell.run(["/bin/echo", "it ran"], folder, **bound)
    assert done.stdout == ""
    assert told["refused"] == f"{folder}: it holds more than {why} to copy"


def test_what_is_only_read_there_is_a_link(cell: Cells, tmp_path: Path) -> None:
    folder = fill(tmp_path / "project")
    for name in ("env/lib", "node_modules/a", "__pycache__"):
        (folder / name).mkdir(parents=True)
    (folder / "env" / "pyvenv.cfg").write_text("home = /\n")
    code = (
        f"{LEAD}import os; from pathlib import Path; here = os.getcwd()\n"
        "print(sorted((e.name, e.is_dir(follow_symlinks=False)) for e in os.scandir(here)))\n"
        "print(os.path.islink(here + '/env'), Path('env/pyvenv.cfg').resolve(True), os.path.realpath('env/lib'))\n"
        "open(here + '/env/pyvenv.cfg', 'a')"
    )
    done, told = cell.run([sys.executable, "-c", code], folder)
    assert (cell.copy(told, folder) / "env").is_symlink()
    listed = [(name, name != "data.txt") for name in (".git", "__pycache__", "data.txt", "env", "node_modules", "sub")]
    assert done.stdout.splitlines()[0].replace("('__pycache__', False)", "('__pycache__', True)") == str(listed)
    assert done.stdout.splitlines()[1] == f"False {folder}/env/pyvenv.cfg {folder}/env/lib"
    assert "PermissionError" in done.stderr


def test_whoever_is_left_behind_ends_with_the_program(cell: Cells, tmp_path: Path) -> None:
    folder = fill(tmp_path / "project")
    daemon = "setsid sh -c 'echo $$ > pid; exec sleep 600' & setsid -f sleep 601; while ! [ -s pid ]; do :; done"
    _, told = cell.run(["/bin/sh", "-c", daemon], folder)
    pid = (cell.copy(told, folder) / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()
    assert subprocess.run(["pgrep", "-f", "sleep 601"], capture_output=True, check=False).stdout == b""


@pytest.mark.parametrize(("code", "ends"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 15)", -15)])
def test_it_ends_as_the_program_ended(cell: Cells, tmp_path: Path, code: str, ends: int) -> None:
    done, _ = cell.run([sys.executable, "-c", f"import os, sys; {code}"], fill(tmp_path / "project"))
    assert done.returncode == ends


def test_a_door_and_what_stands_instead_are_real(cell: Cells, tmp_path: Path) -> None:
    folder = fill(tmp_path / "project")
    for name in ("door", "shown", "stand-in"):
        (tmp_path / name).mkdir()
    code = f"{LEAD}open({str(tmp_path / 'shown' / 'a')!r}, 'w').write('1'); open({str(tmp_path / 'door' / 'b')!r}, 'w')"
    instead = {str(tmp_path / "shown"): str(tmp_path / "stand-in")}
    done, _ = cell.run([sys.executable, "-c", code], folder, doors=[str(tmp_path / "door")], instead=instead)
    assert done.stderr == ""
    found = {name: sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("door", "shown", "stand-in")}
    assert found == {"door": ["b"], "shown": [], "stand-in": ["a"]}


def test_what_lies_beside_a_hidden_folder_can_be_read(cell: Cells, tmp_path: Path) -> None:
    folder = fill(tmp_path / "project")
    for name in ("keys/mine", "keys/other", "beside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(f"{name}\n")
    (tmp_path / "keys" / "by-a-link").symlink_to(tmp_path / "keys" / "mine")
    script = (
        f"cd {tmp_path}; cat beside/file keys/other/file; cat keys/mine/file; cat keys/by-a-link/file\n"
        "cat /proc/self/root$PWD/keys/mine/file"
    )
    done, _ = cell.run(["/bin/sh", "-c", script], folder, hidden=[str(tmp_path / "keys" / "mine")])
    assert done.stdout == "beside\nkeys/other\n"
    assert done.stderr.count("Permission denied") == 3


def test_an_interrupt_of_the_terminal_reaches_the_program(cell: Cells, tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('ended', flush=True) or os._exit(3))\n"
        "try:\n    os.kill(0, signal.SIGINT); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "os.killpg(os.getpgrp(), signal.SIGTERM); time.sleep(60)"
    )
    done, _ = cell.run([sys.executable, "-c", code], fill(tmp_path / "project"))
    assert (done.returncode, done.stdout) == (3, "interrupted\nended\n")


SILENT = {
    "open": ("libc.open(b'{other}/new', os.O_WRONLY | os.O_CREAT, 0o600)", "open {other}/new to be written"),
    "unlink": ("libc.unlink(b'{other}/kept')", "remove {other}/kept"),
    "unlinkat": ("libc.unlinkat(os.open('{other}', os.O_RDONLY), b'kept', 0)", "remove {other}/kept"),
    "mkdir": ("libc.mkdir(b'{other}/sub', 0o700)", "make, move or remove {other}/sub"),
    "rename": ("libc.rename(b'{other}/kept', b'{other}/moved')", "make, move or remove {other}/kept"),
    "a link": ("libc.link(b'{other}/kept', b'{other}/too')", "make {other}/too"),
    "mode": ("libc.chmod(b'{other}/kept', 0o600)", "change {other}/kept"),
    "memory": ("libc.shmget(4711, 4096, 0o1600)", "make the system call shmget"),
    "a socket": ("libc.socket(2, 1, 0)", "make a socket of the network"),
    "a signal": ("libc.setpriority(0, os.getppid(), 5)", "change a process of others"),
}
"""What native code is refused and need not tell, and what is said of it."""
NOTHING_REFUSED = {
    "in the copy": "libc.open(b'new', os.O_WRONLY | os.O_CREAT, 0o600)",
    "the null device": "libc.open(b'/dev/null', os.O_WRONLY)",
    "to read": "libc.open(b'{other}/kept', os.O_RDONLY)",
    "bytecode": "libc.open(b'{other}/a.pyc', os.O_WRONLY | os.O_CREAT, 0o600)",
    "its own child": "(child := os.posix_spawn('/bin/true', ['true'], {{}})) and libc.setpriority(0, child, 5)",
    "what nobody may": "libc.open(b'/proc/version', os.O_WRONLY)",
    "no path": "libc.unlink(None)",
}


def said_by_the_kernel(cell: Cells, code: str, tmp_path: Path) -> list[str]:
    folder, other, door = (tmp_path / name for name in ("project", "other", "door"))
    for each in (folder, other, door):
        each.mkdir()
    (other / "kept").write_text("kept")
    (ledger := door / "ledger.jsonl").touch()
    begin = "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
    argv = [sys.executable, "-I", "-c", begin + code.format(other=other)]
    done, _ = cell.run(argv, folder, doors=[str(door)], told=str(ledger))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in other.iterdir()) == ["kept"]
    entries = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert {each["t"] for each in entries} <= {"prevented"}
    return [str(each["what"]).replace(str(other), "{other}") for each in entries]


@pytest.mark.parametrize("name", SILENT)
def test_what_native_code_is_refused_is_said_in_the_ledger(cell: Cells, name: str, tmp_path: Path) -> None:
    code, said = SILENT[name]
    assert said in said_by_the_kernel(cell, code, tmp_path)


@pytest.mark.parametrize("name", NOTHING_REFUSED)
def test_of_what_it_is_not_refused_nothing_is_said(cell: Cells, name: str, tmp_path: Path) -> None:
    assert said_by_the_kernel(cell, NOTHING_REFUSED[name], tmp_path) == []
