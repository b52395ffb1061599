"""What the user recorded is the user's own: nothing is asked, with a key in a file as with one in the environment."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

import pytest

from desk import Desk
from reenact.disk import user_key
from reenact.errors import InputError
from trust.hostile import plain

pytestmark = pytest.mark.sample(4)

SECRET = "a-secret-of-this-container-0123456789"
CHILDREN = """
import json, os, subprocess, sys
import reenact

@reenact.tool
def add(a, b):
    return a + b

print("sum", add(1, 2))
child = "import os, reenact; print(sorted(os.environ.items())); reenact.tool(abs)(-1)"
for words in ([sys.executable, "-c", child], ["env"]):
    print(subprocess.run(words, capture_output=True, text=True).stdout)
print(sorted(os.environ.items()))
print(open("/proc/self/environ").read())
"""
SLOW = """
import os, signal, sys, time
import reenact

@reenact.tool
def add(a, b):
    return a + b

print("sum", add(1, 2), flush=True)
if "REENACT_REPLAY" not in os.environ:
    print(os.getppid(), flush=True)
    os.kill(os.getppid(), signal.SIGKILL) if "all" in sys.argv else None
    os.kill(os.getpid(), signal.SIGKILL)
"""


def container(desk: Desk) -> dict[str, str]:
    """Give what a fresh container has: no home, no configuration, and the key in a variable."""
    return {"REENACT_KEY": SECRET, "HOME": str(desk.folder.parent / "no-home"), "PATH": os.environ["PATH"]}


@pytest.fixture(params=["key file", "REENACT_KEY"])
def environ(request: pytest.FixtureRequest, desk: Desk) -> dict[str, str]:
    return container(desk) if request.param == "REENACT_KEY" else plain()


def quietly(done: subprocess.CompletedProcess[str]) -> None:
    """Expect that it went well and that nobody was asked for anything."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not known as your own" not in done.stderr


