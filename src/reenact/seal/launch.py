"""Start a program in a sealed world: `python -I -S -c … FOLDER ORDER`, a process of one thread and no user code.

The order is a JSON file, named in itself as `order`, and removed when it is carried out: `argv`, `cwd`, `world` (the
arguments of `world.enter`), `cell` (those of `cell.enter`, for where there can be no such world), `begin` (what stood
at some paths, for `begin.put_back`), perhaps `ways` out of the world (`relay.serve`), perhaps `room` in bytes for what
is written (`room`), `told`, the ledger in which both say what they did, perhaps a text that is `handed` on by a
descriptor, and `answer`, a file to tell in what became of it: `{"copied": [folders]}`, or `{"refused": why, "tried":
[levels]}` before anything of the program ran, `{"world": why}` where the next is tried, and `{"start": errno}` where
the program itself could not be started. One of `world` and `cell` may be absent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Final, NoReturn

    from reenact.seal.room import Room
    from reenact.seal.streams import Streams
    from reenact.seal.world_exits import WaysOut

    Order = Mapping[str, Any]

BOOT: Final = "import sys; sys.path.append(sys.argv[1]); from reenact.seal.launch import main; main(*sys.argv[2:])"
SOURCE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUARDED: Final = "REENACT_GUARDED"
"""Tells the program's processes that the kernel keeps the outside world shut, and how."""
HOW: Final = "sealed"
HANDED: Final = "REENACT_HANDED"
"""Tells a replayed process the number of the descriptor with the keys of its redaction."""
IN: Final = "sealed-in:"
"""Says it of a cell, before the folder that is a copy."""
LEADS: Final = "REENACT_LEADS"
"""Tells the program's processes where the copies lie: a JSON object of folders and those that stand for them."""
_SHUTS_US_OUT: Final = frozenset("ISE")
ENFORCE: Final = "REENACT_ENFORCE"
UNSEALED: Final = ("watched", "off")
"""The values of it under which nothing is sealed."""


def flags(boot: str) -> list[str]:
    """Give the arguments of an interpreter that runs `boot` and nothing of the user's."""
    return ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-c", boot]


def command(order: Path) -> list[str]:
    """Give the command that carries out an order."""
    return [sys.executable, *flags(BOOT), SOURCE, str(order)]


def is_command(argv: Sequence[str]) -> bool:
    """Tell whether a command is one that carries out an order."""
    return [*argv[1:-2]] == flags(BOOT) and argv[0] == sys.executable


def ordered_by(argv: Sequence[str]) -> Order | None:
    """Read the order that a command of ours carries out; None where it is another command."""
    return _read(argv[-1]) if is_command(argv) else None


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as stream:
        order: dict[str, Any] = json.load(stream)
    return order


def main(path: str) -> NoReturn:
    """Carry out an order by a program that is started anew, in the environment that this process was handed."""
    launch(path, _environ())


def launch(path: str, environ: dict[bytes, bytes]) -> NoReturn:
    """Carry out an order by a program that is started anew, in an environment."""
    order = _read(path)
    argv = [os.fsencode(word) for word in order["argv"]]

    def start(answer: int) -> NoReturn:
        environ.update({os.fsencode(name): os.fsencode(value) for name, value in marks().items()})
        if LEADS in _marks:
            os.chdir(order["cwd"] if _goes_there_itself(order["argv"]) else json.loads(_marks[LEADS])[_folder(order)])
        try:
            os.execvpe(argv[0], argv, environ)  # noqa: S606 - it becomes the program
        except OSError as error:
            _tell(answer, start=error.errno)
        os._exit(127)

    carry_out(order, start)


def load() -> None:
    """Import what carries out an order in a world, for who has the time."""
    for name in ("begin", "room", "streams", "world"):
        import_module(f"reenact.seal.{name}")


