"""`reenact store`: taking runs out of the store, and what nobody refers to any more."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import InputError, UsageError
from reenact.pipeline.clearing import GRACE_S, sweep, unused
from reenact.pipeline.drain import leftovers
from reenact.values.limits import spelled


@click.group("store")
def store_command() -> None:
    """Take runs out of the store, and large values that no run refers to any more."""


@store_command.command("rm")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@options.store_folder
def rm_command(runs: tuple[str, ...], folder: Path | None) -> None:
    """Delete runs, by their ids or what these begin with. Blobs stay, others may use them: `reenact store sweep`.

    What a backend was still to have of them is counted as dropped, as no longer in the store.
    """
    store = options.store(folder)
    leftovers(store)
    chosen: list[str] = []
    for each in runs:
        ids = store.resolve(each.lower())
        if not ids:
            raise InputError(str(store.folder), f"holds no run {each!r}", hint="`reenact ls` lists what is there")
        if len(ids) > 1:
            raise UsageError(f"{each!r} fits {len(ids)} runs: {', '.join(found[:12] for found in ids[:5])}")
        chosen += ids
    for trace_id in dict.fromkeys(chosen):
        store.delete(trace_id)
        options.say(f"reenact: deleted {trace_id}")


@store_command.command("sweep")
@click.option("--grace", default=GRACE_S, show_default=True, metavar="SECONDS", help="Leave blobs younger than this.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@options.store_folder
def sweep_command(grace: float, dry_run: bool, folder: Path | None) -> None:
    """Delete large values (blobs) that no run of the store refers to. Every trace is read for that."""
    store = options.store(folder)
    leftovers(store)
    found = unused(store, grace) if dry_run else sweep(store, grace)
    done = "would be deleted" if dry_run else "deleted"
    options.say(f"reenact: {len(found)} blobs, {spelled(sum(found.values()))}, {done}")
