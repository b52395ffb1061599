"""What redaction costs: megabytes a second of an agent's payload on one core, beside other ways to look for the same.

    python redaction.py ARM [MEGABYTES]

A part of `make bench`; alone, measures one arm and prints it as JSON. The payload is what traces and cassettes of real
agents hold (`../shared/data`; the project's own golden cases where that is absent), grown with words of its own in
every copy until no two texts are the same. `cold` gives each text to a new engine once; `conversations` puts the texts
into requests of conversations that are sent whole with every turn. The others search the same patterns one after
another, or their own; where they are slow, a sample of the same texts. Processor time of the one thread.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from figures import Figure, table

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
SHORTEST = 200
"""Shorter texts are ids and names, which a payload hardly consists of."""
TURNS = 40
"""Turns in a conversation, each of which is sent back with all that follow."""
MEGABYTES = {"cold": 50.0, "conversations": 500.0, "re": 0.5, "google-re2": 2.0, "detect-secrets": 0.1, "presidio": 0.3}
"""How much each arm gets; less than 50 is a sample of the same texts."""
NEEDS = {"google-re2": "re2", "detect-secrets": "detect_secrets", "presidio": "presidio_analyzer"}
_LOOK = re.compile(r"\(\?<?[=!](?:[^()\\\[]|\\.|\[(?:[^\]\\]|\\.)*\]|\((?:[^()\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*\))*\)")
_BLANK = re.compile(r"(?<=[a-z,.;]) (?=[a-z])")


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, list):
            stack += item


def _documents(folder: Path) -> Iterator[Any]:
    for file in sorted(folder.rglob("*")):
        if file.suffix not in {".json", ".jsonl", ".yaml", ".yml"} or file.stat().st_size > 1 << 23:
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix in {".yaml", ".yml"}:
            with suppress(yaml.YAMLError):
                yield yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            continue
        try:
            yield json.loads(text)
        except ValueError:
            for line in text.splitlines():
                with suppress(ValueError):
                    yield json.loads(line)


def originals() -> list[str]:
    """Give the texts of real traces, each once."""
    folder = SHARED if SHARED.is_dir() else ROOT / "tests" / "golden"
    texts = dict.fromkeys(
        text for document in _documents(folder) for text in _strings(document) if len(text) >= SHORTEST
    )
    return list(texts)


def grown(megabytes: float, texts: list[str]) -> Iterator[str]:
    """Give texts until there are so many megabytes of them; no two are the same."""
    left, copy = megabytes * 1e6, 0
    while left > 0:
        for number, text in enumerate(texts):
            made = _copied(text, f"{copy}x{number}") if copy else text
            if copy and made == text:
                continue
            yield made
            left -= len(made.encode("utf-8", "surrogatepass"))
            if left <= 0:
                return
        copy += 1


def _copied(text: str, mark: str) -> str:
    """Put a word of its own into every twelfth gap between words, which JSON's structure has none of."""
    pieces = _BLANK.split(text)
    return "".join(
        piece if place == 0 else f" w{mark}v{place} {piece}" if place % 12 == 1 else f" {piece}"
        for place, piece in enumerate(pieces)
    )


def requests(megabytes: float, texts: list[str]) -> Iterator[str]:
    """Give the bodies of requests: conversations whose every turn says something new and sends all that was said."""
    left = megabytes * 1e6
    said = (text[:4000] for text in grown(megabytes, texts))
    for number in range(1 << 30):
        messages: list[dict[str, str]] = []
        for turn in range(TURNS):
            role = ("user", "assistant", "tool")[turn % 3]
            messages.append({"role": role, "content": f"{number}/{turn}: {next(said, '')}"})
            body = json.dumps({"model": "bench-1", "messages": messages, "temperature": 0.2}, ensure_ascii=False)
            yield body
            left -= len(body)
            if left <= 0:
                return


def _timed(texts: Iterable[str], look: Callable[[str], Any]) -> dict[str, float]:
    """Look at texts one after another, and give what it took in processor time."""
    took = size = count = 0
    for text in texts:
        began = time.thread_time_ns()
        found = look(text)
        took += time.thread_time_ns() - began
        size += len(text.encode("utf-8", "surrogatepass"))
        count += found if isinstance(found, int) else 0
    return {"mb": size / 1e6, "mb_per_s": size / 1e6 / (took / 1e9), "found": count}


def _engine() -> Any:
    from reenact.redact.engine import Engine

    return Engine(key=b"the key of the bench", salt="00" * 16, shared=False)


def _patterns() -> list[str]:
    from reenact.redact.plan import DEFAULT

    return [detector.pattern for detector in DEFAULT.detectors]


def cold(megabytes: float) -> dict[str, float]:
    """Measure ours, all rules, on texts that were never seen."""
    engine = _engine()
    figures = _timed(grown(megabytes, originals()), engine.text)
    return {**figures, "found": sum(engine.replaced.values()), "rules": len(_patterns())}


