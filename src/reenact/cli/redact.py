"""`reenact redact` and `reenact policy`: apply a redaction policy to a trace, prove one, and say which is in force."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reenact.cli import options
from reenact.pipeline import redacting, redaction_report

_policy = click.option(
    "--policy",
    "policy",
    metavar="FILE",
    default="",
    help="The policy: a TOML file, or `default`. Else REENACT_REDACTION_POLICY, the project's, the store's, `default`.",
)


@click.command("redact")
@click.argument("selector", metavar="FILE|RUN")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; `-` for stdout, .gz packs.")
@_policy
@click.option("--check", is_flag=True, help="Write nothing; say what is left to replace. 0: nothing is, 1: something.")
@options.store_folder
@options.as_json
def redact_command(
    selector: str, output: Path | None, policy: str, check: bool, folder: Path | None, as_json: bool
) -> None:
    """Apply a redaction policy to a trace FILE of any format that is read, or to a RUN of the store.

    Writes OTLP as JSON lines: ids, times and everything that is no text stay. What was replaced is listed by class and
    place, never by value. RUN itself stays in the store as it is. With --check nothing is written.
    """
    if check and output is not None:
        raise click.UsageError("--check writes nothing: leave -o out")
    store = options.store(folder)
    result = redacting.redacted(selector, store, policy=policy)
    target: Path | None = None
    if not check:
        target = output or Path(f"{redaction_report.file_stem(selector)}.redacted.jsonl")
        redacting.write(result.spans, target)
    quiet = target is not None and str(target) == "-"
    if as_json and not quiet:
        options.document(redaction_report.document(result, selector, None if target is None else str(target)))
    else:
        options.show(redaction_report.lines(result, selector, target), err=quiet)
    sys.exit(1 if check and (result.left or result.failed) else 0)


@click.command("policy")
@click.argument("file", required=False, default="")
@options.store_folder
@options.as_json
def policy_command(file: str, folder: Path | None, as_json: bool) -> None:
    """Say which redaction policy is in force here, or what FILE says: what is sought, and what becomes of it.

    A policy that cannot be read is an error with its line (exit code 3). The key is named, never shown.
    """
    store = options.store(folder)
    guard = redacting.strictly(store.folder, os.environ, file, make=False)
    if as_json:
        options.document(redaction_report.policy_document(guard))
        return
    options.show(redaction_report.policy_lines(guard))
