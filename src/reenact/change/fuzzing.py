"""Looking for bugs around a recorded run: many variations, what each brings to light, and the smallest that shows it.

Cases run in stores that are thrown away. What is found is looked for in smaller cases, and the smallest one is run once
more from nothing into the user's store: that run is the evidence, and the same command replays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from reenact.change.variation_runs import Bench
from reenact.errors import CannotJudge
from reenact.find.sources import RunSource
from reenact.graph.verdict import judge
from reenact.keep import catalog, run_proof
from reenact.pipeline.interrupting import stops_as_interrupted
from reenact.replay.policy import After, Children, Policy
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Placed
from reenact.values.difference import one_line
from reenact.values.fuzz_outcome import Fuzzed
from reenact.values.json import Json, compact
from reenact.values.run import Grade, Run
from reenact.values.span import SpanRecord
from reenact.values.variation import Basis, Case, Discovery, Group, Harm, Honesty, KeyField, Variation
from reenact.vary.choose import cases
from reenact.vary.harm_evidence import Met, discoveries, family

_LEAST_LIMIT_S = 10.0
_TIMES_AS_LONG = 10
_MOST_SHRINKING = 12
"""So many smaller cases are tried for one discovery."""
_WORTH_GETTING_READY = 6
"""From so many cases on the time to get a Python ready is made good."""
_VARIED = "reenact.varied"
_MOST_KEPT = 50
"""So many discoveries are made smaller and shown; a program that breaks in more ways has a list to begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is tried, and how."""

    seed: int = 0
    cases: int | None = 100
    """None for as many as there is time for."""
    seconds: float | None = None
    case: int | None = None
    """The number of the one case that is tried, as it is; None for many."""
    groups: frozenset[Group] = frozenset(Group)
    jobs: int = 2
    limit_s: float | None = None
    """How long one run may take; None for ten times as long as without a variation, and 10 s at least."""
    after: After = After.NEAREST
    writes: str = "copy"
    """What becomes of files (`replay.policy.read_writes`)."""
    hosts: tuple[str, ...] = ()
    """What the program may talk to (`values.way`)."""
    children: Children = Children.ANSWER
    named: str = ""
    """How commands are to name the run; empty for the beginning of its id."""
    command: tuple[str, ...] = ()
    """What was given to be run in place of the recorded command, as it is told."""


Progress = Callable[[int, int | None, int], None]
"""Hears how many cases are done, of how many where that is known, and how many discoveries there are."""


def fuzz(
    recording: RunSource,
    argv: Sequence[str],
    cwd: Path,
    store: DirectoryStore,
    assertions: Sequence[Placed],
    settings: Settings,
    progress: Progress = lambda _cases, _of, _discoveries: None,
) -> Fuzzed:
    """Try variations of a run on its program. Raises `CannotJudge` where the program cannot be run against it at all.

    What is found before a variation is met is no discovery: the first run of the program has none.
    """
    began = time.monotonic()
    policy = Policy.named(
        {"after": settings.after, "writes": settings.writes, "children": settings.children}, settings.hosts
    )
    entry: dict[str, Json] = {**recording.run.entry, "argv": [*argv]}
    recording = replace(recording, run=replace(recording.run, entry=entry))  # what is varied is the command that is run
    until = None if settings.seconds is None else began + settings.seconds
    with Bench(recording, argv, cwd, assertions, policy, settings.jobs) as bench, stops_as_interrupted() as stopped:
        bench.limit_s = settings.limit_s or bench.limit_s
        progress(0, settings.cases, 0)
        before = _first(bench)
        if not before.judged or before.out_of_time:
            why = before.result.why or "it did not end in time"
            raise CannotJudge(f"the program cannot be run against this recording: {why}")
        bench.limit_s = settings.limit_s or max(_LEAST_LIMIT_S, _TIMES_AS_LONG * before.seconds)
        hunt = _Hunt(bench, before, settings, progress, until)
        keys: tuple[KeyField, ...] = ()
        try:
            if settings.case is None and (settings.cases is None or settings.cases >= _WORTH_GETTING_READY):
                bench.get_ready(before)
            hunt.search()
            keys = hunt.keys(store) if Group.KEYS in settings.groups and settings.case is None else ()
            discoveries = hunt.settle(store)
        except KeyboardInterrupt:
            bench.stop()
            discoveries = hunt.as_found()
        report = replace(hunt.report(recording, bench), keys=keys, discoveries=discoveries, stopped=stopped.by)
        return replace(report, runs=bench.runs, seconds=time.monotonic() - began)


def _first(bench: Bench) -> Met:
    """Run the program with no variation. Raises `CannotJudge` where that is stopped."""
    try:
        return bench.show(())
    except KeyboardInterrupt:
        bench.stop()
        raise CannotJudge("stopped before anything was tried") from None


class _Hunt:
    """One search: what was tried, and what is found."""

    def __init__(
        self, bench: Bench, before: Met, settings: Settings, progress: Progress, until: float | None = None
    ) -> None:
        """Look until the time `until` (`time.monotonic`), or for as long as there is something to try."""
        self._bench, self._before, self._settings, self._progress = bench, before, settings, progress
        self._until = until
        self._run = bench.found.run
        self.tried: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.unjudged = 0
        self.exhausted = False
        self._discoveries: dict[str, Discovery] = {}

    @property
    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def search(self) -> None:
        """Try cases in their order, several at a time; what is found does not depend on which is done first."""
        groups = self._settings.groups - {Group.KEYS}
        chosen = cases(self._run, self._settings.seed, groups)
        first = (self._settings.case or 1) - 1
        many = self._settings.cases if self._settings.case is None else 1
        chosen = islice(chosen, first, None if many is None else first + many)
        case_count = 0
        for case, met in self._each(chosen):
            case_count += 1
            self._note(case, met)
            self._progress(case_count, self._settings.cases, len(self._discoveries))
        self.exhausted = not self._is_over and self._settings.case is None and (many is None or case_count < many)

    def _each(self, chosen: Iterator[Case]) -> Iterator[tuple[Case, Met]]:
        waiting: list[tuple[Case, Future[Met]]] = []
        while True:
            if self._is_over:  # what has begun is waited for, and nothing else begins
                waiting = [(case, future) for case, future in waiting if not future.cancel()]
            while len(waiting) < 2 * self._settings.jobs and not self._is_over:
                case = next(chosen, None)
                if case is None:
                    break
                waiting.append((case, self._bench.pool.submit(self._bench.run, case.variations)))
            if not waiting:
                return
            case, future = waiting.pop(0)
            yield case, future.result()

    def _note(self, case: Case, met: Met) -> None:
        self.tried[case.group.value] = self.tried.get(case.group.value, 0) + 1
        for variation in case.variations:
            self.kinds[variation.kind] = self.kinds.get(variation.kind, 0) + 1
        if not met.judged:
            self.unjudged += 1
        for each in discoveries(case, met, self._before):
            earlier = self._discoveries.get(each.outcome)
            if earlier is None:
                self._discoveries[each.outcome] = each
            else:
                self._discoveries[each.outcome] = replace(_lesser(earlier, each), seen=earlier.seen + 1)

    def report(self, recording: RunSource, bench: Bench) -> Fuzzed:
        """Say what was tried."""
        settings, first = self._settings, next(iter(self._before.result.divergences), None)
        return Fuzzed(
            run=recording.run.id,
            name=recording.run.name,
            named=settings.named or recording.run.id[:12],
            command=settings.command,
            seed=settings.seed,
            tried=dict(self.tried),
            kinds=dict(self.kinds),
            cases=sum(self.tried.values()),
            jobs=settings.jobs,
            unjudged=self.unjudged,
            exhausted=self.exhausted,
            before=self._before.result.result,
            before_first=one_line(first) if first is not None else "",
            untouched=_untouched(recording.run, self.tried, settings) if settings.case is None else {},
            groups=tuple(group.value for group in Group if group in settings.groups),
            after=settings.after.value,
            ready=bench.ready,
        )

    def settle(self, store: DirectoryStore) -> tuple[Discovery, ...]:
        """Look for the smallest case of each discovery, and run it once more into the store, while there is time."""
        if self._is_over:
            return self.as_found()
        first = sorted(self._discoveries.values(), key=_worth)[:_MOST_KEPT]
        merged: dict[str, Discovery] = {}
        for each in self._bench.pool.map(self._shrunk, first):
            merged[family(each)] = _merged(merged.get(family(each)), each)
        final_discoveries = list(self._bench.pool.map(partial(self._confirm, store=store), merged.values()))
        return tuple(sorted(final_discoveries, key=_weight))

    def as_found(self) -> tuple[Discovery, ...]:
        """Give what was found as it was found: with the case that showed it, and no run in the store."""
        merged: dict[str, Discovery] = {}
        for each in sorted(self._discoveries.values(), key=_worth)[:_MOST_KEPT]:
            merged[family(each)] = _merged(merged.get(family(each)), each)
        return tuple(sorted(merged.values(), key=_weight))

    def _shrunk(self, discovery: Discovery) -> Discovery:
        lesser = _smaller(discovery.case) if self._settings.case is None else iter(())
        for variations in islice(lesser, _MOST_SHRINKING):
            if self._is_over:
                return discovery
            case = replace(discovery.case, variations=variations)
            met = self._bench.run(variations)
            for each in discoveries(case, met, self._before):
                if each.outcome == discovery.outcome and _worth(each) <= _worth(discovery):
                    return replace(each, seen=discovery.seen)
        return discovery

    def _confirm(self, discovery: Discovery, store: DirectoryStore) -> Discovery:
        if self._is_over:
            return discovery
        met = self._bench.show(discovery.case.variations, partial(_keep, store, discovery.case))
        again = {each.outcome for each in discoveries(discovery.case, met, self._before)}
        if met.run is None:
            return replace(discovery, steady=discovery.outcome in again)
        replays = judge(met.run).grade is not Grade.NONE
        return replace(discovery, run=met.run.id, replays=replays, steady=discovery.outcome in again)

    def keys(self, store: DirectoryStore) -> tuple[KeyField, ...]:
        """Vary each ignored field by itself, and say which of them the program heeds."""
        chosen = [*cases(self._run, self._settings.seed, {Group.KEYS})]
        single = [case for case in chosen if len(case.variations) == 1]
        fields: list[KeyField] = []
        for case, met in self._each(iter(single)):
            self.tried[Group.KEYS.value] = self.tried.get(Group.KEYS.value, 0) + 1
            fields.append(self._key(case, met, store))
        return tuple(sorted(fields, key=lambda each: (each.path is not Honesty.ALTERED, each.field)))

    def _key(self, case: Case, met: Met, store: DirectoryStore) -> KeyField:
        variation = case.variations[0]
        first = _altered(met, self._before)
        path = Honesty.UNJUDGED if not met.judged else Honesty.ALTERED if first else Honesty.SAME
        run = ""
        if path is Honesty.ALTERED:
            example_run = self._bench.show(case.variations, partial(_keep, store, case)).run
            run = example_run.id if example_run is not None else ""
        return KeyField(field=variation.path, calls=variation.size, path=path, first=first, run=run)


def _altered(met: Met, before: Met) -> str:
    """Say in which call, or in what else, the program left its path; empty where it did not."""
    usual = {one_line(each) for each in before.result.divergences}
    divergences = [each for each in met.result.divergences if one_line(each) not in usual]
    if divergences:
        return one_line(divergences[0])
    if met.exit_code != before.exit_code:
        return f"run: exit code: recorded {before.exit_code}, replay {met.exit_code}"
    return ""


_ORDER = (Harm.ASSERTION, Harm.TOOL, Harm.SWALLOWED, Harm.CRASH, Harm.HANG)


def _weight(discovery: Discovery) -> tuple[bool, bool, int, int]:
    """Order what is told: evidence first, a service's failure that nobody meets last, then by harm and case."""
    unmet = family(discovery) != discovery.outcome
    return (discovery.basis is not Basis.EVIDENCE, unmet, _ORDER.index(discovery.harm), discovery.case.number)


