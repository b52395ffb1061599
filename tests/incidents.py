"""Runs that an incident page has to stand: very long ones, and ones whose every text is an attack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from made import Made, called, reported, user
from reenact.graph.verdict import judge
from reenact.report.incident.incident import Incident
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import Run

NEEDLE = "the violet ledger of Utrecht"
"""Stands once in a long run, deep inside."""
SCRIPTS = (
    "<script>window.pwned = 1; alert(1)</script>",
    "</script><script>window.pwned = 2</script>",
    "<!--<script>",
    "--></style><img src=x onerror='window.pwned = 3'>",
    '"><svg onload=alert(4)>',
    "{{constructor.constructor('window.pwned = 5')()}} ${window.pwned = 6} <%= 7 %> #{8}",
    "javascript:window.pwned=9",
    "data:text/html,<script>window.pwned=10</script>",
    "<a href='https://attacker.example/x'>click</a><base href='https://attacker.example/'>",
    "<meta http-equiv=refresh content='0;url=https://attacker.example/'>",
    "<link rel=stylesheet href=//attacker.example/a.css><style>@import '//attacker.example/b.css';</style>",
    "https://attacker.example/pixel.png ![x](https://attacker.example/pixel.png)",
    "<iframe src=https://attacker.example></iframe><form action=https://attacker.example><button>go</button></form>",
    "]]></script><![CDATA[ &lt;script&gt; &amp; \u2028\u2029",
    "__proto__",
)
HIDDEN = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "abc\u202egnp.exe\u2066\u2069",
    "nul\x00 bell\x07 del\x7f c1\x9b",
    "zero\u200bwidth\ufeff tag\U000e0041\U000e0042",
    "noncharacter\uffff \ufdd0",
    "العربية עברית mixed",
)


def incident(run: Run, **more: Any) -> Incident:
    """Put a run on a page as it is."""
    return Incident(run=run, verdict=judge(run), status="ok", **more)


def long_run(calls: int = 10_000, turns: int = 25) -> Run:
    """Build a run of about `calls` calls: agents one after the other, each with a conversation that grows."""
    made = Made(7)
    agents = calls // (2 * turns + 1)
    for agent in range(agents):
        parent = made.tool(f"desk {agent}", {"ticket": agent}, kind=CallKind.AGENT, unfinished=True)
        messages: list[Json] = [
            {"role": "system", "content": f"You are desk {agent}. " + "Answer by the handbook. " * 20},
            user(f"Ticket {agent}: where is order {agent * 17}?"),
        ]
        for turn in range(turns):
            identity = f"call_{agent}_{turn}"
            arguments: Json = {"order": agent * 17, "page": turn}
            made.llm(messages, tools=[("look_up", arguments)], parent=parent)
            result = f"page {turn} of order {agent * 17}: " + f"line {agent}.{turn} " * 25
            if (agent, turn) == (agents // 2, turns // 2):
                result += NEEDLE
            made.tool("look_up", arguments, {"text": result}, parent=parent)
            messages = [*messages, called(identity, "look_up", arguments), reported(identity, result)]
    return made.run()


def hostile_run() -> Run:
    """Build a run in which every name, argument, message and result is an attack on whoever shows it."""
    made = Made(3)
    for number, text in enumerate((*SCRIPTS, *HIDDEN)):
        made.llm(
            [{"role": "system", "content": text}, user(text), {"role": text, "content": text}],
            text,
            tools=[(text, {text: text, "n": number})],
            body={"metadata": {text: text}},
        )
        made.tool(text, {text: text, "list": [text, text]}, {text: [text, {text: text}]})
        made.tool("look_up", {"q": text}, [{"id": text, "score": 0.5, "text": text}], kind=CallKind.RETRIEVER)
        made.tool("fail", {"q": text}, raised=ValueError(text))
    picture = {"type": "image_url", "image_url": {"url": "https://attacker.example/pixel.png"}}
    inline = {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"}}
    made.llm([{"role": "user", "content": [{"type": "text", "text": "look"}, picture, inline]}], "seen")
    run = made.run()
    return replace(run, name="".join(SCRIPTS[:3]), user=HIDDEN[1], session=SCRIPTS[0], notes=SCRIPTS)


def large_text_run(size: int = 5 << 20) -> Run:
    """Build a run with texts of five megabytes: one line, many lines, and one made of escapes."""
    made = Made(4)
    made.tool("one_line", {"q": "x" * size}, "y" * size)
    made.tool("lines", {}, "\n".join(f"row {n} " + "z" * 80 for n in range(size // 90)))
    made.tool("escapes", {}, "\x1b\u202e" * (size // 2))
    made.llm([user("w " * (size // 2))], "short")
    return made.run()
