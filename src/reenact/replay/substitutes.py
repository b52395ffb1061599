"""Functions of the agent's that a user gives other bodies for a replay: `--stub MODULE:FUNCTION=VALUE|@FILE.py:NAME`.

Theory of operation. What went past every boundary cannot be answered from a recording. So the user says what it gave
back: a value, or a function of a file. It stands in the place of the agent's own right after the module that defines
that was imported, before anybody has read the name. A function of the program's own script, which nobody imports, is
replaced once the line that defines it has run; a trace function (`sys.settrace`) watches that one frame for it. Nothing
of this is evidence of what the agent's own function does, so a replay says how often each was called.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final, Protocol

from reenact.boundary.patching import Patches
from reenact.errors import ReenactError, UsageError
from reenact.values.json import Json, compact, parse
from reenact.values.lenient import as_list

REQUEST: Final = "stub"
"""The entry of the ledger for a function that is asked for: `name`."""
PLACEMENT: Final = "substitute"
"""The one for a function that stands in its place: `name`."""
USE: Final = "substituted"
"""The one for each call of it: `name`."""
MISFIT: Final = "unfit"
"""The one for a function that cannot be put in its place: `name`, `why`."""
_SCRIPT: Final = frozenset({"__main__", "__mp_main__"})
"""What the program's script is called where it runs, and where a unit of it is called again."""
_FORM: Final = "MODULE:FUNCTION=VALUE, with a VALUE in JSON, or MODULE:FUNCTION=@FILE.py:NAME"


class Note(Protocol):
    """Writes an entry into the ledger."""

    def __call__(self, what: str, /, **facts: Any) -> None:
        """Write it."""
        ...


@dataclass(frozen=True, slots=True)
class Substitute:
    """What stands in the place of one function."""

    module: str
    path: tuple[str, ...]
    """The names that lead from the module to the function: a class first, perhaps."""
    file: str = ""
    """The file that defines what stands there; empty for a value."""
    name: str = ""
    """What is defined there."""
    value: Json = None

    @staticmethod
    def read(text: str, folder: Path | None = None) -> Substitute:
        """Read `MODULE:FUNCTION=VALUE` or `MODULE:FUNCTION=@FILE.py:NAME`, the file found in a folder or from here.

        Raises `UsageError` for anything else.
        """
        target, equals, body = text.partition("=")
        module, _, dotted = target.partition(":")
        if not equals or not all(each.isidentifier() for each in (*module.split("."), *dotted.split("."))):
            raise UsageError(f"--stub: {text!r} names no function of a module", hint=f"spell it {_FORM}")
        path = tuple(dotted.split("."))
        if not body.startswith("@"):
            return Substitute(module, path, value=_value(text, body))
        file, _, name = body[1:].rpartition(":")
        whole = ((folder or Path.cwd()) / file).absolute()
        if not name.isidentifier() or not whole.is_file():
            problem = f"there is no file {whole}" if name.isidentifier() else f"{body[1:]!r} names nothing in a file"
            raise UsageError(f"--stub: {problem}", hint=f"spell it {_FORM}")
        return Substitute(module, path, file=str(whole), name=name)

    def spelled(self) -> str:
        """Spell it as `read` reads it, with the whole path of its file."""
        return f"{self.target}={f'@{self.file}:{self.name}' if self.file else compact(self.value)}"

    @property
    def target(self) -> str:
        """Name the function whose place it takes, as `MODULE:FUNCTION`."""
        return f"{self.module}:{'.'.join(self.path)}"

    def put(self, names: dict[str, Any], note: Note, patches: Patches) -> bool:
        """Put it in its place in a module's names, and note that, or why it does not fit; False while there is none."""
        if self.path[0] not in names:
            return False
        try:
            owner: Any = names[self.path[0]]
            for each in self.path[1:-1]:
                owner = getattr(owner, each)
            body = self._body()
            make = functools.partial(_in_place_of, body=body, is_value=not self.file, called=self._called(note))
            if len(self.path) == 1:
                original = names[self.path[0]]
                names[self.path[0]] = make(original)
                patches.when_undone(lambda: names.__setitem__(self.path[0], original))
            else:
                inspect.getattr_static(owner, self.path[-1])  # says what is not there
                patches.replace(owner, self.path[-1], functools.partial(_as_it_is_bound, owner, self.path[-1], make))
            note(PLACEMENT, name=self.target)
        except Exception as error:  # noqa: BLE001 - whatever the user's file does
            note(MISFIT, name=self.target, why=f"{type(error).__name__}: {error}")
        return True

    def _called(self, note: Note) -> Callable[[], None]:
        return functools.partial(note, USE, name=self.target)

    def _body(self) -> Any:
        """Give the value, or what the file defines."""
        if not self.file:
            return self.value
        spec = importlib.util.spec_from_file_location(f"reenact_stub_{Path(self.file).stem}", self.file)
        if spec is None or spec.loader is None:
            raise ReenactError(f"{self.file} is no file of Python")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, self.name)


