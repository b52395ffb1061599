"""The store is the user's alone, and nobody else's store, policy or key is taken for theirs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from desk import Desk
from reenact.cli import options
from reenact.disk import private
from reenact.errors import InputError
from reenact.record.bounds import bounds_from
from reenact.record.segments import Segments
from reenact.record.surroundings import commit
from reenact.redact import in_force, keys, policy
from reenact.stores.directory import DirectoryStore

pytestmark = pytest.mark.sample(8)

STRANGER = 54_321
AGENT = """
import reenact, sys
@reenact.tool
def double(n): return n * 2
print(double(4), "x" * 3_000_000 == double("x" * 1_500_000))
sys.exit(7)
"""
GiveAway = Callable[[Path], None]


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> GiveAway:
    """Make a file or folder another user's: really where root does it, else by being another user ourselves."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, STRANGER, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    return give


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("umask", ["000", "022", "077", "277"])
def test_everything_in_the_store_is_the_user_s_alone(desk: Desk, umask: str) -> None:
    store = desk.folder / "deep" / "store"
    agent = desk.write("agent.py", AGENT)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("REENACT_", "OTEL_"))}
    reenact = f"{sys.executable} -m reenact"
    script = f"""
        umask {umask}
        {reenact} run --store {store} -- {sys.executable} {agent}; echo "exit $?"
        {reenact} replay last --store {store} >&2
        {reenact} store keep {store} --help >/dev/null
        {reenact} ls --store {store} && {reenact} ls --store {store} --reindex
        {reenact} export last --store {store} -o - > out.jsonl && {reenact} import out.jsonl --store {store}
        {reenact} store flag last --store {store}; true
    """
    done = subprocess.run(
        ["sh", "-c", script], cwd=desk.folder, env=environ, capture_output=True, text=True, timeout=110, check=False
    )
    assert "exit 7" in done.stdout, done.stderr
    found = [store, *store.rglob("*")]
    kinds = {path.name.rpartition(".")[2] for path in found}
    assert {"sqlite", "jsonl", "key", "gitignore"} <= kinds
    assert any("blobs" in path.parts for path in found)
    modes = {path.relative_to(store.parent): stat.S_IMODE(path.stat().st_mode) for path in found}
    loose = {
        str(path): oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if (store.parent / path).is_dir() else 0o600)
    }
    assert loose == {}


def test_the_collector_s_files_are_too(tmp_path: Path) -> None:
    pytest.importorskip("h2", reason="the extra `collector` is not installed")
    from collect.running import collecting

    before = os.umask(0)
    try:
        with collecting(tmp_path / "store") as running:
            assert running.post(b"")[0] == 200
            body = bytes.fromhex("0a2c122a12280a10" + "ab" * 16 + "1208" + "cd" * 8 + "2a0178390100000000000000")
            assert running.post(body)[0] == 200
    finally:
        os.umask(before)
    found = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    assert any(path.suffix == ".rnf" for path in found)
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}


def test_a_store_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o755)
    (tmp_path / "store").chmod(0o777)
    DirectoryStore(tmp_path / "store").prepare()
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


def test_another_user_s_store_is_refused(tmp_path: Path, given_away: GiveAway) -> None:
    (tmp_path / "store").mkdir(mode=0o777)
    given_away(tmp_path / "store")
    for attempt in (
        lambda: options.store(tmp_path / "store"),
        DirectoryStore(tmp_path / "store").prepare,
        DirectoryStore(tmp_path / "store" / "below" / "..").prepare,
    ):
        with pytest.raises(InputError, match="this store belongs to") as refused:
            attempt()
        assert refused.value.exit_code == 3
        assert str(tmp_path / "store") in refused.value.place
        assert "REENACT_STORE" in refused.value.hint


def test_so_is_one_behind_another_user_s_link(tmp_path: Path, given_away: GiveAway) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "planted").symlink_to(tmp_path / "own")
    given_away(tmp_path / "planted")
    with pytest.raises(InputError, match=r"reached through the link .*/planted, which belongs to"):
        DirectoryStore(tmp_path / "planted" / "store").prepare()


def test_an_own_link_and_one_of_root_are_followed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    DirectoryStore(tmp_path / "again" / "store").prepare()
    assert (tmp_path / "own" / "store" / "journal").is_dir()


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="cannot be made"):
        DirectoryStore(tmp_path / "a" / "store").prepare()


