"""Further ways to have something of a stranger's run, each tried: what came of it is printed."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collect.running import start
from desk import Desk
from reenact.errors import InputError, NotYours
from reenact.find.sources import RunSource, find
from reenact.formats import otlp_json, otlp_proto
from reenact.graph.build import build
from reenact.pipeline import commands, settings
from reenact.stores.directory import DirectoryStore
from reenact.testing.promoting import Wanted, promote
from reenact.values.classes import loaded
from reenact.values.json import compact
from reenact.values.span import SpanRecord
from trust.hostile import AGENT, CARRIERS, Lair, plain

pytestmark = pytest.mark.sample(4)

Tell = Callable[[str, object], None]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A project with two runs of the user's own."""
    desk = Desk(tmp_path_factory.mktemp("own"))
    desk.write("agent.py", AGENT)
    for _ in range(2):
        done = desk.reenact("run", "-q", "--", "python", "agent.py", environ=plain())
        assert done.returncode == 0, done.stderr
    return desk


@pytest.fixture
def store(recorded: Desk) -> Iterator[DirectoryStore]:
    """Its store, put back afterwards."""
    folder = recorded.folder / ".reenact"
    kept = recorded.folder / "kept"
    shutil.copytree(folder, kept)
    yield DirectoryStore(folder)
    shutil.rmtree(folder)
    kept.rename(folder)


def ids(store: DirectoryStore) -> list[str]:
    return sorted(store.trace_ids())


def file_of(store: DirectoryStore, trace_id: str) -> Path:
    return store.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"


def rewrite(store: DirectoryStore, trace_id: str, change: Callable[[SpanRecord], SpanRecord]) -> None:
    """Write a trace anew, as who controls the folder can."""
    spans = [change(span) for span in store.bare_spans(trace_id)]
    file_of(store, trace_id).write_bytes(otlp_json.encode(spans))


def altered(span: SpanRecord, **changes: Any) -> SpanRecord:
    if span.attributes.get("reenact.run.root") is not True:
        return span
    entry = json.loads(str(span.attributes["reenact.entry"])) | changes
    return replace(span, attributes={**span.attributes, "reenact.entry": compact(entry)})


def started(found: RunSource) -> str:
    """Say what would be started, or that it is refused."""
    try:
        argv, _ = commands.command(found, ())
    except NotYours:
        return "refused"
    return " ".join(argv[1:])


@pytest.mark.slow
def test_the_users_own_is_own(store: DirectoryStore) -> None:
    assert started(find(ids(store)[0], store)) == "agent.py"


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("argv", {"argv": ["python", "evil.py"]}),
        ("executable", {"executable": "/evil"}),
        ("cwd", {"cwd": "/evil"}),
        ("main", {"main": "/evil.py"}),
        ("a word more", {"further": 1}),
    ],
)
def test_the_proof_of_a_run_fits_no_other_words(store: DirectoryStore, what: str, changes: dict[str, Any]) -> None:
    rewrite(store, ids(store)[0], lambda span: altered(span, **changes))
    assert started(find(ids(store)[0], store)) == "refused", what


@pytest.mark.parametrize(
    "name",
    ["reenact.app", "reenact.inbound", "reenact.surroundings", "reenact.inbound.process", "reenact.process.root"],
)
def test_the_proof_covers_what_is_added(store: DirectoryStore, name: str) -> None:
    def add(span: SpanRecord) -> SpanRecord:
        return replace(span, attributes={**span.attributes, name: '{"protocol":"http"}'})

    rewrite(store, ids(store)[0], add)
    assert not find(ids(store)[0], store).run.own


def test_the_proof_of_another_run_pasted_proves_nothing(store: DirectoryStore, record_property: Tell) -> None:
    first, second = ids(store)
    (proof,) = {
        str(span.attributes["reenact.origin"])
        for span in store.bare_spans(second)
        if "reenact.origin" in span.attributes
    }

    def paste(span: SpanRecord) -> SpanRecord:
        bare = altered(span, argv=["python", "evil.py"])
        return replace(bare, attributes={**bare.attributes, "reenact.origin": proof})

    rewrite(store, first, paste)
    assert started(find(first, store)) == "refused"
    record_property("figure", "attack: the proof of another own run pasted on: refused")


