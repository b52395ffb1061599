"""Where the second run leaves the recording: the first divergence side by side, then the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reenact.report import call_text
from reenact.report.incident.incident import Incident, Second
from reenact.report.incident.inert import flat
from reenact.report.incident.markup import Child, Html, el, joined
from reenact.report.incident.pool import pretty
from reenact.report.incident.story import last_words
from reenact.report.incident.worded import Pieces, side_by_side
from reenact.values.call import FunctionCall
from reenact.values.difference import one_line
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_list, as_text
from reenact.values.run import Node, Run

_LISTED = 50
_FIELDS = 12
_SHOWN = 2000
_INLINE = 90
_SIGNS = {"missing": "only recorded", "extra": "only replayed", "changed": "changed", "reordered": "moved"}


def departing(incident: Incident, at: Mapping[str, int]) -> Html | None:
    """Show where the two runs part; None where there is no second run, or nothing differs."""
    second = incident.second
    if second is None or not second.divergences:
        return None
    first, *rest = second.divergences
    names = ("Recorded", "Replay") if second.is_replay else ("This run", "The other run")
    return joined(
        [
            _heading(first, at),
            el("div", _sides(incident, second, first, names), class_="sides"),
            _stopped(second),
            _also(second, first, names),
            _rest(rest, at, names),
        ]
    )


def _heading(first: Mapping[str, Json], at: Mapping[str, int]) -> Html:
    label, field = as_text(first.get("call")), as_text(first.get("field"))
    what = {"missing": "is not made", "extra": "is new", "reordered": "comes elsewhere"}.get(
        as_text(first.get("kind")), f"differs in {field}"
    )
    children: list[Child] = [el("strong", label), f" {what}. "]
    if not first.get("structural"):
        children.append("Only wording: the path is the same. ")
    children.append(link(first, at))
    if reason := as_text(first.get("reason")):
        children.append(el("span", f" {reason}", class_="reason"))
    return el("p", *children, class_="parting")


def link(divergence: Mapping[str, Json], at: Mapping[str, int]) -> Html | None:
    """Link to the call in the list below, where it is there."""
    place = at.get(as_text(divergence.get("node_a")))
    return None if place is None else el("a", "Show the call", href=f"#call-{place}", class_="go")


def _sides(incident: Incident, second: Second, first: Mapping[str, Json], names: tuple[str, str]) -> list[Html]:
    absent = [as_text(each) for each in as_list(first.get("absent"))]
    kind = as_text(first.get("kind"))
    if kind == "changed" and (both := _arguments(incident.run, second.run, first)) is not None:
        return [_side(names[0], "a", *both[0]), _side(names[1], "b", *both[1])]
    if kind == "changed" and not absent:
        left, right = side_by_side(_spelled(first.get("a")), _spelled(first.get("b")))
        return [_side(names[0], "a", pieces=left), _side(names[1], "b", pieces=right)]
    sides: list[Html] = []
    for name, side, run in ((names[0], "a", incident.run), (names[1], "b", second.run)):
        if side in absent or kind == {"a": "extra", "b": "missing"}[side]:
            body = _instead(run, second) if side == "b" else [el("p", "Nothing like it was recorded here.")]
            sides.append(_side(name, side, el("div", *body, class_="nothing")))
        else:
            node = _node(run, first.get(f"node_{side}"))
            sides.append(_side(name, side, el("div", *_call(node, first.get(side)), class_="made")))
    return sides


def _arguments(run: Run, other: Run | None, first: Mapping[str, Json]) -> tuple[list[Child], list[Child]] | None:
    """Show the arguments of one call in both runs, those that differ marked; None where they are not those of both."""
    before = _node(run, first.get("node_a"))
    now = _node(other, first.get("node_b")) or _counterpart(other, before)
    if before is None or now is None or not as_text(first.get("field")).startswith("arguments."):
        return None
    asked = [
        each.call.request.arguments if isinstance(each.call.request, FunctionCall) else None for each in (before, now)
    ]
    left, right = asked
    if not isinstance(left, dict) or not isinstance(right, dict):
        return None
    return [*_fields(before, left, right, "del")], [*_fields(now, right, left, "ins")]


def _fields(node: Node, fields: dict[str, Json], against: dict[str, Json], tag: str) -> Iterator[Child]:
    yield el("p", el("strong", node.call.name), f" {node.call.word} #{node.number}")
    items: list[Child] = []
    for name, value in fields.items():
        same = name in against and _same(value, against[name])
        excerpt = _inline(value)[:_SHOWN]
        items += [el("dt", name), el("dd", excerpt if same else el(tag, excerpt), dir="auto")]
    yield el("dl", *items, class_="fields")


def _counterpart(other: Run | None, node: Node | None) -> Node | None:
    """Find the call of a replay that stands for a recorded one: answered by it, or missed nearest to it."""
    if other is None or node is None:
        return None
    names = ("reenact.replay.missed", "reenact.replay.answered_by", "reenact.replay.ran_again")
    return next((each for name in names for each in other.nodes if each.span.attributes.get(name) == node.id), None)


def _stopped(second: Second) -> Html | None:
    if not second.stopped:
        return None
    behind = f" Of the recorded calls, {second.not_reached} lie behind this place." if second.not_reached else ""
    return el("p", f"The replay was stopped here: nobody recorded an answer to this.{behind}", class_="dim")


def _side(name: str, side: str, *children: Child, pieces: Pieces | None = None) -> Html:
    body = (
        (*children, el("pre", *(_piece(*each, side) for each in pieces), dir="auto"))
        if pieces is not None
        else children
    )
    return el("section", el("h3", name), *body, class_=f"side {side}")


def _piece(what: str, text: str, side: str) -> Html | str:
    if what == "gap":
        return el("span", f"… {text} …", class_="gap")
    return el("del" if side == "a" else "ins", text) if what == "other" else text


def _call(node: Node | None, gist: Json) -> Iterator[Child]:
    """Show a call that only one side made: what it asked, and what came of it."""
    if node is None:
        yield el("pre", _spelled(gist)[:_SHOWN], dir="auto")
        return
    yield el("p", el("strong", node.call.name), f" {node.call.word} #{node.number}")
    request = node.call.request
    if isinstance(request, FunctionCall) and isinstance(request.arguments, dict) and request.arguments:
        items = [
            (el("dt", name), el("dd", _inline(value)[:_SHOWN], dir="auto")) for name, value in request.arguments.items()
        ]
        yield el("dl", *(child for pair in items for child in pair), class_="fields")
    elif question := call_text.question(node):
        yield el("pre", question[:_SHOWN], dir="auto")
    if outcome := call_text.outcome(node):
        yield el("p", el("span", "came to", class_="dim"), " ", el("bdi", flat(outcome[: 4 * _SHOWN])[:_SHOWN]))


def _instead(run: Run | None, second: Second) -> Iterator[Child]:
    """Say what the second run did in place of a call that it did not make."""
    yield el("p", el("strong", "This call is not made."))
    if run is None:
        return
    calls = [node for node in run.nodes if not node.call.is_structure]
    if calls:
        ended = {"ok": "Then it ended without an error.", "error": "Then it ended with an error."}.get(
            second.status, ""
        )
        yield el("p", f"Its last call is {calls[-1].label}. {ended}".rstrip())
    if words := last_words(run):
        yield el("p", el("span", "It said last", class_="dim"), " ", el("bdi", flat(words[:_SHOWN])[:400]))


def _also(second: Second, first: Mapping[str, Json], names: tuple[str, str]) -> Html | None:
    """List the further fields that differ in the same call."""
    differences = second.more.get(as_text(first.get("node_a")), ())
    if not differences:
        return None
    rows = [
        el("tr", el("th", as_text(each.get("field")), scope="row"), _cell(each, "a", "del"), _cell(each, "b", "ins"))
        for each in differences[:_FIELDS]
    ]
    more = f", {len(differences) - _FIELDS} more not shown" if len(differences) > _FIELDS else ""
    head = el("tr", el("th", "Field", scope="col"), *(el("th", name, scope="col") for name in names))
    table = el("table", el("caption", f"Also different in this call{more}"), el("thead", head), el("tbody", *rows))
    return el("div", table, class_="scroll")


def _cell(each: Mapping[str, Json], side: str, tag: str) -> Html:
    if side in as_list(each.get("absent")):
        return el("td", el("span", "not there", class_="dim"))
    return el("td", el(tag, _spelled(each.get(side))[:_SHOWN]), dir="auto")


def _rest(rest: list[Mapping[str, Json]], at: Mapping[str, int], names: tuple[str, str]) -> Html | None:
    if not rest:
        return None
    items = [
        el(
            "li",
            el("span", _SIGNS.get(as_text(each.get("kind")), "differs"), class_=f"sign {as_text(each.get('kind'))}"),
            " ",
            _difference_text(each, names),
            "" if each.get("structural") else el("span", " wording", class_="dim"),
            " ",
            link(each, at),
        )
        for each in rest[:_LISTED]
    ]
    hidden = f"; the first {_LISTED} are listed" if len(rest) > _LISTED else ""
    word = "difference" if len(rest) == 1 else "differences"
    head = el("summary", f"{len(rest)} further {word}, which may follow from the first{hidden}")
    return el("details", head, el("ol", *items, class_="rest"), open=len(rest) <= 5)


def _difference_text(each: Mapping[str, Json], names: tuple[str, str]) -> Html:
    """Say a further difference: a call by its name alone, a changed field with both values."""
    if as_text(each.get("kind")) in {"missing", "extra"} and not each.get("reason"):
        return el("bdi", as_text(each.get("call")))
    return el("bdi", flat(one_line(each, a=names[0].lower(), b=names[1].lower())))


def _same(a: Json, b: Json) -> bool:
    return canonical(a) == canonical(b)


def _node(run: Run | None, node_id: Json) -> Node | None:
    return next((node for node in run.nodes if node.id == node_id), None) if run is not None else None


def _inline(value: Json) -> str:
    """Spell a value on one line where it is short enough to be read there."""
    line = value if isinstance(value, str) else compact(value)
    return line if len(line) <= _INLINE else _spelled(value)


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else pretty(value)
