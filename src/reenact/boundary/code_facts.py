"""What a piece of compiled code names: variables, attributes, imports. Told from its instructions; nothing is run."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final

_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_STORED: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
_SET: Final = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_BY_NAME: Final = frozenset({"getattr", "hasattr", "setattr", "delattr"})
"""Builtins whose second argument names an attribute."""
_MATCHES: Final = frozenset({"MATCH_CLASS"})
_CALLS: Final = frozenset({"CALL", "CALL_FUNCTION"})
_PREPARES: Final = frozenset({"PRECALL", "NOP", "EXTENDED_ARG", "CACHE"})
_LEADS_ELSEWHERE: Final = ("JUMP", "POP_JUMP", "FOR_ITER", "SEND", "RETURN")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFacts:
    """What code names, the code inside it included."""

    variables: frozenset[str]
    """Variables of its module, and builtins."""
    stored: frozenset[str]
    """Variables of its module that it sets or deletes."""
    attributes: frozenset[str]
    """Attributes of anything that it reads, sets or imports."""
    set_attributes: frozenset[str]
    """Those that it sets or deletes."""
    imports: frozenset[str]
    """Modules that it imports itself."""
    computed: bool
    """It gives a name of an attribute that no constant spells to `getattr` and the like."""
    matches: bool
    """It takes instances apart by patterns, which name attributes their class chooses."""
    dotted: frozenset[tuple[str, str]]
    """Variables with the attribute that is read of them at once."""
    bare: frozenset[str]
    """Variables that are used for more than that."""


@lru_cache(maxsize=8192)
def code_facts(code: CodeType) -> CodeFacts:
    """Tell what code names."""
    gatherer = _Found()
    steps = [step for step in dis.get_instructions(code) if step.opname not in _PREPARES]
    for at, step in enumerate(steps):
        gatherer.take(steps, at, step.opname, str(step.argval))
    return gatherer.facts(code_facts(each) for each in _inner(code))


class _Found:
    """Gathers what code names."""

    def __init__(self) -> None:
        self._names: dict[str, set[Any]] = {name: set() for name in _SETS}
        self._computed = self._matches = False

    def take(self, steps: list[dis.Instruction], at: int, name: str, argument: str) -> None:
        """Take in one instruction."""
        names = self._names
        if name in _GLOBAL:
            names["variables"].add(argument)
            if argument in _BY_NAME:
                self._by_name(argument, _spelled(steps, at))
            following = steps[at + 1] if at + 1 < len(steps) else None
            if following is not None and following.opname in _ATTRIBUTE:
                names["dotted"].add((argument, str(following.argval)))
            else:
                names["bare"].add(argument)
        elif name in _STORED:
            names["stored"].add(argument)
        elif name in _ATTRIBUTE or name in _SET:
            names["attributes"].add(argument)
            if name in _SET:
                names["set_attributes"].add(argument)
        elif name == "IMPORT_NAME":
            names["imports"].add(argument)
        self._matches |= name in _MATCHES

    def _by_name(self, function: str, spelled: str | None) -> None:
        """Take in what `getattr` or one like it is given."""
        if spelled is None:
            self._computed = True
            return
        self._names["attributes"].add(spelled)
        if function in {"setattr", "delattr"}:
            self._names["set_attributes"].add(spelled)

    def facts(self, inner: Iterable[CodeFacts]) -> CodeFacts:
        """Give what was found, and what was found in the code inside."""
        for each in inner:
            for name, members in self._names.items():
                members.update(getattr(each, name))
            self._computed, self._matches = self._computed or each.computed, self._matches or each.matches
        names: dict[str, frozenset[Any]] = {name: frozenset(members) for name, members in self._names.items()}
        return CodeFacts(**names, computed=self._computed, matches=self._matches)


_SETS: Final = ("variables", "stored", "attributes", "set_attributes", "imports", "dotted", "bare")


def _inner(code: CodeType) -> Iterator[CodeType]:
    yield from (each for each in code.co_consts if isinstance(each, CodeType))


def _spelled(steps: list[dis.Instruction], at: int) -> str | None:
    """Give the constant that is the second argument of the call of the function which is loaded at `at`; else None.

    The depth of the stack is followed up to the call: an argument begins where it is one deeper than the one before.
    """
    depth, second = 0, None
    for step in steps[at + 1 : at + 40]:
        if step.opname in _CALLS and step.arg == depth:
            return second if depth in {2, 3} else None
        if step.opname.startswith(_LEADS_ELSEWHERE):
            return None
        before = depth
        depth += _effect(step)
        if depth <= 2:
            begins = depth == 2 and before == 1 and step.opname == "LOAD_CONST"
            second = step.argval if begins and type(step.argval) is str else None
    return None


def _effect(step: dis.Instruction) -> int:
    if step.opname in _CALLS:
        return -(step.arg or 0) - 1  # Python 3.11 counts the arguments with the PRECALL before it
    return dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