def conversations(megabytes: float) -> dict[str, float]:
    """Measure ours on requests that hold all that was said before."""
    engine = _engine()
    return {**_timed(requests(megabytes, originals()), engine.text), "rules": len(_patterns())}


def with_re(megabytes: float) -> dict[str, float]:
    """Measure Python's `re`, the same patterns one after another."""
    compiled = [re.compile(pattern, re.ASCII) for pattern in _patterns()]
    figures = _timed(grown(megabytes, originals()), lambda text: sum(len(each.findall(text)) for each in compiled))
    return {**figures, "rules": len(compiled)}


def with_re2(megabytes: float) -> dict[str, float]:
    """Measure google-re2: the same patterns, without the look-arounds that it does not know."""
    import re2

    options = re2.Options()
    options.log_errors = False
    compiled: list[Any] = []
    for pattern in _patterns():
        with suppress(re2.error):
            compiled.append(re2.compile(_LOOK.sub("", _LOOK.sub("", pattern)), options))
    figures = _timed(
        grown(megabytes, originals()), lambda text: sum(1 for each in compiled for _ in each.finditer(text))
    )
    return {**figures, "rules": len(compiled)}


def with_detect_secrets(megabytes: float) -> dict[str, float]:
    """Measure detect-secrets, its default plugins on every line."""
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings, get_plugins

    with default_settings():
        rules = len(get_plugins())
        figures = _timed(
            grown(megabytes, originals()), lambda text: sum(1 for line in text.splitlines() for _ in scan_line(line))
        )
    return {**figures, "rules": rules}


def with_presidio(megabytes: float) -> dict[str, float]:
    """Measure Presidio's recognisers that are made of patterns, without a model of language."""
    from presidio_analyzer import PatternRecognizer, predefined_recognizers

    made: list[Any] = []
    for name in (
        "CreditCard",
        "Crypto",
        "Email",
        "Iban",
        "Ip",
        "UsSsn",
        "UsBank",
        "UsItin",
        "UsPassport",
        "MedicalLicense",
    ):
        kind = getattr(predefined_recognizers, f"{name}Recognizer", None)
        if isinstance(kind, type) and issubclass(kind, PatternRecognizer):
            made.append(kind())
    figures = _timed(
        grown(megabytes, originals()),
        lambda text: sum(len(each.analyze(text, each.supported_entities)) for each in made),
    )
    return {**figures, "rules": len(made)}


ARMS: dict[str, Callable[[float], dict[str, float]]] = {
    "cold": cold,
    "conversations": conversations,
    "re": with_re,
    "google-re2": with_re2,
    "detect-secrets": with_detect_secrets,
    "presidio": with_presidio,
}
NAMES = {
    "cold": "reenact, every text once",
    "conversations": "reenact, conversations",
    "re": "re, our patterns in turn",
    "google-re2": "google-re2, our patterns in turn",
    "detect-secrets": "detect-secrets, its own",
    "presidio": "Presidio, its own patterns",
}


def measured(rounds: int, child: Callable[..., dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Run every arm that is installed, round after round; each in a process of its own."""
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds):
        for arm in ARMS:
            if arm in NEEDS and find_spec(NEEDS[arm]) is None:
                continue
            sys.stderr.write(f"\rround {number + 1} of {rounds}: redaction, {arm}      ")
            found.setdefault(arm, []).append(child("redaction.py", arm))
    sys.stderr.write("\r" + " " * 60 + "\r")
    return found


def laid_out(found: dict[str, list[dict[str, float]]]) -> tuple[str, list[dict[str, Any]]]:
    """Lay out how fast each is, and how many times as long it takes as ours takes cold."""
    rows: list[list[str]] = []
    documents: list[dict[str, Any]] = []
    ours = Figure.of([each["mb_per_s"] for each in found["cold"]])
    for arm, rounds in found.items():
        speed, one = Figure.of([each["mb_per_s"] for each in rounds]), rounds[0]
        ratio = ours.median / speed.median
        digits = 1 if speed.median > 1 else 3
        rows.append([NAMES[arm], f"{one['rules']:.0f}", f"{one['mb']:.1f}", speed.shown(digits), f"{ratio:.2f}"])
        documents.append(
            {"arm": arm, "rules": one["rules"], "mb": one["mb"], "mb_per_s": speed.json(), "times_ours_cold": ratio}
        )
    head = ["one core", "rules", "MB looked at", "MB/s, median (quartiles)", "time, of ours cold"]
    return table(head, rows), documents


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    which = sys.argv[1]
    json.dump(ARMS[which](float(sys.argv[2]) if len(sys.argv) > 2 else MEGABYTES[which]), sys.stdout)
