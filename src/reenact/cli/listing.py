"""`reenact ls`: find the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import click

from reenact.cli import options
from reenact.errors import UsageError
from reenact.find.listing import listed
from reenact.values.finding import Filters


@click.command("ls")
@options.store_folder
@options.as_json
@click.argument("source", required=False)
@click.option("--user", help="Only runs for this user.")
@click.option("--session", help="Only runs of this session.")
@click.option("--tenant", help="Only runs of this tenant.")
@click.option(
    "--at",
    metavar="TIME",
    help="Only runs under way then: 2026-11-20T09:04 (local time), …T09:04:31Z.",
)
@click.option("--within", metavar="SPAN", help="How far --at reaches to both sides: 30s, 5m, 2h, 1d.  [default: 5m]")
@click.option("--since", metavar="TIME", help="Only runs under way at or after this; also 2h for two hours ago.")
@click.option("--until", metavar="TIME", help="Only runs under way at or before this.")
@click.option("--tool", help="Only runs that called this tool.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="PATH=VALUE",
    help="Only runs that called a tool with this argument; a.b=c looks inside. With --tool: in one and the same call.",
)
@click.option("--model", help="Only runs that asked this model (or one whose name holds this).")
@click.option("--entry", help="Only runs of this program: its file, service, route or task (or one that holds this).")
@click.option("--commit", help="Only runs at this commit, or the commits that begin so.")
@click.option("--status", type=click.Choice(["ok", "error", "interrupted", "unset"]), help="Only runs that ended so.")
@click.option("--text", help="Only runs in whose requests or replies this text occurs.")
@click.option("--replays", is_flag=True, help="List replays too.")
@click.option("-n", "--limit", default=20, show_default=True, help="At most this many, newest first; 0 for all.")
@click.option("--skip", default=0, help="Leave out this many of the newest: the pages after the first.")
@click.option("--reindex", is_flag=True, help="Make the store's index again from its traces first.")
def ls_command(
    source: str | None, folder: Path | None, as_json: bool, reindex: bool, limit: int, skip: int, **choices: object
) -> None:
    """List runs, newest first: those of the store, or of SOURCE, a trace file or `-`."""
    filters = _filters(choices)
    if limit < 0 or skip < 0:
        raise UsageError("--limit and --skip count runs: 0 or more")
    runs = listed(
        options.store(folder),
        source,
        filters,
        limit,
        skip=skip,
        reindex=reindex,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if as_json:
        from reenact.report.documents import ls_document

        options.document(ls_document(runs))
        return
    if runs:
        from reenact.report.listing import listing

        options.show(listing(runs, width=options.width()))
    else:
        options.say("no run fits" if filters != Filters() else "no run yet: reenact run -- python your_agent.py")


def _filters(choices: dict[str, object]) -> Filters:
    arguments: list[tuple[str, str]] = []
    pairs = choices.pop("arguments", ())
    for pair in map(str, cast("tuple[str, ...]", pairs)):
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--arg takes PATH=VALUE, not {pair!r}")
        arguments.append((name, value))
    times = [choices.pop(name, None) for name in ("at", "within", "since", "until")]
    replays = bool(choices.pop("replays", False))
    return Filters(
        **{name: value for name, value in choices.items() if isinstance(value, str)},
        arguments=tuple(arguments),
        window=_window(times) if times != [None] * 4 else None,
        replays=replays,
    )


def _window(times: list[object]) -> tuple[int, int] | None:
    from reenact.cli.moments import window

    return window(*(None if each is None else str(each) for each in times))


def _progress(count: int, of: int) -> None:
    options.again(f"reenact: {count} of {of} traces noted" + ("\n" if count == of else ""))
