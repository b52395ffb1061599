"""Which tests catch a mistake: some twenty in the core, made one at a time, and what the default tests say.

    python3 .ci/mutants.py [--ref COMMIT | --tree FOLDER] [--only 3,7] [--likely-only]

The mistakes are made in a throwaway worktree of a commit (HEAD if none is named), which is made with an environment of
its own and taken away at the end; or in a FOLDER that is such a worktree already. Each runs the tests that are most
likely to catch it, up to the first that fails, and the whole default suite only where none of these did. A test that
fails is run once more without the mistake: only one that passes then has caught it. To compare two suites, run it on
two commits. It takes an hour or more, and is no part of `make test`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNSURE = 5
"""How many tests that fail without a mistake as well are left out before it is said to have survived."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake of one line in the package."""

    file: str
    """Below src/reenact."""
    old: str
    """Text that the file holds exactly once."""
    new: str
    tests: str
    """Files and folders below tests, of which one is likely to catch it."""


MUTANTS = (
    Mutant(
        "record/journal.py",
        "self._started.clear()  # those spans are the parent's to end",
        "pass",
        "integrations/test_processes.py record",
    ),
    Mutant("record/recorder.py", "elif status >= _FIRST_ERROR_STATUS:", "elif status > 599:", "record matrix"),
    Mutant(
        "record/journal.py",
        'payload["attributes"]["reenact.order.end"] = ',
        'payload["attributes"]["reenact.order.end"] = 0 if True else ',
        "replay/test_replayer.py record",
    ),
    Mutant(
        "replay/stubs.py",
        "self.taken.add(stub.node.id)",
        "pass",
        "replay/test_stubs.py replay",
    ),
    Mutant(
        "replay/stubs.py",
        "            and not isinstance(stub.node.outcome, Unfinished)\n",
        "",
        "replay compare journeys/test_divergences.py",
    ),
    Mutant(
        "replay/release.py",
        "if self._current() == order and not self._pending(order, lane):",
        "if not self._pending(order, lane):",
        "replay/test_release.py",
    ),
    Mutant(
        "replay/guard.py",
        "if touch.kind in side_effects.WRITES:",
        "if touch.kind not in side_effects.WRITES:",
        "replay/test_guard.py",
    ),
    Mutant(
        "replay/partial_match.py",
        "if comparison is not None and not comparison.differs:\n                    fits.append((node, comparison))",
        "if comparison is not None:\n                    fits.append((node, comparison))",
        "replay/test_partial_match.py",
    ),
    Mutant("boundary/lanes.py", "self._spawned[label] = number + 1", "self._spawned[label] = number", "boundary"),
    Mutant(
        "boundary/question.py",
        "for name, value in body.items() if name not in shape.noise}}",
        "for name, value in body.items()}}",
        "replay matrix boundary laws/test_shapes.py",
    ),
    Mutant(
        "graph/verdict.py",
        "grade = Grade.PARTIAL if reasons else Grade.EXACT",
        "grade = Grade.EXACT",
        "graph/test_verdict.py",
    ),
    Mutant(
        "graph/verdict.py",
        "case Streamed(end=StreamEnd.UNFINISHED):",
        "case Streamed(end=StreamEnd.RAISED):",
        "graph/test_verdict.py graph",
    ),
    Mutant(
        "graph/join.py",
        "above = len(lane) if",
        "above = -len(lane) if",
        "graph/test_join.py",
    ),
    Mutant(
        "compare/align.py",
        "and node.id not in left_out and not is_root(node, run)",
        "and node.id not in left_out",
        "compare report",
    ),
    Mutant(
        "compare/judge.py",
        "if node_id in of.nodes and node_id not in failed]",
        "if node_id in of.nodes]",
        "compare/test_judge.py replay",
    ),
    Mutant(
        "redact/engine.py",
        "new, names = self._stands_for(UNSCANNED, text, place), (UNSCANNED,)",
        "new, names = text, ()",
        "redact/test_limits.py",
    ),
    Mutant(
        "redact/scan.py",
        "if row.credential and _IN_A_WORD.match(text, end - 1, end + 1):",
        "if _IN_A_WORD.match(text, end - 1, end):",
        "redact laws/test_detectors.py",
    ),
    Mutant(
        "formats/otlp_json.py",
        "if line.size and (head != line.head or span.trace_id != line.trace_id",
        "if line.size and (span.trace_id != line.trace_id",
        "laws/test_formats.py",
    ),
    Mutant(
        "dialects/genai.py",
        "if asked is None or not asked.messages:",
        "if asked is None:",
        "dialects/test_genai_prompt.py laws/test_dialects.py encodings laws/test_foreign_dialects.py foreign",
    ),
    Mutant(
        "stores/directory.py",
        "if not _PREFIX.fullmatch(prefix):",
        "if not _PREFIX.match(prefix):",
        "stores cli",
    ),
    Mutant(
        "errors.py",
        "    exit_code = 125",
        "    exit_code = 3",
        "test_errors.py cli integrations/test_celery.py journeys/test_input.py",
    ),
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A worktree with an environment, in which mistakes are made."""

    top: Path

    def apply(self, mutant: Mutant) -> bool:
        """Make a mistake; tell whether its line is there."""
        path = self.top / "src" / "reenact" / mutant.file
        source = path.read_text(encoding="utf-8")
        if source.count(mutant.old) != 1:
            return False
        path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        self._touch(path)
        return True

    def mend(self, mutant: Mutant) -> None:
        """Take a mistake back."""
        path = self.top / "src" / "reenact" / mutant.file
        subprocess.run(["git", "checkout", "--quiet", "--", str(path)], cwd=self.top, check=True)
        self._touch(path)

    @staticmethod
    def _touch(path: Path) -> None:
        # Python tells a changed source by its time in seconds and its size, which may both be as they were.
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            cached.unlink()

    def failing(self, *words: str) -> str:
        """Run tests up to the first that fails, and give its name; empty where all pass."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        command = [str(self.top / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-x", "--no-header", *words]
        done = subprocess.run(
            command, cwd=self.top, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode in {0, 5}:
            return ""
        found = FAILED.search(done.stdout)
        return found[1] if found else f"(pytest ended with {done.returncode})"

    def judge(self, mutant: Mutant, *, everything: bool) -> str:
        """Say what the tests make of a mistake."""
        likely = [str(path) for name in mutant.tests.split() if (path := self.top / "tests" / name).exists()]
        for words in [likely, ["-n", "2", "--dist", "worksteal"]] if everything else [likely]:
            unsure: list[str] = []
            while len(unsure) < UNSURE:
                if not self.apply(mutant):
                    return "NOT MADE: the line is not there"
                try:
                    name = self.failing(*words, *(f"--deselect={each}" for each in unsure))
                finally:
                    self.mend(mutant)
                if not name:
                    break
                if not name.startswith("tests/") or not self.failing(name):
                    return f"caught by {name}"
                unsure.append(name)  # it fails without the mistake, too
        return "SURVIVED"


@contextmanager
def worktree(ref: str) -> Iterator[Tree]:
    """Make a worktree of a commit with an environment of its own, and take it away again."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        top = Path(scratch) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(top), ref], cwd=ROOT, check=True)
        try:
            subprocess.run(["make", ".venv/.test"], cwd=top, check=True)
            yield Tree(top)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(top)], cwd=ROOT, check=False)


def run(tree: Tree, chosen: set[int], *, everything: bool) -> int:
    """Make every chosen mistake in turn, print a line for each, and give how many were not caught."""
    missed = 0
    for number, mutant in enumerate(MUTANTS, 1):
        if chosen and number not in chosen:
            continue
        said = tree.judge(mutant, everything=everything)
        missed += not said.startswith("caught")
        what = (mutant.new.strip() or "(taken out)").splitlines()[0][:50]
        print(f"{number:2} {mutant.file:24} {what:50} {said}", flush=True)
    print(f"{len(chosen or MUTANTS) - missed} caught, {missed} not")
    return missed


def main() -> int:
    """Read the words of the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ref", default="HEAD")
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--likely-only", action="store_true")
    given = parser.parse_args()
    chosen = {int(each) for each in given.only.split(",") if each}
    if given.tree:
        return 1 if run(Tree(given.tree.resolve()), chosen, everything=not given.likely_only) else 0
    with worktree(given.ref) as tree:
        return 1 if run(tree, chosen, everything=not given.likely_only) else 0


if __name__ == "__main__":
    sys.exit(main())
