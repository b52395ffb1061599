"""There and back: a program recorded against a provider, carried through a file, replayed with the provider gone."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matrix.asking import drive
from matrix.serving import Provider
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.graph.build import build
from reenact.pipeline import recording
from reenact.pipeline.joining import InProcess
from reenact.pipeline.recording import Recording, Setup
from reenact.read.open import open_spans
from reenact.redact.engine import Engine
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Policy
from reenact.values.call import HttpRequest
from reenact.values.run import Node, Run
from reenact.values.span import SpanRecord

Program = Callable[[], Any]
_RECORDED = Policy()
_numbers = itertools.count()


@dataclass(slots=True)
class Passed:
    """A recording and its replay."""

    live: Any
    """What the program gave while it was recorded."""
    again: Any
    """What it gave in the replay."""
    run: Run
    """The recorded run, as it was read back from the file."""
    ledger: list[dict[str, Any]]
    unconsumed: list[str]
    engine: Engine
    """The redaction that was in force."""

    @property
    def calls(self) -> list[Node]:
        """The recorded model calls, in causal order."""
        return [node for node in self.run.nodes if isinstance(node.call.request, HttpRequest)]

    @property
    def counts(self) -> dict[str, int]:
        """How often the ledger says what."""
        return dict(Counter(entry["t"] for entry in self.ledger))

    def is_whole(self) -> bool:
        """Tell that every call was answered, and that nothing else happened."""
        return self.counts == {"answered": len(self.calls)} and not self.unconsumed


def client(base_url: str, *, asynchronous: bool = False, sdk: str = "openai", **options: Any) -> Any:
    """Make a client of a provider's real SDK. A base URL ends with `/v1`, as OpenAI has it."""
    options = {"max_retries": 0, "timeout": 20.0, "api_key": "sk-none", **options}
    if sdk == "anthropic":
        import anthropic

        chosen = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
        return chosen(base_url=base_url.removesuffix("/v1"), **options)
    import openai

    made = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return made(base_url=base_url, **options)


def ran(coroutine: Coroutine[Any, Any, Any], *, asynchronous: bool) -> Any:
    """Run a program that was written for both clients."""
    return asyncio.run(coroutine) if asynchronous else drive(coroutine)


def record(program: Program, folder: Path, policy: str = "") -> tuple[Any, list[SpanRecord], Engine]:
    """Run a program under a recorder and a policy's file; give its result, and the spans that were written down."""
    environ = {"REENACT_REDACTION_POLICY": policy} if policy else {}
    made: Recording = recording.start(Setup(store=folder), environ=environ)
    try:
        result = program()
    finally:
        recording.stop(made)
    return result, list(open_spans(made.journal.path)), made.engine


def carried(spans: list[SpanRecord], folder: Path, carrier: str) -> Run:
    """Write spans to a file of the format `carrier` and rebuild the one run from what is read back."""
    chosen = next(member for member in members("formats", Format) if member.name == carrier)
    path = folder / f"exported-{next(_numbers)}{chosen.suffix}"
    path.write_bytes(chosen.encode(spans))
    (run,) = build(open_spans(path), source=str(path))
    return run


def replay(program: Program, run: Run, folder: Path) -> tuple[Any, list[dict[str, Any]], list[str]]:
    """Run a program against a recorded run; give its result (or the miss), the ledger, and what was not asked for."""
    ledger = Ledger()
    within = InProcess([run], run, ledger, _RECORDED, folder)
    try:
        result = program()
    finally:
        within.close()
    return result, ledger.entries, [stub.node.label for stub in within.stubs.unconsumed()]


def there_and_back(
    program: Program,
    provider: Provider,
    folder: Path,
    *,
    carrier: str = "otlp-json",
    again: Program | None = None,
    policy: str = "",
    elsewhere: Path | None = None,
) -> Passed:
    """Record `program` under a policy, close the provider, replay it (or `again`), in another store if given."""
    live, spans, engine = record(program, folder, policy)
    provider.close()
    run = carried(spans, folder, carrier)
    result, ledger, unconsumed = replay(again or program, run, elsewhere or folder)
    return Passed(live=live, again=result, run=run, ledger=ledger, unconsumed=unconsumed, engine=engine)
