"""`reenact cold`: what cannot be replayed, counted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reenact.cli import options
from reenact.errors import UsageError
from reenact.find.cold_cases import cold_cases
from reenact.report.cold import cold, cold_document, prometheus
from reenact.values.cold import DIMENSIONS, ColdCases

if TYPE_CHECKING:
    from reenact.export.metrics import Gauge

_LABELS = ("model", "tool", "tenant", "reason")
"""What a metric is told apart by, unless asked otherwise: an hour would be a new series for ever."""


@click.command("cold")
@click.argument("sources", nargs=-1, metavar="[SOURCE]…")
@options.store_folder
@options.as_json
@click.option("--by", "named", metavar="NAME,…", help=f"Group by these together: {', '.join(DIMENSIONS)}.")
@click.option(
    "--metric",
    metavar="URL",
    help="Send the counts as OpenTelemetry metrics to this OTLP/HTTP endpoint; `otlp` for the one that "
    "OTEL_EXPORTER_OTLP_ENDPOINT names; `-` prints them for Prometheus.",
)
def cold_command(
    sources: tuple[str, ...], folder: Path | None, as_json: bool, named: str | None, metric: str | None
) -> None:
    """Count the runs and calls that cannot be replayed: of the store, or of SOURCES, trace files or `-`.

    \b
    reenact cold                                   by model, tool, tenant, hour and reason
    reenact cold --by model,hour traces.jsonl
    reenact cold --metric http://localhost:4318    reenact.cold.runs and reenact.cold.calls, as gauges
    """  # noqa: D301 - click's own mark against rewrapping
    dimensions = _dimensions(named)
    target = _endpoint(metric) if metric is not None and metric != "-" else None
    cases = cold_cases(options.store(folder), sources)
    if metric == "-":
        options.show(prometheus(cases, dimensions or _LABELS))
        return
    if as_json:
        options.document(cold_document(cases, dimensions))
    else:
        options.show(cold(cases, dimensions, width=options.width()))
    if target is not None:
        from reenact.export.metrics import send

        point_count = send(_gauges(cases, dimensions or _LABELS), *target)
        options.say(f"reenact: {point_count} points sent")


def _endpoint(metric: str) -> tuple[str, dict[str, str]]:
    from reenact.export.metrics import endpoint

    return endpoint(metric, os.environ)


def _dimensions(text: str | None) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        if name not in DIMENSIONS:
            raise UsageError(f"--by knows no {name!r}", hint=f"one or several of: {', '.join(DIMENSIONS)}")
    return names


def _gauges(cases: ColdCases, dimensions: Sequence[str]) -> list[Gauge]:
    from reenact.export.metrics import Gauge, Point

    groups = cases.by(dimensions)
    labels = [dict(zip(dimensions, group.key, strict=True)) for group in groups]

    def points(values: Sequence[int]) -> list[Point]:
        return [Point(value=value, attributes=each) for value, each in zip(values, labels, strict=True)]

    return [
        Gauge(
            name="reenact.cold.runs",
            description="Runs of which no replay can answer a call",
            unit="{run}",
            points=points([group.runs for group in groups]),
        ),
        Gauge(
            name="reenact.cold.calls",
            description="Calls that no replay can answer",
            unit="{call}",
            points=points([group.calls for group in groups]),
        ),
        Gauge(
            name="reenact.runs",
            description="Runs that were looked at",
            unit="{run}",
            points=[Point(value=cases.runs_read)],
        ),
        Gauge(
            name="reenact.calls",
            description="Calls that were looked at",
            unit="{call}",
            points=[Point(value=cases.calls_read)],
        ),
    ]
