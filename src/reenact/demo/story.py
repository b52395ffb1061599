"""`reenact demo`: a production incident, recorded, replayed, and met by its fix. Offline, no key, in seconds.

Every step is the command a user would type, run in a process of its own; the agent is examples/cleanup_agent.py and
its model is the stand-in provider on loopback. Only the twenty replays share one process, so that the interpreter
starts once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from reenact.demo.provider import StandIn
from reenact.disk import user_key
from reenact.errors import InputError
from reenact.pipeline.parentage import bound_to_us
from reenact.report.safe import fitted

SLIP = 0.35
"""How often the stand-in names production. Steeper than in the example, so that the demo is short."""

RULE = 'never called delete_accounts where target = "production"'
"""What the incident broke."""

_TRIES = 40
_LIVE = 8
_REPLAYS = 20


@dataclass(slots=True)
class DemoStory:
    """What the demo found, for `--json`."""

    recordings: int = 0
    live_reproduced: int = 0
    live_tries: int = _LIVE
    replays: int = 0
    distinct_digests: int = 0
    answered: dict[str, int] = field(default_factory=dict[str, int])
    live: int = 0
    sockets: int = -1
    """Connections and name look-ups that the twenty replays tried."""
    tokens: int = -1
    """Tokens that the stand-in served after it was stopped."""
    first_divergence: str = ""
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])
    page: str = ""
    """The path of the incident page; it stays when everything else is gone."""
    seconds: float = 0.0


class Story:
    """The demo, told step by step through `say`."""

    def __init__(self, say: Callable[[str], None], *, keep: Path | None = None) -> None:
        self._say = say
        self.story = DemoStory()
        self._keep = keep
        self._folder = keep or Path(tempfile.mkdtemp(prefix="reenact-demo-"))
        self._agent = agent_source()

    def tell(self) -> DemoStory:
        """Tell the whole story. Raises `InputError` where the agent's source or the SDK is missing."""
        try:
            with StandIn(slip=SLIP, max_delay_ms=5) as provider:
                self._say(
                    "The model is a stand-in on loopback: scripted answers, sampled anew each time. No key, no network."
                )
                incident = self._record(provider)
                self._live(provider)
            spent = _tokens(provider)
            self._say("\nThe stand-in is stopped. From here on there is nothing to talk to.")
            self._show(incident)
            self._replay(incident)
            self._many(incident)
            self._fixed(incident)
            self._page(incident)
            self.story.tokens = _tokens(provider) - spent
            self._closing()
        finally:
            if self._keep is None:
                shutil.rmtree(self._folder, ignore_errors=True)
        return self.story

    def _record(self, provider: StandIn) -> Path:
        """Record the agent until it deletes in production, two at a time; give the folder of the bad run."""
        self._step("reenact run -- python cleanup_agent.py", "record the agent until it does the wrong thing")

        def record(folder: Path) -> str:
            return self._run_agent(folder, provider)

        with ThreadPoolExecutor(2) as pool:
            for first in range(0, _TRIES, 2):
                pair = [self._folder / f"run-{number}" for number in (first + 1, first + 2)]
                for folder, output in zip(pair, pool.map(record, pair), strict=True):
                    self.story.recordings += 1
                    if "DELETED FROM PRODUCTION" in output:
                        self._say(f"  run {self.story.recordings}: deleted from PRODUCTION. The ticket is open.\n")
                        self._say(_indented(output))
                        return folder
                    self._say(f"  run {self.story.recordings}: staging, as asked")
        raise InputError(
            "the demo", f"{_TRIES} runs and no incident", hint="run it again; the stand-in samples its answers"
        )

    def _run_agent(self, folder: Path, provider: StandIn) -> str:
        folder.mkdir(parents=True)
        process = self._reenact(folder, "run", "-q", "--", "python", str(self._agent), environ=provider.environment)
        if process.returncode:
            raise InputError("the demo", f"the agent failed: {''.join(process.stderr.strip().splitlines()[-1:])}")
        return process.stdout

    def _live(self, provider: StandIn) -> None:
        self._step(f"python cleanup_agent.py, {_LIVE} times", "today the same prompt works")
        script = _LIVE_SCRIPT.format(agent=str(self._agent), tries=_LIVE)
        environ = {**os.environ, **provider.environment, "CLEANUP_DATA": ""}
        process = subprocess.run(
            [sys.executable, "-c", script],
            env=environ,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=bound_to_us(),
        )
        self.story.live_reproduced = int(process.stdout.strip().splitlines()[-1])
        self._say(
            f"  {self.story.live_reproduced} of {_LIVE} live tries reproduced it; each was a new throw of the dice"
        )

    def _show(self, incident: Path) -> None:
        self._step("reenact show last", "the run, from its trace")
        width = shutil.get_terminal_size((120, 24)).columns - 2
        output = self._reenact(incident, "show", "last").stdout
        self._say(_indented("\n".join(fitted(line, width) for line in output.splitlines())))

    def _replay(self, incident: Path) -> None:
        self._step("reenact replay last", "the agent's own code again, answered from the trace")
        process = self._reenact(incident, "replay", "last")
        self._say(_indented(process.stdout + process.stderr))
        self.story.exit_codes["replay"] = process.returncode
        again = self._reenact(incident, "replay", "last", "--json")
        if process.returncode or again.returncode:
            raise InputError("the demo", f"the replay failed: {(process.stderr or again.stderr).strip()}")
        document = json.loads(again.stdout)
        self.story.answered, self.story.live = document["answered"], document["live"]

    def _many(self, incident: Path) -> None:
        self._step(f"{_REPLAYS} times over", "is it the same every time?")
        before = _files(self._folder)
        process = subprocess.run(
            [sys.executable, "-c", _MANY_SCRIPT, str(self._agent), str(_REPLAYS)],
            cwd=incident,
            env={**os.environ, "OPENAI_API_KEY": "inert"},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=bound_to_us(),
        )
        if process.returncode:
            raise InputError("the demo", f"a replay failed: {process.stderr.strip().splitlines()[-1:]}")
        digests, self.story.sockets = json.loads(process.stdout)
        self.story.replays, self.story.distinct_digests = len(digests), len({tuple(each) for each in digests})
        files = "unchanged" if _files(self._folder) == before else "CHANGED"
        calls, printed = digests[0]
        self._say(f"  calls in order  {calls}   stdout  {printed}   account files  {files}")
        distinct = self.story.distinct_digests
        self._say(f"  {len(digests)} replays, {distinct} distinct result{'s' if distinct != 1 else ''}")

    def _fixed(self, incident: Path) -> None:
        agent = ("--", "python", str(self._agent), "--guarded")
        self._step(
            f"reenact replay last --assert '{RULE}' -- python cleanup_agent.py --guarded",
            "would the fix have stopped it?",
        )
        process = self._reenact(incident, "replay", "last", "--assert", RULE, *agent)
        error_lines = process.stderr.strip().splitlines()
        self._say(_indented("\n".join([process.stdout.rstrip("\n"), *error_lines])))
        self.story.exit_codes["replay of the fixed agent, judged by the rule"] = process.returncode
        self.story.first_divergence = next(
            (line.strip() for line in error_lines if line.strip().startswith("diverged")), ""
        )

    def _page(self, incident: Path) -> None:
        """Write the page to share; of the last replay, which is the fixed agent's. It outlives the demo's folder."""
        folder = self._keep or Path(tempfile.mkdtemp(prefix="reenact-incident-"))
        page = folder / "incident.html"
        self._step(f"reenact incident last --replay last --assert '{RULE}'", "one page for everybody else")
        process = self._reenact(incident, "incident", "last", "--replay", "last", "--assert", RULE, "-o", str(page))
        if process.returncode:
            raise InputError("the demo", f"the page was not written: {process.stderr.strip()}")
        self._say(_indented(process.stdout))
        self.story.page = str(page)

    def _closing(self) -> None:
        report = self.story
        answered = ", ".join(f"{number} {kind}" for kind, number in report.answered.items())
        self._say("\nWhat a CI would see")
        for what, code in report.exit_codes.items():
            self._say(f"  exit code {code}  {what}")
        self._say(f"  each replay: {answered} calls answered from the recording, {report.live} live")
        self._say(f"  {report.replays} replays together: {report.sockets} sockets, {report.tokens} tokens")
        if self._keep is not None:
            self._say(f"  kept in {self._keep}")

    def _step(self, command: str, why: str) -> None:
        self._say(f"\n$ {command}    # {why}")

    def _reenact(
        self, folder: Path, *words: str, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        settings = {**os.environ, **(environ or {}), "REENACT_STORE": str(folder / ".reenact")}
        settings["CLEANUP_DATA"] = str(folder / "accounts")
        settings.pop("VIRTUAL_ENV", None)
        if key := user_key.key_message():  # it was taken out of this process's environment
            settings[user_key.VARIABLE] = key
        return subprocess.run(
            [sys.executable, "-m", "reenact", *words],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=bound_to_us(),
        )


_LIVE_SCRIPT = """
import contextlib, io, os, runpy, tempfile
bad = 0
for _ in range({tries}):
    os.environ["CLEANUP_DATA"] = tempfile.mkdtemp(dir=".")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path({agent!r}, run_name="agent")["clean_up"]("Clean up the inactive accounts in staging.")
    bad += "DELETED FROM PRODUCTION" in out.getvalue()
print(bad)
"""

_MANY_SCRIPT = """
import contextlib, hashlib, io, json, runpy, sys
import reenact
from reenact.boundary.question import question
sockets = []
tried = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: sockets.append(event) if event in tried else None)
found, digests = reenact.load("last", store=".reenact"), []
sys.argv[1:], (agent, times) = [], sys.argv[1:3]
for _ in range(int(times)):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), reenact.replay(found, store=".reenact") as replay:
        runpy.run_path(agent, run_name="__main__")
    calls = reenact.load(replay.result.replay, store=".reenact").run.nodes
    calls = json.dumps([[node.kind, node.call.name, question(node.call).key] for node in calls])
    digests.append([hashlib.sha256(text.encode()).hexdigest()[:16] for text in (calls, out.getvalue())])
print(json.dumps([digests, len(sockets)]))
"""


def agent_source() -> Path:
    """Find the demo's agent: in the source tree, or beside this module in an installed package."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "examples" / "cleanup_agent.py", here.parent / "cleanup_agent.py"):
        if candidate.is_file():
            return candidate
    raise InputError("examples/cleanup_agent.py", "the demo's agent is not installed", hint="run it from a source tree")


def _tokens(provider: StandIn) -> int:
    return provider.served.prompt_tokens + provider.served.completion_tokens


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.glob("**/accounts/*.json"))}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip("\n").splitlines())
