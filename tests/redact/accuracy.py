"""Measure recall and precision of every class: fake values planted in real agent text, and that text as it is.

    python tests/redact/accuracy.py [--seed N] [--each N] [--document docs/detectors.md]

Fake values come from `planted` and `planted_personal`, which know no detector. The text is what agents and models said
in `../shared/data`, beside the repository; where that is absent, what the project's own golden cases hold. A planted
value counts as found where nothing of it is left, whatever class took it. Hits in the text as it is are listed, to be
judged by a reader: addresses that really stand there are no mistakes.
"""

# ruff: noqa: T201 - a script that prints
from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import yaml  # noqa: E402

from planted import Planted, credentials  # noqa: E402
from planted_personal import personal  # noqa: E402
from reenact.redact.plan import discovered  # noqa: E402
from reenact.redact.scan import Scanner  # noqa: E402

REAL = ROOT.parent / "shared" / "data"
STANDING = frozenset({"e_mail", "ip_address"})
"""Classes whose hits in ordinary text are what they look like: somebody's address. They are listed, not counted."""

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"

FRAMES = (
    "{}",
    "{}\n",
    " {} ",
    "\n{}",
    "({})",
    "- {}\n- next",
    "I found this: {}, please keep it.",
    "The tool returned {} and nothing else.",
    "`{}`",
    "> {}\n\nThanks",
    "| name | {} |",
    "2026-03-04T10:22:31Z INFO worker-3 {} status=200",
    "结果是 {}。",
    "user said: {}?",
    "\t{}\r\n",
)


@dataclass(slots=True)
class Score:
    planted: int = 0
    found: int = 0
    named: int = 0
    hits: int = 0
    right: int = 0
    missed: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])

    @property
    def recall(self) -> float:
        return self.found / self.planted if self.planted else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.hits if self.hits else 1.0


