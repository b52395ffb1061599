from __future__ import annotations

from pathlib import Path

import pytest

from reenact.record.words import without_secrets
from reenact.redact.engine import names_a_secret


def told(*words: str) -> list[str]:
    return without_secrets(words, lambda _, value: f"<{len(value)}>", names_a_secret)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["agent.py", "--api-key", "Zk39vBq7"], ["agent.py", "--api-key", "<8>"]),
        (["agent.py", "--token", "Zk39vBq7", "go"], ["agent.py", "--token", "<8>", "go"]),
        (["--password=hunter2"], ["--password=<7>"]),
        (["OPENAI_API_KEY=Zk39vBq7"], ["OPENAI_API_KEY=<8>"]),
        (["--max-token", "5"], ["--max-token", "5"]),
        (["--api-key", "--verbose"], ["--api-key", "--verbose"]),
        (["--model", "small-1", "--name=mara"], ["--model", "small-1", "--name=mara"]),
        (["--db-password", "a b"], ["--db-password", "a b"]),
        (["--password"], ["--password"]),
    ],
)
def test_the_value_of_an_option_that_names_a_secret_is_a_token(words: list[str], kept: list[str]) -> None:
    assert told(*words) == kept


def test_the_name_of_a_file_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "id.pem"
    file.write_text("x")
    assert told("--private-key", str(file)) == ["--private-key", str(file)]
