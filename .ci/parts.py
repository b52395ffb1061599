"""Run targets of the Makefile as parts of one check, and end with a line for each.

    python3 .ci/parts.py 'a | b c' 'd'

Each argument is a stage. A stage's lanes, parted by `|`, run at once; a lane's parts run one after another. The first
lane is shown as it goes; what the others print is held back and shown when the stage ends, whole and in order. A part
that fails stops nothing in its stage; a stage is begun only if the one before it was whole.

The last lines are the summary: every part that runs tests or fails, with how long it took and how pytest closed, and
under it the reasons for which tests were skipped. The exit code is 0 if every part was whole, else 1.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLOSING = re.compile(r"=+ (.*\b(?:passed|failed|errors?|skipped|deselected|no tests ran)\b.*) in [0-9.]+s.* =+")
SKIPPED = re.compile(r"SKIPPED \[(\d+)\] (.*)")


RUNNING: list[subprocess.Popen[str]] = []
"""Every make that was started, to be ended with this program."""


@dataclass(slots=True)
class Part:
    """A target, and what came of it."""

    name: str
    code: int | None = None
    """The exit code of make; `None` while it has not ended."""
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list[str])

    def run(self, *, shown: bool) -> None:
        """Make the target; keep its lines, and print them as they come where it is `shown`."""
        began = time.monotonic()
        command = [*shlex.split(os.environ.get("MAKE", "make")), "--no-print-directory", self.name]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1
        ) as process:
            RUNNING.append(process)
            for line in process.stdout or ():
                self.lines.append(line)
                if shown:
                    say(line)
        self.code, self.seconds = process.returncode, time.monotonic() - began

    def closings(self) -> list[str]:
        """Give what pytest said last, as often as it ran."""
        return [found[1] for line in self.lines if (found := CLOSING.fullmatch(line.strip()))]

    def reasons(self) -> Counter[str]:
        """Count the skipped tests by reason; pytest prints the place before it."""
        found: Counter[str] = Counter()
        for line in self.lines:
            if match := SKIPPED.fullmatch(line.strip()):
                found[re.sub(r"^\S+?(:\d+)?: (Skipped: )?", "", match[2])] += int(match[1])
        return found

    def told(self) -> str:
        """Spell the part's line of the summary."""
        state = "not run" if self.code is None else "ok" if self.code == 0 else "FAILED"
        return f"{self.name:16} {state:8} {self.seconds:6.0f} s  {'; '.join(self.closings())}".rstrip()


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def run_lane(parts: list[Part], *, shown: bool) -> None:
    """Run a lane's parts in turn."""
    for part in parts:
        part.run(shown=shown)


def run_stage(lanes: list[list[Part]]) -> bool:
    """Run a stage's lanes at once; tell whether all of it was whole."""
    beside = [threading.Thread(target=run_lane, args=(lane,), kwargs={"shown": False}) for lane in lanes[1:]]
    for thread in beside:
        thread.start()
    run_lane(lanes[0], shown=True)
    for thread in beside:
        thread.join()
    for part in (part for lane in lanes[1:] for part in lane):
        if part.lines:
            say(f"\n--- {part.name}\n{''.join(part.lines)}")
    return all(part.code == 0 for lane in lanes for part in lane)


def summary(stages: list[list[list[Part]]]) -> None:
    """Print a line for each part, and the reasons for skips under it."""
    say("\nsummary\n")
    for part in (part for lanes in stages for lane in lanes for part in lane):
        if part.code == 0 and part.name.startswith("."):
            continue  # an environment that could be made is no result
        say(f"  {part.told()}\n")
        for reason, count in part.reasons().items():
            say(f"    {count} skipped: {reason}\n")


def end_all(number: int, _frame: object) -> None:
    """End what runs, as `timeout` ends this program; a terminal's Ctrl-C reaches it by itself."""
    for process in RUNNING:
        process.terminate()
    os._exit(128 + number)


def main(words: list[str]) -> int:
    """Run the stages that the words name."""
    signal.signal(signal.SIGTERM, end_all)
    stages = [[[Part(name) for name in lane.split()] for lane in word.split("|")] for word in words]
    whole = True
    for lanes in stages:
        whole = whole and run_stage(lanes)
    summary(stages)
    return 0 if whole else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
