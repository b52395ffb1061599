"""The sealed world, looked at from outside: whatever a program tries in it, nothing outside of it has changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reenact.seal import holders, launch
from reenact.seal.mounts import Layout, mount_points
from seal.outside import Outside, outside
from seal.probes import EFFECTS, ESCAPES, HEAD
from waiting import until

pytestmark = pytest.mark.sample(2)
LIMIT_S = 60
Sealed = Callable[..., "tuple[subprocess.CompletedProcess[str], dict[str, Any]]"]


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Sealed]:
    """Run a program in a world of its own; gives how it ended, and what is told of the world.

    Where none can be made it skips the test, or fails it where one `must` be made.
    """
    upper = tmp_path / "upper"
    upper.mkdir()

    def run(
        argv: list[str],
        environ: dict[str, str] | None = None,
        before: Sequence[str] = (),
        *,
        must: bool = False,
        **more: Any,
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        order, answer = tmp_path / "order.json", tmp_path / "answer.jsonl"
        answer.unlink(missing_ok=True)
        world = {"upper": tempfile.mkdtemp(dir=upper), **more}
        order.write_text(json.dumps({"argv": argv, "cwd": "/", "world": world, "answer": str(answer)}))
        done = subprocess.run(
            [*before, *launch.command(order)],
            env={**os.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        told: dict[str, Any] = {}
        for line in answer.read_text().splitlines():
            told |= json.loads(line)
        assert not (must and "refused" in told), told
        if "refused" in told:
            pytest.skip(f"no sealed world can be made here: {told['refused']}")
        return done, told

    yield run
    subprocess.run(["chmod", "-R", "u+rwx", str(upper)], check=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with outside(tmp_path_factory.mktemp("world") / "outside") as made:
        yield made


def probe(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", f"{HEAD}\n{code}"]


def test_a_folder_that_holds_nothing_is_a_copy_as_any_other(sealed: Sealed, tmp_path: Path) -> None:
    bare = [each for each in Layout(mount_points(Path("/proc/self/mountinfo").read_text())).copied if is_bare(each)]
    if not bare:
        pytest.skip("each folder of this machine holds something")
    code = f"import os; os.mkdir({bare[0]!r} + '/in'); print(os.listdir({bare[0]!r}))"
    done, told = sealed([sys.executable, "-I", "-c", code])
    assert done.stdout == "['in']\n", done.stderr
    assert is_bare(bare[0])
    (upper,) = (tmp_path / "upper").iterdir()
    assert (upper / str(told["copied"].index(bare[0])) / "upper" / "in").is_dir()


def is_bare(path: str) -> bool:
    return Path(path).stat().st_uid == os.geteuid() and not any(Path(path).iterdir())


@pytest.mark.parametrize("name", EFFECTS)
def test_the_probe_does_what_it_says_where_nothing_keeps_it_from_that(tmp_path: Path, name: str) -> None:
    with outside(tmp_path / "outside") as here:
        before = here.seen()
        subprocess.run(
            probe(EFFECTS[name]),
            env={**os.environ, **here.environ()},
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
        until(lambda: here.seen() != before, LIMIT_S, lambda: f"{name} changed nothing", every_s=0.01)
    (Path("/dev/shm") / f"reenact-{here.victim}").unlink(missing_ok=True)
    subprocess.run(["ipcrm", "-M", str(here.victim)], capture_output=True, check=False)
    Path(f"/tmp/l-{here.victim}").unlink(missing_ok=True)


@pytest.mark.parametrize("name", [*EFFECTS, *ESCAPES])
def test_nothing_outside_has_changed(
    world: Outside, sealed: Sealed, name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    code = {**EFFECTS, **ESCAPES}[name]
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("k")
    before = world.seen()
    top = max((path for path in Layout(points()).copied if world.folder.is_relative_to(path)), key=len)
    environ = {**world.environ(), "TOP": top, "SECRET": str(secret)}
    done, told = sealed(probe(code), environ, hidden=[str(secret)])
    assert world.seen() == before, done.stderr
    # Others may mount something meanwhile: folders above the project are divided then.
    assert any(world.folder.is_relative_to(path) for path in told["copied"] if path != "/")
    assert "AssertionError" not in done.stderr
    assert not Path("/new").exists()
    record_property("counted", "probes in a sealed world that changed nothing outside")


def points() -> list[str]:
    return mount_points(Path("/proc/self/mountinfo").read_text())


def test_a_program_reads_back_what_it_wrote_and_its_children_do(sealed: Sealed, tmp_path: Path) -> None:
    kept = tmp_path / "report.txt"
    kept.write_text("old\n")
    code = f"p = {str(kept)!r}; open(p, 'a').write('new\\n'); import subprocess; subprocess.run(['cat', p])"
    done, _ = sealed([sys.executable, "-c", code])
    assert done.stdout == "old\nnew\n", done.stderr
    assert kept.read_text() == "old\n"


def test_what_is_open_is_the_real_one_and_what_stands_instead_is_too(sealed: Sealed, tmp_path: Path) -> None:
    door, shown, stand_in = tmp_path / "door", tmp_path / "shown", tmp_path / "stand-in"
    for folder in (door, shown, stand_in):
        folder.mkdir()
    (shown / "before").write_text("x")
    code = f"echo 1 > {door}/a; ls {shown}; echo 2 > {shown}/b"
    done, _ = sealed(["/bin/sh", "-c", code], doors=[str(door)], instead={str(shown): str(stand_in)})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (door / "a").read_text() == "1\n"
    assert [path.name for path in shown.iterdir()] == ["before"]
    assert (stand_in / "b").read_text() == "2\n"


def test_the_network_is_a_loopback_that_is_up(sealed: Sealed) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname()); print('met', socket.if_nameindex())"
    )
    done, _ = sealed([sys.executable, "-c", code])
    assert done.stdout == "met [(1, 'lo')]\n", done.stderr


@pytest.mark.parametrize(("code", "ends"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 15)", -signal.SIGTERM)])
def test_it_ends_as_the_program_ended(sealed: Sealed, code: str, ends: int) -> None:
    done, _ = sealed([sys.executable, "-c", f"import os, sys; {code}"])
    assert done.returncode == ends


def test_a_program_that_is_not_there_is_told(sealed: Sealed) -> None:
    done, told = sealed(["no-such-program"])
    assert (done.returncode, told["start"]) == (127, 2)


def test_the_environment_is_the_callers_and_one_variable(sealed: Sealed) -> None:
    done, _ = sealed(["/usr/bin/env"], {"EMPTY": "", "LINES": "a\nb"})
    assert f"{launch.GUARDED}={launch.HOW}\n" in done.stdout
    assert "EMPTY=\n" in done.stdout
    assert "LINES=a\nb\n" in done.stdout


def test_no_descriptor_but_the_standard_ones_is_the_programs(sealed: Sealed) -> None:
    done, _ = sealed(["/bin/sh", "-c", "ls /proc/self/fd"])
    assert len(done.stdout.split()) == 4, "three, and that of the folder that is listed"


def test_the_user_is_who_he_was(sealed: Sealed) -> None:
    done, _ = sealed(["id", "-u"])
    assert done.stdout == f"{os.getuid()}\n"


def test_whatever_lives_in_the_world_ends_with_its_starter(tmp_path: Path) -> None:
    upper, order, answer = tmp_path / "upper", tmp_path / "order.json", tmp_path / "answer.jsonl"
    upper.mkdir()
    argv = ["/bin/sh", "-c", "sleep 300 & echo started; sleep 300"]
    order.write_text(json.dumps({"argv": argv, "cwd": "/", "world": {"upper": str(upper)}, "answer": str(answer)}))
    with subprocess.Popen(launch.command(order), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "started\n":
            pytest.skip(f"no sealed world can be made here: {answer.read_text()}")
        process.kill()
        assert process.stdout.read() == "", "nobody holds the pipe any more"
    subprocess.run(["chmod", "-R", "u+rwx", str(upper)], check=False)


MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:20 / /proc rw - proc proc rw
24 22 0:21 / /a\040b rw - ext4 /dev/vdb rw
24 22 0:21 / /a\040b rw - ext4 /dev/vdb rw
"""


