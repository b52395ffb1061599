"""Reading a TOML file strictly: whatever is not what it should be is an error that names its line and column."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, cast

from reenact.errors import InputError
from reenact.redact import toml_places

_CLOSE = 0.6


class Reader:
    """A file that is valid TOML."""

    def __init__(self, text: str, name: str, top: dict[str, Any]) -> None:
        self._text, self._name = text, name
        self.top = Table(self, (), top)

    @classmethod
    def of(cls, text: str, name: str) -> Reader:
        """Parse. Raises `InputError` whose place is `name:line:column`."""
        try:
            return cls(text, name, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            line, column, problem = toml_places.syntax(error, text)
            raise InputError(f"{name}:{line}:{column}", f"is no TOML: {problem}") from None
        except RecursionError:
            raise InputError(f"{name}:1:1", "is no TOML that can be read: it is nested too deep") from None

    def error(self, problem: str, path: toml_places.Path, hint: str = "") -> InputError:
        """Make the error of a value."""
        line, column = toml_places.place(self._text, path)
        return InputError(f"{self._name}:{line}:{column}", problem, hint=hint)


class Table:
    """A table of the file, and the way to it."""

    def __init__(self, reader: Reader, path: toml_places.Path, values: dict[str, Any]) -> None:
        self._reader, self._path, self._values = reader, path, values

    def error(self, problem: str, *below: str | int, hint: str = "") -> InputError:
        """Make the error of this table, or of what is below it."""
        return self._reader.error(problem, (*self._path, *below), hint)

    def has(self, name: str) -> bool:
        """Tell whether a key is there."""
        return name in self._values

    def keys(self) -> Iterable[str]:
        """Give the keys, in their order."""
        return self._values.keys()

    def only(self, *names: str) -> None:
        """Refuse keys that nothing reads."""
        for key in self._values:
            self.known(key, names, "key")

    def known(self, name: str, names: Sequence[str], what: str, *, key: str = "") -> None:
        """Refuse a name that is none of `names`; it stands at `key`, or is a key itself."""
        if name in names:
            return
        near = difflib.get_close_matches(name, names, 1, _CLOSE)
        suggestion = f"did you mean {near[0]!r}?" if near else ""
        if not suggestion and len(names) <= 12:
            suggestion = f"it is one of {', '.join(names)}"
        problem = f"there is no {what} {name!r} here" if what == "key" else f"there is no {what} {name!r}"
        raise self.error(problem, key or name, hint=suggestion)

    def text(self, name: str, *, needed: bool = False) -> str:
        """Give a string; empty where there is none."""
        value = self._values.get(name)
        if value is None and not needed:
            return ""
        if value is None:
            raise self.error(f"{name!r} is missing")
        if not isinstance(value, str) or not value:
            raise self.error(f"{name!r} has to be a text, not {_spelled(value)}", name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Give strings: one, or a list of them."""
        value: Any = self._values.get(name)
        if value is None:
            return ()
        items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        for at, item in enumerate(items):
            if not isinstance(item, str) or not item:
                below = (name, at) if isinstance(value, list) else (name,)
                raise self.error(f"{name!r} has to be a text or a list of texts, not {_spelled(item)}", *below)
        if not items:
            raise self.error(f"{name!r} is an empty list: it would mean nothing", name)
        return tuple(items)

    def flag(self, name: str) -> bool:
        """Give a boolean; False where there is none."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self.error(f"{name!r} has to be true or false, not {_spelled(value)}", name)
        return value

    def number(self, name: str, least: float, most: float) -> float:
        """Give a number in bounds."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.error(f"{name!r} has to be a number from {least} to {most}, not {_spelled(value)}", name)
        return float(value)

    def one_of(self, name: str, words: Sequence[str], *, needed: bool = False) -> str:
        """Give one of some words; empty where there is none."""
        word = self.text(name, needed=needed)
        if word and word not in words:
            near = difflib.get_close_matches(word, words, 1, _CLOSE)
            hint = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(words)}"
            raise self.error(f"{name!r} cannot be {word!r}", name, hint=hint)
        return word

    def table(self, name: str) -> Table:
        """Give a table; an empty one where there is none."""
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise self.error(f"{name!r} has to be a table, [{name}], not {_spelled(value)}", name)
        return Table(self._reader, (*self._path, name), cast("dict[str, Any]", value))

    def tables(self, name: str) -> list[Table]:
        """Give the tables of an array of them."""
        value: Any = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[Any]", value)):
            raise self.error(f"{name!r} has to be an array of tables: write [[{name}]]", name)
        return [Table(self._reader, (*self._path, name, at), item) for at, item in enumerate(cast("list[Any]", value))]


def _spelled(value: object) -> str:
    """Say what kind of value it is: never the value, which may be what is to be hidden."""
    if value == "":
        return "an empty one"
    for kind, word in _KINDS.items():
        if isinstance(value, kind):
            return word
    return "a date"


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
