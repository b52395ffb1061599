"""What a replay came to, for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from reenact.report import safe
from reenact.values.difference import one_line, short_json
from reenact.values.effects import COPIED_IN, sentence
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult, Strictness, WritesTold
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.redaction_marks import spelled

_MOST = 20
_MOST_LACKS = 3


def first_line(result: ReplayResult) -> str:
    """Say in one line what a replay came to; where it diverged, with the first divergence."""
    match result.result:
        case "same" if result.ended_with:
            summary = f"same, up to where the recording ends: {result.ended_with} was in flight when it was killed"
        case "same":
            summary = f"same: {_answered(result)}"
        case "diverged":
            summary = f"diverged: {one_line(result.divergences[0]) if result.divergences else 'it left the recording'}"
        case other:
            summary = f"{other}: {result.why or 'nothing can be said of it'}"
    return safe.one_line(summary)


def replayed(
    result: ReplayResult,
    *,
    recorded: str = "",
    commits: tuple[str | None, str | None] = (None, None),
    uncommitted: tuple[bool | None, bool | None] = (None, None),
) -> list[str]:
    """Say what a replay came to: the verdict, then what was answered, kept out and left over, then what to do next.

    `recorded` is the id of the recorded run, `commits` the recorded commit and the current one, `uncommitted` whether
    the work tree had changes beyond each.
    """
    lines = [first_line(result)]
    if result.result != "same" or result.ended_with:
        lines.append(f"  {_answered(result)}")
    if result.earlier:
        run_ids = ", ".join(as_text(each.get("run"))[:12] for each in result.earlier[:3])
        more = f" and {len(result.earlier) - 3} more" if len(result.earlier) > 3 else ""
        lines.append(f"  behind the earlier units on which it stands: {run_ids}{more}")
    lines += [f"  {line}" for line in dict.fromkeys(_divergences(result))]
    if result.outside:
        lines.append(f"  {result.of_scopes}")
    lines += [f"  {line}" for line in _stubs(result)]
    if result.other_code and result.result != "unjudged":
        lines.append(f"  {result.of_other_code}")
    lines += [f"  {line}" for line in _redaction(result)]
    lines += [f"  {line}" for line in _lacks(result)]
    lines += [f"  {line}" for line in _printed(result)]
    lines += [f"  {line}" for line in _file_writes(result)]
    lines += [f"  {line}" for line in _world(result)]
    if any(commits):
        lines.append(f"  {commits_line(*commits, uncommitted)}")
    lines += [f"  {line}" for line in _next(result, recorded)]
    return [safe.clean(line).replace("\n", " ") for line in lines]


def commits_line(
    recorded: str | None, current: str | None, uncommitted: tuple[bool | None, bool | None] = (None, None)
) -> str:
    """Say which code was recorded and which one runs now."""
    before, now = (
        f"{(commit or 'unknown')[:12]}{' with uncommitted changes' if changes else ''}"
        for commit, changes in zip((recorded, current), uncommitted, strict=True)
    )
    if recorded == current and not any(uncommitted):
        return f"commit {now}, as recorded"
    return f"commit recorded {before}, now {now}"


def _answered(result: ReplayResult) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(result.answered.items())) or "no"
    again = ", ".join(f"{count} {kind}" for kind, count in sorted(result.ran_again.items()))
    ran = f", {again} calls run again" if again else ""
    beyond = f" ({result.beyond} behind the first divergence: no evidence)" if result.beyond else ""
    return f"{counts} calls answered from the recording{beyond}{ran}, {result.live} live"


def _divergences(result: ReplayResult) -> Iterator[str]:
    if result.divergences and (place := as_text(result.divergences[0].get("where"))):
        yield f"{'raised' if result.divergences[0].get('field') == 'outcome' else 'written'} at {place}"
    for divergence in result.divergences[1:_MOST]:
        yield f"then {one_line(divergence)}"
    if (hidden := len(result.divergences) - _MOST) > 0:
        yield f"… {hidden} more divergences not shown"
    for miss in result.misses[:_MOST]:
        if place := as_text(miss.get("where")):
            yield f"asked at {place}"
        differences = [as_object(each) for each in as_list(miss.get("differences"))]
        for each in differences[1:]:
            sides = f"recorded {short_json(each.get('recorded'))}, replay {short_json(each.get('replay'))}"
            yield f"also {as_text(miss.get('call'))}: {as_text(each.get('field'))}: {sides}"
    if result.not_reached:
        yield f"{result.not_reached} recorded calls lie behind the place where the replay stopped"


def _redaction(result: ReplayResult) -> Iterator[str]:
    """Say what the program was given that redaction had replaced, and whether that is why it diverged."""
    report = result.redaction
    if report is not None:
        replacements = [as_object(each) for each in as_list(report.get("given"))]
        if as_text(report.get("cause")):
            sure = "is likely why" if report.get("cause") == "likely" else "may be why"
            yield f"redaction {sure}: {as_text(report.get('why'))}"
            if keep := as_text(report.get("keep")):
                yield "    to keep such values next time, in the policy (docs/policies.md):"
                yield from (f"      {line}" for line in keep.splitlines())
        elif replacements:
            yield f"up to redaction: {_exposure_line(replacements)}"
    renamed = [each for each in result.ignored if "by renaming" in as_text(each.get("reason"))]
    for reason, count in Counter(f"{_renamed(each)}" for each in renamed).most_common(3):
        yield f"{count} call{'' if count == 1 else 's'} {reason}"
    for miss in result.misses[:_MOST]:
        if hint := as_text(miss.get("hint")):
            yield hint


def _stubs(result: ReplayResult) -> Iterator[str]:
    """Say which functions of the agent's were not its own."""
    for name, count in result.stubs.items():
        if count is None:
            yield f"not stubbed: {name} was never defined"
        else:
            yield f"stubbed: {name} was not the agent's own; it was called {count} time{'' if count == 1 else 's'}"


