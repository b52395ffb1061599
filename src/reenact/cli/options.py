"""What several commands share: the store they work on, JSON on stdout, diagnostics on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from reenact.errors import UsageError
from reenact.report.paint import painted
from reenact.stores.directory import DirectoryStore, locate
from reenact.values.json import Json, compact
from reenact.values.terminal import clean_lines, escaped


def _hosts(_context: click.Context, _option: click.Parameter, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Check that hosts are named. Raises `UsageError`."""
    if hosts:
        from reenact.values import way

        way.read(hosts)
    return hosts


as_json = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout; diagnostics stay on stderr."
)
store_folder = click.option(
    "--store",
    "folder",
    type=click.Path(path_type=Path, readable=False),  # what cannot be read is told by whoever reads it
    help="The store's folder. Default: REENACT_STORE, else the nearest .reenact at or above here.",
)

allow_host = click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST[:PORT]",
    callback=_hosts,
    help="Let the program talk to this host, or to unix:/path; may be given more than once. Without PORT: 443 and 80.",
)

stubs = click.option(
    "--stub",
    "stubs",
    multiple=True,
    metavar="MODULE:FUNCTION=VALUE",
    help="Have a function of the program give this VALUE in JSON, or be the one of =@FILE.py:NAME; may be given more "
    "than once.",
)
no_lifespan = click.option(
    "--no-lifespan", is_flag=True, help="Deliver a recorded request to an application that is not started up before."
)


class _Writes(click.ParamType[str]):
    """What becomes of writes; `keep FOLDER` is spelled `keep=FOLDER` from here on."""

    name = "writes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the word."""
        from reenact.replay.policy import read_writes

        try:
            read_writes(str(value))
        except UsageError as error:
            self.fail(error.message.removeprefix("writes: "), param, ctx)
        return str(value)


writes = click.option(
    "--writes",
    type=_Writes(),
    metavar="copy|keep DIR|refuse|allow",
    default="copy",
    show_default=True,
    help="Files that are written outside every declared tool: to a copy, and compared; to a copy, and taken out into a "
    "folder; refused; or for real. Without a sealed world a copy refuses.",
)


outcome = click.option(
    "--outcome",
    type=click.Choice(["exact", "structure", "ignore"]),
    default="exact",
    show_default=True,
    help="How closely what the program gives out (printed text, exit code, answers, returned values, files) is "
    "compared: in full; without texts and numbers; not at all.",
)


class WithProgram(click.Command):
    """A command whose words end in `-- COMMAND`: what stands behind `--` is the program's, and only that.

    An option that is not known is thus a fault of the command line, and never the beginning of a program.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options and RUN before `--`; the argument `words` is what follows it."""
        at = args.index("--") if "--" in args else len(args)
        left = super().parse_args(ctx, _with_folder(args[:at]))
        ctx.params["words"] = (*ctx.params["words"], *args[at + 1 :])
        return left


def _with_folder(args: list[str]) -> list[str]:
    """Join the folder of `--writes keep FOLDER` to its word: an option of click takes one."""
    joined = list(args)
    for at, word in enumerate(args):
        if (word == "--writes" and args[at + 1 : at + 2] == ["keep"]) or word == "--writes=keep":
            last = at + 1 if word == "--writes" else at
            if last + 1 < len(args):
                joined[at : last + 2] = [f"--writes=keep={args[last + 1]}"]
            return joined
    return joined


def store(folder: Path | None, *, whoevers: bool = False) -> DirectoryStore:
    """Find the store that a command works on. Raises `InputError` where it is another user's, unless `whoevers`."""
    located = DirectoryStore(folder or locate(_here(), dict(os.environ)))
    if not whoevers:
        located.check_owner()
    return located


def _here() -> Path:
    """Give the working directory, or the one for temporary files where it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return Path(tempfile.gettempdir())


def show(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines made by a report: coloured on a terminal, cleaned of control characters everywhere."""
    stream = sys.stderr if err else sys.stdout
    color = stream.isatty() and "NO_COLOR" not in os.environ
    _print(painted(lines, color=color), stream, color=color)


def width() -> int | None:
    """Give the terminal's width, or None for a pipe, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def document(value: Json) -> None:
    """Print one JSON document on stdout."""
    _print(f"{escaped(compact(value))}\n", sys.stdout)


def say(line: str, **style: Any) -> None:
    """Print a diagnostic on stderr, cleaned of control characters; lines after its first are set in."""
    _print(f"{click.style(clean_lines(line), **style)}\n", sys.stderr)


def hush() -> None:
    """Give stderr, which nobody reads any more, to nobody: Python ends with 120 where its buffer cannot be flushed."""
    with suppress(OSError):
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, 2)
        os.close(nobody)


def again(line: str) -> None:
    """Write over the line of progress on a terminal's stderr; an empty one leaves it empty."""
    sys.stderr.write(f"\r\x1b[K{clean_lines(line)}")
    sys.stderr.flush()


def _print(text: str, stream: TextIO, *, color: bool | None = None) -> None:
    """Print what is clean. What the stream's encoding does not know is spelled by escapes."""
    try:
        click.echo(text, file=stream, nl=False, color=color)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, nl=False, color=color)
