"""What a replay says of a fix, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.report import safe
from reenact.report.check_report import findings_document
from reenact.values.json import Json
from reenact.values.judgement import Basis, FixJudgement, Word
from reenact.values.lenient import as_object

_CONDITIONS = {
    Basis.RECORDED: "",
    Basis.LIVE: ", by live answers of a model: one sample of what it may say",
    Basis.NEAREST: ", if the model answers as recorded (nearest answers are no evidence)",
    Basis.WRITES: ", if the database takes what is written otherwise as it took the recorded writes",
}


def judged_line(judgement: FixJudgement) -> str:
    """Say a judgement in one line: the word, on what condition, and why."""
    return safe.one_line(f"{judgement.word.value}{_CONDITIONS[judgement.basis]}: {judgement.why}")


def judged(judgement: FixJudgement, *, after: str = "writes") -> list[str]:
    """Say a judgement: the word and why, then each assertion on the recording and in the replay."""
    lines = [judged_line(judgement), *(f"  {line}" for line in _findings(judgement))]
    if hint := _hint(judgement, after):
        lines.append(f"  {hint}")
    return [safe.clean(line).replace("\n", " ") for line in lines]


def _findings(judgement: FixJudgement) -> Iterator[str]:
    for before, now, basis in zip(judgement.recorded, judgement.replay, judgement.bases, strict=True):
        worth = " (no evidence)" if basis is Basis.NEAREST else " (live)" if basis is Basis.LIVE else ""
        layer = " [prose]" if before.layer == "prose" else ""
        yield f"recorded {before.standing.value}, replay {now.standing.value}{worth}: {before.assertion}{layer}"


def _hint(judgement: FixJudgement, after: str) -> str:
    if judgement.exit_code != 125 or after not in {"stop", "writes"} or judgement.first is None:
        return ""
    onward = "--after nearest goes on with recorded answers, --after live-models asks the model itself"
    called = str(judgement.first.get("call"))
    if called.startswith("database ") and judgement.first.get("kind") == "changed":
        name = called.removeprefix("database ").rpartition(" #")[0]
        return f'next: if that change is the fix, assert on it: every "{name}" has parameters contains …'
    if judgement.word is Word.BROKEN:
        return f"next: if that change is the fix, assert on it; {onward}"
    return f"next: {onward}"


def judgement_document(judgement: FixJudgement, *, after: str = "writes") -> dict[str, Json]:
    """Make the `check` of `reenact replay --json`."""
    return {
        "word": judgement.word.value,
        "why": judgement.why,
        "basis": judgement.basis.value,
        "after": after,
        "same_structure": judgement.same_structure,
        "first": judgement.first,
        "findings": {
            "recorded": findings_document(judgement.recorded),
            "replay": [
                {**as_object(each), "basis": basis.value if basis else None}
                for each, basis in zip(findings_document(judgement.replay), judgement.bases, strict=True)
            ],
        },
    }
