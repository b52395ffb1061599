"""The page as people meet it: in Chromium, from a file, cut off from everything."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from incidents import HIDDEN, NEEDLE, SCRIPTS, hostile_run, incident, large_text_run, long_run
from made import Made, user
from reenact.report.incident import inert
from reenact.report.incident.incident import Incident, Second
from reenact.report.incident.page import page
from reenact.values.call import CallKind
from reenact.values.difference import ABSENT, Divergence, divergence_to_json

INTERACTIVE_S = 2.0
WIDE, NARROW = {"width": 1360, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Opened:
    """A page in a browser, and everything that it did which a page should not."""

    page: Any
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def search(self, words: str) -> str:
        """Type into the search and give how many calls fit, as the page says it."""
        self.page.fill("#query", words)
        self.page.locator("[role=tree]:not([aria-busy])").wait_for()
        return self.text(".told")

    def is_quiet(self) -> bool:
        """Nothing was asked for but the page itself, nothing was refused or failed, nobody was disturbed."""
        return len(self.requests) == 1 and not self.said and not self.dialogs


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if path is None:
        pytest.skip("neither chromium nor chrome is installed: nothing to open the page in")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed to drive a browser")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    contexts: list[Any] = []

    def open_page(made: Incident, *, anchor: str = "", size: dict[str, int] = WIDE, **settings: Any) -> Opened:
        file = tmp_path / "incident.html"
        file.write_text(page(made), encoding="utf-8")
        context = browser.new_context(viewport=size, accept_downloads=True, **settings)
        context.set_default_timeout(60_000)
        contexts.append(context)
        found = Opened(context.new_page())
        context.on("request", lambda request: found.requests.append(request.url))
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("dialog", lambda dialog: (found.dialogs.append(dialog.message), dialog.dismiss()))
        context.route(re.compile("^(?!file://)"), lambda route: route.abort())
        began = time.perf_counter()
        found.page.goto(f"{file.as_uri()}{anchor}", wait_until="domcontentloaded")
        found.took_s = time.perf_counter() - began
        if settings.get("java_script_enabled", True):
            found.page.locator(".chosen > :last-child").wait_for()
        return found

    yield open_page
    for context in contexts:
        context.close()


def story() -> Incident:
    """Build a small incident with everything in it: a tree, a conversation, documents, an error, a replay."""
    made = Made(5)
    agent = made.tool("clean_up", {"request": "tidy"}, kind=CallKind.AGENT)
    pages = [{"id": "rb-1", "score": 0.92, "text": "STAGING ONLY."}, {"id": "rb-2", "score": 0.4, "text": "copy"}]
    made.tool("runbook", {"query": "tidy"}, pages, kind=CallKind.RETRIEVER, parent=agent)
    messages: list[Any] = [{"role": "system", "content": "Follow the runbook."}, user("Tidy up staging.")]
    made.llm(messages, "I will list them.", tools=[("list_accounts", {"target": "staging"})], parent=agent)
    made.tool("list_accounts", {"target": "staging"}, [{"id": "a-1"}], parent=agent)
    made.llm([*messages, user("go on")], tools=[("delete_accounts", {"target": "production"})], parent=agent)
    deleted = made.tool("delete_accounts", {"target": "production"}, {"deleted": ["Acme"]}, parent=agent)
    made.tool("audit", {}, raised=ConnectionError("no log"), parent=agent)
    gone = Divergence(
        kind="missing", call="tool delete_accounts #7", field="call", a={"target": "production"}, b=ABSENT,
        structural=True, node_a=deleted,
    )  # fmt: skip
    second = Second(run=None, word="diverged", divergences=(divergence_to_json(gone),))
    return incident(replace(made.run(), name="cleanup"), second=second, trace=b"the recording")


def test_nothing_hostile_acts_and_all_of_it_is_read(opened: Open) -> None:
    shown = opened(incident(hostile_run()))
    found = shown.page.evaluate("() => ({pwned: window.pwned, polluted: {}.n, title: document.title})")
    assert found["pwned"] is None
    assert found["polluted"] is None
    rows = shown.page.locator("[role=treeitem]").count()
    for place in range(rows):
        shown.page.evaluate(f"location.hash = '#call-{place}'")
        shown.page.locator(f"#row-{place}[aria-selected=true]").wait_for()
    for text in (*SCRIPTS, *HIDDEN):
        shown.search('"' + inert.visible(text)[:12].replace('"', "")[:8] + '"')
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = shown.page.locator("#printed").inner_text()
    everything = printed + shown.page.locator("main").inner_text()
    flat = " ".join(everything.split())
    for text in (*SCRIPTS, *HIDDEN):
        assert " ".join(inert.visible(text).split()) in flat
    assert shown.page.evaluate("() => window.pwned") is None
    assert shown.page.locator("img, iframe, form, base, object, embed, svg svg").count() == 0
    links = shown.page.eval_on_selector_all("a", "(all) => all.map((each) => each.getAttribute('href'))")
    assert all(re.fullmatch(r"#[a-z0-9-]+", link) for link in links)
    assert shown.is_quiet(), (shown.requests, shown.said, shown.dialogs)


def test_both_sides_hide_nothing_of_the_same_characters(opened: Open) -> None:
    shown = opened(story())
    hidden = re.compile(f"[{inert.HIDDEN}]")
    wanted = [code for code in range(0x110000) if hidden.match(chr(code))]
    script = """() => {
      const whole = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code) + " ").join("");
      return [...whole.matchAll(HIDDEN)].map((found) => found[0].codePointAt(0));
    }"""
    assert shown.page.evaluate(script) == wanted


def first_key(shown: Opened) -> float:
    """Type a letter, and give after how many seconds it was heeded."""
    began = time.perf_counter()
    shown.page.focus("#query")
    shown.page.keyboard.type("u")
    shown.page.locator(".told", has_text=" of ").wait_for()
    return time.perf_counter() - began


@pytest.mark.bench
def test_ten_thousand_calls_are_at_hand_in_two_seconds(opened: Open) -> None:
    shown = opened(incident(long_run(10_000)))
    assert shown.took_s + first_key(shown) < INTERACTIVE_S


@pytest.mark.bench
def test_a_text_of_five_megabytes_is_at_hand_in_four_seconds(opened: Open) -> None:
    assert opened(incident(large_text_run(5 << 20)), anchor="#call-1").took_s < INTERACTIVE_S * 2


@pytest.mark.parametrize("calls", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_calls_are_at_hand(opened: Open, record_property: Callable[..., None], calls: int) -> None:
    run = long_run(calls)
    assert len(run.nodes) > calls * 0.97
    made = incident(run)
    shown = opened(made)
    key_s = first_key(shown)
    heap = shown.page.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
    assert heap < 150
    assert shown.page.locator("[role=treeitem]").count() < 80
    assert (
        shown.search(f'"{NEEDLE}"') == f"2 of {len(run.nodes) - 1:,} calls"
    )  # where it came up, and where it was told
    shown.search("kind:tool name:look")
    shown.page.evaluate("document.querySelector('.tree').scrollTop = 1e9")
    shown.page.locator("[role=treeitem]", has_text=f"#{len(run.nodes)}").wait_for()
    assert shown.is_quiet()
    size = len(page(made).encode()) / 2**20
    record_property(
        "figure",
        f"incident page of {len(run.nodes):,} calls: {size:.1f} MiB, content loaded {shown.took_s:.2f} s, "
        f"first key {key_s:.2f} s, heap {heap:.0f} MiB",
    )


@pytest.mark.parametrize("size", [1 << 20, pytest.param(5 << 20, marks=pytest.mark.slow)], ids=["1 MiB", "5 MiB"])
def test_texts_of_megabytes_hold_nobody_up(opened: Open, size: int) -> None:
    shown = opened(incident(large_text_run(size)), anchor="#call-1")
    assert len(shown.text(".chosen")) < 20_000
    shown.page.get_by_role("button", name=re.compile("Show whole")).first.click()
    shown.page.locator(".chosen .more").first.wait_for(state="detached", timeout=60_000)
    longest = "Math.max(...[...document.querySelectorAll('.chosen .text')].map((each) => each.textContent.length))"
    assert shown.page.evaluate(longest) > size * 0.9
    shown.page.evaluate("location.hash = '#call-2'")
    shown.page.locator("#row-2[aria-selected=true]").wait_for()
    assert "\\x1b\\u202e" in shown.text(".chosen")
    shown.page.get_by_role("button", name=re.compile(r"Show 20,000 more")).first.click()
    assert shown.is_quiet()


def test_it_is_worked_with_the_keyboard_alone(opened: Open) -> None:
    shown = opened(story())
    keyboard = shown.page.keyboard
    assert "delete_accounts" in shown.text(".chosen h3")  # where the replay leaves the recording
    keyboard.press("/")
    keyboard.type("kind:tool")
    shown.page.locator(".told", has_text="3 of 7 calls").wait_for()
    keyboard.press("Enter")
    assert "list_accounts" in shown.text(".chosen h3")
    keyboard.press("Escape")
    keyboard.press("d")
    assert "delete_accounts" in shown.text(".chosen h3")
    assert shown.page.evaluate("document.activeElement.getAttribute('role')") == "tree"
    keyboard.press("/")
    keyboard.press("Escape")
    shown.page.locator(".told", has_text=re.compile("^7 calls")).wait_for()
    shown.page.focus("[role=tree]")
    keyboard.press("Home")
    assert "clean_up" in shown.text(".chosen h3")
    keyboard.press("ArrowLeft")
    assert shown.page.locator("[role=treeitem]").count() == 1
    keyboard.press("ArrowRight")
    keyboard.press("End")
    assert "audit" in shown.text(".chosen h3")
    active = shown.page.evaluate("document.querySelector('[role=tree]').getAttribute('aria-activedescendant')")
    assert shown.page.evaluate(f"document.getElementById('{active}').getAttribute('aria-selected')") == "true"
    assert shown.is_quiet()


def test_a_call_shows_its_conversation_documents_and_errors(opened: Open) -> None:
    shown = opened(story(), anchor="#call-4")
    assert "1 earlier" not in shown.text(".chosen")
    shown.page.get_by_text("2 earlier messages, as in #4").click()
    shown.page.locator(".chosen", has_text="Follow the runbook.").wait_for()
    shown.page.get_by_text("see the call").click()
    shown.page.locator("#row-5[aria-selected=true]").wait_for()
    assert "The replay does not make this call." in shown.text(".chosen")
    shown.page.get_by_role("link", name="llm ChatCompletion #6").click()
    shown.page.locator("#row-4[aria-selected=true]").wait_for()
    shown.page.locator("#row-1").click()
    assert "score 0.92" in shown.text(".chosen")
    assert "STAGING ONLY." in shown.text(".chosen")
    shown.page.locator("#row-6").click()
    assert "ConnectionError" in shown.text(".chosen")
    shown.page.get_by_label("only the 1 that differ").check()
    shown.page.locator(".told", has_text="1 of 7 calls").wait_for()
    assert shown.is_quiet()


def test_it_reads_without_a_script_and_says_what_is_missing(opened: Open) -> None:
    shown = opened(story(), java_script_enabled=False)
    text = shown.text("body")
    for said in ("The agent called delete_accounts with target production.", "JavaScript is off.", "runbook", "no log"):
        assert said in text
    assert shown.page.locator("#explorer").is_hidden()
    assert shown.is_quiet()


def test_it_fits_a_telephone_and_the_dark(opened: Open) -> None:
    shown = opened(incident(hostile_run()), size=NARROW, color_scheme="dark")
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.page.evaluate("parseInt(getComputedStyle(document.querySelector('.row')).height) >= 44")
    backgrounds = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", backgrounds)[:3])) < 40
    shown.page.locator("#row-2").click()
    shown.page.get_by_role("button", name="Back to the list").click()
    assert shown.page.evaluate("document.activeElement.getAttribute('role')") == "tree"


CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const shine = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (getComputedStyle(at).backgroundColor.startsWith("rgb") && (found.length < 4 || found[3] > 0.99)) return found;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!text || !node.checkVisibility() || node.closest("svg, [aria-selected=true]")) continue;
    const [a, b] = [shine(parts(getComputedStyle(node).color)), shine(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${node.className || node.tagName} ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`);
  }
  return [...low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_enough(opened: Open, scheme: str) -> None:
    shown = opened(story(), color_scheme=scheme)
    assert shown.page.evaluate(CONTRAST) == []


def test_on_paper_every_call_is_open_and_no_control_is_left(opened: Open, tmp_path: Path) -> None:
    shown = opened(story())
    shown.page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert shown.page.locator("#printed").count() == 0  # it is gone when the printing is over
    shown.page.emulate_media(media="print")
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    text = shown.text("body")
    for said in (
        "Follow the runbook.",
        "STAGING ONLY.",
        "ConnectionError",
        "2 earlier messages, as in #4, not printed again",
    ):
        assert said in text
    assert shown.page.locator("#explorer").is_hidden()
    assert shown.page.locator("nav").is_hidden()
    assert shown.page.locator("main details:not([open]):not(#explorer *)").count() == 0
    shown.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.page.locator("#printed").count() == 0


def test_of_a_long_run_the_place_where_it_parts_is_printed(opened: Open) -> None:
    run = long_run(400, 20)
    parting = next(node for node in run.nodes if node.number == 300)
    gone = Divergence(
        kind="missing", call=parting.label, field="call", a={}, b=ABSENT, structural=True, node_a=parting.id
    )
    second = Second(run=None, word="diverged", divergences=(divergence_to_json(gone),))
    shown = opened(incident(run, second=second))
    shown.page.emulate_media(media="print")
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.page.locator("#printed .call").count() == 100
    assert shown.page.locator("#printed .call", has_text="The replay does not make this call.").count() == 1
    assert shown.page.locator("#printed .lines li").count() == len(run.nodes) - 1 - 100


def test_the_recording_is_saved_from_the_page(opened: Open, tmp_path: Path) -> None:
    shown = opened(story())
    with shown.page.expect_download() as saved:
        shown.page.click("#save")
    saved.value.save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes() == b"the recording"
    assert saved.value.suggested_filename.endswith(".jsonl.gz")
    assert [request for request in shown.requests if not request.startswith(("file:", "blob:"))] == []
    assert not shown.said
