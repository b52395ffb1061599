"""`reenact fork RUN --at CALL --set path=value`: recorded up to a call, changed there, then by policy."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from reenact.change.forking import Prepared, Wanted, fork, prepare, repeat
from reenact.cli import options, trusting
from reenact.disk.private import read_regular
from reenact.errors import InputError, UsageError
from reenact.find.sources import find
from reenact.keep.assertion_sources import asserted
from reenact.pipeline.commands import command
from reenact.pipeline.injection import program
from reenact.pipeline.replaying import check_judgeable
from reenact.replay.policy import After, Children, Policy, Source
from reenact.report.forking import fork_document, forked, repeated, repeated_document
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.assertion import Standing
from reenact.values.fork_outcome import Forked
from reenact.values.json import Json
from reenact.values.json import parse as parse_json
from reenact.values.limits import max_record_bytes

_SOURCES = click.Choice([source.value for source in Source])
_EXIT = {"forked": 0, "diverged": 1, "failed": 125, "unjudged": 125}


@click.command("fork", cls=options.WithProgram)
@click.argument("selector", metavar="RUN", default="last")
@click.argument("words", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@options.store_folder
@options.as_json
@trusting.trust
@click.option("--at", metavar="CALL", default="", help="The call: `tool delete_accounts #7`, `#7`, an id, `first llm`.")
@click.option("--set", "values", multiple=True, metavar="PATH=VALUE", help="What to set in it: JSON, or else text.")
@click.option("--set-file", "files", multiple=True, metavar="PATH=FILE", help="The same, with the content of a file.")
@click.option("--model", help="Ask this model instead, live, in every model call from there on.")
@click.option("--temperature", type=float, help="The same for the temperature.")
@click.option(
    "--param", "parameters", multiple=True, metavar="NAME=VALUE", help="The same for any field; null drops it."
)
@click.option("--repeat", "times", type=click.IntRange(1), help="Fork so many times and count the paths.")
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="Deliver a recorded request to this application.")
@click.option(
    "--after",
    type=click.Choice([each.value for each in After]),
    default="stop",
    show_default=True,
    help="What a call gets, behind the change, that nobody recorded.",
)
@click.option("--models", type=_SOURCES, default="recorded", show_default=True, help="Model answers from there on.")
@click.option("--tools", type=_SOURCES, default="recorded", show_default=True, help="Tool results from there on.")
@options.writes
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
    "--check",
    "files_of_assertions",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Hold a file of assertions against it.",
)
@click.option("--assert", "assertions", multiple=True, metavar="TEXT", help="Hold an assertion against it.")
def fork_command(
    selector: str,
    words: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    times: int | None,
    **choices: Any,
) -> None:
    """Run a program again from RUN: recorded up to a call, changed there, then by policy.

    \b
    reenact fork last --at '#6' --set tool_calls[0].arguments.target=staging
    reenact fork last --at 'first tool' --set 'raised=TimeoutError:"too slow"' --after nearest
    reenact fork last --at '#4' --model gpt-5-mini --repeat 10

    What can be set: of a model's reply `text`, `tool_calls`, `finish_reason`, or any field of its JSON; of a tool
    `result` or a place in it; `raised`; over HTTP `status`, `headers.NAME`, `body`; of a stream `chunks[n]` and
    `events[n]`; of a model's request `request.PATH`, which needs --models live.

    The fork is a run of its own that names its parent; `reenact diff PARENT FORK` shows what followed.

    Exit code 0: forked. 1: the program left the recording before it came to the call, or an assertion fails. 125:
    cannot be judged.
    """  # noqa: D301 - click's own mark against rewrapping
    store = options.store(folder)
    recording = find(selector, store)
    check_judgeable(recording, words)
    if choices["app"] and (words or unit.inbound(recording.run) is None):
        raise UsageError("--app names the application for the recorded request of a service")
    wanted = _wanted(choices)
    recording = trusting.agreed(recording, words, choices["app"], trusting=choices["trust"])
    prepared = prepare(recording, wanted)
    argv, cwd = command(recording, words, choices["app"])
    if words:
        argv = program(argv)
    trusting.tell_settings(recording)
    if times is None:
        forks = [_once(prepared, argv, cwd, store, as_json=as_json)]
    else:
        forks = _several(prepared, argv, cwd, store, times, as_json=as_json)
    sys.exit(_exit_code(forks))


def _once(prepared: Prepared, argv: Sequence[str], cwd: Path, store: DirectoryStore, *, as_json: bool) -> Forked:
    with tempfile.TemporaryFile() as captured:
        outcome = fork(prepared, argv, cwd, store, stdout=captured if as_json else None)
        if as_json:
            captured.seek(0)
            sys.stderr.flush()
            shutil.copyfileobj(captured, sys.stderr.buffer)
            sys.stderr.buffer.flush()
            options.document(fork_document(outcome))
    if not as_json:
        options.show(forked(outcome, prepared.found.run.name), err=True)
    return outcome


def _several(
    prepared: Prepared, argv: Sequence[str], cwd: Path, store: DirectoryStore, times: int, *, as_json: bool
) -> Sequence[Forked]:
    def report(number: int, one_fork: Forked) -> None:
        path = "the recorded path" if one_fork.same_path else f"another path{', stopped' if one_fork.stopped else ''}"
        options.say(f"reenact: fork {number} of {times}: {(one_fork.run or '?')[:12]}, {path}", dim=True)

    several = repeat(prepared, argv, cwd, store, times, heard=report if sys.stderr.isatty() else None)
    if as_json:
        options.document(repeated_document(several))
    else:
        options.show(repeated(several, prepared.found.run.name))
    return several.forks


def _exit_code(forks: Sequence[Forked]) -> int:
    fails = any(finding.standing is Standing.FAILS for each in forks for finding in each.findings)
    return max(1 if fails else 0, *(_EXIT[each.result] for each in forks))


def _wanted(choices: dict[str, Any]) -> Wanted:
    values = [_pair("--set", text) for text in choices["values"]]
    values += [(path, _content(file)) for path, file in (_split("--set-file", text) for text in choices["files"])]
    parameters = dict(_pair("--param", text) for text in choices["parameters"])
    parameters |= {name: choices[name] for name in ("model", "temperature") if choices[name] is not None}
    return Wanted(
        at=choices["at"],
        values=tuple(values),
        parameters=parameters,
        policy=Policy.named(choices, choices["hosts"]),
        assertions=asserted([*choices["files_of_assertions"], *choices["assertions"]]),
    )


def _split(option: str, text: str) -> tuple[str, str]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise UsageError(f"{option} takes PATH={'FILE' if 'file' in option else 'VALUE'}, not {text!r}")
    return path, value


def _pair(option: str, text: str) -> tuple[str, Json]:
    path, value = _split(option, text)
    return path, _value(value)


def _value(text: str) -> Json:
    """Read a value: JSON where it is some, else the text itself."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _content(file: str) -> Json:
    try:
        return _value(read_regular(Path(file), most=max_record_bytes()).decode())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(file, f"cannot be read: {error}") from error
