"""What a command imports, counted in a fresh process when it is over: modules, since seconds hang on the machine."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from desk import Desk
from golden_cases import GOLDEN

MOST_OF_THE_PACKAGE = 20
MOST_OF_A_READER = 90
MOST_OF_A_STRANGER_S = 114
SENDING_AND_REPLAYING = ("reenact.replay", "reenact.export", "reenact.record", "reenact.redact", "grpc")
NEEDED = {"click", "orjson"}
"""What a command that prints to a pipe needs of others."""
OURS = GOLDEN / "assertions" / "cleanup" / "incident.jsonl"
PROBE = """
import atexit, json, sys
from pathlib import Path
atexit.register(lambda: Path(sys.argv[0]).write_text(json.dumps([*sys.modules])))
"""
COMMAND = PROBE + "from reenact.cli.main import main\nmain()\n"
PROGRAM = """
import reenact

@reenact.retriever
def found(question): return [{"document.content": "a page", "document.id": "1"}]

@reenact.tool
def add(a, b): return a + b

@reenact.agent
def answer(question): return [add(number, len(found(question))) for number in range(3)]

print(answer("how many"))
"""


@dataclass
class Loaded:
    """What a process had imported when it ended."""

    printed: str
    ours: set[str]
    others: set[str]
    """Distributions of others, by the name that is imported."""

    def of(self, *rooms: str) -> set[str]:
        """Name what is loaded of packages."""
        return {name for name in self.ours | self.others if name.startswith(tuple(f"{room}." for room in rooms))} | (
            (self.ours | self.others) & set(rooms)
        )


def loaded(desk: Desk, source: str, *words: str) -> Loaded:
    told = desk.folder / "modules.json"
    done = desk.run([sys.executable, "-c", f"import sys; del sys.argv[0]\n{source}", str(told), *words])
    assert done.returncode == 0, done.stderr
    names = set(json.loads(told.read_text()))
    ours = {name for name in names if name == "reenact" or name.startswith("reenact.")}
    tops = {name.partition(".")[0] for name in names - ours}
    ignored = sys.stdlib_module_names | {"__main__", "__mp_main__", "sitecustomize", "usercustomize"}
    return Loaded(done.stdout, ours, {top for top in tops - ignored if not top.startswith(("_", "__editable__"))})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Give a folder with a store that holds a recorded run, and the run of an agent that asks a model."""
    made = Desk(tmp_path_factory.mktemp("start"))
    made.write("program.py", PROGRAM)
    recorded = made.reenact("run", "-q", "--", sys.executable, "program.py")
    assert recorded.returncode == 0, recorded.stderr
    imported = made.reenact("import", str(OURS))
    assert imported.returncode == 0, imported.stderr
    return made


def test_importing_the_package_loads_little(desk: Desk) -> None:
    found = loaded(desk, PROBE + "import reenact")
    assert len(found.ours) <= MOST_OF_THE_PACKAGE, sorted(found.ours)
    assert found.others == set()


def test_every_public_name_comes_when_it_is_asked_for(desk: Desk) -> None:
    source = (
        "import reenact.replay.replayer, reenact.record.recorder, reenact.compare.align, types\n"
        "import reenact\n"
        "found = {name: getattr(reenact, name) for name in reenact.__all__}\n"
        "assert not [name for name, value in found.items() if isinstance(value, types.ModuleType)]\n"
        "assert set(reenact.__all__) <= set(dir(reenact))\n"
        "from reenact import *\n"
        "assert (run, tool, replay) == (reenact.run, reenact.tool, reenact.replay)\n"
        "assert not hasattr(reenact, 'nothing_of_the_kind')\n"
        "print(len(found))\n"
    )
    found = loaded(desk, PROBE + source)
    assert int(found.printed) > 10


@pytest.mark.parametrize("words", [("--help",), ("--version",)], ids=" ".join)
def test_help_loads_no_command(desk: Desk, words: tuple[str, ...]) -> None:
    found = loaded(desk, COMMAND, *words)
    assert found.printed
    assert found.ours == {"reenact", "reenact.version", "reenact.errors", "reenact.cli", "reenact.cli.main"}
    assert found.others == {"click"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["ls", "show", "doctor"])
@pytest.mark.parametrize("where", ["a recorded run", "a run that asks a model", "a file"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_command_that_only_reads_loads_nothing_that_replays_or_sends(
    desk: Desk, name: str, where: str, form: str
) -> None:
    chosen = {"a recorded run": ["last"], "a run that asks a model": [incident()], "a file": [str(OURS)]}[where]
    words = [name, *(chosen if name != "ls" or where == "a file" else [])]
    found = loaded(desk, COMMAND, *words, *(["--json"] if form == "json" else []))
    assert found.printed
    assert found.of(*SENDING_AND_REPLAYING) == set()
    assert found.others == NEEDED
    assert len(found.ours) <= MOST_OF_A_READER, sorted(found.ours)


def incident() -> str:
    first = json.loads(OURS.read_text().partition("\n")[0])
    return first["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"]


def test_listing_a_store_rebuilds_no_run(desk: Desk) -> None:
    found = loaded(desk, COMMAND, "ls")
    assert "program.py" in found.printed
    assert found.of("reenact.graph", "reenact.dialects", "reenact.shapes", "reenact.boundary", "reenact.read") == set()


STRANGERS = sorted(
    [*(GOLDEN / "foreign").glob("*.jsonl")]
    + [
        next((GOLDEN / "formats" / name).glob("input*"))
        for name in ("langsmith/langchain_runs", "vcr_cassette/ruby", "datadog/events", "phoenix_json/spans")
    ]
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", STRANGERS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_of_a_stranger_s_file_few_members_are_loaded(desk: Desk, path: Path) -> None:
    found = loaded(desk, COMMAND, "doctor", f"{path}#all")
    assert found.printed
    assert found.of(*SENDING_AND_REPLAYING) == set()
    assert len(found.ours) <= MOST_OF_A_STRANGER_S, sorted(found.ours)
    assert len(found.of("reenact.formats")) <= 5, sorted(found.of("reenact.formats"))
    assert len(found.of("reenact.dialects")) <= 8, sorted(found.of("reenact.dialects"))
