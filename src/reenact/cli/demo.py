"""`reenact demo`: a real incident, offline, in seconds."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from reenact.cli import options
from reenact.demo.story import Story
from reenact.errors import InputError


def _show(line: str) -> None:
    options.show([line])


@click.command("demo")
@options.as_json
@click.option("--keep", type=click.Path(path_type=Path), help="Keep what was recorded in this folder.")
def demo_command(as_json: bool, keep: Path | None) -> None:
    """Re-enact a production incident: record it, fail to repeat it live, replay it, meet it with a fix.

    Needs the openai SDK (`pip install 'reenact[demo]'`), no key and no network: the model is a stand-in on loopback.
    """
    if find_spec("openai") is None:
        raise InputError("the demo", "needs the openai SDK", hint="pip install 'reenact[demo]'")
    started = time.perf_counter()
    say = options.say if as_json else _show
    account = Story(say, keep=keep.absolute() if keep else None).tell()
    account.seconds = round(time.perf_counter() - started, 1)
    if as_json:
        options.document(asdict(account))
    else:
        options.show(["", f"{account.seconds} s"])
