"""`reenact replay RUN [-- CMD]`: run it again, offline."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import UsageError
from reenact.pipeline.injection import program
from reenact.pipeline.replaying import Replayed, check_judgeable, command, replay
from reenact.pipeline.sources import Found, find
from reenact.replay.policy import Policy, Source, Writes
from reenact.report.documents import replay_document
from reenact.report.replay import replayed
from reenact.values import unit

_SOURCES = click.Choice([source.value for source in Source])
EXIT_CODES = {"same": 0, "diverged": 1, "failed": 125, "unjudged": 125}


@click.command("replay", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True})
@click.argument("selector", metavar="RUN", default="last")
@click.argument("given", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@options.store_folder
@options.as_json
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="Deliver a recorded request to this application.")
@click.option("--models", type=_SOURCES, default="recorded", show_default=True, help="Where model answers come from.")
@click.option("--tools", type=_SOURCES, default="recorded", show_default=True, help="Where tool results come from.")
@click.option(
    "--writes",
    type=click.Choice([each.value for each in Writes]),
    default="refuse",
    show_default=True,
    help="Files that are written outside every declared tool.",
)
def replay_command(
    selector: str,
    given: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    app: str | None,
    **policies: str,
) -> None:
    """Run a program again with every model call and declared tool answered from RUN.

    Offline, free, without side effect.

    Without COMMAND the recorded entry point is run, in its recorded directory; of a service, the recorded request is
    delivered to the application in process, and its answer printed. The program's stdout stays its own (with
    --json it goes to stderr); the verdict goes to stderr, the first divergence first.

    Exit code 0: the same as recorded, a recorded crash included. 1: it left the recording. 125: cannot be judged.
    """
    store = options.store(folder)
    found = find(selector, store)
    check_judgeable(found)
    if app and (given or unit.inbound(found.run) is None):
        raise UsageError("--app names the application for the recorded request of a service")
    argv, cwd = command(found, given, app)
    if given:
        argv = program(argv)
    policy = Policy(
        models=Source(policies["models"]), tools=Source(policies["tools"]), writes=Writes(policies["writes"])
    )
    if sys.stderr.isatty():
        options.say(f"reenact: replaying {found.run.name} {found.run.id[:12]} from {found.source}", dim=True)
    with tempfile.TemporaryFile() as captured:
        outcome = replay(found, argv, cwd, policy, store, stdout=captured if as_json else None)
        if as_json:
            captured.seek(0)
            sys.stderr.flush()
            shutil.copyfileobj(captured, sys.stderr.buffer)
            sys.stderr.buffer.flush()
    _print(outcome, found, as_json=as_json)
    sys.exit(EXIT_CODES[outcome.result.result])


def _print(outcome: Replayed, found: Found, *, as_json: bool) -> None:
    commits = (outcome.recorded_commit, outcome.current_commit)
    if as_json:
        said = replay_document(outcome.result, recorded=found.run.id, commits=commits)
        options.document(said | {"appended": outcome.appended})
        return
    lines = replayed(outcome.result, recorded=found.run.id, commits=commits)
    if outcome.appended:
        lines.append(f"  {outcome.appended} calls that went live were added to the recording")
    options.show(lines, err=True)
