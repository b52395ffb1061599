"""Loops that wait for others: code that pauses, looks whether somebody has changed something, and pauses again.

How often it does depends on when the others are done. A `for` loop that nothing leaves before its end is none: what it
goes through says how often. Nor is a loop that looks at its own variables alone, nor one that does nothing but pause:
nobody sees how often it went around. One that asks a child process whether it has ended (`Popen.poll`) waits for no
code of this process.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from itertools import count, islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from reenact.boundary.own_code import is_own_code

if TYPE_CHECKING:
    from dis import Instruction

_CALLERS: Final = 8
"""So many frames of the agent's code around a pause are looked at."""
_REMEMBERED: Final = 2_000
_NAMES: Final = ("LOAD_GLOBAL", "LOAD_NAME")
_OF_OTHERS: Final = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS")
_KEEPING: Final = ("STORE", "DELETE", "IMPORT", "SETUP", "BEFORE_WITH", "RAISE", "RETURN")
_ASKS_A_CHILD: Final = "poll"
_UNIT: Final = 2
"""The bytes of one unit of code (`code.co_positions`)."""
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where code stands: which place in a loop that is, from 1; 0 where it is in none that waits for others."""

    code: CodeType
    loop: int


_known: Final[dict[tuple[int, int], _Place]] = {}
_numbers: Final = count(1)
_Position: TypeAlias = tuple[int | None, int | None, int | None, int | None] | int
"""First and last line, first and last column; the offset of the instruction where the source is not known."""
_loops: Final[dict[tuple[CodeType, _Position], int]] = {}


def loop_around(frame: FrameType | None) -> int:
    """Number the place in a loop that waits for others at which the agent's code pauses; 0 where it is in none."""
    for above in range(_CALLERS):
        if frame is None or not is_own_code(frame.f_code, frame.f_globals):
            return 0
        key = (id(frame.f_code), frame.f_lasti)
        place = _known.get(key)
        if place is None:
            if len(_known) >= _REMEMBERED:
                _known.clear()
            place = _known[key] = _Place(frame.f_code, _loop_at(frame, pauses=not above))
        if place.loop:
            return place.loop
        frame = frame.f_back
    return 0


def _loop_at(frame: FrameType, *, pauses: bool) -> int:
    """Number the place in a loop at which code stands that `pauses`, or has called what does."""
    from dis import get_instructions  # most programs never pause

    code, at, names = frame.f_code, frame.f_lasti, frame.f_globals
    steps = list(get_instructions(code))
    for step in steps:
        if "JUMP_BACKWARD" not in step.opname or not step.argval <= at <= step.offset:
            continue
        inside = [each for each in steps if step.argval <= each.offset <= step.offset]
        if (pauses and _does_nothing_else(inside, names)) or any(each.argval == _ASKS_A_CHILD for each in inside):
            continue
        if (inside[0].opname != "FOR_ITER" or _is_left(inside)) and _reads_of_others(inside, names):
            return _loops.setdefault((code, _position(code, at)), next(_numbers))
    return 0


def _position(code: CodeType, at: int) -> _Position:
    """Give where in the source an instruction comes from: an `await` that is cancelled stands at another of its own."""
    position = next(islice(code.co_positions(), at // _UNIT, None), None)
    return position if position is not None and None not in position else at


def _does_nothing_else(steps: list[Instruction], names: dict[str, Any]) -> bool:
    """Tell whether a loop keeps nothing, has one statement, and calls none of the agent's own functions by name."""
    if sum(step.opname == "POP_TOP" for step in steps) > 1 or any(step.opname.startswith(_KEEPING) for step in steps):
        return False
    values = (names.get(step.argval) for step in steps if step.opname in _NAMES)
    return not any(isinstance(each, FunctionType) and is_own_code(each.__code__, each.__globals__) for each in values)


def _is_left(steps: list[Instruction]) -> bool:
    """Tell whether something leaves a `for` loop before its end."""
    first, last = steps[0].offset, steps[-1].offset
    return any(
        "RETURN" in step.opname or ("JUMP" in step.opname and not first <= step.argval <= last) for step in steps[1:]
    )


def _reads_of_others(steps: list[Instruction], names: dict[str, Any]) -> bool:
    """Tell whether a loop reads what other code may change: all but locals, modules, built-in functions and classes."""
    of_module = False
    for step in steps:
        if step.opname in _OF_OTHERS:
            return True
        if step.opname in _NAMES:
            value = names.get(step.argval, getattr(builtins, str(step.argval), None))
            of_module = isinstance(value, ModuleType)
            if not of_module and not isinstance(value, type | BuiltinFunctionType):
                return True
        elif step.opname in _ATTRIBUTES:
            if not of_module:
                return True
        elif step.opname != "PUSH_NULL":
            of_module = False
    return False
