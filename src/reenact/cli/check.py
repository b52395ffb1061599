"""`reenact check RUN --assert … --check FILE`: hold assertions against a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reenact.cli import options
from reenact.errors import CannotJudge, UsageError
from reenact.find.sources import find
from reenact.keep.assertion_sources import asserted
from reenact.pipeline.opinions import Bench, earlier_judgement, judged_check, judgements
from reenact.report.check_report import check_document, checked
from reenact.values.assertion import Price, Standing

EXIT_CODES = {Standing.HOLDS: 0, Standing.FAILS: 1, Standing.UNDECIDED: 125}


@click.command("check")
@click.argument("selector", metavar="RUN", default="last")
@options.store_folder
@options.as_json
@click.option("--assert", "texts", multiple=True, metavar="TEXT", help="An assertion; may be given more than once.")
@click.option(
    "--check", "files", multiple=True, type=click.Path(path_type=Path), help="A file of assertions, one a line."
)
@click.option("--judge", default="", metavar="NAME", help="Who judges prose: module:function, or model:NAME.")
@click.option("--judge-url", default="", metavar="URL", help="Base URL of an OpenAI-compatible API for the judge.")
@click.option("--judged", default="", metavar="RUN", help="Take prose from a recorded judgement, offline.")
@click.option("--prose-counts", is_flag=True, help="Let judges' verdicts count for the exit code.")
def check_command(
    selector: str,
    folder: Path | None,
    as_json: bool,
    texts: tuple[str, ...],
    files: tuple[Path, ...],
    prose_counts: bool,
    **how: str,
) -> None:
    """Hold assertions against RUN: a recording, a replay, or a trace of anybody's.

    \b
    reenact check last --assert 'never called delete_accounts where target = "production"'
    reenact check last --check safety.txt

    One line an assertion, with the evidence. Exit code 0: all hold. 1: one fails. 125: one cannot be decided, since
    the evidence was lost or redacted.
    """  # noqa: D301 - click's own mark against rewrapping
    entries = asserted([*texts, *files])
    if not entries:
        raise UsageError("nothing is asserted", hint="give --assert TEXT or --check FILE")
    if all(isinstance(each.assertion, Price) for each in entries):
        raise CannotJudge("nothing is asserted: a price asserts nothing", hint="give --assert TEXT or --check FILE")
    store = options.store(folder)
    recording = find(selector, store)
    earlier = earlier_judgement(how["judged"], store) if how["judged"] else None
    bench = Bench(judge=how["judge"], base_url=how["judge_url"], earlier=earlier)
    result, judgement = judged_check(recording.run, entries, bench, store)
    identity = judgement.id if judgement is not None else None
    if as_json:
        options.document(check_document(result, source=recording.source, judgement=identity, prose_counts=prose_counts))
    else:
        options.show(checked(result, prose_counts=prose_counts))
    if identity is not None:
        where = judgements(store).folder
        options.say(f"reenact: judged in {identity[:12]} (reenact show {identity[:12]} --store {where})", dim=True)
    sys.exit(EXIT_CODES[result.standing(prose=prose_counts)])
