"""`reenact status`: what is recorded at the moment, what was left behind, and what backends are still to have."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import InputError, UsageError
from reenact.export.backends import backends_from_environment
from reenact.keep.leftovers import leftovers
from reenact.keep.posting import send_waiting, with_names
from reenact.keep.status import status_of
from reenact.report.status import status_document, status_text
from reenact.stores.outbox import Outbox


@click.command("status")
@options.store_folder
@options.as_json
@click.option("--send", is_flag=True, help="First carry what was left behind, and send what waits.")
@click.option("--within", default=60.0, show_default=True, metavar="SECONDS", help="How long --send may take.")
@click.option("--give-up", metavar="BACKEND", help="Drop, and count, what this backend is still to have.")
def status_command(folder: Path | None, as_json: bool, send: bool, within: float, give_up: str | None) -> None:
    """Say how the store stands: journals, sizes, and for each backend what it has, waits for and will not get.

    For every backend, created = exported + waiting + dropped, at any moment; the numbers are read from disk, so they
    hold whatever was killed. Nothing is changed, unless --send or --give-up is given. --send exits with 3 where
    something still waits in the end.
    """
    store = options.store(folder)
    if give_up is not None:
        _give_up(Outbox(store.folder), give_up)
    if send:
        leftovers(store, send=False)
        send_waiting(store, lambda line: options.say(f"reenact: {line}"), within)
    configured = _configured()
    status = status_of(store, configured)
    if as_json:
        options.document(status_document(status))
    else:
        options.show(status_text(status, time.time_ns()))
    if send:
        for backend in status.backends:
            if backend.waiting and backend.configured:
                raise InputError(backend.name, f"{backend.waiting} spans still wait: {backend.error or 'no time left'}")


def _configured() -> list[str]:
    try:
        return [sender.name for sender in with_names(backends_from_environment(os.environ))]
    except InputError as error:
        options.say(f"reenact: exporting is off: {error}")
        return []


def _give_up(outbox: Outbox, name: str) -> None:
    numbers = outbox.known([name])
    if name not in numbers:
        backend_names = ", ".join(account.name for account in outbox.accounts())
        raise UsageError(f"there is no backend {name!r}", hint=f"one of: {backend_names}" if backend_names else "")
    spans = outbox.give_up(numbers[name], "given up")
    options.say(f"reenact: {spans} spans are not sent to {name} any more; the store has them")