@pytest.mark.always
def test_an_own_run_asks_nothing(
    desk: Desk, environ: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    quietly(desk.reenact("run", "-q", "--", "python", "agent.py", environ=environ))
    quietly(desk.reenact("replay", "last", environ=environ))
    quietly(desk.reenact("replay", "--all", ".reenact", environ=environ))
    quietly(desk.reenact("fork", "last", "--at", "first tool", "--set", "result=4", environ=environ))
    quietly(desk.reenact("fuzz", "last", "--cases", "2", environ=environ))
    quietly(desk.reenact("promote", "last", environ=environ))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    quietly(desk.run(words, {name: value for name, value in environ.items() if name != "REENACT_KEY"}))
    assert not (desk.folder.parent / "no-home").exists()
    how = "REENACT_KEY in an empty environment" if "REENACT_KEY" in environ else "a key file"
    record_property("figure", f"own runs with {how}: replay, --all, fork, fuzz, promote, pytest ask nothing")


UNKNOWN = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
"""Starts a program as a user whom the system has no name and no home for, as containers do."""


@pytest.mark.slow
@pytest.mark.skipif(
    subprocess.run([*UNKNOWN, "true"], capture_output=True, check=False).returncode != 0 if which("unshare") else True,
    reason="unshare cannot make a user namespace here",
)
def test_a_user_without_a_name_and_a_home_is_asked_nothing(desk: Desk) -> None:
    environ = {"REENACT_KEY": SECRET, "PATH": os.environ["PATH"]}
    reenact = [*UNKNOWN, sys.executable, "-m", "reenact"]
    quietly(desk.run([*reenact, "run", "-q", "--", "python", "agent.py"], environ))
    quietly(desk.run([*reenact, "replay", "last"], environ))
    quietly(desk.run([*reenact, "promote", "last"], environ))
    said = desk.run(
        [*reenact, "run", "--", "python", "agent.py"], {**environ, "REENACT_REDACTION_POLICY": "~/none.toml"}
    )
    assert "Traceback" not in said.stderr
    assert said.stdout == "sum 3\n", "the program runs, whatever becomes of the policy"


def test_an_own_run_with_a_collector_beside_it_asks_nothing(desk: Desk, environ: dict[str, str]) -> None:
    quietly(desk.reenact("run", "-q", "--collect", "--", "python", "agent.py", environ=environ))
    quietly(desk.reenact("replay", "last", environ=environ))


def test_the_key_is_nowhere(desk: Desk) -> None:
    environ = container(desk)
    desk.write("children.py", CHILDREN)
    done = desk.reenact("run", "--", "python", "children.py", environ=environ)
    assert done.returncode == 0, done.stderr
    exported = desk.reenact("export", "last", "-o", "-", environ=environ).stdout
    shown = desk.reenact("show", "last", "--json", environ=environ).stdout
    held = [path.read_bytes() for path in (desk.folder / ".reenact").rglob("*") if path.is_file()]
    told = [done.stdout.encode(), done.stderr.encode(), exported.encode(), shown.encode(), *held]
    assert "REENACT_RECORDING" in done.stdout, "the environment was looked at"
    for secret in (SECRET.encode(), b"REENACT_KEY"):
        assert not any(secret in text for text in told)
    for text in (exported, shown):
        assert "reenact.origin" not in text


@pytest.mark.parametrize("who", ["program", "all"])
def test_a_run_that_was_killed_is_own(desk: Desk, environ: dict[str, str], who: str) -> None:
    desk.write("slow.py", SLOW)
    done = desk.reenact("run", "-q", "--", "python", "slow.py", who, environ=environ)
    assert done.returncode in {137, -signal.SIGKILL}, done.stderr
    time.sleep(0.2)
    replayed = desk.reenact("replay", "last", environ=environ)
    assert replayed.returncode in {0, 1, 125}, replayed.stderr
    assert replayed.stdout.startswith("sum 3"), replayed.stderr
    assert "not known as your own" not in replayed.stderr


@pytest.mark.slow
def test_a_run_that_was_recorded_in_code_is_own(desk: Desk, environ: dict[str, str]) -> None:
    desk.write("itself.py", "import reenact\nreenact.record()\n" + CHILDREN)
    done = desk.run([sys.executable, "itself.py"], environ)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout.replace(open_environ(done.stdout), "")
    replayed = desk.reenact("replay", "last", environ=environ)
    assert replayed.stdout.startswith("sum 3"), replayed.stderr
    assert "not known as your own" not in replayed.stderr


def open_environ(printed: str) -> str:
    """Give the last line, /proc/self/environ: what the kernel keeps of a start nobody can take away."""
    return printed.strip().splitlines()[-1]


def test_another_key_makes_a_stranger_of_it(desk: Desk) -> None:
    quietly(desk.reenact("run", "-q", "--", "python", "agent.py", environ=container(desk)))
    other = desk.reenact("replay", "last", environ=container(desk) | {"REENACT_KEY": SECRET[:-1]})
    assert other.returncode == 3
    assert "is not known as your own recording" in other.stderr


@pytest.mark.slow
def test_what_a_fuzz_found_is_own(desk: Desk) -> None:
    desk.write(
        "fragile.py",
        "import reenact\n@reenact.tool\ndef look(key):\n    return {'name': 'x'}\nprint(look('k')['name'].upper())\n",
    )
    quietly(desk.reenact("run", "-q", "--", "python", "fragile.py", environ=plain()))
    done = desk.reenact("fuzz", "last", "--cases", "12", environ=plain())
    again = [line.split("reenact replay ")[1].split()[0] for line in done.stdout.splitlines() if "again:" in line]
    assert again, done.stdout + done.stderr
    replayed = desk.reenact("replay", again[0], environ=plain())
    assert "not known as your own" not in replayed.stderr
    assert replayed.returncode in {0, 1}, replayed.stderr


# ---------------------------------------------------------------------------------------------------- the key's file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(user_key, "_given", [])
    return tmp_path / "config" / "reenact"


def test_the_key_is_the_users_alone_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert user_key.find_key() is None
        key = user_key.find_key(make=True)
    finally:
        os.umask(before)
    assert key == user_key.find_key()
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_of_many_who_make_a_key_at_once_all_get_one(folder: Path) -> None:
    del folder
    ask = [sys.executable, "-c", "from reenact.disk import user_key; print(user_key.find_key(make=True).hex())"]
    with ThreadPoolExecutor(8) as pool:
        told = list(
            pool.map(lambda _: subprocess.run(ask, capture_output=True, text=True, check=True).stdout, range(8))
        )
    assert len(set(told)) == 1


def _open_to_others(key: Path) -> None:
    key.chmod(0o644)


def _linked(key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to("elsewhere")


def _of_another(key: Path) -> None:
    os.chown(key, 12345, -1)


def _cut(key: Path) -> None:
    key.write_text("abc\n")


def _a_pipe(key: Path) -> None:
    key.unlink()
    os.mkfifo(key, 0o600)


def _writable_folder(key: Path) -> None:
    key.parent.chmod(0o777)


def _folder_of_another(key: Path) -> None:
    os.chown(key.parent, 12345, -1)


def _folder_by_anothers_link(key: Path) -> None:
    key.parent.rename(key.parent.with_name("other"))
    key.parent.symlink_to("other")
    os.chown(key.parent, 12345, -1, follow_symlinks=False)


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "readable": (_open_to_others, "can be read by others"),
    "a link": (_linked, "is a link"),
    "another's": (_of_another, "belongs to another user"),
    "cut": (_cut, "holds no key"),
    "a pipe": (_a_pipe, "is no plain file"),
    "a folder to write in": (_writable_folder, "can be written by others"),
    "another's folder": (_folder_of_another, "belongs to another user"),
    "another's link": (_folder_by_anothers_link, "another user made"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_key_that_is_not_the_users_alone_is_refused(folder: Path, how: str, desk: Desk) -> None:
    spoil, why = SPOILT[how]
    if "another's" in how and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    user_key.find_key(make=True)
    spoil(folder / "key")
    with pytest.raises(InputError, match=why):
        user_key.find_key()
    with pytest.raises(InputError, match=why):
        user_key.find_key(make=True)
    done = desk.reenact("run", "--", "python", "agent.py")
    assert (done.returncode, done.stdout) == (0, "sum 3\n"), "the program runs, and is recorded"
    assert why in done.stderr
    refused = desk.reenact("replay", "last")
    assert refused.returncode == 3
    assert why in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", [{"HOME": "/proc/nowhere"}, {"XDG_CONFIG_HOME": "/dev/null/x"}], ids=["home", "xdg"])
def test_a_home_that_is_not_there_is_no_hindrance(desk: Desk, place: dict[str, str]) -> None:
    def reenact(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "reenact", *words],
            cwd=desk.folder,
            env={"PATH": os.environ["PATH"], **place},
            capture_output=True,
            text=True,
            check=False,
        )

    done = reenact("run", "--", "python", "agent.py")
    assert (done.returncode, done.stdout) == (0, "sum 3\n")
    assert "not known as your own" in done.stderr
    assert reenact("replay", "last").returncode == 3


def test_a_relative_configuration_folder_counts_for_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del folder
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", "/somewhere")
    assert user_key.configuration() == Path("/somewhere/.config/reenact")
    monkeypatch.delenv("HOME")
    assert user_key.configuration() is not None, "the system knows where this user's home is"