PROOFS = [
    *(b"\xff", ["x"], {"mac": "x"}, 7, "", "{", '{"version":2,"mac":"00"}', '{"version":1,"mac":[]}'),
    *('{"version":1,"mac":"é"}', '{"version":1}'),
]


@pytest.mark.parametrize("proof", PROOFS)
def test_a_proof_that_is_none_proves_nothing(store: DirectoryStore, proof: Any) -> None:
    def spoil(span: SpanRecord) -> SpanRecord:
        return replace(span, attributes={**span.attributes, "reenact.origin": proof})

    rewrite(store, ids(store)[0], spoil)
    assert not find(ids(store)[0], store).run.own


def test_a_forged_double_of_an_own_root_changes_nothing_in_it(store: DirectoryStore, record_property: Tell) -> None:
    trace_id = ids(store)[0]
    (root,) = {
        span.span_id: span for span in store.bare_spans(trace_id) if "reenact.origin" in span.attributes
    }.values()
    forged = altered(root, argv=["python", "evil.py"])
    fuller = {f"x{number}": number for number in range(50)}
    doubles = [
        replace(forged, attributes={**forged.attributes, **fuller}, end_ns=root.end_ns + 1),
        replace(forged, span_id="e" * 16, start_ns=1),
        replace(forged, span_id="d" * 16, parent_id=None, attributes={**forged.attributes, "reenact.order.start": 0}),
    ]
    with file_of(store, trace_id).open("ab") as file:
        file.write(otlp_json.encode(doubles))
    found = find(trace_id, store)
    assert started(found) == "agent.py"
    assert found.run.root is not None
    assert found.run.root.id == root.span_id
    record_property("figure", "attack: doubles of an own root, and further roots, in its trace: the own one starts")


def test_what_was_sent_to_the_collector_changes_no_own_call(
    store: DirectoryStore, recorded: Desk, record_property: Tell
) -> None:
    trace_id = ids(store)[0]
    spans = list({span.span_id: span for span in store.bare_spans(trace_id)}.values())
    (root,) = [span for span in spans if "reenact.origin" in span.attributes]
    (call,) = [span for span in spans if span is not root]

    def lying(span: SpanRecord, **changes: Any) -> SpanRecord:
        return replace(span, attributes={**span.attributes, "output.value": "4", "reenact.more": 1}, **changes)

    forged = altered(root, argv=["python", "evil.py"])
    sent = [lying(call), lying(call, span_id="c" * 16), forged, replace(forged, span_id="e" * 16, start_ns=1)]
    running = start(store.folder)
    assert running.post(otlp_proto.encode(sent))[0] == 200
    assert running.end() == 0
    found = find(trace_id, store)
    assert started(found) == "agent.py"
    (own,) = [node for node in found.run.nodes if node.id == call.span_id]
    assert own.span.attributes["output.value"] == call.attributes["output.value"] == "3"
    done = recorded.reenact("replay", trace_id, environ=plain())
    assert (done.returncode, done.stdout) == (0, "sum 3\n"), done.stderr
    record_property("figure", "attack: calls and roots sent to the collector for an own trace: they answer nothing")


def test_a_store_that_was_copied_is_a_strangers(store: DirectoryStore, tmp_path: Path, record_property: Tell) -> None:
    copied = tmp_path / "clone" / ".reenact"
    shutil.copytree(store.folder, copied)
    other = DirectoryStore(copied)
    assert started(find(ids(other)[0], other)) == "refused"
    there = tmp_path / "linked"
    there.symlink_to(store.folder)
    assert started(find(ids(store)[0], DirectoryStore(there))) == "agent.py", "the same folder by another path is it"
    record_property("figure", "attack: an own store copied into a repository: refused")


def test_an_own_trace_file_named_by_its_path_is_data(store: DirectoryStore) -> None:
    assert started(find(str(file_of(store, ids(store)[0])), store)) == "refused"


