"""What the page rests on: how far the recording can be replayed, what was redacted, the calls for a plain reader."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.report.doctor import MEANS, grouped, listed
from reenact.report.incident.incident import Incident
from reenact.report.incident.markup import Child, Html, el, joined
from reenact.report.incident.redaction import redaction
from reenact.values.protection import Protection, protection
from reenact.values.run import KitItem, Reason

GRADES = {"exact": "good", "partial": "fair", "none": "bad"}
"""The tone in which each grade is shown."""
_REASONS = 40
_NOT_PROMISED = (
    (
        "What the policy names is looked for: by default credentials, by published formats, by names such as api_key "
        "or password and by the values of variables such as *_API_KEY, and personal data that has a form (e-mail "
        "addresses, phone numbers, cards, bank accounts, identity numbers, network addresses). Names of people, postal "
        "addresses and whatever else is said in free text stand as they were said."
    ),
    "A secret in a format that nobody published may still stand here. Read the page before you send it on.",
    (
        "A token stands for the same value throughout the run. It cannot be turned back; a value that can be guessed "
        "can be tried against it by whoever holds the key or the run's salt."
    ),
    "The page does not prove that the trace was not changed after it was recorded.",
)
_UNKNOWN = "This trace names no redaction policy of reenact. What replaced anything before it came here is not known."


def recording(incident: Incident) -> Html:
    """Say how far the recording can be replayed, why not further, and what would keep it next time."""
    verdict = incident.verdict
    tone = GRADES.get(verdict.grade.value, "fair")
    blocks: list[Child] = [
        el("p", el("span", verdict.grade.value, class_=f"badge {tone}"), f" {MEANS[verdict.grade]}."),
    ]
    groups = grouped(verdict.reasons)
    if groups:
        more = el("li", f"and {len(groups) - _REASONS} more") if len(groups) > _REASONS else None
        blocks.append(el("ul", *(_reason(*each) for each in groups[:_REASONS]), more, class_="reasons"))
    if rows := [_kit(item) for item in verdict.kit if item.state != "not applicable"]:
        table = _table(("Piece", "State", "Detail", "To keep it next time"), rows)
        blocks.append(el("details", el("summary", f"The replay kit, piece by piece ({len(rows)})"), table))
    if notes := incident.run.notes:
        blocks.append(el("p", "Mended while the trace was read:"))
        blocks.append(el("ul", *(el("li", el("bdi", note)) for note in notes[:_REASONS]), class_="reasons"))
    return joined(blocks)


def _reason(reason: Reason, calls: list[str]) -> Html:
    fix = el("code", reason.fix, class_="fixline") if reason.fix else None
    return el("li", el("strong", el("bdi", listed(calls))), f": {reason.field}: {reason.lost}", fix)


def _kit(item: KitItem) -> Html:
    fix = item.fix if item.state in {"missing", "partial"} else ""
    state = el("td", item.state, class_=f"kit {item.state}")
    return el("tr", el("th", item.name, scope="row"), state, el("td", el("bdi", item.detail)), el("td", fix))


def redacted(incident: Incident) -> Html:
    """Say what redaction replaced, by class, and what it does not promise."""
    return joined([*_redacted(incident), el("h3", "What this does not promise"), _list(_NOT_PROMISED)])


def _before(protection_facts: Protection) -> str:
    """Say what was done before the trace was written."""
    if protection_facts.failed:
        return f"No payloads were recorded, since the redaction policy could not be read: {protection_facts.failed}."
    if protection_facts.name and protection_facts.name != "default":
        return f"The redaction policy {protection_facts.name!r} was applied before the trace was written."
    if protection_facts.name:
        return "Credentials and structured personal data were replaced before the trace was written."
    return "Credentials were replaced before the trace was written."


def _redacted(incident: Incident) -> Iterator[Html]:
    replacements = redaction(incident.run)
    if replacements.policy:
        tally = f" {replacements.counted:,} were replaced in its calls." if replacements.counted is not None else ""
        yield el(
            "p",
            f"{_before(protection(incident.run))}{tally} Policy digest ",
            el("code", replacements.policy),
            ".",
        )
    else:
        yield el("p", _UNKNOWN)
    names = sorted({*replacements.places, *incident.replaced})
    if names:
        heads = ("Class", "Different values", "Places in the trace, settings included", "Replaced by this page")
        counts = (replacements.values, replacements.places, incident.replaced)
        rows = [
            el(
                "tr",
                el("th", el("code", name), scope="row"),
                *(el("td", f"{each.get(name, 0):,}", class_="number") for each in counts),
            )
            for name in names
        ]
        yield _table(heads, rows)
    else:
        yield el("p", "No replaced value stands in it.")
    if replacements.failed:
        which = "1 call" if replacements.failed == 1 else f"{replacements.failed} calls"
        yield el("p", f"The values of {which} could not be scrubbed and were removed whole.")


def _list(items: tuple[str, ...]) -> Html:
    return el("ul", *(el("li", each) for each in items))


def _table(heads: tuple[str, ...], rows: list[Html]) -> Html:
    head = el("tr", *(el("th", name, scope="col") for name in heads))
    return el("div", el("table", el("thead", head), el("tbody", *rows)), class_="scroll")
