from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from incidents import hostile_run, incident, long_run
from made import Made, user
from reenact.report.incident.incident import Fix, Incident, Second
from reenact.report.incident.page import SCRIPTS, STYLES, asset, page
from reenact.values.assertion import Finding, Standing
from reenact.values.difference import ABSENT, Divergence, divergence_to_json
from reenact.values.json import Json

ADDRESSES = {
    "href",
    "src",
    "srcset",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "cite",
    "ping",
    "xlink:href",
}


class Seen(HTMLParser):
    """What a browser would find: elements with their attributes, and the text of scripts and styles."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data


def whole() -> Incident:
    """Put everything that a page can show on one."""
    made = Made(2)
    made.llm([{"role": "system", "content": "Be kind."}, user("Tidy up staging.")], tools=[("delete", {"env": "prod"})])
    deleted = made.tool("delete", {"env": "prod"}, {"deleted": 3})
    run = made.run()
    gone = Divergence(
        kind="missing",
        call="tool delete #3",
        field="call",
        a={"env": "prod"},
        b=ABSENT,
        structural=True,
        node_a=deleted,
    )
    rule = Finding(
        assertion='never called delete where env = "prod"',
        standing=Standing.FAILS,
        because="called once",
        nodes=(deleted,),
    )
    held = Finding(assertion=rule.assertion, standing=Standing.HOLDS, because="delete was not called")
    return incident(
        run,
        second=Second(run=run, word="diverged", divergences=(divergence_to_json(gone),), status="ok", findings=(held,)),
        findings=(rule,),
        fix=Fix(word="fixed", why="it failed and holds"),
        commits=("a" * 40, "b" * 40),
        replaced={"openai_key": 2},
        trace=b"trace",
        written="2026-11-22T05:00:00Z",
    )


def hostile() -> Incident:
    return incident(hostile_run())


def empty() -> Incident:
    return incident(Made(1).run())


@pytest.mark.parametrize("made", [whole, hostile, empty])
def test_a_page_refers_to_nothing_outside_itself(made: Callable[[], Incident]) -> None:
    seen = Seen(page(made()))
    for tag, attributes in seen.elements:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form", "audio", "video", "image", "use"}
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ADDRESSES & attributes.keys():
            assert re.fullmatch(r"#[a-z0-9-]+", attributes[name] or ""), attributes
    assert seen.raw["style"] == [asset(STYLES)]
    assert [text for text in seen.raw["script"] if text == asset(SCRIPTS)]
    assert len(seen.raw["script"]) == sum(tag == "script" for tag, _ in seen.elements)


def test_the_policy_allows_our_own_script_and_style_and_nothing_else() -> None:
    seen = Seen(page(whole()))
    (policy,) = [each["content"] or "" for tag, each in seen.elements if each.get("http-equiv")]
    directives = dict(each.split(" ", 1) for each in policy.split("; "))
    assert directives["default-src"] == "'none'"
    kept_out = {"base-uri", "form-action", "require-trusted-types-for", "trusted-types"}
    assert set(directives) == {"default-src", "script-src", "style-src"} | kept_out
    for name, text in (("script-src", asset(SCRIPTS)), ("style-src", asset(STYLES))):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert directives[name] == f"'sha256-{digest}'"
    assert [tag for tag, _ in seen.elements].index("meta") < [tag for tag, _ in seen.elements].index("style")


def test_our_own_script_and_style_reach_for_nothing() -> None:
    script, style = asset(SCRIPTS), asset(STYLES)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(|XMLHttp|WebSocket"
        r"|EventSource|sendBeacon|import\(|localStorage|cookie|window\.open|\.src\b|https?://",
        script,
    )
    assert not re.search(r"url\(|@import|https?://", style)
    for text in (script, style):
        assert "</" not in text
        assert "<!--" not in text


def test_everything_that_is_known_stands_on_the_page() -> None:
    source = page(whole())
    text = html.unescape(re.sub(r"<(?:script|style).*?</(?:script|style)>|<[^>]+>", "", source, flags=re.DOTALL))
    for said in (
        "The agent called delete with env prod.",
        'That breaks the rule “never called delete where env = "prod"”. The replayed code does not.',
        "Tidy up staging.",
        "Fix fixed",
        "1 of 1 fail",
        "This call is not made.",
        "commit aaaaaaaaaaaa; replayed at bbbbbbbbbbbb",
        "openai_key",
        "What this does not promise",
        "git checkout " + "a" * 40,
        hashlib.sha256(b"trace").hexdigest(),
        "written 2026-11-22T05:00:00Z",
    ):
        assert said in text


def test_the_data_is_json_and_the_trace_is_the_one_that_was_given() -> None:
    seen = Seen(page(whole()))
    data: dict[str, Json] = {}
    texts = iter(seen.raw["script"])
    for tag, attributes in seen.elements:
        if tag == "script":
            text = next(texts)
            if attributes.get("type") == "application/json":
                data[attributes["id"] or ""] = json.loads(text)
    assert set(data) == {"data-rows", "data-bodies", "data-trace"}
    trace = data["data-trace"]
    assert isinstance(trace, dict)
    assert base64.b64decode(str(trace["base64"])) == b"trace"


def test_headings_and_landmarks_are_in_order() -> None:
    seen = Seen(page(whole()))
    tags = [tag for tag, _ in seen.elements]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert tags.count(landmark) == 1
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = {value for _, attributes in seen.elements for key, value in attributes.items() if key == "aria-labelledby"}
    assert named <= set(ids)
    jumps = {(each["href"] or "")[1:] for tag, each in seen.elements if tag == "a"}
    assert jumps <= set(ids)


@pytest.mark.slow
def test_the_readable_part_of_a_long_run_stays_short() -> None:
    source = page(incident(long_run(2_000, 20)))
    assert source.count("<li ") < 400
    assert "1,7" in source  # so many more, which the script shows


def badges(made: Incident) -> dict[str, str]:
    """Give the badges at the head of a page: the tone of each by its name."""
    found = re.findall(r'<li class="badge (\w+)"><span class="what">([^<]+)</span>', page(made))
    return {name: tone for tone, name in found}


@pytest.mark.parametrize(("word", "tone"), [("fixed", "good"), ("reproduced", "bad")])
def test_one_fact_has_one_colour_at_the_head(word: str, tone: str) -> None:
    judged = replace(whole(), fix=Fix(word=word, why=""))
    assert badges(judged) == {"Fix": tone, "Assertions": "fair", "Recording": badges(judged)["Recording"]}
    plain = badges(replace(judged, fix=None))
    assert (plain["Assertions"], plain["Replay"]) == ("bad", "bad")
