from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

import reenact
from held import Held
from reenact.boundary import door
from reenact.boundary.patching import Patches
from reenact.keep.drain import Drain
from reenact.pipeline import recording
from reenact.pipeline.recording import Setup
from reenact.stores.directory import DirectoryStore

CUT: tuple[tuple[Any, str], ...] = (
    (asyncio, "as_completed"),
    (futures, "as_completed"),
    (asyncio.BaseEventLoop, "create_task"),
    (threading.Thread, "start"),
    (threading, "excepthook"),
    (ThreadPoolExecutor, "submit"),
    (Future, "set_result"),
    (Future, "set_exception"),
    (sys, "excepthook"),
    (httpx.Client, "send"),
    (httpx.AsyncClient, "send"),
    (httpx2.Client, "send"),
    (httpx2.AsyncClient, "send"),
)
ORIGINALS = [vars(owner)[name] for owner, name in CUT]


def stands() -> list[Any]:
    return [vars(owner)[name] for owner, name in CUT]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


def test_a_recording_cuts_every_boundary_and_gives_the_very_originals_back(held: Held) -> None:
    assert stands() == ORIGINALS
    made = held.start()
    assert all(now is not then for now, then in zip(stands(), ORIGINALS, strict=True))
    assert door.doorman() is made.doorman
    recording.stop(made)
    assert all(now is then for now, then in zip(stands(), ORIGINALS, strict=True))
    assert (door.doorman(), recording.current()) == (None, None)
    made.stop()


@pytest.mark.parametrize("inner_first", [True, False], ids=["as nested", "the other way about"])
def test_recordings_of_one_process_end_in_any_order(tmp_path: Path, *, inner_first: bool) -> None:
    outer, inner = Held(tmp_path / "outer"), Held(tmp_path / "inner")
    one = outer.start()
    look_up("outer")
    two = inner.start()
    look_up("inner")
    first, last = ((inner, two), (outer, one)) if inner_first else ((outer, one), (inner, two))
    runs = {first[1].id: first[0].finish(first[1])}
    assert door.doorman() is last[1].doorman
    look_up("last")
    runs[last[1].id] = last[0].finish(last[1])
    assert door.doorman() is None
    assert all(now is then for now, then in zip(stands(), ORIGINALS, strict=True))
    asked = {
        each.id: [node.call.request.arguments["item"] for run in runs[each.id] for node in run.nodes[1:]]  # type: ignore[union-attr, call-overload, index]
        for each in (one, two)
    }
    assert asked[one.id] == (["outer", "last"] if inner_first else ["outer"])
    assert asked[two.id] == (["inner"] if inner_first else ["inner", "last"])


def test_boundaries_are_cut_once_however_many_recordings_there_are(tmp_path: Path) -> None:
    outer, inner = Held(tmp_path / "outer"), Held(tmp_path / "inner")
    one = outer.start()
    cut = stands()
    two = inner.start()
    assert all(now is then for now, then in zip(stands(), cut, strict=True))
    recording.stop(two)
    assert all(now is then for now, then in zip(stands(), cut, strict=True))
    recording.stop(one)


def test_what_others_put_over_ours_stays_and_lets_everything_through(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(httpx.Client, "send", httpx.Client.send)  # to be put back when this is over
    made = held.start()
    ours = httpx.Client.send

    def theirs(self: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        return ours(self, request, **options)

    httpx.Client.send = theirs  # type: ignore[method-assign, assignment]
    recording.stop(made)
    assert httpx.Client.send is theirs
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, text="through"))) as client:
        assert client.post("http://test/v1/chat/completions", json={}).text == "through"
    assert ours is not ORIGINALS[9]