def test_an_owner_who_is_named_is_trusted(
    tmp_path: Path, given_away: GiveAway, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").mkdir()
    owner = STRANGER if os.geteuid() == 0 else os.geteuid()
    given_away(tmp_path / "store")
    monkeypatch.setenv(private.TRUSTED, f"1, {owner}")
    options.store(tmp_path / "store")


def test_a_recording_into_it_lets_the_program_run(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    desk = Desk(tmp_path)
    agent = desk.write("agent.py", AGENT)
    (tmp_path / "store").mkdir()
    os.chown(tmp_path / "store", STRANGER, -1)
    done = desk.reenact("run", "--store", "store", "--", sys.executable, agent)
    assert (done.returncode, done.stdout) == (7, "8 True\n")
    assert "store: this store belongs to" in done.stderr
    assert "the program runs unrecorded" in done.stderr
    within = desk.write("within.py", f"import reenact\nreenact.record()\n{AGENT}")
    done = desk.run([sys.executable, within], {**os.environ, "REENACT_STORE": str(tmp_path / "store")})
    assert (done.returncode, done.stdout) == (7, "8 True\n")
    assert "this store belongs to" in done.stderr
    assert [*(tmp_path / "store").rglob("*")] == []


def test_no_journal_is_begun_in_it(tmp_path: Path, given_away: GiveAway) -> None:
    (tmp_path / "store").mkdir()
    given_away(tmp_path / "store")
    files = Segments(tmp_path / "store" / "journal", "name", bounds_from({}))
    with pytest.raises(PermissionError, match="belongs to"):
        files.open(files.path, b"")


def test_another_user_s_policy_costs_the_payloads_and_says_why(tmp_path: Path, given_away: GiveAway) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('extends = "nothing"\n')
    given_away(file)
    with pytest.raises(InputError, match="the redaction policy belongs to"):
        policy.load(file)
    found = in_force.guard(tmp_path / "store", {in_force.VARIABLE: str(file)})
    assert "the redaction policy belongs to" in found.problem
    assert found.plan.failed


def test_so_does_another_user_s_pyproject_that_names_one(tmp_path: Path, given_away: GiveAway) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.reenact]\nredaction-policy = "default"\n')
    (tmp_path / "below").mkdir()
    assert in_force.policy_file(tmp_path / "store", {}, here=tmp_path / "below") is None
    given_away(tmp_path / "pyproject.toml")
    with pytest.raises(InputError, match="which names a redaction policy, belongs to"):
        in_force.policy_file(tmp_path / "store", {}, here=tmp_path / "below")
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")  # of theirs nothing is asked
    assert in_force.policy_file(tmp_path / "store", {}, here=tmp_path / "below") is None


def test_another_user_s_key_keys_nothing(tmp_path: Path, given_away: GiveAway) -> None:
    made = keys.of_store(tmp_path, {})
    given_away(tmp_path / keys.FILE)
    found = keys.of_store(tmp_path, {})
    assert found.value != made.value
    assert "belongs to" in found.problem


@pytest.mark.parametrize("name", ["policy.toml", "pyproject.toml", ".git", "redaction.key", ".git/HEAD"])
def test_a_pipe_in_place_of_a_setting_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    found = in_force.guard(tmp_path, {in_force.VARIABLE: str(tmp_path / name)} if name == "policy.toml" else {})
    assert found.plan is not None
    assert in_force.guard(tmp_path, {}, here=tmp_path).plan is not None
    assert commit(tmp_path) is None


@pytest.mark.parametrize(
    ("head", "beside"),
    [
        ("ref: refs/heads/../../../secret", {"../secret": "top secret"}),
        ("ref: ../secret", {"../secret": "top secret"}),
        ("ref: refs/heads/main", {"refs/heads/main": "top secret"}),
        ("ref: refs/heads/main", {"packed-refs": "secret refs/heads/main\n"}),
        ("top secret", {}),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), {}),
    ],
)
def test_a_planted_git_leads_to_no_other_file(tmp_path: Path, head: str, beside: dict[str, str]) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text(head)
    for name, text in beside.items():
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).write_text(text)
    assert "secret" not in str(commit(tmp_path))
