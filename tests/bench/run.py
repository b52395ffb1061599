"""`make bench`: what recording and replaying cost, measured, next to other instrumentations.

    python tests/bench/run.py [--rounds N] [--part NAME] [--json PATH]

Recording: the real SDK calls a loopback provider that answers at once. Every arm of every round is a fresh process, the
arms one after another. Inside, each call goes through an observed client and through one that is out of the observer's
reach, in turn; what an arm adds is the median of the differences between neighbours. The peers capture content (their
default), with the attribute limits of OpenTelemetry's SDK off, and export in batches; ours writes its journal, redacts,
and carries the journal on a thread. Growing: the same by what is new in a call and what was said before, and the bytes
that a conversation leaves. Replaying: each SDK call is answered by a replay and, next to it, by the client
library's own mock transport, from the same bytes. Suite: `pytest` on recorded tests, beside other cassette libraries.
Finding: a page of `ls` at a million spans. Start: processor time and imports of commands, beside a floor.
Redaction: megabytes a second on one core, every text once and in conversations, beside other scanners.

It measures and never judges: figures are printed with their quartiles, and a loaded machine is said to be one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import collecting
import finding
import growing
import redaction
import sealing
import starting
import suite
from figures import Figure, table

HERE = Path(__file__).parent
PEERS = ("openinference", "openllmetry")
ARMS = {"": ("reenact", *PEERS), "+otlp": ("reenact+otlp", *(f"{peer}+otlp" for peer in PEERS))}
"""Arms by what their spans go to: thrown away (ours: the store on disk alone), or an OTLP receiver."""
CASES = ((1, "history", 300), (20, "history", 150), (100, "history", 60), (100, "fresh", 60))
"""Messages in a call, how calls relate, and calls timed in a process."""
LENGTHS = (10, 100, 1000, 8000)
VERSIONS = (
    "openai",
    "httpx2",
    "openinference-instrumentation-openai",
    "opentelemetry-instrumentation-openai",
    "opentelemetry-sdk",
)

Rounds = dict[tuple[int, str, str], list[dict[str, float]]]


def say(text: str = "") -> None:
    """Print a line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def child(*arguments: str, **environ: str) -> dict[str, Any]:
    """Run one of the measuring programs in a process of its own and give what it measured."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
    inherited = {name: value for name, value in inherited.items() if not name.startswith("REENACT_")}
    command = [sys.executable, str(HERE / arguments[0]), *arguments[1:]]
    done = subprocess.run(command, env=inherited | environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


@contextmanager
def serving(kind: str) -> Iterator[str]:
    """Run a server in a process of its own and give its port."""
    command = [sys.executable, str(HERE / "serving.py"), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate()


def record(rounds: int) -> Rounds:
    """Run every arm of every case, round after round."""
    found: Rounds = {}
    with ExitStack() as stack:
        ports = {f"BENCH_{kind.upper()}": stack.enter_context(serving(kind)) for kind in ("provider", "sink")}
        for number in range(rounds):
            for messages, mode, calls in CASES:
                sys.stderr.write(f"\rround {number + 1} of {rounds}: {messages} messages, {mode}      ")
                for arm in (*ARMS[""], *ARMS["+otlp"]):
                    figures = child("recording.py", arm, str(messages), str(calls), mode, **ports)
                    found.setdefault((messages, mode, arm), []).append(figures)
        sys.stderr.write("\r" + " " * 60 + "\r")
    return found


def recording_table(found: Rounds, backend: str) -> tuple[str, list[dict[str, Any]]]:
    """Lay out what each arm adds, and how ours relates to the better peer."""
    rows: list[list[str]] = []
    documents: list[dict[str, Any]] = []
    for messages, mode, _ in CASES:
        case = {arm: found[messages, mode, arm] for arm in ARMS[backend]}
        wall = {arm: Figure.of([each["added"] for each in rounds]) for arm, rounds in case.items()}
        bare = Figure.of([each["bare"] for rounds in case.values() for each in rounds])
        rows.append(
            [f"{messages} messages{', all new' if mode == 'fresh' else ''}: the bare SDK", bare.shown(), *[""] * 3]
        )
        better = min(ARMS[backend][1:], key=lambda peer: wall[peer].median)
        for arm, rounds in case.items():
            cpu, whole = (Figure.of([each[name] for each in rounds]) for name in ("cpu", "cpu_all"))
            ratio = wall[arm].median / wall[better].median
            rows.append([f"  {arm}", f"+{wall[arm].shown()}", f"{ratio:.2f}", f"+{cpu.shown()}", f"+{whole.shown()}"])
            documents.append(
                {
                    "messages": messages,
                    "mode": mode,
                    "arm": arm,
                    "bare_us": bare.json(),
                    "added_us": wall[arm].json(),
                    "of_the_better_peer": round(ratio, 4),
                    "cpu_added_us": cpu.json(),
                    "cpu_added_with_export_us": whole.json(),
                }
            )
    head = ["µs, median (quartiles)", "call", "of the better peer", "processor, calls", "processor, and export"]
    return table(head, rows), documents


def replay(rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Measure replays of every length, with distinct prompts and with one prompt asked again and again."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        for prompts in ("distinct", "identical"):
            sys.stderr.write(f"\rround {number + 1} of {rounds}: replays, {prompts} prompts      ")
            for length in LENGTHS:
                found.setdefault(f"{prompts}/{length}", []).append(child("replaying.py", str(length), prompts))
    sys.stderr.write("\r" + " " * 60 + "\r")
    return found


def replaying_table(found: dict[str, list[dict[str, Any]]]) -> tuple[str, list[dict[str, Any]]]:
    """Lay out what an answered call costs over the mock transport's."""
    rows: list[list[str]] = []
    documents: list[dict[str, Any]] = []
    for key, measured in found.items():
        prompts, _, length = key.partition("/")
        adds, mean, mocked, load = (
            Figure.of([each[figure] for each in measured]) for figure in ("added", "added_mean", "mocked", "load")
        )
        first = Figure.of([each["added"] for each in found[f"{prompts}/{LENGTHS[0]}"]])
        growth = adds.median / first.median
        name = f"{length} calls, {prompts}"
        rows.append([name, mocked.shown(), f"+{adds.shown()}", f"+{mean.shown()}", f"{growth:.2f}", load.shown()])
        documents.append(
            {
                "calls": int(length),
                "prompts": prompts,
                "mocked_us": mocked.json(),
                "added_us": adds.json(),
                "added_mean_us": mean.json(),
                "of_shortest": round(growth, 4),
                "load_us_per_call": load.json(),
            }
        )
    head = ["µs, median (quartiles)", "mocked", "replayed, median", "mean", f"of {LENGTHS[0]} calls", "load, per call"]
    return table(head, rows), documents


