"""What the earlier units came to that were delivered before the one that is replayed.

Each is held against its own recording: its calls, their order, its answer. What it prints and writes counts only as far
as the unit that was asked for has to do with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reenact.compare.judge import judge_replay
from reenact.pipeline.counterpart import done_again
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_text
from reenact.values.run import Run

Entry = dict[str, Any]


def apart(entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, list[Entry]]]:
    """Tell the entries of a ledger that are of earlier units from all others, by the units' recorded runs."""
    rest: list[Entry] = []
    ledgers: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry["t"] == "over":
            ledgers.setdefault(as_text(entry.get("run")), []).append(entry)
        elif unit := as_text(entry.get("unit")):
            ledgers.setdefault(unit, []).append({name: value for name, value in entry.items() if name != "unit"})
        else:
            rest.append(entry)
    return rest, ledgers


def judged(
    result: ReplayResult,
    asked_for: Run,
    earlier: Sequence[Run],
    runs: Sequence[Run],
    ledgers: Mapping[str, Sequence[Entry]],
) -> ReplayResult:
    """Hold each earlier unit against its recording; the first that left it is what the whole replay came to."""
    if not earlier:
        return result
    again = {done_again(run): run for run in runs}
    reports: list[dict[str, Json]] = []
    first: tuple[str, ReplayResult] | None = None
    for each in earlier:
        entries = ledgers.get(each.id, ())
        over = any(entry["t"] == "over" for entry in entries) and not _outlived(each, asked_for)
        came = _one(each, again.get(each.id), entries, over=over)
        reports.append({"run": each.id, "result": came.result, "replay": came.replay})
        if first is None and came.result != "same":
            first = each.id, came
    result = replace(result, earlier=tuple(reports))
    if first is None:
        return result
    unit, came = first
    why = f"the earlier unit {unit[:12]}: {came.why}" if came.why else ""
    divergences = [{**each, "unit": unit} for each in came.divergences]
    parts: dict[str, Any] = {"misses": came.misses, "refused": came.refused, "unconsumed": came.unconsumed}
    return replace(result, result=came.result, why=why, divergences=divergences, **parts)


def _outlived(earlier: Run, asked_for: Run) -> bool:
    """Tell whether a unit ended behind the one that was asked for: what it was given then is not there."""
    ends = [run.root.end_order if run.root is not None else 0 for run in (earlier, asked_for)]
    return all(ends) and ends[0] > ends[1]


def _one(recorded: Run, replay: Run | None, entries: Sequence[Entry], *, over: bool) -> ReplayResult:
    """Judge one earlier unit; of one that was not over when the unit that was asked for was, what it did by then."""
    stopped = any(entry["t"] in {"miss", "refused", "changed"} for entry in entries)
    if not over and not stopped:
        return ReplayResult(result="same", replay=replay.id if replay is not None else None)
    ledger: list[Entry] = [{"t": "joined"}, *entries]
    ends: dict[str, Any] = {"exit_code": 0 if over else None, "recorded_exit": None}
    return judge_replay(recorded, (), replay, ledger, **ends)