def _value(text: str, spelled: str) -> Json:
    try:
        return parse(spelled)
    except ValueError as error:
        hint = f"""a text is spelled '"{spelled}"'; what is in a file, @FILE.py:NAME"""
        raise UsageError(f"--stub: the value of {text!r} is no JSON", hint=hint) from error


def _as_it_is_bound(owner: Any, name: str, make: Callable[[Any], Any], _original: Any) -> Any:
    """Make what stands in a class: a static method stays one, and so does one of the class."""
    bound = inspect.getattr_static(owner, name)
    if type(bound) in {staticmethod, classmethod}:
        return type(bound)(make(bound.__func__))
    return make(bound)


def _in_place_of(original: Any, *, body: Any, is_value: bool, called: Callable[[], None]) -> Any:
    """Make what stands in the place of a function: one that tells each call."""
    if not is_value:
        return _telling(body, called) if inspect.isroutine(body) else body
    if not callable(original):
        return deepcopy(body)
    return functools.wraps(original)(_giving(original, body, called))


def _telling(body: Callable[..., Any], called: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(body)
    def tell(*args: Any, **named: Any) -> Any:
        called()
        return body(*args, **named)

    return tell


def _giving(original: Any, value: Json, called: Callable[[], None]) -> Callable[..., Any]:
    """Make a function of the kind of the original that gives a value; a generator gives what is in the list."""

    def give(*_args: Any, **_named: Any) -> Any:
        called()
        return deepcopy(value)

    async def give_later(*_args: Any, **_named: Any) -> Any:
        return give()

    def give_each(*_args: Any, **_named: Any) -> Any:
        yield from as_list(give())

    async def give_each_later(*_args: Any, **_named: Any) -> Any:
        for each in as_list(give()):
            yield each

    if inspect.isasyncgenfunction(original):
        return give_each_later
    if inspect.isgeneratorfunction(original):
        return give_each
    return give_later if inspect.iscoroutinefunction(original) else give


def put_in_place(substitutes: Sequence[Substitute], note: Note) -> Callable[[], None]:
    """Put each in its place once that is defined; gives what puts the agent's own back."""
    patches = Patches()
    for each in substitutes:
        note(REQUEST, name=each.target)
        if each.module == "__main__":
            continue

        def put(module: ModuleType, each: Substitute = each) -> None:
            if not each.put(vars(module), note, patches):
                note(MISFIT, name=each.target, why=f"module {each.module} has no {each.path[0]}")

        patches.when_imported(each.module, put)
    if of_script := [each for each in substitutes if each.module == "__main__" or _is_script(each.module)]:
        _put_into_script(of_script, note, patches)
    return patches.undo


def _is_script(module: str) -> bool:
    """Tell whether a module is what this process was started with, as a script."""
    return any(Path(word).name == f"{module}.py" for word in sys.orig_argv[1:])


def _put_into_script(substitutes: list[Substitute], note: Note, patches: Patches) -> None:
    """Put them in place in the names of the program's script, each once the script has defined it."""
    before = sys.gettrace()
    ours = str(Path(__file__).parents[1])

    def follow(frame: FrameType, event: str, _argument: object) -> Any:
        is_script = frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") in _SCRIPT
        if event == "call" and is_script and not frame.f_code.co_filename.startswith(ours):
            return look
        return None

    def look(frame: FrameType, event: str, _argument: object) -> Any:
        names: dict[str, Any] = frame.f_globals
        substitutes[:] = [each for each in substitutes if not each.put(names, note, patches)]
        if event == "return":
            for each in substitutes:
                if each.module == "__main__":
                    note(MISFIT, name=each.target, why=f"the program's script defines no {each.path[0]}")
        if event == "return" or not substitutes:
            sys.settrace(before)
            return None
        return look

    sys.settrace(follow)
    patches.when_undone(lambda: sys.settrace(before) if sys.gettrace() is follow else None)
