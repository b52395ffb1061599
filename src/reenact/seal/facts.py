"""What is known of a file and is not its content, changed for a program in a cell.

Landlock sees no change of mode, owner, times and extended attributes. The warden makes them, where the file lies in the
cell, on a descriptor of its own.
"""

from __future__ import annotations

import os
import struct

from reenact.seal import kernel
from reenact.seal.question import HERE, Question, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Final

    from reenact.seal.bounds import Bounds
    from reenact.seal.question import Answer

    Act = Callable[[Question, str], None]

_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_ENOENT, _E2BIG = 2, 7
_ATTRIBUTE_MAX: Final = 65536
_NAME_MAX: Final = 256


def answers(bounds: Bounds, numbers: Mapping[str, int]) -> dict[str, Answer]:
    """Give what answers the calls that change such facts, by their names."""

    def at(act: Act, *, follow: bool = True) -> Answer:
        def answer(question: Question) -> int:
            with place(bounds, question, HERE, question.text(0), follow=follow) as there:
                act(question, there)
            return 0

        return answer

    def of(act: Act) -> Answer:
        def answer(question: Question) -> int:
            with place(bounds, question, question.integer(0), b"") as there:
                act(question, there)
            return 0

        return answer

    def below(act: Act, flags: int | None) -> Answer:
        return lambda question: _below(bounds, question, act, flags)

    def times(at: int, form: str) -> Act:
        return lambda question, there: _set_times(question, there, at, form, numbers["utimensat"])

    return {
        "chmod": at(_mode(1)),
        "fchmod": of(_mode(1)),
        "fchmodat": below(_mode(2), None),
        "fchmodat2": below(_mode(2), 3),
        "chown": at(_owner(1)),
        "lchown": at(_owner(1), follow=False),
        "fchown": of(_owner(1)),
        "fchownat": below(_owner(2), 4),
        "utime": at(times(1, "<qq")),
        "utimes": at(times(1, "<qqqq")),
        "futimesat": below(times(2, "<qqqq"), None),
        "utimensat": below(times(2, ""), 3),
        "setxattr": at(_set_attribute),
        "lsetxattr": at(_set_attribute, follow=False),
        "fsetxattr": of(_set_attribute),
        "removexattr": at(_remove_attribute),
        "lremovexattr": at(_remove_attribute, follow=False),
        "fremovexattr": of(_remove_attribute),
        "truncate": at(lambda question, there: os.truncate(there, question.arguments[1])),
    }


def _below(bounds: Bounds, question: Question, act: Act, flags: int | None) -> int:
    """Act on what a path names that begins at a descriptor; `flags` is the place of an argument."""
    flag_bits = question.integer(flags) if flags is not None else 0
    path = question.text(1) if question.arguments[1] else b""
    if not path and question.arguments[1] and not flag_bits & _EMPTY_PATH:
        raise OSError(_ENOENT, os.strerror(_ENOENT))
    with place(bounds, question, question.integer(0), path, follow=not flag_bits & _NO_FOLLOW) as there:
        act(question, there)
    return 0


def _mode(at: int) -> Act:
    return lambda question, there: os.chmod(there, question.integer(at) & 0o7777)


def _owner(at: int) -> Act:
    return lambda question, there: os.chown(there, question.integer(at), question.integer(at + 1))


def _set_times(question: Question, there: str, at: int, form: str, number: int) -> None:
    """Set the times of a file, which utime(2), utimes(2) and utimensat(2) spell in three ways."""
    times: bytes | int = 0
    if question.arguments[at] and form:
        times = _as_timespecs(struct.unpack(form, question.data(at, struct.calcsize(form))))
    elif question.arguments[at]:
        times = question.data(at, 32)
    kernel.call(number, HERE, os.fsencode(there) + b"\0", times, 0, about=there)


def _as_timespecs(times: Sequence[int]) -> bytes:
    if len(times) == 2:
        return struct.pack("<qqqq", times[0], 0, times[1], 0)
    return struct.pack("<qqqq", times[0], times[1] * 1000, times[2], times[3] * 1000)


def _set_attribute(question: Question, there: str) -> None:
    size = question.arguments[3]
    if size > _ATTRIBUTE_MAX:
        raise OSError(_E2BIG, os.strerror(_E2BIG))
    value = question.data(2, size) if size else b""
    os.setxattr(there, question.text(1, _NAME_MAX), value, question.integer(4))


def _remove_attribute(question: Question, there: str) -> None:
    os.removexattr(there, question.text(1, _NAME_MAX))
