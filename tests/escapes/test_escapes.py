"""Programs that try to get out of a replay; what is said of the world is held against what is seen from outside."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from escapes import servers
from escapes.beside import beside_the_copies
from escapes.ground import Ground
from escapes.matrix import MATRIX
from escapes.model import model
from escapes.trial import Probe, together, try_out

ALL = [(kind, name) for kind, probes in MATRIX.items() for name in probes]
NATIVE = [(kind, name) for kind, name in ALL if MATRIX[kind][name].client]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with ground_with_servers() as made:
        yield made


@contextmanager
def ground_with_servers() -> Iterator[Ground]:
    """Start every server that can be had, and make the ground around them."""
    # Not pytest's own folder: a unix socket's path has room for 107 bytes.
    with ExitStack() as stack:
        top = Path(tempfile.mkdtemp(prefix="oz-"))
        stack.callback(subprocess.run, ["rm", "-rf", str(top)], check=True)
        top.chmod(0o755)
        tag = f"oz{os.getpid()}z"
        places: dict[str, object] = {"model": stack.enter_context(model())}
        for start in (servers.postgres, servers.redis):
            places |= stack.enter_context(start(top / start.__name__))
        looks = {name: place for name, place in places.items() if callable(place)}
        made = Ground(top / "outside", tag, counters=looks)
        made.more = {name: place for name, place in places.items() if not callable(place)}
        if os.getuid() == 0:
            made.more |= beside_the_copies(made, stack)
        yield stack.enter_context(made)


def missing(probe: Probe, ground: Ground) -> str:
    """Name what a program needs and is not here."""
    for need in probe.needs:
        if need.startswith("/"):
            if not Path(need).exists():
                return need
        elif need not in ground.more and not _module(need):
            return need
    return ""


def _module(name: str) -> bool:
    with suppress(ModuleNotFoundError, ValueError):
        return find_spec(name) is not None
    return False


Told = Callable[[str, object], None]


def held(ground: Ground, kind: str, name: str, place: str, told: Told) -> None:
    probe = MATRIX[kind][name]
    if absent := missing(probe, ground):
        pytest.skip(f"{absent} is not here")
    rows = try_out(ground, kind, name, probe, place=place)
    for row in rows:
        told("row", row.spelled())
        if at_once := os.environ.get("ESCAPES_TABLE"):
            with Path(at_once).open("a") as table:
                table.write(f"{row.spelled()}\n")
    assert not [row for row in rows if row.faults], "\n".join(f"{row.spelled()}\n{row.said[-1500:]}" for row in rows)


QUICK = {
    "files": ["C's own streams", "raw system call", "readline's history"],
    "home and spools": ["~/.bashrc in C"],
    "unix sockets": ["a datagram in C"],
    "of the seal": ["tcp in C", "unix in C", "by /proc/self/root", "shared memory of System V"],
    "network": ["udp in C"],
    "shared": ["a semaphore of System V", "a queue of System V", "POSIX shared memory in C"],
    "processes": ["vfork and exec in C", "affinity in C", "limits in C"],
    "signals": ["kill in C"],
}
"""Strong ones of each kind that need no library, in one program."""


def test_nothing_of_one_program_that_tries_it_in_every_way_gets_out(ground: Ground) -> None:
    probes = [MATRIX[kind][name] for kind, names in QUICK.items() for name in names]
    recorded, sealed, watched = together(ground, probes)
    assert {"home/.bashrc", "heard", "victim", "system v", "beyond"} <= set(recorded.changed), recorded.said
    if "sealed" not in sealed.place:
        pytest.skip(f"no sealed world can be made here: {sealed.said}")
    assert sealed.changed == [], sealed.said
    assert sealed.words == dict.fromkeys(sealed.words, "enforced") | {"files": "copied"}
    assert watched.changed == [] or set(watched.words.values()) <= {"watched", "open"}, watched.said


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_a_replay_says_of_the_world_is_what_is_seen(
    ground: Ground, kind: str, name: str, record_property: Told
) -> None:
    held(ground, kind, name, "own", record_property)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), NATIVE)
def test_so_it_is_where_a_found_tool_does_it(ground: Ground, kind: str, name: str, record_property: Told) -> None:
    held(ground, kind, name, "found", record_property)
