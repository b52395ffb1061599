"""What a replay has to say of a program, as it was and with its bug, held against what both gave out."""

from __future__ import annotations

import difflib
import re

from outcomes.programs import Program
from outcomes.trial import Ended, Stage, stage

WHERE = {
    "stdout": r"run: stdout",
    "stderr": r"run: stderr",
    "exit": r"run: exit code: recorded {good.code}, replay {bad.code}",
    "file": r"run: wrote {name}",
    "raised": r"run: outcome",
    "returns": r"(returned|raised|returns|result|outcome|answer)",
    "yields": r"yielded\[",
    "answer": r"(answer|status|body|headers?)",
}
"""How the first divergence names the place where a bug is seen."""

_TOLD = ("passed over", "not witnessed", "stand in another order")
"""What a replay says of printed text that differs."""


def faults_of(program: Program, replays: int) -> tuple[str, list[str]]:
    """Record a program, replay it as it was and, where it has one, with its bug.

    Gives a line for the table, and what is wrong.
    """
    with stage(program) as made:
        good, verdict, run = made.recorded()
        faults: list[str] = []
        said: list[str] = []
        for _ in range(replays):
            again = made.reenact("replay", run)
            said.append(again.said)
            faults += _as_it_was(program, verdict, good, again)
        if program.bug is not None:
            bad, _ = made.plainly(wrong=True)
            program.put_in(made.project)
            wrong = made.reenact("replay", run)
            said.append(wrong.said)
            faults += _with_its_bug(made, good, bad, wrong)
    row = f"{program.name[:56]:56} {verdict:8} {said[0][:60]!r} {said[-1][:120]!r}"
    return row, [f"{program.name}: {fault}" for fault in dict.fromkeys(faults)]


def _as_it_was(program: Program, verdict: str, good: Ended, again: Ended) -> list[str]:
    faults: list[str] = []
    if verdict != "exact" and not program.weak:
        faults.append(f"recorded {verdict}: {_tail(good.err)}")
    if not again.said.startswith("same") and (verdict == "exact" or not program.weak):
        faults.append(f"unchanged, recorded {verdict}, and {again.said or _tail(again.err)}")
    if again.said.startswith("same"):
        if again.code != 0:
            faults.append(f"same, and ended with {again.code}")
        told = any(each in again.err for each in _TOLD) or b"REDACTED_" in again.out
        outs = [sorted(each.splitlines()) if program.beside else each for each in (again.out, good.out)]
        if not (program.serve or program.delivered) and outs[0] != outs[1] and not told:
            faults.append(f"same, and another stdout with nothing passed over: {differing(good.out, again.out)}")
    return faults


def _with_its_bug(made: Stage, good: Ended, bad: Ended, wrong: Ended) -> list[str]:
    program = made.program
    if program.past and "not witnessed" in wrong.err:
        return []
    if not wrong.said.startswith("diverged") or wrong.code != 1:
        return [f"with its bug: code {wrong.code}, {wrong.said or _tail(wrong.err)}"]
    kind, _, name = program.seen.partition(" ")
    pattern = WHERE[kind].format(good=good, bad=bad, name=re.escape(name))
    faults: list[str] = []
    if not re.search(pattern, wrong.said):
        faults.append(f"the bug is seen in {program.seen}, and it was said: {wrong.said}")
    if program.varies:
        return faults
    if kind == "stdout" and (line := first_line(good.out, bad.out)) and not re.search(rf"line {line}\b", wrong.said):
        faults.append(f"the bug is seen in line {line} of stdout, and it was said: {wrong.said}")
    if kind == "stdout" and b"REDACTED_" not in wrong.out and wrong.out != bad.out:
        faults.append(f"with its bug it gives {bad.out[-200:]!r}, and gave in the replay {wrong.out[-200:]!r}")
    return faults


def first_line(one: bytes, other: bytes) -> int:
    """Give the number of the first line that differs, from 1; 0 if none does."""
    lines = one.splitlines(), other.splitlines()
    for number, pair in enumerate(zip(*lines, strict=False), 1):
        if pair[0] != pair[1]:
            return number
    return 0 if len(lines[0]) == len(lines[1]) else min(map(len, lines)) + 1


def differing(one: bytes, other: bytes) -> str:
    """Give the lines that only one of two texts has."""
    texts = [text.decode(errors="replace").splitlines() for text in (one, other)]
    return "\n".join([line for line in difflib.ndiff(*texts) if line[:1] in "+-"][:6])


def _tail(text: str) -> str:
    return text.strip()[-300:]
