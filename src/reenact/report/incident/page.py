"""The page: one HTML file that asks for nothing outside itself and says so to the browser."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from reenact.report.incident import evidence, sections, story
from reenact.report.incident.departing import departing
from reenact.report.incident.document import Document, document
from reenact.report.incident.incident import Incident
from reenact.report.incident.inert import as_script_json
from reenact.report.incident.markup import Child, Html, el, joined
from reenact.report.incident.plain import plain
from reenact.report.incident.replay_commands import again, file_name
from reenact.report.incident.timeline import timeline
from reenact.values.json import Json
from reenact.values.lenient import as_text
from reenact.version import VERSION

STYLES = ("page.css", "calls.css", "print.css")
SCRIPTS = ("text.js", "detail.js", "filter.js", "calls.js", "page.js")
_NO_SCRIPT = (
    "JavaScript is off. The page is complete but for the calls, of which a summary follows. "
    "With JavaScript the page shows every message, searches and filters. It loads nothing from anywhere either way."
)


def page(incident: Incident) -> str:
    """Make the page of an incident."""
    built = document(incident)
    style, script = asset(STYLES), asset(SCRIPTS)
    title = f"Incident: {story.headline(incident)}"[:200]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="robots", content="noindex"),
        el("meta", name="generator", content=f"reenact {VERSION}"),
        el("title", title),
        el("style", Html(style)),
    )
    data = [
        _data("rows", built.rows),
        _data("bodies", built.bodies),
        _data("trace", _trace(incident)) if incident.trace else None,
        el("script", Html(script)),
    ]
    body = el("body", *_body(incident, built), *data)
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


@cache
def asset(names: tuple[str, ...]) -> str:
    """Read our own style or script: files beside this one, one behind the other."""
    here = files("reenact.report.incident")
    return "\n".join((here / name).read_text(encoding="utf-8") for name in names)


def policy(style: str, script: str) -> str:
    """Spell the page's Content-Security-Policy: nothing but this style and this script, and no request.

    Content Security Policy Level 3, section 2.3.1: a hash allows an inline element by its text. Trusted Types forbid
    the script to make markup out of text at all.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(name: str, value: Json) -> Html:
    return el("script", Html(as_script_json(value)), type="application/json", id=f"data-{name}")


def _trace(incident: Incident) -> Json:
    return {"name": file_name(incident), "base64": base64.b64encode(incident.trace).decode()}


def _body(incident: Incident, built: Document) -> list[Child]:
    parts: list[tuple[str, str, Child]] = [
        ("story", "What happened", sections.narrative(incident, built)),
        ("asserted", "What was asserted", sections.assertions(incident, built.at)),
        ("parting", _parting(incident), departing(incident, built.at)),
        ("calls", "Every call", _calls(incident, built)),
        ("recording", "How far this recording can be replayed", evidence.recording(incident)),
        ("redaction", "What was redacted", evidence.redacted(incident)),
        ("again", "How to replay it", again(incident)),
    ]
    contents = [(name, title, child) for name, title, child in parts if child is not None]
    links = [el("li", el("a", title, href=f"#{name}")) for name, title, _ in contents]
    return [
        el("a", "Skip to the calls", href="#calls", class_="skip"),
        sections.head(incident),
        sections.facts(incident, built),
        el("nav", el("ul", *links), aria_label="Sections"),
        el("main", *(_section(*each) for each in contents)),
        el("footer", el("p", _footer(incident))),
    ]


def _section(name: str, title: str, child: Child) -> Html:
    return el("section", el("h2", title, id=f"{name}-title"), child, id=name, aria_labelledby=f"{name}-title")


def _parting(incident: Incident) -> str:
    return (
        "Where the replay leaves the recording"
        if incident.second is None or incident.second.is_replay
        else "Where the two runs part"
    )


def _calls(incident: Incident, built: Document) -> Html:
    second = incident.second
    first = as_text(second.divergences[0].get("node_a")) if second is not None and second.divergences else None
    return joined(
        [
            timeline(incident.run, first),
            el("noscript", el("p", _NO_SCRIPT, class_="note")),
            el("div", id="explorer", hidden=True),
            plain(built),
        ]
    )


def _footer(incident: Incident) -> str:
    date_note = f", written {incident.written}" if incident.written else ""
    credit = f"Made by reenact {VERSION} from trace {incident.run.id}{date_note}."
    return f"{credit} This page loads nothing, and nothing leaves it."
