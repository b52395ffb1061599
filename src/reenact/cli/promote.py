"""`reenact promote RUN`: a recorded run becomes a test of the project."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import cast

import click

from reenact.assess.language import parse
from reenact.cli import options, trusting
from reenact.disk.private import read_regular
from reenact.errors import InputError
from reenact.find.sources import find
from reenact.pipeline.replaying import check_judgeable
from reenact.replay.policy import Children, Writes
from reenact.stores.directory import DirectoryStore
from reenact.testing.promoting import Promoted, Wanted, promote
from reenact.testing.verdicts import path_name
from reenact.values.assertion import Placed


@click.command("promote", cls=options.WithProgram)
@click.argument("selector", metavar="RUN", default="last")
@click.argument("words", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
@click.option("--assert", "texts", multiple=True, metavar="ASSERTION", help="What must be true. May be given again.")
@click.option("--check", "file", type=click.Path(path_type=Path), help="A file of assertions, one a line.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the test. Default: the project's.")
@click.option("--name", default="", help="Name of the test. Default: the run's name and id.")
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="Deliver a recorded request to this application.")
@click.option("--force", is_flag=True, help="Overwrite a test and a fixture of the same name.")
@click.option("--untried", is_flag=True, help="Do not run the program once to say what the test says now.")
@click.option(
    "--writes",
    type=click.Choice([each.value for each in Writes if each is not Writes.KEEP]),
    default=Writes.COPY.value,
    show_default=True,
    help="What becomes of files that the program writes outside every tool, in the test.",
)
@click.option(
    "--children",
    type=click.Choice([each.value for each in Children]),
    default=Children.ANSWER.value,
    show_default=True,
    help="Programs that it starts and that are no Python of its own, in the test.",
)
@options.stubs
@options.no_lifespan
@options.store_folder
@options.as_json
@trusting.trust
def promote_command(
    selector: str,
    words: tuple[str, ...],
    texts: tuple[str, ...],
    file: Path | None,
    folder: Path | None,
    as_json: bool,
    **wanted: object,
) -> None:
    """Write a fixture and a pytest test of RUN next to the project's tests.

    With assertions the test fails on code that does again what was recorded, and passes on code that no longer does.
    Without any, the run is one that was good: the test fails where the program leaves it.

    The fixture holds the run's own spans, redacted, a line a call; the test needs no network, no key and no store.
    """
    store = options.store(folder)
    recording = find(selector, store)
    check_judgeable(recording, words)
    recording = trusting.agreed(recording, words, _text(wanted["app"]), trusting=bool(wanted["trust"]))
    with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
        promotion = promote(
            recording,
            Wanted(
                command=words,
                app=_text(wanted["app"]),
                assertions=_assertions(texts, file),
                output=wanted["output"] if isinstance(wanted["output"], Path) else None,
                name=str(wanted["name"]),
                force=bool(wanted["force"]),
                tried=not wanted["untried"],
                writes=Writes(str(wanted["writes"])),
                children=Children(str(wanted["children"])),
                stubs=_texts(wanted["stubs"]),
                lifespan=not wanted["no_lifespan"],
            ),
            DirectoryStore(Path(scratch)),
        )
    if as_json:
        options.document(promotion.document())
        return
    options.show(_summary(promotion))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _assertions(texts: tuple[str, ...], file: Path | None) -> tuple[Placed, ...]:
    assertions = [placed for text in texts for placed in parse(text)]
    if file is not None:
        try:
            assertions += parse(read_regular(file).decode(), source=str(file))
        except OSError as error:
            raise InputError(str(file), f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(str(file), "this is no text file of assertions") from error
    return tuple(assertions)


def _summary(draft: Promoted) -> list[str]:
    lines = [f"test     {path_name(draft.test)}", f"fixture  {path_name(draft.fixture)}"]
    if draft.replaced:
        counts = ", ".join(f"{count} {rule}" for rule, count in draft.replaced.items())
        lines.append(f"redacted on the way out: {counts}")
    lines += [f"note: {warning}" for warning in draft.warnings]
    if draft.now:
        verb = "fails" if draft.why else "passes"
        lines.append(
            f"on the code as it is now it {verb}:" if draft.why else f"on the code as it is now it {verb}: {draft.now}"
        )
        lines += [f"  {line}" for line in draft.why.splitlines()]
    lines.append(f"next: pytest {path_name(draft.test)}")
    return lines