@pytest.mark.parametrize(
    "entry",
    [
        {"argv": {"0": "python"}},
        {"argv": [["python"]]},
        {"argv": [1, 2]},
        {"argv": "python evil.py"},
        {"argv": []},
        {"argv": ["python", None]},
        {"executable": ["/bin/sh"], "cwd": 7, "main": {}},
        {"argv": ["x\x00y"], "cwd": "\x00"},
        [],
        "text",
        None,
    ],
    ids=repr,
)
def test_an_entry_of_any_other_type_is_refused_or_said(
    exported: list[SpanRecord], desk: Desk, entry: Any, tmp_path: Path
) -> None:
    spans = [
        replace(span, attributes={**span.attributes, "reenact.entry": compact(entry), "reenact.surroundings": "[1]"})
        for span in exported
    ]
    path = tmp_path / "odd.jsonl"
    path.write_bytes(otlp_json.encode(spans))
    for words in (
        ("replay",),
        ("promote",),
        ("fuzz", "--cases", "1"),
        ("fork", "--at", "first tool", "--set", "result=1"),
    ):
        done = desk.reenact(words[0], str(path), *words[1:], environ=plain())
        assert done.returncode in {2, 3, 125}, done.stderr
        assert "Traceback" not in done.stderr


def test_a_huge_command_is_cut_where_it_is_refused(exported: list[SpanRecord], desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    words = ["python", "-c", "x" * 1_000_000]
    path.write_bytes(otlp_json.encode([altered(span, argv=words) for span in exported]))
    done = desk.reenact("replay", str(path), environ=plain())
    assert done.returncode == 3
    assert len(done.stderr) < 10_000
    assert "1,000,0" in done.stderr


def test_a_shown_command_is_what_a_shell_would_run(exported: list[SpanRecord], record_property: Tell) -> None:
    nasty = [
        "python",
        "a b",
        "$(touch x)",
        "\x1b]0;evil\x07",
        "line\nbreak",
        "\u202edesrever",
        "'; rm -rf ~",
        "é",
        "",
    ]
    run_spans = [altered(span, argv=nasty, executable=sys.executable) for span in exported]
    found = RunSource(run=_only(run_spans), siblings=(), source="x")
    (line, *_) = commands.command_lines(found)
    assert line.isprintable()
    bash = shutil.which("bash")
    assert bash is not None
    script = f"printf '%s\\0' {line.split(' ', 1)[1]}".encode("utf-8", "surrogateescape")
    said = subprocess.run([bash, "-c", script], capture_output=True, check=True).stdout
    assert said.split(b"\0")[:-1] == [os.fsencode(word) for word in nasty[1:]]
    record_property(
        "figure", "attack: control and direction characters, quotes and $( ) in argv: shown quoted, nothing raw"
    )


def _only(spans: list[SpanRecord]) -> Any:
    (run,) = build(spans)
    return run


STEERING = {
    "LD_PRELOAD": "/evil.so",
    "ld_preload": "/evil.so",
    "Ld_Audit": "/evil.so",
    "PYTHONPATH": "/evil",
    "pythonpath": "/evil",
    "PYTHONSTARTUP": "/evil.py",
    "PYTHONWARNINGS": "error::evil.Evil",
    "PYTHONBREAKPOINT": "evil.run",
    "PATH": "/evil",
    "GIT_SSH_COMMAND": "evil",
    "NODE_OPTIONS": "--require /evil.js",
    "PERL5OPT": "-Mevil",
    "BASH_FUNC_ls%%": "() { evil; }",
    "GLIBC_TUNABLES": "x",
    "https_proxy": "http://evil",
    "SSL_CERT_FILE": "/evil.pem",
    "HOME": "/evil",
    "A=B": "x",
    "": "x",
    "OTEL_PYTHON_CONFIGURATOR": "evil",
    "REENACT_STORE": "/evil",
    "PYTEST_ADDOPTS": "-p evil",
    "COVERAGE_PROCESS_START": "/evil",
}


@pytest.mark.parametrize("own", [True, False], ids=["own", "stranger's"])
def test_no_setting_that_steers_is_taken_from_any_trace(
    exported: list[SpanRecord], *, own: bool, record_property: Tell
) -> None:
    harmless = {"AGENT_MODEL": "m", "DJANGO_SETTINGS_MODULE": "site.settings", "LANG": "de_DE.UTF-8"}
    run = _only(exported)
    around = {**run.surroundings, "environment": {**STEERING, **harmless}}
    found = RunSource(run=replace(run, own=own, surroundings=around), siblings=(), source="x")
    taken = settings.unset_ones(found) | settings.set_always(found)
    assert not STEERING.keys() & taken.keys()
    assert {name for name in harmless if name in taken} == (set(harmless) if own else {"LANG"})
    told = " ".join(settings.notes(found, {}))
    assert "LD_PRELOAD" in told or "A=B" in told
    record_property("figure", f"attack: {len(STEERING)} settings that steer, in an own and a stranger's trace: 0 taken")


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("LANG", "de_DE.UTF-8", True),
        ("LC_ALL", "C.UTF-8", True),
        ("LC_TIME", "sr_RS.UTF-8@latin", True),
        ("LANG", "../../evil", False),
        ("LANG", "/evil", False),
        ("LC_EVIL", "C", False),
        ("lang", "C", False),
        ("TZ", "Europe/Berlin", True),
        ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", True),
        ("TZ", "<+03>-3", True),
        ("TZ", ":/etc/passwd", False),
        ("TZ", "/etc/passwd", False),
        ("TZ", "../../../etc/passwd", False),
        ("TZ", "Europe/Nowhere", False),
        ("STRIPE_API_KEY", "REDACTED_credential_0123456789abcdef0123", True),
        ("STRIPE_API_KEY", "sk-live", False),
        ("LD_API_KEY", "REDACTED_credential_0123456789abcdef0123", False),
        ("AGENT_MODEL", "m", False),
        ("OPENAI_BASE_URL", "http://evil", False),
    ],
)
def test_a_strangers_settings_are_a_closed_list(
    exported: list[SpanRecord], name: str, value: str, *, taken: bool
) -> None:
    run = _only(exported)
    found = RunSource(run=replace(run, surroundings={"environment": {name: value}}), siblings=(), source="x")
    given = settings.unset_ones(found) | settings.set_always(found)
    assert (given.get(name) == value) is taken


