"""`reenact ls`: find the run."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import click

from reenact.cli import options
from reenact.errors import UsageError
from reenact.pipeline.listing import Filters, listed
from reenact.report.documents import ls_document
from reenact.report.listing import listing


@click.command("ls")
@options.store_folder
@options.as_json
@click.argument("source", required=False)
@click.option("--user", help="Only runs for this user.")
@click.option("--session", help="Only runs of this session.")
@click.option("--tenant", help="Only runs of this tenant.")
@click.option(
    "--at", help="Only runs under way at about this time: 2026-11-20T09:04, with or without seconds and zone."
)
@click.option("--within", default="5m", show_default=True, help="How far --at reaches: 30s, 5m, 2h, 1d.")
@click.option("--tool", help="Only runs that called this tool.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="K=V", help="Only runs that called a tool with this argument."
)
@click.option("--model", help="Only runs that asked this model (or one whose name holds this).")
@click.option("--status", type=click.Choice(["ok", "error", "interrupted", "unset"]), help="Only runs that ended so.")
@click.option("--text", help="Only runs in whose requests or replies this text occurs.")
@click.option("--replays", is_flag=True, help="List replays too.")
@click.option("-n", "--limit", default=20, show_default=True, help="At most this many, newest first; 0 for all.")
@click.option("--reindex", is_flag=True, help="Make the store's index again from its traces first.")
def ls_command(
    source: str | None, folder: Path | None, as_json: bool, reindex: bool, limit: int, **given: object
) -> None:
    """List runs, newest first: those of the store, or of SOURCE, a trace file or `-`."""
    filters = _filters(given)
    runs = listed(options.store(folder), source, filters, limit, reindex=reindex)
    if as_json:
        options.document(ls_document(runs))
        return
    if runs:
        options.show(listing(runs, width=options.width()))
    else:
        options.say("no run fits" if filters != Filters() else "no run yet: reenact run -- python your_agent.py")


def _filters(given: dict[str, object]) -> Filters:
    arguments: list[tuple[str, str]] = []
    pairs = given.pop("arguments", ())
    for pair in map(str, cast("tuple[str, ...]", pairs)):
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--arg takes NAME=VALUE, not {pair!r}")
        arguments.append((name, value))
    at, within = given.pop("at", None), str(given.pop("within", "5m"))
    replays = bool(given.pop("replays", False))
    return Filters(
        **{name: value for name, value in given.items() if isinstance(value, str)},
        arguments=tuple(arguments),
        window=_window(str(at), within) if at else None,
        replays=replays,
    )


def _window(at: str, within: str) -> tuple[int, int]:
    """Give the first and last nanosecond that `--at` means. A time without zone is local time."""
    try:
        moment = datetime.fromisoformat(at).astimezone()
    except ValueError as error:
        raise UsageError(f"--at takes a time such as 2026-11-20T09:04, not {at!r}") from error
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    if not within[:-1].isdecimal() or within[-1] not in units:
        raise UsageError(f"--within takes a span such as 30s, 5m, 2h or 1d, not {within!r}")
    reach = timedelta(**{units[within[-1]]: int(within[:-1])})
    return int((moment - reach).timestamp() * 1e9), int((moment + reach).timestamp() * 1e9)
