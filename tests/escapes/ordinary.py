"""Ordinary programs, as people write them. They stand in `programs/ordinary.txt`, in sections as those of the matrix.

`--- NAME` begins a file beside the program; `where` is the kind of place of the project, `argv` the command, its
words two spaces apart, `{venv}` the interpreter of another environment; `varies`: the output is not compared, since it
differs between any two runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from escapes.matrix import PROGRAMS, sections, setting

HEAD = (PROGRAMS / "heads" / "ordinary.txt").read_text()
DATA = "city,rain\nDelft,3\nGhent,1\nDelft,4\nMalmö,5\n"


@dataclass(frozen=True, slots=True)
class Ordinary:
    """One of them."""

    code: str
    argv: tuple[str, ...]
    needs: tuple[str, ...]
    stdin: str
    where: str
    varies: bool
    environ: dict[str, str]
    files: dict[str, str] = field(default_factory=dict[str, str])


def _read() -> dict[str, Ordinary]:
    found: dict[str, Ordinary] = {}
    for name, settings, text in sections((PROGRAMS / "ordinary.txt").read_text(encoding="utf-8")):
        code, *rest = text.split("\n--- ") if not text.startswith("--- ") else ["", *text[4:].split("\n--- ")]
        files = dict(each.split("\n", 1) for each in rest)
        found[name] = Ordinary(
            code.strip() and f"{HEAD}\n{code}\n",
            tuple(setting(settings, "argv").split("  ")) if setting(settings, "argv") else ("{python}", "main.py"),
            tuple(setting(settings, "needs").split()),
            setting(settings, "stdin").replace("\\n", "\n"),
            setting(settings, "where"),
            "varies" in settings,
            dict(pair.split("=") for pair in setting(settings, "environ").split()),
            files,
        )
    return found


ORDINARY = _read()
