"""`reenact export` and `reenact import`: any recording to a file or backend, and back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reenact.cli import options
from reenact.find.sources import find
from reenact.pipeline import transfer
from reenact.report.safe import one_line
from reenact.values.limits import RECORD, max_record_bytes, spelled
from reenact.values.semconv import Semconv, semconv_from


@click.command("export")
@click.argument("selector", metavar="RUN", default="last")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; `-` for stdout.")
@click.option("--to", "urls", multiple=True, metavar="URL", help="OTLP endpoint to send to: http(s):// or grpc://.")
@click.option(
    "--format",
    "name",
    default="otlp-json",
    show_default=True,
    help="otlp-json, otlp-proto, collector-proto, collector-zstd, jaeger or phoenix-json.",
)
@click.option("--alone", is_flag=True, help="Without the other runs of the same recording.")
@click.option("--plain", is_flag=True, help="Without the flattened messages that other vendors' screens read.")
@click.option(
    "--semconv",
    type=click.Choice([each.value for each in Semconv]),
    help="The names that those screens go by: OpenInference's, OpenTelemetry's for generative AI (genai), or both. "
    "Default: REENACT_SEMCONV, else openinference.",
)
@click.option(
    "--blobs",
    type=click.Choice(["inline", "bundle", "reference"]),
    default="inline",
    show_default=True,
    help="Large values: in their spans; beside the trace, in a folder or a .zip; or left in the store.",
)
@options.store_folder
def export_command(  # noqa: PLR0913, PLR0917 - each is an option by its name
    selector: str,
    output: Path | None,
    urls: tuple[str, ...],
    name: str,
    alone: bool,
    plain: bool,
    semconv: str | None,
    blobs: str,
    folder: Path | None,
) -> None:
    """Write RUN to a file that replays without the store, or send it to an OTLP backend.

    The runs that the same program made in one recording go with it, since a replay of the program needs them.
    """
    store = options.store(folder)
    recording = find(selector, store)
    runs = (recording.run,) if alone else recording.together
    names = Semconv(semconv) if semconv else semconv_from(os.environ)
    spans = transfer.exported(runs, None if plain else names)
    if urls:
        for line in transfer.send(spans, urls):
            options.say(line)
    if output is not None or not urls:
        ending = ".zip" if blobs == "bundle" else transfer.format_named(name).suffix
        target = output or Path(f"{recording.run.id[:12]}{ending}")
        if blobs == "bundle":
            transfer.write_bundle(spans, target, name, store)
        else:
            transfer.write(transfer.referring(spans, store) if blobs == "reference" else spans, target, name)
        options.say(f"reenact: {len(spans)} spans of {len(runs)} runs in {target}")
        if blobs == "inline" and (most := transfer.longest(spans)) > max_record_bytes():
            options.say(
                f"reenact: it holds a value of {spelled(most)}; readers need {RECORD} set to more than that, or write "
                "it with `--blobs bundle`"
            )


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--redact", is_flag=True, help="Apply the redaction policy that is in force. Default: as they are.")
@click.option("--policy", metavar="FILE", default="", help="Apply this redaction policy.")
@options.store_folder
@options.as_json
def import_command(files: tuple[Path, ...], redact: bool, policy: str, folder: Path | None, as_json: bool) -> None:
    """Take the runs of trace FILES (of any format that is read, packed or not; or folders) into the store.

    A file is read to its end before anything is stored: a damaged one changes nothing. Nothing is redacted unless
    --redact or --policy says so.
    """
    store = options.store(folder)
    clean = None
    if redact or policy:
        from reenact.pipeline.redacting import cleaner

        clean = cleaner(store, policy)
    stored_runs = transfer.taken_in(files, store, clean)
    if as_json:
        options.document({"runs": list(stored_runs)})
        return
    options.show([one_line(f"{run['id']}  {run['name']}  replayable: {run['verdict']}") for run in stored_runs])