def test_a_recording_that_cannot_start_leaves_nothing_behind(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("reenact.boundary.lanes.install", fail)
    with pytest.raises(RuntimeError, match="no"):
        held.start()
    assert recording.current() is None
    assert door.doorman() is None
    assert all(now is then for now, then in zip(stands(), ORIGINALS, strict=True))


def test_what_is_not_imported_yet_is_cut_when_it_is_and_not_after_the_end(tmp_path: Path) -> None:
    code = f"""
import sys
from reenact.pipeline import recording
made = recording.start(recording.Setup(store={str(tmp_path)!r} and __import__("pathlib").Path({str(tmp_path)!r})), {{}})
assert "httpx" not in sys.modules and "httpx2" not in sys.modules
import httpx
assert hasattr(httpx.Client.send, "__wrapped__"), "cut on import"
recording.stop(made)
assert not hasattr(httpx.Client.send, "__wrapped__"), "given back"
import httpx2
assert not hasattr(httpx2.Client.send, "__wrapped__"), "too late to be cut"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_patches_put_class_methods_and_inherited_ones_back_as_they_were() -> None:
    class Base:
        @classmethod
        def make(cls) -> str:
            return cls.__name__

        def inherited(self) -> str:
            return "inherited"

    class Derived(Base):
        pass

    before = vars(Base)["make"]
    patches = Patches()
    patches.replace(Base, "make", lambda original: lambda: f"over {original()}")
    patches.replace(Derived, "inherited", lambda original: lambda self: f"over {original(self)}")
    assert (Base.make(), Derived().inherited()) == ("over Base", "over inherited")
    patches.undo()
    assert vars(Base)["make"] is before
    assert "inherited" not in vars(Derived)
    assert (Derived.make(), Derived().inherited()) == ("Derived", "inherited")


def test_a_program_that_forgets_to_stop_is_stopped_at_its_exit(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import reenact
from reenact.pipeline import recording
recording.start(recording.Setup(store=Path(sys.argv[1])), {})
@reenact.tool
def work():
    raise ValueError("mine")
work()
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ValueError: mine" in done.stderr
    (run,) = Drain(DirectoryStore(tmp_path)).finish()
    assert run.root is not None
    assert run.root.span.attributes["exception.message"] == "mine"
    assert not run.root.span.attributes.get("reenact.incomplete")


def test_a_recording_that_is_over_is_forgotten(held: Held) -> None:
    made = held.start()
    look_up("x")
    recording.stop(made)
    left = [weakref.ref(each) for each in (made, made.journal, made.recorder, made.engine)]
    del made
    gc.collect()
    assert [each() for each in left] == [None] * 4


def test_the_environment_is_kept_by_name_and_secrets_only_as_their_token(held: Held) -> None:
    secret = "a-secret-of-1-kind"
    environ = {"OPENAI_API_KEY": secret, "MY_OTHER_KEY": secret, "PLANNER_MODEL": "m-1", "HOME_TOWN": "Bonn"}
    before = dict(os.environ)
    os.environ.update(environ)
    try:
        did = held.record(lambda: look_up(secret), environ)
    finally:
        os.environ.clear()
        os.environ.update(before)
    kept = did.runs[0].surroundings["environment"]
    assert isinstance(kept, dict)
    assert (kept["PLANNER_MODEL"], "HOME_TOWN" in kept) == ("m-1", False)
    token = str(kept["OPENAI_API_KEY"])
    assert token.startswith("REDACTED_")
    assert kept["MY_OTHER_KEY"] == token
    assert did.call("look_up").span.attributes["output.value"] == f"{token} is there", "one secret, one token"


def test_what_a_program_read_from_its_environment_is_the_same_token_in_its_replay(held: Held) -> None:
    """A replay sets a credential that is absent to its recorded token; prompts that hold it match."""
    secret = "a-secret-of-1-kind"
    did = held.record(lambda: look_up(secret), {"SHOP_API_KEY": secret, "SHOP_TOKEN": secret})
    token = did.call("look_up").call.request.arguments["item"]  # type: ignore[union-attr, call-overload, index]
    assert held.replay(did, lambda: look_up(str(token))).value == f"{token} is there"


def test_what_the_process_is_called_and_where_it_came_from(held: Held) -> None:
    did = held.record(lambda: look_up("x"), {"OTEL_SERVICE_NAME": "unused: the resource reads the real environment"})
    resource = did.runs[0].nodes[0].span.resource.attributes
    assert resource["process.pid"] == os.getpid()
    assert resource["reenact.recording.id"] == did.runs[0].recording
    entry = did.runs[0].entry
    assert (entry["argv"], entry["cwd"]) == (sys.orig_argv, str(held.store.parent))


def test_secrets_in_the_resource_are_scrubbed_in_the_header_too(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "ghp_" + "a1B2" * 9
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"deploy.key={secret},team=blue")
    did = held.record(lambda: look_up("x"))
    resource = did.runs[0].nodes[0].span.resource.attributes
    assert resource["team"] == "blue"
    assert str(resource["deploy.key"]).startswith("REDACTED_")


def test_setup_beats_the_environment(held: Held, tmp_path: Path) -> None:
    made = held.start({"REENACT_STORE": str(tmp_path / "elsewhere"), "REENACT_USER": "environment"}, user="code")
    look_up("x")
    (run,) = held.finish(made)
    assert run.user == "code"
    assert not (tmp_path / "elsewhere").exists()
    assert recording.Recording(Setup(), {"REENACT_STORE": str(tmp_path / "e")}).store.folder == tmp_path / "e"