@pytest.mark.parametrize("seed", ["0", "4294967295"])
def test_a_hash_seed_is_digits(exported: list[SpanRecord], seed: str) -> None:
    run = _only(exported)
    found = RunSource(run=replace(run, surroundings={"hash_seed": seed}), siblings=(), source="x")
    assert settings.set_always(found) == {"PYTHONHASHSEED": seed}
    for bad in (f"{seed}x", "-1", "4294967296", "²", "random", " 1", "1\n"):
        spoilt = replace(found, run=replace(run, surroundings={"hash_seed": bad}))
        assert settings.set_always(spoilt) == {}


def link_traces(store: Path, away: Path) -> None:
    shutil.rmtree(store / "traces", ignore_errors=True)
    (store / "traces").symlink_to(away)


def link_ignore(store: Path, away: Path) -> None:
    (store / ".gitignore").unlink(missing_ok=True)
    (store / ".gitignore").symlink_to(away / "made")


def link_index(store: Path, away: Path) -> None:
    (store / "index-3.sqlite").unlink(missing_ok=True)
    (store / "index-3.sqlite").symlink_to(away / "made")


def link_journal(store: Path, away: Path) -> None:
    shutil.rmtree(store / "journal", ignore_errors=True)
    (store / "journal").symlink_to(away)


def link_owner(store: Path, away: Path) -> None:
    (store / "journal").mkdir(exist_ok=True)
    (store / "journal" / "0011223344556677.owner").symlink_to(away / "kept.txt")


def link_subfolder(store: Path, away: Path) -> None:
    shutil.rmtree(store / "traces" / "00", ignore_errors=True)
    (store / "traces" / "00").symlink_to(away)


TRICKS = [link_traces, link_ignore, link_index, link_journal, link_owner, link_subfolder]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_a_store_with_links_in_it_is_not_written_through(
    store: DirectoryStore, recorded: Desk, tmp_path: Path, trick: Callable[[Path, Path], None], record_property: Tell
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "kept.txt").write_text("kept\n")
    trick(store.folder, away)
    for words in (("ls",), ("replay", "last"), ("run", "--strict", "--", "python", "agent.py")):
        done = recorded.reenact(*words, environ=plain())
        assert done.returncode == 3, done.stderr
        assert "is a link" in done.stderr
    unrecorded = recorded.reenact("run", "--", "python", "agent.py", environ=plain())
    assert unrecorded.returncode == 0, unrecorded.stderr  # the program is the user's own, whatever lies in its store
    assert "is a link" in unrecorded.stderr
    assert "the program runs unrecorded" in unrecorded.stderr
    assert {path.name: path.read_text() for path in away.iterdir()} == {"kept.txt": "kept\n"}
    record_property("figure", f"attack: links inside a store × {len(TRICKS)}: refused, nothing written outside")


