"""Another program that the agent starts: what the call of it asks, and what it gives back.

A child that is no Python of the agent's is one call (`Call.is_child`). Its question is its words, its folder and the
environment that it is given apart from ours. What came of it is one JSON object: `exit_code` as `Popen.returncode` has
it, `stdout` and `stderr` where the agent reads them, `stdin` where the agent writes it, or `talk` where the two took
turns. `docs/schema.md` lists all.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from reenact.boundary import children, door, place
from reenact.boundary.side_effects import temporary_paths
from reenact.boundary.touches import HARMLESS_PROGRAMS
from reenact.contracts.doorman import Doorman
from reenact.values import alarms, typed
from reenact.values.call import CHILD, Call, CallKind, FunctionCall
from reenact.values.child import TEMPORARY
from reenact.values.json import Json

_OURS: Final = "REENACT_"
_WORD: Final = re.compile(r"[^\s;&|<>()]+")
_ASSIGNED: Final = re.compile(r"\w+=\S*")
_LARGEST: Final = 64 * 1024
"""Bytes of a temporary file that belong to the question."""


def doorman(words: Sequence[str]) -> Doorman | None:
    """Give the doorman in charge of a program that is about to start; None where it goes straight through.

    Inside a call whose outcome stands for all that is done there it does.
    """
    here = place.current()
    if (here is not None and here.whole) or (words and os.path.basename(words[0]) in HARMLESS_PROGRAMS):  # noqa: PTH119 - on the way of every start
        return None
    return door.doorman()


def words_of(args: Any) -> list[str]:
    """Give the command line; a single string or path is a program without arguments, or a shell's text."""
    if isinstance(args, str | bytes | os.PathLike):
        return [os.fsdecode(cast("str", args))]
    return [os.fsdecode(word) for word in cast("Sequence[str]", args)]


def call(
    args: Any,
    *,
    shell: bool = False,
    cwd: Any = None,
    env: Mapping[Any, Any] | None = None,
    executable: Any = None,
    how: str = "",
    pass_fds: Sequence[int] = (),
) -> Call:
    """Make the call of a start. `how` names a way of starting that is none of `subprocess`.

    The numbers of descriptors that are handed to it are another each time, and told by their place in `pass_fds`.
    """
    words = words_of(args)
    names = Temporary()
    spelled_words = [_without_descriptors(names.number(word), pass_fds) for word in words]
    asked: dict[str, Json] = {"args": spelled_words[0] if shell else [*spelled_words]}
    if shell:
        asked["shell"] = True
    if how:
        asked["how"] = how
    folders = [os.fsdecode(each) for each in (children.folder_moved_to(), cwd) if each is not None]
    if folders:
        asked["cwd"] = names.number(os.path.join(*folders))  # noqa: PTH118 - as it is written
    if executable is not None:
        asked["executable"] = os.fsdecode(executable)
    if variables := _variables(env):
        asked["env"] = {name: None if value is None else names.number(value) for name, value in variables.items()}
    if contents := names.contents():
        asked["files"] = contents
    name = _program_name(words, shell=shell)
    attributes: dict[str, Json] = {"process.executable.name": name, "process.command_args": _texts(words)}
    if names.found:
        attributes[TEMPORARY] = _texts(names.found)
    request = FunctionCall(function=CHILD, arguments=typed.encode(asked))
    return Call(kind=CallKind.UNKNOWN, name=name, request=request, attributes=attributes)


def _without_descriptors(text: str, fds: Sequence[int]) -> str:
    for number, fd in enumerate(fds, 1):
        text = re.sub(rf"(?<![\w.]){fd}(?![\w.])", f"{{descriptor {number}}}", text)
    return text


def _texts(words: Sequence[str]) -> list[Json]:
    return [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in words]


def _program_name(words: Sequence[str], *, shell: bool) -> str:
    """Name a program: the last part of its path, the first program of a shell's text."""
    if not words:
        return "child"
    first = words[0]
    if shell:
        listed = [word for word in _WORD.findall(first) if not _ASSIGNED.fullmatch(word)]
        first = listed[0] if listed else "sh"
    name = os.path.basename(first.rstrip("/")) or first  # noqa: PTH119 - as above
    return _texts([name])[0] if name else "child"  # type: ignore[return-value]  # a text


def _variables(env: Mapping[Any, Any] | None) -> dict[str, str | None]:
    """List the variables of a child's environment that are not as in ours, or that the agent's own code has set."""
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in (os.environ if env is None else env).items()}
    others = {name for name, value in variables.items() if os.environ.get(name) != value}
    names = sorted(others | {*children.own_variables()})
    return {name: variables.get(name) for name in names if not name.startswith(_OURS) and name != "PYTHONPATH"}


class Temporary:
    """Calls temporary files of this process by numbers: their names are drawn anew each time."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self.found: list[str] = [*paths]

    def number(self, text: str) -> str:
        """Put numbers in place of names."""
        for path in temporary_paths():
            if path in text:
                if path not in self.found:
                    self.found.append(path)
                text = text.replace(path, f"{{temporary {self.found.index(path) + 1}}}")
        return text

    def contents(self) -> dict[str, Json]:
        """Give what the files hold: the agent wrote it, so it belongs to the question."""
        contents: dict[str, Json] = {}
        for number, path in enumerate(self.found, 1):
            try:
                if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as above
                    continue
                with open(path, "rb") as file:  # noqa: PTH123 - as above
                    data = file.read(_LARGEST + 1)
            except Exception:
                alarms.pass_on()
                continue
            if data:
                contents[f"{{temporary {number}}}"] = text_of(data[:_LARGEST])
        return contents


def text_of(data: bytes) -> Json:
    """Spell bytes: as text where they are UTF-8, else as typed JSON."""
    try:
        return typed.encode(data.decode())
    except UnicodeDecodeError:
        return typed.encode(data)


def bytes_of(spelled: Json) -> bytes:
    """Read what `text_of` spelled."""
    value = typed.decode(spelled)
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def is_this_python(program: str, path: str | None = None) -> bool:
    """Tell whether a command is the interpreter that runs us, of the same virtual environment.

    Any other may be without us, and cannot record itself or join a replay. `path` is the child's PATH.
    """
    image = program if os.sep in program else _sought(program, path)
    if not image or not sys.executable:
        return program == sys.executable
    image = os.path.abspath(image)  # noqa: PTH100 - as above
    if image == sys.executable or os.path.dirname(image) == os.path.dirname(sys.executable):  # noqa: PTH120 - as above
        return True
    return os.path.realpath(image) == os.path.realpath(sys.executable) and _venv(image) == _venv(sys.executable)


def _sought(program: str, path: str | None) -> str:
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    candidates = (os.path.join(folder or ".", program) for folder in folders)  # noqa: PTH118 - as above
    return next((each for each in candidates if os.access(each, os.X_OK) and not os.path.isdir(each)), "")  # noqa: PTH112 - as above


def _venv(python: str) -> str:
    folder = os.path.dirname(python)  # noqa: PTH120 - as above
    for each in (folder, os.path.dirname(folder)):  # noqa: PTH120 - as above
        if os.path.exists(os.path.join(each, "pyvenv.cfg")):  # noqa: PTH110, PTH118 - as above
            return each
    return ""