def _lacks(result: ReplayResult) -> Iterator[str]:
    """Say what the recording lacks, each loss once: nothing of that was compared, and it may be why one diverged."""
    calls: dict[str, list[str]] = {}
    for each in result.lacks:
        calls.setdefault(f"{as_text(each.get('field'))}: {as_text(each.get('lost'))}", []).append(
            as_text(each.get("call"))
        )
    why = ", which may be why" if result.result == "diverged" else ""
    for lost, names in [*calls.items()][:_MOST_LACKS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"the recording is partial{why}: {names[0]}{more}: {lost}"
    if (hidden := len(calls) - _MOST_LACKS) > 0:
        yield f"… {hidden} more that it lacks: `reenact doctor` lists them"


def _exposure_line(replacements: list[dict[str, Json]]) -> str:
    phrases = [f"{as_text(each.get('call'))} ({_classes(each)})" for each in replacements[:3]]
    more = f" and {len(replacements) - 3} more" if len(replacements) > 3 else ""
    return f"the program was given tokens by {', '.join(phrases)}{more}"


def _classes(replacement: dict[str, Json]) -> str:
    counts = {name: as_count(count) or 0 for name, count in as_object(replacement.get("classes")).items()}
    return spelled(counts)


def _renamed(entry: dict[str, Json]) -> str:
    key = as_text(entry.get("recorded"))
    if entry.get("field") != "redaction key":
        return "matched by renaming: the program had made texts of replaced values"
    return f"matched by renaming, without the recording's key{f' {key}' if key else ''}"


def _file_writes(result: ReplayResult) -> Iterator[str]:
    """Say what came of the files that the program wrote, where there is anything to say."""
    if result.unwitnessed or result.by_tools or replace(result.writes, compared=False) != WritesTold():
        from reenact.report.file_writes import lines

        yield from lines(result)


def _printed(result: ReplayResult) -> Iterator[str]:
    """Say what of the outcome was not compared, or passed over."""
    if result.strictness is not Strictness.EXACT:
        precision = {"structure": "without texts and numbers", "ignore": "not at all"}[result.strictness.value]
        yield f"outcome: compared {precision} (--outcome {result.strictness.value})"
    comparison = result.printed
    if comparison.passed_over:
        counts = Counter[str]()
        for each in comparison.passed_over:
            counts[as_text(each.get("kind"))] += as_count(each.get("count")) or 0
        listed = ", ".join(f"{count} {kind}" for kind, count in counts.most_common(5))
        yield f"printed text, passed over: {listed}"
    yield from comparison.notes
    if comparison.why:
        yield f"what it printed was not compared: {comparison.why}"


def _world(result: ReplayResult) -> Iterator[str]:
    for entry in result.refused[:_MOST]:
        hint = as_text(entry.get("hint"))
        yield f"refused: {as_text(entry.get('what'))} at {as_text(entry.get('where'))}{f'; {hint}' if hint else ''}"
    if result.world:
        yield from _kept_in(result)
    if result.unwatched:
        unwatched = dict.fromkeys(_unwatched(each) for each in result.unwatched)
        more = f" and {len(unwatched) - 5} more" if len(unwatched) > 5 else ""
        yield f"not watched: {'; '.join([*unwatched][:5])}{more}"
    if result.reached:
        counts = (f"{host} ({count} connection{'' if count == 1 else 's'})" for host, count in result.reached.items())
        yield f"reached: {', '.join(counts)}"
    if result.volatile:
        sites = dict.fromkeys(as_text(entry.get("site")) for entry in result.volatile)
        more = f" and {len(sites) - 3} more" if len(sites) > 3 else ""
        yield f"clock and chance not in the recording: {', '.join([*sites][:3])}{more}"
    if result.ignored:
        fields = Counter(as_text(entry.get("field")) for entry in result.ignored)
        listed = ", ".join(f"{name} ({count} calls)" for name, count in fields.most_common(5))
        yield f"matched, although these differ: {listed}"
    for entry in result.killed[:_MOST]:
        yield f"its process was killed in the middle of {as_text(entry.get('call'))}, as recorded"
    if result.released_out_of_order:
        skips = sum(as_count(entry.get("count")) or 0 for entry in result.released_out_of_order)
        yield f"the recorded order of answers was given up {len(result.released_out_of_order)} times, {skips} skipped"
    if result.left:
        yield f"{result.left} streams were left early that had been read to the end"


def _kept_in(result: ReplayResult) -> Iterator[str]:
    """Say what each kind of effect got, and why it got nothing stronger: levels that share a reason together."""
    yield f"outside world: {sentence(result.world, result.ways_out)}"
    refused = result.levels_refused
    phrases = [
        f"{' or '.join(name for name, each in refused.items() if each == why)} ({why})"
        for why in dict.fromkeys(refused.values())
    ]
    if phrases:
        yield f"not sealed by {'; nor by '.join(phrases)}"


def _unwatched(entry: dict[str, Json]) -> str:
    place = as_text(entry.get("where"))
    return f"{as_text(entry.get('what'))}{f' at {place}' if place else ''}"


def _next(result: ReplayResult, recorded: str) -> Iterator[str]:
    run = recorded[:12] or "RUN"
    if result.result == "diverged" and result.replay:
        yield f"next: reenact diff {run} {result.replay[:12]}"
    elif result.result == "diverged":
        yield f"next: reenact show {run}"
    elif result.result == "failed":
        yield f"next: reenact doctor {run} says what the recording lacks and how to keep it"
    elif result.result == "unjudged" and result.other_code:
        yield "next: what a named tool does stays in the sealed world of the replay (docs/judging-a-fix.md)"
    elif result.result == "unjudged" and result.unrestored:
        yield "next: replay it in a sealed world, where a tool that touches nothing runs again (docs/sealed-replay.md)"
    elif result.result == "unjudged" and result.refused:
        yield f"next: {as_text(result.refused[0].get('hint'))}"
    elif result.result == "unjudged" and result.answered and COPIED_IN in result.world:
        yield "next: replay it where every file can be a copy, with namespaces (docs/sealed-replay.md)"
    elif result.result == "unjudged" and not result.stubs:
        yield f"next: give the program after `--`, as in reenact replay {run} -- python your_agent.py"
