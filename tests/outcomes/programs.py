"""Programs as people write them, in sections of `programs/`; most with a small bug that lies outside any call.

    === NAME | needs MODULE … | argv main.py  WORD … | serve MODULE  WORD … | stdin TEXT | seen WHERE
    code of main.py
    --- FILE
    a file beside it; `answers` is the script of the stand-in, `asks` what is asked of a service
    --- bug
    a piece of the code
    ->
    what stands there instead

`seen`, where the bug is seen first: `stdout` (if nothing is said), `stderr`, `exit`, `file NAME`, `raised`,
`returns`, `yields`, `answer`.
`past`: it prints past Python's streams. `varies`: what it gives out differs between any two runs.
`beside`: several processes print, in no order among each other.
`delivered`: a unit of work is replayed, and what a replay prints is its result.
`weak`: it gives out what no replay can give back. `wrong WHY`: what is said of it today is known to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from escapes.matrix import sections, setting

PROGRAMS = Path(__file__).with_name("programs")
OURS = ("answers", "asks", "bug")


@dataclass(frozen=True, slots=True)
class Program:
    """One of them."""

    name: str
    files: dict[str, str]
    answers: str
    needs: tuple[str, ...] = ()
    argv: tuple[str, ...] = ("main.py",)
    serve: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    stdin: str = ""
    seen: str = "stdout"
    bug: tuple[str, str] | None = None
    past: bool = False
    """Whether it prints past Python's streams, so that it may be said that nobody witnessed it."""
    varies: bool = False
    beside: bool = False
    """Whether what it gives out differs between any two runs, bug or not."""
    delivered: bool = False
    """Whether a unit of work is replayed, so that a replay prints its result."""
    wrong: str = ""
    """What is said wrongly of it today; nothing if the right thing is."""
    weak: bool = False
    """Whether it gives out what no replay can give back, as its memory: it may be recorded `partial`."""

    def laid(self, folder: Path, *, wrong: bool = False) -> None:
        """Write its own files; with the bug in one of them where it is to be `wrong`."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._mistaken(text) if wrong else text, encoding="utf-8")

    def put_in(self, folder: Path) -> None:
        """Put the bug into the files that lie there, and leave the others as they are."""
        for name, text in self.files.items():
            if (mistaken := self._mistaken(text)) != text:
                (folder / name).write_text(mistaken, encoding="utf-8")

    def _mistaken(self, text: str) -> str:
        assert self.bug is not None
        return text.replace(*self.bug)

    @property
    def absent(self) -> str:
        """A module that it imports and that is not here; nothing if all are."""
        return next((need for need in self.needs if find_spec(need) is None), "")


def read(group: str) -> dict[str, Program]:
    """Read the programs of a file, by name.

    Raises:
        ValueError: A bug does not lie in just one place of the program.

    """
    found: dict[str, Program] = {}
    for name, settings, text in sections((PROGRAMS / f"{group}.txt").read_text(encoding="utf-8")):
        code, *rest = text.split("\n--- ") if not text.startswith("--- ") else ["", *text[4:].split("\n--- ")]
        parts = {head: body for head, _, body in (each.partition("\n") for each in rest)}
        main = {"main.py": code + "\n"} if code else {}
        files = main | {head: body.rstrip("\n") + "\n" for head, body in parts.items() if head not in OURS}
        bug = None
        if "bug" in parts:
            old, _, new = parts["bug"].strip("\n").partition("\n->")
            bug = (old, new.removeprefix("\n"))
            if sum(text.count(old) for text in files.values()) != 1:
                raise ValueError(f"{name}: {old!r} is not in one place")
        given = {word: setting(settings, word) for word in ("argv", "serve", "seen")}
        found[name] = Program(
            name,
            files,
            parts.get("answers", ""),
            needs=tuple(setting(settings, "needs").split()),
            argv=tuple(given["argv"].split("  ")) if given["argv"] else ("main.py",),
            serve=tuple(given["serve"].split("  ")) if given["serve"] else (),
            asks=tuple(parts.get("asks", "").splitlines()),
            stdin=setting(settings, "stdin").replace("\\n", "\n"),
            seen=given["seen"] or "stdout",
            bug=bug,
            past="past" in settings,
            varies="varies" in settings,
            beside="beside" in settings,
            delivered="delivered" in settings,
            wrong=setting(settings, "wrong"),
            weak="weak" in settings,
        )
    return found


PAIRS = read("answers") | read("people") | read("flows") | read("near") | read("tools") | read("services")
CALM = read("calm")