def leaves(value: Any) -> Iterator[str]:
    """Give every text and key in JSON, JSON inside of texts included, and numbers as they are written."""
    if isinstance(value, str):
        held: Any = None
        if value.lstrip()[:1] in ("{", "["):
            try:
                held = json.loads(value)
            except ValueError:
                held = None
        yield from leaves(held) if isinstance(held, dict | list) else (value,)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def _documents(path: Path) -> Iterator[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    if path.suffix in {".yaml", ".yml"}:
        yield yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return
    try:
        yield json.loads(text)
    except ValueError:
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield line


def ordinary(folder: Path = REAL) -> list[str]:
    """Give every different text of real traces and replies, or of the golden cases where there are none."""
    folders = [folder / "traces", folder / "cassettes"] if folder.is_dir() else [ROOT / "tests" / "golden" / "dialects"]
    paths = sorted(
        path
        for each in folders
        for path in each.rglob("*")
        if path.is_file() and path.suffix not in {".parquet", ".zst"}
    )
    return sorted({leaf for path in paths for document in _documents(path) for leaf in leaves(document)})


def planted(texts: Sequence[str], seed: int, each: int) -> Iterator[tuple[Planted, str, int, int]]:
    """Put each fake value into a text of an agent; give it, the text, and where the value stands."""
    chance = random.Random(seed)
    carriers = [text for text in texts if 80 <= len(text) <= 3000 and " " in text]
    chance.shuffle(carriers)
    for count, fake in enumerate((*credentials(chance, each), *personal(chance, each * 5))):
        carrier = carriers[count % len(carriers)]
        framed = FRAMES[count % len(FRAMES)].replace("{}", fake.text)
        at = chance.choice([0, len(carrier), *(at for at, c in enumerate(carrier) if c in " \n" and at)])
        before, after = carrier[:at], carrier[at:]
        if before[-1:].strip():
            before += "\n"
        if after[:1].strip():
            after = "\n" + after
        start = len(before) + framed.index(fake.value)
        yield fake, before + framed + after, start, start + len(fake.value)


def measure(seed: int, each: int, texts: Sequence[str]) -> dict[str, Score]:
    """Score every class on planted values.

    A hit is right where it lies on the planted value, whatever it is called, or is somebody's address that stands in
    the text anyway. Others count as wrong, each different one once.
    """
    scanner = Scanner(discovered())
    scores: defaultdict[str, Score] = defaultdict(Score)
    wrong: set[tuple[str, str]] = set()
    for fake, text, start, end in planted(texts, seed, each):
        found = scanner.find(text)
        here = [hit for hit in found if hit.start < end and start < hit.end]
        score = scores[fake.name]
        score.planted += 1
        if set(range(start, end)) <= {at for hit in here for at in range(hit.start, hit.end)}:
            score.found += 1
        else:
            score.missed.append(f"{text[max(0, start - 24) : end + 12]!r} {[hit.name for hit in here]}")
        score.named += any(hit.name == fake.name for hit in here)
        for hit in found:
            said = (hit.name, text[hit.start : hit.end])
            if hit in here:
                scores[hit.name].hits += 1
                scores[hit.name].right += 1
            elif hit.name not in STANDING and said not in wrong:
                wrong.add(said)
                scores[hit.name].hits += 1
                scores[hit.name].wrong.append(text[max(0, hit.start - 24) : hit.end + 12])
    return dict(scores)


def false_hits(texts: Sequence[str]) -> tuple[float, dict[str, Counter[str]]]:
    """Give the size of ordinary text in MB, and the different hits in it by class."""
    scanner = Scanner(discovered())
    hits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for hit in scanner.find(text):
            hits[hit.name][text[hit.start : hit.end]] += 1
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6, dict(hits)


def table(scores: dict[str, Score]) -> str:
    """Give the figures of every class as a table in Markdown."""
    groups = {detector.name: detector.group for detector in discovered()}
    checked = {detector.name for detector in discovered() if detector.check is not None}
    lines = ["| class | group | also checked | planted | recall | precision |", "|---|---|---|---|---|---|"]
    for name, score in sorted(scores.items(), key=lambda item: (groups[item[0]], item[0])):
        more = "yes" if name in checked else ""
        figures = f"{score.planted} | {score.recall:.3f} | {score.precision:.3f}"
        lines.append(f"| `{name}` | {groups[name]} | {more} | {figures} |")
    return "\n".join(lines)


def total(scores: dict[str, Score], group: str) -> float:
    """Give the recall over all classes of a group."""
    groups = {detector.name: detector.group for detector in discovered()}
    of = [score for name, score in scores.items() if groups[name] == group]
    return sum(score.found for score in of) / sum(score.planted for score in of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--missed", type=int, default=3, help="so many examples of what was missed, or wrongly taken")
    parser.add_argument("--document", type=Path, help="put the table between the marks in this file")
    asked = parser.parse_args()
    texts = ordinary()
    scores = measure(asked.seed, asked.each, texts)
    print(table(scores))
    for name, score in sorted(scores.items()):
        for missed in score.missed[: asked.missed]:
            print(f"missed {name}: {missed}")
        for wrong in score.wrong[: asked.missed]:
            print(f"wrong {name}: {wrong!r}")
    for group in ("credentials", "personal"):
        print(f"{group}: recall {total(scores, group):.4f}")
    size, hits = false_hits(texts)
    counted = sum(len(each) for name, each in hits.items() if name not in STANDING)
    print(f"ordinary text: {size:.2f} MB, {counted} hits to be judged, {counted / size:.2f} for each MB")
    for name, each in sorted(hits.items()):
        for hit, count in each.most_common(20):
            print(f"    {name:20} {count:4} {hit[:100]!r}")
    if asked.document:
        written = asked.document.read_text(encoding="utf-8")
        head, _, rest = written.partition(BEGIN)
        _, _, tail = rest.partition(END)
        asked.document.write_text(f"{head}{BEGIN}\n{table(scores)}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
