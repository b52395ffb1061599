"""Sets of the program's own objects, of tasks and of futures have one order in all processes that do the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.always

PROGRAM = """
import sys
junk = [bytearray(60) for _ in range(int(sys.argv[1]))]

from reenact.boundary.patching import Patches
from reenact.integrations.object_hashes import INTEGRATION
INTEGRATION.install(Patches())

import asyncio, dataclasses, weakref
from concurrent.futures import Future

junk += [object() for _ in range(int(sys.argv[1]))]


class Plain:
    pass


@dataclasses.dataclass(eq=False)
class Record:
    number: int


@dataclasses.dataclass
class Compared:
    number: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    number: int


class Slotted:
    __slots__ = ("number",)


async def tasks():
    made = [asyncio.create_task(asyncio.sleep(0), name=str(number)) for number in range(9)]
    order = [each.get_name() for each in set(made)]
    await asyncio.gather(*made)
    return order


plain = [Plain() for _ in range(40)]
futures = [Future() for _ in range(9)]
print([plain.index(each) for each in set(plain)])
print([plain.index(each) for each in weakref.WeakSet(plain[:9])])
print([each.number for each in {Record(number) for number in range(9)}])
print([futures.index(each) for each in set(futures)])
print(asyncio.run(tasks()))
"""
ALL_THE_SAME = (
    PROGRAM
    + """
one = plain[0]
assert hash(one) == hash(one) == one.__hash__() == object.__hash__(one)
assert Plain.__hash__ is object.__hash__
assert hash(Frozen(3)) == hash(Frozen(3)) != hash(Frozen(4))
assert Frozen(3) in {Frozen(3)}
assert hash(Slotted()) is not None
assert len({*plain, *plain}) == 40
assert one in set(plain)
try:
    hash(Compared(1))
except TypeError:
    print("no hash")
del plain, futures, one
import gc
gc.collect()
from reenact.integrations import object_hashes
assert len(object_hashes._number_by_id) == len(object_hashes._references) < 9, "they are let go"
"""
)


def ran(tmp_path: Path, source: str, junk: int) -> list[str]:
    program = tmp_path / "program.py"
    program.write_text(source)
    environ = {**os.environ, "PYTHONHASHSEED": "0", "REENACT_RECORD": "x"}  # as where it is all of the program
    command = [sys.executable, "-S", str(program), str(junk)]
    environ["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_sets_of_objects_have_one_order_in_all_processes(tmp_path: Path) -> None:
    orders = [ran(tmp_path, PROGRAM, junk) for junk in (0, 777, 5003)]
    assert len(orders[0]) == 5
    assert orders[1:] == orders[:1] * 2


def test_a_hash_is_what_python_says_it_is(tmp_path: Path) -> None:
    assert ran(tmp_path, ALL_THE_SAME, 10)[-1] == "no hash"