def test_a_trace_file_with_another_name_elsewhere_is_not_appended_to(store: DirectoryStore, tmp_path: Path) -> None:
    trace_id = ids(store)[0]
    os.link(file_of(store, trace_id), tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    spans = list(store.bare_spans(trace_id))
    with pytest.raises(InputError, match="another name elsewhere"):
        store.append(spans[:1])
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_store_variable_that_points_into_a_repository_proves_nothing(
    store: DirectoryStore, tmp_path: Path, desk: Desk
) -> None:
    clone = tmp_path / "repository" / ".reenact"
    shutil.copytree(store.folder, clone)
    done = desk.reenact("replay", "last", environ={**plain(), "REENACT_STORE": str(clone)})
    assert done.returncode == 3
    assert "is not known as your own recording" in done.stderr


def test_a_promoted_test_of_a_stranger_holds_nothing_but_data(
    exported: list[SpanRecord], desk: Desk, here: Lair, tmp_path: Path, record_property: Tell
) -> None:
    path = tmp_path / "stranger.jsonl"
    path.write_bytes(otlp_json.encode(CARRIERS["fixture path"](exported, here)))
    found = find(str(path), DirectoryStore(tmp_path / "none"))
    before = here.seen()
    done = promote(found, Wanted(command=("python", "agent.py"), tried=False), DirectoryStore(tmp_path / "scratch"))
    assert done.test.is_relative_to(desk.folder)
    assert done.fixture.is_relative_to(desk.folder)
    tree = ast.parse(done.test.read_text())
    assert [type(each).__name__ for each in tree.body] == ["Expr", "Import", "FunctionDef"]
    assert here.seen() == before
    record_property("figure", "attack: quotes, a line of code and a path as the name of a run that is promoted: data")


def test_a_yes_to_one_file_is_none_to_another(exported: list[SpanRecord], here: Lair, tmp_path: Path) -> None:
    """What was agreed to is named by its digest, so that a file that is changed meanwhile asks again."""
    path = tmp_path / "stranger.jsonl"
    path.write_bytes(otlp_json.encode(exported))
    shown = commands.digest(find(str(path), DirectoryStore(tmp_path / "none")))
    path.write_bytes(otlp_json.encode(CARRIERS["argv"](exported, here)))
    assert commands.digest(find(str(path), DirectoryStore(tmp_path / "none"))) != shown


def test_a_class_of_a_lazy_module_is_not_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reenact_evil_lazy.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.find_spec("reenact_evil_lazy")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reenact_evil_lazy", module)
    spec.loader.exec_module(module)
    assert loaded("reenact_evil_lazy:Evil") is None
    assert loaded("reenact_evil_absent:Evil") is None
    assert "reenact_evil_absent" not in sys.modules


def test_a_fixture_of_a_strangers_runs_nothing_in_a_real_pytest(
    exported: list[SpanRecord], desk: Desk, here: Lair, record_property: Tell
) -> None:
    recordings = desk.folder / "tests" / "recordings"
    recordings.mkdir()
    (recordings / "x.jsonl").write_bytes(otlp_json.encode(CARRIERS["argv"](exported, here)))
    (desk.folder / "tests" / "test_x.py").write_text(
        "import pytest\n@pytest.mark.reenact('recordings/x.jsonl', writes='allow')\n"
        "def test_x(reenact_replay):\n    reenact_replay()\n"
    )
    done = desk.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], plain())
    assert done.returncode == 1
    assert "is not known as your own recording" in done.stdout
    assert "reenact_replay(" in done.stdout
    assert not here.canary.exists()
    record_property("figure", "attack: a fixture of a stranger's, and a test that names no program: the test fails")
