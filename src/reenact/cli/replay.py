"""`reenact replay RUN [-- CMD]`: run it again, offline; with assertions, judge the code by it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reenact.cli import options, trusting
from reenact.errors import CannotJudge, InputError, UsageError
from reenact.find.sources import RunSource, find
from reenact.pipeline.bisecting import is_bisecting
from reenact.pipeline.judging import Order, replay_and_judge
from reenact.pipeline.replaying import policy_note
from reenact.replay.policy import After, Children, Policy, Reads, Source
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.history import MOST

if TYPE_CHECKING:
    from reenact.values.assertion import Placed

_SOURCES = click.Choice([source.value for source in Source])


@click.command("replay", cls=options.WithProgram)
@click.argument("selector", metavar="RUN", default=None, required=False)
@click.argument("words", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@options.store_folder
@options.as_json
@trusting.trust
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="Deliver a recorded request to this application.")
@click.option("--models", type=_SOURCES, default="recorded", show_default=True, help="Where model answers come from.")
@click.option("--tools", type=_SOURCES, default="recorded", show_default=True, help="Where tool results come from.")
@click.option(
    "--tool-live",
    "live_tools",
    multiple=True,
    metavar="NAME",
    help="Run this tool in the sealed world of the replay, its own calls answered; may be given more than once.",
)
@options.stubs
@options.no_lifespan
@click.option(
    "--live-differs",
    type=click.Choice(["fail", "ok"]),
    default="fail",
    show_default=True,
    help="Exit code where something else comes back live than was recorded: 1, or 0 with ok.",
)
@options.writes
@options.outcome
@options.allow_host
@click.option(
    "--children",
    type=click.Choice([each.value for each in Children]),
    default="answer",
    show_default=True,
    help="Programs that the agent starts and that are no Python of its own: give back what they said, run them in the "
    "sealed copy and compare, or refuse them.",
)
@click.option(
    "--reads",
    type=click.Choice([each.value for each in Reads]),
    help="Files that the program reads as data: give it what it read when it was recorded (default), that only where "
    "nothing is there now, or what is there now (default while `git bisect` runs).",
)
@click.option(
    "--after",
    type=click.Choice([each.value for each in After]),
    default="writes",
    show_default=True,
    help="After the first divergence: stop; stop unless a database was told to write something else; go on with the "
    "nearest recorded answers, which are no evidence; or ask models live.",
)
@click.option("--session", metavar="S", help="Play the runs of this session in order, as one result.")
@click.option(
    "--history-max",
    type=click.IntRange(0),
    default=MOST,
    show_default=True,
    help="Of a unit of a service or worker that stands on earlier ones: deliver so many of these before it at most.",
)
@click.option("--check", "files", multiple=True, type=click.Path(path_type=Path), help="Judge by a file of assertions.")
@click.option("--assert", "texts", multiple=True, metavar="TEXT", help="Judge by an assertion.")
@click.option(
    "--all", "everything", type=click.Path(path_type=Path), help="Replay every recording of a folder or store."
)
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="With --all: so many at once.")
def replay_command(
    selector: str | None,
    words: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    everything: Path | None,
    jobs: int,
    **how: Any,
) -> None:
    """Run a program again with every model call and declared tool answered from RUN.

    Offline, free, without side effect.

    Without COMMAND the recorded entry point is run, in its recorded directory; of a service, the recorded request is
    delivered to the application in process, and its answer printed. A recording that is not your own is data: what it
    names is shown and not run (exit code 3), unless you give COMMAND or --app, or say --trust.

    The program's stdout stays its own (with --json it goes to stderr); the verdict goes to stderr, the first divergence
    first.

    With --check or --assert it says what the run means for the code: reproduced, fixed, broken, unjudged or same.

    Exit code 0: the same as recorded, a recorded crash included; fixed. 1: it left the recording; an assertion fails.
    125: cannot be judged, as `git bisect run` skips it.
    """
    try:
        order = Order(
            words=words if everything is None else tuple(word for word in (selector, *words) if word is not None),
            app=how["app"],
            policy=Policy.named(how, how["hosts"], how["live_tools"], how["stubs"], lifespan=not how["no_lifespan"]),
            assertions=_assertions([*how["files"], *how["texts"]]),
            live_may_differ=how["live_differs"] == "ok",
            history_max=how["history_max"] if how["history_max"] != MOST else None,
        )
        store = options.store(folder)
        if everything is not None:
            from reenact.cli.suite import replay_all

            sys.exit(replay_all(everything, order, store, jobs=jobs, as_json=as_json, trust=how["trust"]))
        if how["session"] is not None:
            sys.exit(_replay_session(selector, how["session"], order, store, as_json=as_json, trust=how["trust"]))
        sys.exit(_replay(selector or "last", order, store, as_json=as_json, trust=how["trust"]))
    except (InputError, UsageError) as error:
        if not is_bisecting(Path.cwd()):
            raise
        raise CannotJudge(error.message, hint=error.hint) from error  # else this commit would count as bad


def _assertions(spelled: Sequence[str | Path]) -> tuple[Placed, ...]:
    if not spelled:
        return ()
    from reenact.keep.assertion_sources import asserted

    return asserted(spelled)


def _replay_session(
    selector: str | None, name: str, order: Order, store: DirectoryStore, *, as_json: bool, trust: bool
) -> int:
    """Play a session; where several processes took part, each after the other. Gives the worst exit code."""
    from reenact.find.session import session
    from reenact.pipeline.suite import worst

    if selector is not None or order.words or order.app:
        raise UsageError("--session names what is played: give it no RUN, no COMMAND and no --app")
    parts = session(name, store)
    if len(parts) > 1 and as_json:
        raise UsageError(
            f"{len(parts)} processes took part in the session {name!r}, and --json shows one result",
            hint="replay the last run of each",
        )
    return worst([_replay_found(part, order, store, as_json=as_json, trust=trust) for part in parts])


def _replay(selector: str, order: Order, store: DirectoryStore, *, as_json: bool, trust: bool) -> int:
    return _replay_found(find(selector, store), order, store, as_json=as_json, trust=trust)


def _replay_found(original: RunSource, order: Order, store: DirectoryStore, *, as_json: bool, trust: bool) -> int:
    if order.app and (order.words or unit.inbound(original.run) is None):
        raise UsageError("--app names the application for the recorded request of a service")
    if sys.stderr.isatty():
        options.say(f"reenact: replaying {original.run.name} {original.run.id[:12]} from {original.source}", dim=True)
    if note := policy_note(original.run, store):
        options.say(f"reenact: {note}")
    original = trusting.agreed(original, order.words, order.app, trusting=trust)
    trusting.tell_settings(original)
    with tempfile.TemporaryFile() as captured:
        judgement = replay_and_judge(original, order, store, stdout=captured if as_json else None)
        if as_json:
            captured.seek(0)
            sys.stderr.flush()
            shutil.copyfileobj(captured, sys.stderr.buffer)
            sys.stderr.buffer.flush()
    if as_json:
        options.document(judgement.document())
    else:
        options.show(judgement.lines(), err=True)
    return judgement.exit_code
