"""How to replay the run: the recording to save, and the commands."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator

from reenact.report.incident import story
from reenact.report.incident.incident import Incident
from reenact.report.incident.markup import Child, Html, el, joined

_INSIDE = "The recording is inside this page: one file of OpenTelemetry spans. A replay needs it and the agent’s code."
_OUTSIDE = "The recording is not inside this page. Whoever has the store writes it with the first command."
_CODES = (
    "Exit code 0: the same as recorded. 1: the code left the recording, and the first difference is named. "
    "125: it cannot be judged."
)


def file_name(incident: Incident) -> str:
    """Name the file that the recording is saved as."""
    return f"{incident.run.id[:12]}.jsonl.gz"


def again(incident: Incident) -> Html:
    """Say how to replay the run."""
    blocks: list[Child] = []
    if incident.trace:
        size = f"{max(1, len(incident.trace) // 1024):,} KB"
        save = el("button", f"Save {file_name(incident)} ({size})", type="button", id="save", hidden=True)
        digest = el("code", hashlib.sha256(incident.trace).hexdigest())
        blocks.append(el("p", _INSIDE, " SHA-256 ", digest, "."))
        blocks.append(el("p", save, el("noscript", "Saving it needs JavaScript.")))
    else:
        blocks.append(el("p", _OUTSIDE))
    commands = "\n".join(_commands(incident))
    blocks.append(el("pre", commands, class_="commands", tabindex=0, role="region", aria_label="Commands"))
    blocks.append(el("p", _CODES))
    return joined(blocks)


def _commands(incident: Incident) -> Iterator[str]:
    """Give the commands; every word of the trace in them is quoted for a shell."""
    run = incident.run
    name = file_name(incident) if incident.trace else "incident.jsonl"
    program = shlex.join(story.short_argv(run)) or "python your_agent.py"
    if not incident.trace:
        yield f"reenact export {shlex.quote(run.id[:12])} -o {name}"
    if commit := incident.commits[0]:
        yield f"git checkout {shlex.quote(commit)}   # the code that was recorded"
    yield f"reenact replay {name} -- {program}   # offline: every answer comes from the file"
    yield f"reenact show {name} --full   # all that was said"
    yield f"reenact doctor {name}   # what the recording holds, piece by piece"
