"""Whether a work tree has changes that are not committed, as git itself says it, in every state of its files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reenact.record.surroundings import commit

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Give a command of git in a committed work tree with files in folders, a link and an executable."""
    tree = tmp_path / "tree"
    tree.mkdir()

    def run(*words: str) -> str:
        named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        done = subprocess.run(["git", *named, *words], cwd=tree, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    run("init", "-q")
    for name in ("a.py", "pkg/b.py", "pkg/inner/c.py", "pkg-2/d.py", "ümlaut.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"# {name}\n")
    (tree / "link").symlink_to("a.py")
    (tree / "run.sh").write_text("true\n")
    (tree / "run.sh").chmod(0o755)
    run("add", ".")
    run("commit", "-qm", "The files are there")
    return run


def changes(tree: Path) -> object:
    """Say what is said of the work tree, and hold it against what git says."""
    told = commit(tree / "pkg" if (tree / "pkg").exists() else tree)
    assert told is not None
    status = ["git", "status", "--porcelain", "-uno"]
    said = subprocess.run(status, cwd=tree, check=True, capture_output=True, text=True).stdout
    assert told["uncommitted"] == bool(said), said
    return told["uncommitted"]


def _edit(tree: Path, _git: Git) -> None:
    (tree / "pkg/b.py").write_text("# pkg/B.py\n")  # of the same size


def _stage(tree: Path, git: Git) -> None:
    (tree / "a.py").write_text("x = 1\n")
    git("add", "a.py")


def _stage_new(tree: Path, git: Git) -> None:
    (tree / "new.py").write_text("x = 1\n")
    git("add", "new.py")


def _remove(tree: Path, _git: Git) -> None:
    (tree / "pkg/inner/c.py").unlink()


def _lead_elsewhere(tree: Path, _git: Git) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("run.sh")


def _touch(tree: Path, _git: Git) -> None:
    os.utime(tree / "a.py", (1, 1))


def _untracked(tree: Path, _git: Git) -> None:
    (tree / "new.py").write_text("x = 1\n")


def _unstage(tree: Path, git: Git) -> None:
    _stage_new(tree, git)
    git("rm", "-q", "--cached", "new.py")


def _reset(tree: Path, git: Git) -> None:
    _stage(tree, git)
    git("commit", "-qm", "Another")
    git("reset", "-q", "--soft", "HEAD~1")


@pytest.mark.sample(6)
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize(
    ("change", "uncommitted"),
    [
        (None, False),
        (_edit, True),
        (_stage, True),
        (_stage_new, True),
        (_remove, True),
        (_lead_elsewhere, True),
        (_reset, True),
        (_touch, False),
        (_untracked, False),
        (_unstage, False),
    ],
)
def test_changes_are_what_git_says(
    tmp_path: Path,
    git: Git,
    change: Callable[[Path, Git], None] | None,
    version: str,
    *,
    uncommitted: bool,
    packed: bool,
) -> None:
    tree = tmp_path / "tree"
    git("update-index", "--index-version", version)
    if change is not None:
        change(tree, git)
    if packed:
        git("gc", "-q")
    assert changes(tree) is uncommitted


def test_a_copy_with_other_times_is_read(tmp_path: Path, git: Git) -> None:
    assert git("rev-parse", "HEAD")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "tree", copy, symlinks=True, copy_function=shutil.copy)
    told = commit(copy)
    assert told is not None
    assert told["uncommitted"] is False
    (copy / "a.py").write_text("# A.py\n")
    told = commit(copy)
    assert told is not None
    assert told["uncommitted"] is True


def test_a_linked_work_tree_has_changes_of_its_own(tmp_path: Path, git: Git) -> None:
    git("worktree", "add", "-q", "../linked")
    assert (changes(tmp_path / "linked"), changes(tmp_path / "tree")) == (False, False)
    (tmp_path / "linked" / "a.py").write_text("x = 2\n")
    assert (changes(tmp_path / "linked"), changes(tmp_path / "tree")) == (True, False)


def test_what_cannot_be_read_is_not_known(tmp_path: Path, git: Git) -> None:
    git("gc", "-q")
    for pack in (tmp_path / "tree/.git/objects/pack").glob("*.idx"):
        pack.chmod(0o644)
        pack.write_bytes(b"something else")
    told = commit(tmp_path / "tree")
    assert told is not None
    assert told["uncommitted"] is None
