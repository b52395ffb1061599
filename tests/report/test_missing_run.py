from __future__ import annotations

import pytest

from reenact.report.missing_run import blind_option, unrecorded


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -I agent.py", "I"),
        ("/usr/bin/python3.12 -uE agent.py", "E"),
        ("python -X dev -W error -S -m agent", "S"),
        ("python -Wignore -Xdev agent.py -I", ""),
        ("python -c -I", ""),
        ("python -mIES", ""),
        ("python --check-hash-based-pycs default -I agent.py", "I"),
        ("python - -I", ""),
        ("python", ""),
        ("pythonic -I", ""),
        ("node -E agent.js", ""),
    ],
)
def test_an_option_that_hides_the_recorder_is_seen_where_the_interpreter_takes_it(command: str, option: str) -> None:
    assert blind_option(command.split()) == option


@pytest.mark.parametrize(
    ("loaded", "code", "said"),
    [
        (0, 0, "no Python process of it loaded the recorder"),
        (1, 0, "made no call over a known HTTP client"),
        (3, 7, "ended with exit code 7 before its first call"),
        (1, 143, "ended with exit code 143, as SIGTERM does it, before its first call"),
        (None, 0, "made no call over a known HTTP client"),
    ],
)
def test_the_reason_is_the_true_one(loaded: int | None, code: int, said: str) -> None:
    assert said in unrecorded(["./agent"], loaded, code)