def test_mount_points_are_read_as_the_manual_spells_them() -> None:
    assert mount_points(MOUNTS) == ["/", "/proc", "/a b"]


def test_of_a_folder_made_anew_small_files_are_copied_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "_COPIED_IN_ALL", 100)
    folder, upper = tmp_path / "folder", tmp_path / "upper"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text("x" * 40)
    holders.Holders([str(folder)], str(upper), 7)
    sizes = sorted(path.stat().st_size for path in (upper / "7" / "upper").iterdir())
    assert sizes == [0, 40, 40], "over the empty one what was there is mounted, read only"


def test_a_folder_that_holds_a_mount_is_divided(tmp_path: Path) -> None:
    for name in ("plain", "split/held", "split/beside/deep", "mounted"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "split" / "link").symlink_to("/")
    os.mkfifo(tmp_path / "split" / "pipe")
    points = [str(tmp_path / "split" / "held"), str(tmp_path / "mounted")]
    layout = Layout(points, str(tmp_path))
    assert layout.leading_out == [str(tmp_path / "split" / "pipe")]
    assert layout.divided == [str(tmp_path), str(tmp_path / "split")]
    names = [str(Path(path).relative_to(tmp_path)) for path in layout.copied]
    assert names == ["mounted", "plain", "split/beside", "split/held"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders beside what is mounted in /mnt")
def test_what_others_take_away_meanwhile_keeps_no_world_from_being_made(sealed: Sealed) -> None:
    with tempfile.TemporaryDirectory(dir="/mnt") as folder:
        coming_and_going = f"while :; do mkdir {folder}/{{a,b,c,d}}; touch {folder}/f; rm -r {folder}/[abcdf]; done"
        mounted = f"mkdir -p {folder}/held; mount -t tmpfs none {folder}/held"
        before = [
            "unshare",
            "--mount",
            "bash",
            "-c",
            f'{mounted}; ({coming_and_going}) 2>/dev/null & "$@"; kill $!',
            "sh",
        ]
        sealed(["true"])
        for _ in range(5):
            done, told = sealed(["true"], before=before, must=True)
            assert (done.returncode, folder in told["copied"]) == (0, True), done.stderr


ROOTED = """
import json, os, sys
def tried(call, *arguments):
    try:
        return call(*arguments) is not None or True
    except OSError as error:
        return error.strerror
paths = [*sys.argv[1:], "/reenact-new"]
print(json.dumps([tried(open, path, "w") for path in paths] + [os.path.exists(path) for path in paths]))
print(json.dumps([tried(os.mkdir, "/run/lock/reenact-new"), tried(os.chroot, "/tmp"), os.listdir("/.")]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes beside what is mounted at the root of all files")
def test_root_writes_beside_mounts_and_in_run(sealed: Sealed) -> None:
    with tempfile.TemporaryDirectory(dir="/mnt") as folder:
        held = Path(folder, "held")
        held.mkdir()
        (held.parent / "small").write_text("small")
        (held.parent / "large").write_bytes(bytes(2 << 20))
        Path("/run/lock").mkdir(exist_ok=True)
        argv = [
            sys.executable,
            "-I",
            "-c",
            ROOTED,
            *(f"{folder}/{name}" for name in ("new", "small", "held/in", "large")),
        ]
        mounted = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {held} && exec "$@"', "sh"]
        done, told = sealed(argv, before=mounted)
        written, others = map(json.loads, done.stdout.splitlines())
        assert written == [True, True, True, "Read-only file system", True] + [True] * 5, done.stderr
        assert others[:2] == [True, True]
        assert {"/", folder, str(held)} <= {*told["copied"]}
        assert sorted(each.name for each in held.parent.iterdir()) == ["held", "large", "small"]
        assert (held.parent / "small").read_text() == "small"
        assert not [path for path in ("/reenact-new", "/run/lock/reenact-new", f"{held}/in") if Path(path).exists()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_plain_user_writes_below_folders_of_others() -> None:
    nobody, as_nobody = 65534, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # By a shell: `setpriv` itself is still root when it looks for the program.
    start = [*as_nobody, "sh", "-c", 'exec "$0" -c "import sys; sys.exit(sys.version_info < (3, 11))"']
    pythons = (sys.executable, "/usr/bin/python3")
    python = next(
        (each for each in pythons if subprocess.run([*start, each], cwd="/", check=False).returncode == 0), ""
    )
    if not python:
        pytest.skip(f"another user can start none of {pythons}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as above:
        Path(above).chmod(0o755)
        project, upper = Path(above, "of-root", "project"), Path(above, "upper")
        for folder in (project, upper):
            folder.mkdir(parents=True)
            os.chown(folder, nobody, nobody)
        kept, held = project / "report.txt", project / "held"
        kept.write_text("old\n")
        held.mkdir()
        for path in (kept, held):
            os.chown(path, nobody, nobody)
        code = (
            "p = 'report.txt'; open(p, 'a').write('new\\n'); print(open(p).read()); "
            "open('more.txt', 'w').write('x'); open('held/in', 'w').write('x')"
        )
        order, answer = upper / "order.json", upper / "answer.jsonl"
        argv = [python, "-I", "-c", code]
        mounting = f'mount -t tmpfs none {held} && chown {nobody} {held} && exec "$@"'
        # A project that holds a mount, as of a volume, is divided, and so is each folder above it.
        for number, before in enumerate([[], ["unshare", "--mount", "sh", "-c", mounting, "sh"]]):
            layers = upper / str(number)
            layers.mkdir()
            world = {"upper": str(layers), "used": [str(project)]}
            order.write_text(json.dumps({"argv": argv, "cwd": str(project), "world": world, "answer": str(answer)}))
            for path in (order, layers):
                os.chown(path, nobody, nobody)
            done = subprocess.run(
                [*before, *as_nobody, python, *launch.command(order)[1:]],
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
            if number == 0 and "refused" in answer.read_text():
                pytest.skip(f"no sealed world can be made here: {answer.read_text()}")
            assert (done.returncode, done.stdout) == (0, "old\nnew\n\n"), (done.stderr, answer.read_text())
            assert kept.read_text() == "old\n"
            assert sorted(path.name for path in project.iterdir()) == ["held", "report.txt"]
            assert [*held.iterdir()] == []
