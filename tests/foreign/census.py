"""What every file of a folder of real traces holds, as a table: runs, calls, messages, tools, verdicts, reasons.

    python tests/foreign/census.py ../shared/data/traces

A file that gives nothing says why: the error that it is refused with, or what its runs lost.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reenact.boundary.reading import answered, asked
from reenact.errors import ReenactError
from reenact.find.sources import runs_in
from reenact.graph.verdict import facts, judge
from reenact.values.run import Run

_ASIDE = frozenset({"README.md", "LICENSE", "LICENSE.txt", "NOTICE"})
"""Files that speak about data and hold none."""


@dataclass(slots=True)
class Row:
    """What one file holds."""

    path: Path
    runs: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    tools: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    why: str = ""
    crash: str = ""

    @property
    def is_empty(self) -> bool:
        """It gave no call of a model, tool, retriever or anything else."""
        return not any(count for kind, count in self.calls.items() if kind not in STRUCTURE)


STRUCTURE = frozenset({"agent", "chain", "prompt", "unknown"})


def counted(path: Path) -> Row:
    """Read one file as the commands do."""
    row = Row(path=path)
    try:
        runs = runs_in(path)
        for run in runs:
            _count(row, run)
    except ReenactError as error:
        row.why = " ".join(str(error).split())
        return row
    except Exception:  # noqa: BLE001 - a crash is a row of the table too
        row.crash = traceback.format_exc()
        return row
    if row.is_empty:
        reasons = [reason for run in runs for reason in judge(run).reasons]
        reasons.sort(key=lambda reason: reason.field != "calls")  # what is missing first, whence the rest follows
        row.why = "; ".join(dict.fromkeys(reason.lost for reason in reasons)) or "; ".join(
            note for run in runs for note in run.notes
        )
        names = dict.fromkeys(node.span.name for run in runs for node in run.nodes)
        row.why = f"only {', '.join([*names][:3])}{', …' if len(names) > 3 else ''}: {row.why}"
    return row


def _count(row: Row, run: Run) -> None:
    row.runs += 1
    row.calls.update(facts(run.nodes))
    row.verdicts[judge(run).grade.value] += 1
    names = set[str]()
    for node in run.nodes:
        request, reply = asked(node), answered(node)
        row.messages += len(request.messages) if request else 0
        row.messages += len(reply.messages) if reply else 0
        if node.kind == "TOOL":
            names.add(node.call.name)
    row.tools += len(names)


def files(folder: Path) -> list[Path]:
    """List the data below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in _ASIDE)


def table(rows: Iterable[Row], folder: Path) -> Iterator[str]:
    """Lay the rows out."""
    yield f"{'FILE':<72} {'RUNS':>5} {'LLM':>5} {'TOOL':>5} {'OTHER':>5} {'MESSAGES':>8} {'TOOLS':>5}  VERDICT / WHY"
    for row in rows:
        other = sum(n for kind, n in row.calls.items() if kind not in STRUCTURE and kind not in ("llm", "tool"))
        said = ", ".join(f"{count} {grade}" for grade, count in sorted(row.verdicts.items()))
        name = str(row.path.relative_to(folder))
        name = name if len(name) <= 72 else f"…{name[-71:]}"
        end = (
            row.crash.strip().splitlines()[-1]
            if row.crash
            else " / ".join(each for each in (said, row.why[:160]) if each)
        )
        yield (
            f"{name:<72} {row.runs:>5} {row.calls['llm']:>5} {row.calls['tool']:>5} {other:>5} {row.messages:>8} "
            f"{row.tools:>5}  {end}"
        )


def main() -> int:
    """Print the table of a folder; the exit code says whether every file was read, or refused with a reason."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/traces")
    rows = [counted(path) for path in files(folder)]
    say = sys.stdout.write
    say("\n".join(table(rows, folder)) + "\n")
    crashed = [row for row in rows if row.crash]
    unexplained = [row for row in rows if row.is_empty and not row.why and not row.crash]
    totals = Counter[str]()
    for row in rows:
        totals.update(row.calls)
    say(
        f"{len(rows)} files, {sum(row.runs for row in rows)} runs, {totals['llm']} llm, {totals['tool']} tool; "
        f"{sum(row.is_empty for row in rows)} empty, {len(unexplained)} of them unexplained; {len(crashed)} crashed\n"
    )
    for row in crashed:
        say(row.crash)
    return bool(crashed or unexplained)


if __name__ == "__main__":
    sys.exit(main())
