"""`reenact store`: taking runs out of the store, and what nobody refers to any more."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import click

from reenact.cli import options, retaining
from reenact.errors import InputError, UsageError
from reenact.keep.checking import looked_through
from reenact.keep.leftovers import leftovers
from reenact.keep.removal import GRACE_S, sweep, unused
from reenact.keep.retention import Flags, Pruned, erase, prune
from reenact.keep.trace_assembly import IDLE_S, PRUNE_S, Pruning, compacted, judged, keep
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json
from reenact.values.limits import spelled

_LEAST_SETTLED_S = 1.0


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
    for trace_id in _chosen(store, runs):
        store.delete(trace_id)
        options.say(f"reenact: deleted {trace_id}")


def _chosen(store: DirectoryStore, runs: tuple[str, ...]) -> list[str]:
    chosen: list[str] = []
    for each in runs:
        ids = store.resolve(each.lower())
        if not ids:
            raise InputError(str(store.folder), f"holds no run {each!r}", hint="`reenact ls` lists what is there")
        if len(ids) > 1:
            raise UsageError(f"{each!r} fits {len(ids)} runs: {', '.join(run_id[:12] for run_id in ids[:5])}")
        chosen += ids
    return list(dict.fromkeys(chosen))


@store_command.command("sweep")
@click.option("--grace", default=GRACE_S, show_default=True, metavar="SECONDS", help="Leave blobs younger than this.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@options.store_folder
def sweep_command(grace: float, dry_run: bool, folder: Path | None) -> None:
    """Delete large values (blobs) that no run of the store refers to. Every trace is read for that."""
    store = options.store(folder)
    leftovers(store)
    blobs = unused(store, grace) if dry_run else sweep(store, grace)
    action = "would be deleted" if dry_run else "deleted"
    options.say(f"reenact: {len(blobs)} blobs, {spelled(sum(blobs.values()))}, {action}")


@store_command.command("compact")
@click.option("--idle", default=0.0, show_default=True, metavar="SECONDS", help="Leave traces younger than this.")
@options.store_folder
def compact_command(idle: float, folder: Path | None) -> None:
    """Put traces that a collector took in together, each in one frame, and judge those that are not judged yet."""
    store = options.store(folder)
    count = 0
    while batch_size := compacted(store, idle):
        count += batch_size
    runs = 0
    while batch_size := judged(store):
        runs += batch_size
    options.say(f"reenact: {count} traces put together, {runs} judged")


@store_command.command("flag")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--reason", default="flagged by hand", show_default=True)
@click.option("--remove", is_flag=True, help="Take the flag away.")
@options.store_folder
def flag_command(runs: tuple[str, ...], reason: str, remove: bool, folder: Path | None) -> None:
    """Keep runs for ever, whatever `reenact store prune` is told."""
    store = options.store(folder)
    leftovers(store)
    for trace_id in _chosen(store, runs):
        if remove:
            Flags(store).remove(trace_id)
        else:
            Flags(store).add(trace_id, reason)
        options.say(f"reenact: {'no flag on' if remove else 'flagged'} {trace_id}")


@store_command.command("prune")
@retaining.options
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@options.store_folder
@options.as_json
def prune_command(folder: Path | None, as_json: bool, dry_run: bool, **retention_options: object) -> None:
    """Delete runs that nothing keeps. Flagged runs, and those that ended badly, are kept for ever."""
    chosen = retaining.chosen(retention_options)
    if chosen is None:
        raise UsageError("nothing would be deleted", hint="give --keep-days DAYS, --max-size MIB, or both")
    store = options.store(folder)
    leftovers(store)
    _tell(prune(store, chosen, dry_run=dry_run), "would be deleted" if dry_run else "deleted", as_json=as_json)


@store_command.command("erase")
@click.option("--user", required=True, help="Whose runs.")
@options.store_folder
@options.as_json
def erase_command(user: str, folder: Path | None, as_json: bool) -> None:
    """Delete every run of a user, and write anew the files that held anything of them."""
    store = options.store(folder)
    leftovers(store)
    _tell(erase(store, user), "erased", as_json=as_json)


def _tell(report: Pruned, word: str, *, as_json: bool) -> None:
    if as_json:
        deleted: list[Json] = [*report.deleted]
        flagged: dict[str, Json] = dict(report.flagged)
        document: Json = {
            "deleted": deleted,
            "flagged": flagged,
            "kept": report.kept,
            "freed": report.freed,
            "size": report.size,
        }
        options.document(document)
        return
    for trace_id, why in report.flagged.items():
        options.say(f"reenact: flagged {trace_id[:12]}: {why}")
    note = f", {report.kept} kept for ever" if report.kept else ""
    options.say(
        f"reenact: {len(report.deleted)} runs {word}{note}; {spelled(report.freed)} freed, {spelled(report.size)} left"
    )


@store_command.command("check")
@click.option("--repair", is_flag=True, help="Mend what can be mended; no collector may run meanwhile.")
@options.store_folder
@options.as_json
def check_command(folder: Path | None, as_json: bool, repair: bool) -> int:
    """Read every frame and every trace of the store, and say what is damaged. Exits with 1 where anything is."""
    store = options.store(folder)
    leftovers(store)
    survey = looked_through(store, repair=repair)
    left = looked_through(store).damage if repair and survey.damage else survey.damage
    if as_json:
        damage, mended = cast("list[Json]", survey.damage), cast("list[Json]", survey.mended)
        options.document(
            {"traces": survey.traces, "frames": survey.frames, "damage": damage, "mended": mended, "left": len(left)}
        )
    else:
        for line in (*survey.damage, *survey.mended):
            options.say(f"reenact: {line}")
        condition = f"{len(left)} damaged places" if left else "whole"
        options.say(f"reenact: {survey.traces} traces, {survey.frames} frames in {survey.files} files: {condition}")
    return 1 if left else 0


@store_command.command("keep", hidden=True)
@click.option("--idle", default=IDLE_S)
@retaining.options
@click.option("--prune-every", default=PRUNE_S)
@options.store_folder
def keep_command(folder: Path | None, idle: float, prune_every: float, **retention_options: object) -> None:
    """Do as `compact` does, and prune, again and again, until standard input ends: the collector's own child."""
    with suppress(OSError):
        os.nice(5)

    def over(seconds: float) -> bool:
        readable, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
        return bool(readable)

    chosen, pruning = retaining.chosen(retention_options), None
    if chosen is not None:
        # Twice as long as it takes to be put together: whoever still sends by then comes too late for a judgement.
        pruning = Pruning(rules=replace(chosen, settled_s=max(_LEAST_SETTLED_S, 2 * idle)), every_s=prune_every)
    keep(options.store(folder), idle, over, lambda line: options.say(f"reenact: {line}"), pruning)
