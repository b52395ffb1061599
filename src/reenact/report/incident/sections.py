"""The upper sections of the page, which need no script: the head, the story, what was asserted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reenact.report.incident import story
from reenact.report.incident.document import Document
from reenact.report.incident.evidence import GRADES
from reenact.report.incident.incident import Incident
from reenact.report.incident.inert import flat
from reenact.report.incident.markup import Child, Html, el, joined
from reenact.report.times import duration, instant, milliseconds
from reenact.values.assertion import Finding, Standing
from reenact.values.run import Node

_LONG = 4000
_STEPS = 6
_WORDS = {
    "same": ("good", "same run"),
    "other words": ("fair", "same path, other words"),
    "diverged": ("bad", "leaves the recording"),
    "failed": ("fair", "cannot be judged"),
    "unjudged": ("fair", "cannot be judged"),
}
_FIXES = {"fixed": "good", "same": "good", "reproduced": "bad", "broken": "bad"}


def head(incident: Incident) -> Html:
    """Give the head of the page: what happened, and the facts that name the run."""
    return el(
        "header",
        el("p", "Incident review", el("span", " · ", aria_hidden="true"), el("bdi", incident.run.name), class_="over"),
        el("h1", el("bdi", story.headline(incident))),
        el("p", el("bdi", story.lede(incident)), class_="lede"),
        el("ul", *_badges(incident), class_="badges", aria_label="Verdicts"),
    )


def _badges(incident: Incident) -> Iterator[Html]:
    """Give one badge a fact: a judged fix says what the replay and the assertions say, so it alone has their colour."""
    judged = incident.fix is not None
    if incident.fix is not None:
        yield _badge(_FIXES.get(incident.fix.word, "fair"), "Fix", incident.fix.word)
    failing = sum(each.standing is Standing.FAILS for each in incident.findings)
    if incident.findings:
        tone = "fair" if judged else "bad" if failing else "good"
        yield _badge(tone, "Assertions", f"{failing} of {len(incident.findings)} fail as recorded")
    if incident.second is not None and not (judged and incident.second.is_replay):
        tone, words = _WORDS.get(incident.second.word, ("fair", incident.second.word))
        yield _badge(tone, "Replay" if incident.second.is_replay else "Other run", words)
    grade = incident.verdict.grade.value
    yield _badge(GRADES.get(grade, "fair"), "Recording", {"none": "cannot be replayed"}.get(grade, grade))


def _badge(tone: str, name: str, word: str) -> Html:
    return el("li", el("span", name, class_="what"), " ", el("b", word), class_=f"badge {tone}")


def facts(incident: Incident, built: Document) -> Html:
    """Give the facts that name the run, as a list of terms."""
    pairs = [(name, value) for name, value in _facts(incident, built) if value]
    return el("dl", *(el("div", el("dt", name), el("dd", el("bdi", value))) for name, value in pairs), class_="facts")


def _facts(incident: Incident, built: Document) -> Iterator[tuple[str, str]]:
    run = incident.run
    when = instant(run.started_ns).replace("T", " ").replace("Z", " UTC")
    yield "When", when if run.started_ns else "not recorded"
    yield "Took", duration(milliseconds(run.started_ns, run.ended_ns))
    yield (
        "Ended",
        {"ok": "without an error", "error": "with an error", "interrupted": "cut off"}.get(incident.status, ""),
    )
    yield "Calls", story.counts(run)
    if any(built.tokens):
        yield "Tokens", f"{built.tokens[0]:,} in, {built.tokens[1]:,} out"
    yield from (("User", run.user or ""), ("Session", run.session or ""), ("Tenant", run.tenant or ""))
    recorded, current = incident.commits
    why = ": recorded outside a git work tree" if run.surroundings else ""
    revision = f"commit {recorded[:12]}" if recorded else f"commit not known{why}"
    yield "Code", revision + ("" if recorded == current else f"; {_now(incident)} {(current or 'not known')[:12]}")
    yield "Run", run.id


def _now(incident: Incident) -> str:
    return "replayed at" if incident.second is not None and incident.second.is_replay else "now at"


def narrative(incident: Incident, built: Document) -> Html:
    """Tell what was asked, what the agent did and what it said at the end."""
    run = incident.run
    blocks: list[Child] = []
    asked = [*story.asked_for(run)]
    if asked:
        rows = [joined([el("dt", name), el("dd", long_text(words))]) for name, words in asked]
        blocks.append(el("div", el("h3", "What was asked"), el("dl", *rows, class_="asked"), class_="card"))
    if steps := [_step(*each, built.at) for each in story.tools_used(run)]:
        blocks.append(el("div", el("h3", "What it did"), *_steps(steps), class_="card"))
    error = story.died_of(run)
    words = story.last_words(run)
    if error or words:
        quote = el("blockquote", long_text(words)) if words else None
        died = (
            el("p", el("strong", "It ended with an error: "), el("bdi", flat(error[:_LONG])), class_="died")
            if error
            else None
        )
        blocks.append(el("div", el("h3", "What it said at the end"), quote, died, class_="card"))
    if answer := story.answered_to_the_caller(run):
        blocks.append(el("div", el("h3", "What it answered"), long_text(answer), class_="card"))
    return el("div", *blocks, class_="cards")


def _step(node: Node, words: str, at: Mapping[str, int]) -> Html:
    place = at.get(node.id)
    name: Child = node.call.name if place is None else el("a", node.call.name, href=f"#call-{place}")
    return el("li", el("code", name), f" {words}" if words else "", el("span", f" #{node.number}", class_="dim"))


def _steps(steps: list[Html]) -> list[Html]:
    """Number the steps; of many, the first and the last ones."""
    left = len(steps) - 2 * _STEPS
    if left <= 0:
        return [el("ol", *steps, class_="steps")]
    more = el("p", f"… {left:,} more tool calls …", class_="gap")
    last = el("ol", *steps[-_STEPS:], class_="steps", start=len(steps) - _STEPS + 1)
    return [el("ol", *steps[:_STEPS], class_="steps"), more, last]


def long_text(text: str) -> Html:
    """Show a text, cut where it is very long; the whole stands with its call."""
    cut = (
        el("span", f" … {len(text) - _LONG:,} characters more, shown with the call", class_="gap")
        if len(text) > _LONG
        else None
    )
    return el("div", text[:_LONG], cut, dir="auto", class_="text")


def assertions(incident: Incident, at: Mapping[str, int]) -> Html | None:
    """Show what was asserted and what it came to, on the recording and on the second run."""
    if not incident.findings:
        return None
    second = incident.second.findings if incident.second is not None else ()
    names = [
        "Recorded",
        *(["Replay" if incident.second and incident.second.is_replay else "Other run"] if second else []),
    ]
    header = el("tr", *(el("th", name, scope="col") for name in ("Asserted", *names, "Because")))
    rows = [
        _asserted(each, second[place] if place < len(second) else None, at)
        for place, each in enumerate(incident.findings)
    ]
    table = el("div", el("table", el("thead", header), el("tbody", *rows), class_="findings"), class_="scroll")
    fix = (
        el(
            "p",
            el("strong", f"The fix: {incident.fix.word}. "),
            incident.fix.why[:1].upper() + incident.fix.why[1:],
            class_="fix",
        )
        if incident.fix
        else None
    )
    return joined([fix, table])


def _asserted(recorded: Finding, other: Finding | None, at: Mapping[str, int]) -> Html:
    links = [
        el("a", "Show the call", href=f"#call-{at[node]}", class_="go") for node in recorded.nodes[:5] if node in at
    ]
    because: list[Child] = [el("div", el("bdi", recorded.because), " ", joined(links, " "))]
    if other is not None and other.because != recorded.because:
        because.append(el("div", el("span", "Replay: ", class_="dim"), el("bdi", other.because)))
    where: list[str] = [
        each
        for each in (recorded.place, "judged by wording, no part of the structure" if recorded.layer == "prose" else "")
        if each
    ]
    return el(
        "tr",
        el(
            "th",
            el("code", recorded.assertion),
            el("div", "; ".join(where), class_="dim") if where else None,
            scope="row",
        ),
        _standing(recorded),
        _standing(other) if other is not None else None,
        el("td", *because),
    )


def _standing(finding: Finding) -> Html:
    tone = {Standing.HOLDS: "good", Standing.FAILS: "bad"}.get(finding.standing, "fair")
    return el("td", el("span", finding.standing.value, class_=f"badge {tone}"))