def carry_out(order: Order, program: Callable[[int], NoReturn], handles: Sequence[int] = ()) -> NoReturn:
    """Enter the world of an order, have `program` live in it, and end as it ended. This process has one thread.

    `program` is called with the descriptor of the answer, which no user code may have. Of the other descriptors it has
    the standard streams and those of `handles`.
    """
    from reenact.seal import kernel  # whoever only gives the order needs none of them
    from reenact.seal.room import Room
    from reenact.seal.streams import Streams

    answer = os.open(order["answer"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    tried: list[str] = []
    with suppress(OSError):  # the program finds no order
        os.unlink(order.get("order", ""))
    try:
        kernel.end_with_parent(signal.SIGKILL)
        first = next(order[level] for level in ("world", "cell") if level in order)
        streams, room = (
            Streams(first.get("doors", ())),
            Room(first["upper"], order.get("told", ""), order.get("room", 0)),
        )
        room.begin()
        if "world" in order:
            tried.append("world")
            try:
                _carry_out_in_a_world(order, answer, program, streams, room, handles)
            except OSError as error:
                if error.filename != "unshare" or "cell" not in order:  # else nothing has changed yet
                    raise
                _tell(answer, world=f"{error.filename}: {error.strerror}")
        tried.append("cell")
        _carry_out_in_a_cell(order, answer, program, streams, room)
    except OSError as error:
        _tell(answer, refused=f"{error.filename}: {error.strerror}", tried=tried)
    os._exit(0)


def _carry_out_in_a_cell(
    order: Order, answer: int, program: Callable[[int], NoReturn], streams: Streams, room: Room
) -> NoReturn:
    from reenact.seal import cell, kernel, world

    bounds = cell.enter(cwd=order["cwd"], **order["cell"])
    streams.enter()
    kernel.end_with_parent(signal.SIGKILL)  # a change of credentials may have undone it (prctl(2))
    _marks.update({GUARDED: IN + bounds.folder.original, LEADS: json.dumps(bounds.leads), "TMPDIR": bounds.temporary})

    _hand_on(order)

    def inside() -> NoReturn:
        if order.get("begin"):
            from reenact.seal import begin

            begin.put_back_in(order["begin"], bounds.folder.original, bounds.folder.copy)
        _tell(answer, copied=[bounds.folder.original], folder=bounds.folder.copy, abi=bounds.abi)
        program(answer)

    spared, ledger = [*streams.carriers, room.process], order.get("told", "")
    status = cell.live(bounds, inside, spared, begun=room.watch, ledger=ledger)
    streams.end()
    room.end()
    world.end_as(status)


def _carry_out_in_a_world(
    order: Order, answer: int, program: Callable[[int], NoReturn], streams: Streams, room: Room, handles: Sequence[int]
) -> NoReturn:
    from reenact.seal import kernel, world

    ways = _ways(order)
    copied = world.enter(**order["world"])
    if ways is not None:
        ways.open(order["world"]["upper"])
    streams.enter()
    kernel.end_with_parent(signal.SIGKILL)  # a change of credentials may have undone it (prctl(2))
    _marks[GUARDED] = HOW

    def inside() -> NoReturn:
        if order.get("begin"):
            from reenact.seal import begin

            begin.put_back(order["begin"], copied, [*order["world"]["doors"], *order["world"]["instead"]])
        try:
            os.chdir(order["cwd"])
        except OSError as error:  # it lies where nothing is copied, as in /run
            _tell(answer, refused=f"{error.filename}: {error.strerror}", tried=["world"])
            os._exit(0)
        _tell(answer, copied=copied)
        _close_all_but({0, 1, 2, answer, *handles})
        _hand_on(order)
        program(answer)

    status = world.live(inside, begun=room.watch, pid=order.get("pid", 0))
    streams.end()
    room.end()
    if ways is not None:
        ways.end()
    world.end_as(status)


def _ways(order: Order) -> WaysOut | None:
    if not order.get("ways"):
        return None
    from reenact.seal.world_exits import WaysOut  # a world without any needs no relay

    ways = WaysOut(order["ways"], order["told"])
    ways.begin()
    return ways


_marks: dict[str, str] = {}


def marks() -> Mapping[str, str]:
    """Give the variables of the environment that tell a program about the world that it was put into."""
    return dict(_marks)


def _folder(order: Order) -> str:
    return os.path.realpath(order["cwd"])


def _goes_there_itself(argv: Sequence[str]) -> bool:
    """Tell whether a program is a Python with our start-up hook: it enters the copy when it has read its own name."""
    if not os.path.basename(argv[0]).startswith("python"):
        return False
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word in {"-", "-c", "-m"}:
            break
        if word in {"-W", "-X"}:
            next(words, None)
        elif not word.startswith("--") and _SHUTS_US_OUT & set(word):
            return False
    return True


def _hand_on(order: Order) -> None:
    """Leave a program what an order has for it: its umask, and a text in a descriptor that no file holds."""
    if (mask := order.get("umask")) is not None:
        os.umask(mask)
    text: str = order.get("handed", "")
    if not text:
        return
    handle = os.memfd_create("reenact")
    os.write(handle, text.encode())
    os.set_inheritable(handle, True)
    _marks[HANDED] = str(handle)


def _close_all_but(descriptors: set[int]) -> None:
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in descriptors:
            with suppress(OSError):  # the one by which they are listed
                os.close(number)


def _tell(answer: int, **fields: Any) -> None:
    os.write(answer, json.dumps(fields).encode() + b"\n")


def _environ() -> dict[bytes, bytes]:
    """Give the environment as this process was handed it, without what an interpreter adds at its start (PEP 538)."""
    with open("/proc/self/environ", "rb") as stream:
        pairs = [each.partition(b"=") for each in stream.read().split(b"\0")]
    return {name: value for name, sign, value in pairs if sign}