def in_processor_time(part: str | None, rounds: int) -> dict[str, Any]:
    """Measure and print the parts that count processor time alone."""
    document: dict[str, Any] = {}
    if part in {None, "redaction"}:
        text, document["redaction"] = redaction.laid_out(redaction.measured((rounds + 1) // 2, child))
        say(f"\nRedaction, processor time\n\n{text}")
    if part in {None, "start"}:
        document["start"] = starting.measured(2 * rounds + 1, serving)
        say(f"\nStarting\n\n{starting.laid_out(document['start'])}")
    return document


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what recording and replaying cost.")
    parser.add_argument("--rounds", type=int, default=5, help="more rounds, less noise (5: about a quarter of an hour)")
    parser.add_argument(
        "--part",
        choices=["recording", "growing", "replaying", "suite", "collecting", "finding", "redaction", "start", "seal"],
        help="only one part",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there as well")
    given = parser.parse_args()
    document: dict[str, Any] = {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "versions": {name: metadata.version(name) for name in (*VERSIONS, *suite.VERSIONS)},
        "rounds": given.rounds,
    }
    load = os.getloadavg()[0]
    say(f"Python {document['python']}, {document['processors']} processors, load {load:.1f} before the start,")
    say(", ".join(f"{name} {version}" for name, version in document["versions"].items()))
    if given.part in {None, "recording"}:
        found = record(given.rounds)
        titles = {"": "spans go nowhere (ours: to the store on disk)", "+otlp": "spans go to an OTLP receiver, gzip"}
        for backend, title in titles.items():
            text, document[f"recording{backend}"] = recording_table(found, backend)
            say(f"\nRecorded chat calls, {title}\n\n{text}")
    if given.part in {None, "growing"}:
        text, document["growing"] = growing.laid_out(growing.measured((given.rounds + 1) // 2, child, serving))
        say(f"\nRecorded chat calls, by what is new in them and what was seen before; spans go nowhere\n\n{text}")
        text, document["bytes"] = growing.bytes_laid_out(child, serving)
        say(f"\nWritten or sent of a conversation\n\n{text}")
    if given.part in {None, "replaying"}:
        text, document["replaying"] = replaying_table(replay((given.rounds + 1) // 2))
        say(f"\nReplayed chat calls\n\n{text}")
    if given.part in {None, "suite"}:
        text, document["suite"] = suite.laid_out(suite.measured(given.rounds, lambda: serving("provider")))
        say(f"\nSuites of recorded tests\n\n{text}")
    if given.part in {None, "collecting"} and find_spec("h2") is not None:
        document["collecting"] = collecting.measured((given.rounds + 2) // 3)
        say(f"\nSpans taken in, {collecting.SAID}\n\n{collecting.laid_out(document['collecting'])}")
    if given.part in {None, "finding"}:
        document["finding"] = finding.measured()
        say(f"\nA page of `reenact ls`\n\n{finding.laid_out(document['finding'])}")
    document |= in_processor_time(given.part, given.rounds)
    if given.part in {None, "seal"}:
        document["seal"] = sealing.measured(4 * given.rounds + 1)
        say(f"\nSealing a replay\n\n{sealing.laid_out(document['seal'])}")
    if given.json:
        given.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