def _worth(discovery: Discovery) -> tuple[bool, int, int]:
    """Order discoveries of one outcome: evidence first, then the smaller change, then the earlier case."""
    return (discovery.basis is not Basis.EVIDENCE, discovery.case.size, len(discovery.case.variations))


def _merged(earlier: Discovery | None, later: Discovery) -> Discovery:
    """Tell two ways to meet the same lack as one, by the lesser of them."""
    if earlier is None:
        return later
    lesser = _lesser(earlier, later)
    also = dict.fromkeys(what for each in (earlier, later) for what in (each.what, *each.also) if what != lesser.what)
    return replace(lesser, seen=earlier.seen + later.seen, also=tuple(also))


def _lesser(one: Discovery, other: Discovery) -> Discovery:
    return other if _worth(other) < _worth(one) else one


def _smaller(case: Case) -> Iterator[tuple[Variation, ...]]:
    """Give smaller cases, the ones that drop most first: single variations, then lesser forms of each."""
    several = len(case.variations) > 1
    for each in case.variations:
        yield from ((lesser,) for lesser in each.smaller if lesser.size < case.size)
        if several:
            yield (each,)


def _keep(into: DirectoryStore, case: Case, scratch: DirectoryStore, met: Met) -> None:
    """Take the runs that a case left over into the user's store, with a word on what was varied in them.

    It is said on the root, and on each call that answered otherwise (`reenact.varied`).
    """
    run = met.run
    if run is None:
        return
    varied: dict[str, list[Json]] = {}
    for variation in case.variations:
        for node_id in dict.fromkeys([variation.node, *(edit.node for edit in variation.edits)]):
            varied.setdefault(node_id, []).append(f"{variation.path or variation.kind}: {variation.description}")
    root: list[Json] = [f"{each.call}: {each.path or each.kind}: {each.description}" for each in case.variations]
    beside = scratch.find([("recording = ?", run.recording)]) if run.recording else []
    into.prepare()
    for trace_id in dict.fromkeys([run.id, *(entry.id for entry in beside)]):
        spans = run_proof.own_again(scratch.spans(trace_id), scratch, into)
        into.append((_marked(span, varied, root) for span in spans), proofs=True)
        catalog.index(into, [trace_id])


def _marked(span: SpanRecord, varied: Mapping[str, list[Json]], root: list[Json]) -> SpanRecord:
    variations = varied.get(str(span.attributes.get("reenact.replay.answered_by")), [])
    if span.attributes.get("reenact.run.root"):
        variations = root
    return replace(span, attributes={**span.attributes, _VARIED: compact([*variations])}) if variations else span


def _untouched(run: Run, tried: Mapping[str, int], settings: Settings) -> dict[str, str]:
    """Say of each group that nothing was tried of it, and why."""
    why = {
        Group.PROMPTS: "neither the command line nor the request holds a text that reached a model",
        Group.TOOLS: "no tool or plain HTTP call is in the recording",
        Group.CHUNKS: "no retrieval is in the recording",
        Group.MODELS: "no model call over HTTP is in the recording",
        Group.TIMING: "no calls ran side by side, and nothing was streamed",
        Group.KEYS: "no call has an ignored field",
    }
    untried = [group for group in Group if group in settings.groups and not tried.get(group.value)]
    left = {group for group in untried if next(cases(run, settings.seed, {group}), None) is not None}
    return {group.value: "there was no time for it" if group in left else why[group] for group in untried}
