"""Secrets that what stands beside them calls so: pairs of name and value, cells under a heading, items of a command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.redact.engine import Engine

WORD = "correct" + "horse"  # nothing but what stands beside it says that this is a password
OTHER = "battery" + "staple"
KEY = "q7Zp2Lm9" + "Xw4Tr8Vb3N"
ENGINE = Engine(key=b"k" * 32, salt="ab" * 16)

PAIRS: dict[str, Any] = {
    "name and value": {"name": "password", "value": WORD},
    "value first": {"value": WORD, "name": "password"},
    "key": {"key": "api_key", "value": WORD},
    "header": {"header": "Cookie", "value": WORD},
    "something between": {"name": "client_secret", "type": "string", "required": True, "value": WORD},
    "in a list": [{"name": "user", "value": "bob"}, {"name": "X-API-Key", "value": WORD}, {"name": "a", "value": "b"}],
    "OTLP": {"attributes": [{"key": "password", "value": {"stringValue": WORD}}]},
    "OTLP, value first": {"attributes": [{"value": {"stringValue": WORD}, "key": "password"}]},
    "pairs of headers": [["Authorization", WORD], ["Accept", "x"]],
    "escaped": {"name": "password", "value": f'{WORD}"\\\n'},
    "a command": ["tool", "--api-key", KEY, "run"],
    "a command, last": ["tool", "--password", f"{WORD}9!"],
    "JSON in a string": {"body": json.dumps({"name": "password", "value": WORD})},
}
TABLES = {
    "CSV": f"user,password,role\nbob,{WORD},admin\nann,{OTHER},user\n",
    "CSV, blanks": f"user, password, role\nbob, {WORD}, admin\nann, {OTHER}, user\n",
    "CSV, quoted": f'"user","api_key"\r\n"bob","{WORD} x"\r\n"ann","{OTHER}, ""y"""\r\n',
    "tabs": f"user\tPassword Hash\nbob\t{WORD}\nann\t{OTHER}",
    "semicolons": f"user;db_password\nbob;{WORD}\nann;{OTHER}\n",
    "Markdown": f"Users:\n\n| user | password |\n|---|:---:|\n| bob | {WORD} |\n| ann | `{OTHER}` |\n\nDone.",
    "Markdown, no edges": f"user | API key\n--- | ---\nbob | {WORD}\nann | {OTHER}\n",
}
LEFT = {
    "a sentence": "Enter user, password, and role\nThen wait, breathe, and go\n",
    "code": "def login(user, password, role):\n    check(user, secrets, role)\n",
    "SQL": "SELECT user, password FROM accounts\nWHERE a, b = c, d\n",
    "what a field is": "| field | password |\n|---|---|\n| required | yes |\n| type | string |\n",
    "a description": "| name | secret |\n|---|---|\n| a | how it is kept in the vault of the team |\n",
    "no row": "user,password\n",
    "another width": "user,password\nhello there\n",
    "a pair that names no secret": json.dumps({"name": "title", "value": WORD}),
    "a list of words": json.dumps(["password", WORD, "token"]),
    "an option and a name": json.dumps(["sort", "--key", "column"]),
    "two options": json.dumps(["tool", "--api-key", "--verbose"]),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("indent", [None, 2], ids=["compact", "indented"])
def test_what_a_name_beside_it_calls_a_secret_is_found(name: str, indent: int | None) -> None:
    text = json.dumps(PAIRS[name], indent=indent)
    clean = ENGINE.text(text)
    assert WORD not in clean
    assert KEY not in clean
    assert json.dumps(json.loads(clean), indent=indent) == clean
    assert ENGINE.text(clean) == clean
    assert ENGINE.text(json.dumps({"messages": [{"role": "tool", "content": text}]})).count(WORD) == 0


@pytest.mark.parametrize("name", TABLES)
def test_cells_under_a_heading_are_found(name: str) -> None:
    for text in (TABLES[name], json.dumps({"out": TABLES[name]})):
        clean = ENGINE.text(text)
        assert WORD not in clean
        assert OTHER not in clean
        assert "bob" in clean
        assert ENGINE.text(clean) == clean


@pytest.mark.parametrize("name", LEFT)
def test_what_only_looks_like_it_is_left(name: str) -> None:
    assert ENGINE.text(LEFT[name]) == LEFT[name]


def test_in_a_conversation_that_grows_it_is_found_in_every_request() -> None:
    engine = Engine(key=b"k" * 32, salt="ab" * 16)
    messages: list[Any] = [{"role": "user", "content": "x" * 3000}]
    for turn in range(4):
        messages.append({"role": "tool", "content": json.dumps({"value": f"{WORD}{turn}", "name": "password"})})
        messages.append({"role": "assistant", "content": [{"name": "password", "value": f"{OTHER}{turn}"}]})
        clean = engine.text(json.dumps({"messages": messages}))
        assert WORD not in clean
        assert OTHER not in clean
