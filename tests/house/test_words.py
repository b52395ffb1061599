from __future__ import annotations

import re
from pathlib import Path

import pytest

# No pattern matches its own spelling here.
MACHINE_PATHS = re.compile(rb"/(?:work|farm|root)/[\w.]|/tmp/bash_job[s]|/home/(?!user/|me/|app/)\w+/\w")
REGISTRIES = re.compile(
    rb"\b(?:pypi\.(?:org|python\.org)|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|crates\.io|rubygems\.org"
    rb"|proxy\.golang\.org|conda\.anaconda\.org|ghcr\.io|quay\.io|gcr\.io|docker\.io|mcr\.microsoft\.com)\b"
)


@pytest.mark.parametrize("pattern", [MACHINE_PATHS, REGISTRIES], ids=["machine paths", "registry hosts"])
def test_no_file_speaks_of_the_machine_it_was_written_on(
    root: Path, files: list[Path], pattern: re.Pattern[bytes]
) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:120]!r}"
        for path in files
        for number, line in enumerate((root / path).read_bytes().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (MACHINE_PATHS, "open('/wo|rk/main/x')"),
        (MACHINE_PATHS, "/ro|ot/.venv"),
        (MACHINE_PATHS, "/ho|me/jane/src"),
        (REGISTRIES, "https://pypi|.org/simple"),
        (REGISTRIES, "ghcr|.io/a/b:1"),
    ],
)
def test_the_patterns_see_what_they_are_for(pattern: re.Pattern[bytes], said: str) -> None:
    assert pattern.search(said.replace("|", "").encode())
    assert not pattern.search(said.encode())
