from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.engine import Engine, credentials_in, names_a_secret
from reenact.redact.fields import OPAQUE_KEYS, SENSITIVE_KEYS, TOKEN_MARK
from strategies_call import json_values

SECRET = "ghp_" + "aB3d" * 9
OTHER = "ghp_" + "zY9x" * 9
SALT, OTHER_SALT = "00" * 16, "11" * 16


@pytest.fixture
def engine() -> Engine:
    return Engine(salt=SALT)


# tokens


def test_one_value_has_one_token_and_another_salt_gives_another(engine: Engine) -> None:
    twice = engine.text(f"{SECRET} {SECRET} {OTHER}").split()
    assert twice[0] == twice[1] != twice[2]
    assert Engine(salt=SALT).text(SECRET) == twice[0]
    assert Engine(salt=OTHER_SALT).text(SECRET) != twice[0]
    assert Engine(key=b"the project's").text(SECRET) == Engine(key=b"the project's").text(SECRET) != twice[0]


def test_without_salt_or_key_every_run_has_its_own() -> None:
    one, two = Engine(), Engine()
    assert one.salt != two.salt
    assert one.text(SECRET) != two.text(SECRET)
    assert Engine(salt=one.salt).text(SECRET) == one.text(SECRET)


def test_a_project_key_travels_with_no_trace() -> None:
    assert Engine(key=b"the project's").salt == ""


def test_a_token_says_the_class_and_nothing_of_the_value(engine: Engine) -> None:
    token = engine.text(SECRET)
    assert token.startswith(f"{TOKEN_MARK}github_token_")
    assert len(token) == len(f"{TOKEN_MARK}github_token_") + 20
    assert SECRET[4:10] not in token


def test_the_policy_is_named_by_its_rules() -> None:
    assert Engine().policy_digest == Engine(key=b"another").policy_digest
    assert len(Engine().policy_digest) == 32


# JSON


@pytest.mark.parametrize(
    "spelling",
    [
        '{"a":"%s","n":1.0,"e":1e5,"u":"\\u00e9","s":"\\/"}',
        '{ "a" : "%s" ,\n  "big": 12345678901234567890123 }',
        '[ "%s", [ ], { }, -0.0, 1E+2, "é" ]',
    ],
)
def test_json_keeps_its_spelling_apart_from_the_token(engine: Engine, spelling: str) -> None:
    assert engine.text(spelling % SECRET) == spelling % engine.token("github_token", SECRET)


def test_json_in_json_in_json_is_looked_into(engine: Engine) -> None:
    text = json.dumps({"api_key": "n0t-a-pattern", "other": SECRET})
    for _ in range(4):
        text = json.dumps({"body": text})
    clean = engine.text(text)
    assert "n0t-a-pattern" not in clean
    assert SECRET not in clean
    for _ in range(4):
        clean = json.loads(clean)["body"]
    assert json.loads(clean).keys() == {"api_key", "other"}


@pytest.mark.parametrize("escape", ["\\u0067hp_", "g\\u0068p_", "ghp\\u005f"])
def test_an_escape_does_not_hide_a_secret(engine: Engine, escape: str) -> None:
    clean = engine.text(f'{{"a":"{escape}{SECRET[4:]}"}}')
    assert SECRET[4:] not in clean
    assert json.loads(clean)["a"] == engine.token("github_token", SECRET)


def test_a_secret_in_a_key_is_found(engine: Engine) -> None:
    assert SECRET not in engine.text(json.dumps({SECRET: 1}))
    assert SECRET not in str(engine.attributes({SECRET: 1}))


def test_a_value_that_is_a_secret_in_one_place_only(engine: Engine) -> None:
    """Under a sensitive key any value is a secret; the same word elsewhere is none."""
    clean = json.loads(engine.text('{"password": "monday", "day": "monday", "n": 1}'))
    assert clean["password"].startswith(TOKEN_MARK)
    assert (clean["day"], clean["n"]) == ("monday", 1)


@given(value=json_values)
def test_any_json_is_given_back_as_it_is_where_it_holds_no_secret_and_redaction_is_idempotent(value: Any) -> None:
    engine = Engine(salt=SALT)
    text = orjson.dumps(value).decode()
    clean = engine.text(text)
    assert engine.text(clean) == clean
    if not engine.replaced:
        assert clean == text


@given(value=json_values, place=st.integers(0, 50))
def test_a_secret_anywhere_in_any_json_is_found(value: Any, place: int) -> None:
    del place
    engine = Engine(salt=SALT)
    assert SECRET not in engine.text(orjson.dumps([value, {"k": [f"x {SECRET} y"]}, value]).decode())


# keys that say that their value is a secret


@pytest.mark.parametrize("key", sorted(SENSITIVE_KEYS))
def test_a_sensitive_key_s_value_is_a_secret_whatever_it_looks_like(engine: Engine, key: str) -> None:
    for spelled in (key, key.upper(), key.title()):
        clean = json.loads(engine.text(json.dumps({"a": {spelled: "correct horse"}, "list": [{spelled: ["x y"]}]})))
        assert clean["a"][spelled].startswith(TOKEN_MARK)
        assert clean["list"][0][spelled][0].startswith(TOKEN_MARK)


@pytest.mark.parametrize(
    "key",
    ["apiKey", "clientSecret", "accessToken", "refreshToken", "idToken", "authToken", "privateKey", "secretKey"],
)
def test_the_same_in_the_spelling_of_javascript(engine: Engine, key: str) -> None:
    assert json.loads(engine.text(json.dumps({key: "correct horse"})))[key].startswith(TOKEN_MARK)


def test_of_a_value_that_is_all_secret_no_part_is_left(engine: Engine) -> None:
    clean = json.loads(engine.text(json.dumps({"cookie": f"session=for-me; github={SECRET}", "n": 1})))["cookie"]
    assert clean == engine.token("keyed_value", f"session=for-me; github={SECRET}")
    assert engine.text(json.dumps({"cookie": clean})) == json.dumps({"cookie": clean})


def test_a_schema_that_speaks_of_passwords_stays(engine: Engine) -> None:
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string"}, "api_key": {"type": "string", "description": "The key."}},
        "required": ["password"],
    }
    text = json.dumps({"tools": [{"parameters": schema}]})
    assert engine.text(text) == text


@pytest.mark.parametrize("key", ["usage", "llm"])
def test_counters_of_tokens_stay(engine: Engine, key: str) -> None:
    counters = {
        "prompt_tokens": 123456789,
        "completion_tokens": 1,
        "total_tokens": 2,
        "max_tokens": 3,
        "max_completion_tokens": 4,
        "input_tokens_details": {"cached_tokens": 5},
        "token": "a word",
        "tokens": ["a", "b"],
        "logprobs": [{"token": "sk", "bytes": [1]}],
    }
    text = json.dumps({key: counters})
    assert engine.text(text) == text
    attributes = {"llm.token_count.prompt": 1, "gen_ai.usage.input_tokens": 2, "gen_ai.request.max_tokens": 3}
    assert engine.attributes(attributes) == attributes


@pytest.mark.parametrize("key", sorted(OPAQUE_KEYS))
def test_opaque_fields_are_never_rewritten(engine: Engine, key: str) -> None:
    text = json.dumps({"content": [{key: f"x{SECRET}y {SECRET}"}]})
    assert engine.text(text) == text


# exact secrets


def test_known_secrets_are_replaced_wherever_they_occur() -> None:
    engine = Engine(salt=SALT, known_secrets={"SHOP_API_KEY": "tea-house-no-17"})
    for text in ("say tea-house-no-17!", '{"a":"tea-house-no-17"}', "xtea-house-no-17x", "?k=tea-house-no-17"):
        assert "tea-house-no-17" not in engine.text(text)


def test_a_known_secret_that_begins_another_leaves_nothing_of_it() -> None:
    engine = Engine(salt=SALT, known_secrets={"A_KEY": "abcdef123456", "B_KEY": "abcdef123456-and-more-7"})
    assert "more" not in engine.text("it is abcdef123456-and-more-7")


def test_words_and_placeholders_in_the_environment_are_no_secrets() -> None:
    engine = Engine(
        salt=SALT, known_secrets={"A_KEY": "test", "B_TOKEN": "placeholder", "C_KEY": f"{TOKEN_MARK}x_0123456789"}
    )
    text = f"a test with a placeholder and {TOKEN_MARK}x_0123456789"
    assert engine.text(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True),
        ("DB_PASSWORD", True),
        ("GITHUB_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("PATH", False),
        ("PWD", False),
        ("KEYBOARD", False),
        ("OPENAI_MODEL", False),
    ],
)
def test_which_variables_hold_secrets(name: str, *, secret: bool) -> None:
    assert names_a_secret(name) == secret
    assert credentials_in({name: "value", "EMPTY_KEY": ""}) == ({name: "value"} if secret else {})


# attributes


def test_attributes_of_every_kind(engine: Engine) -> None:
    given = {
        "input.value": json.dumps({"messages": [{"role": "user", "content": f"use {SECRET}"}]}),
        "url.full": "https://host/v1/chat?api-version=1&key=aB3dE5gH7jK9",
        "http.request.header.authorization": ["Bearer short-but-secret-0"],
        "tag.tags": ("plain", SECRET),
        "nested": {"deep": [{"password": "x"}], "n": 1},
        "bytes": f"raw {SECRET}".encode(),
        "binary": b"\xff\x00" + SECRET.encode(),
        "number": 12,
        "ratio": 0.5,
        "flag": True,
        "none": None,
        "plain": "nothing here",
    }
    clean = engine.attributes(given)
    assert list(clean) == list(given)
    assert SECRET not in str({name: value for name, value in clean.items() if name != "binary"})
    assert clean["url.full"].startswith("https://host/v1/chat?api-version=1&key=REDACTED_url_secret_")
    assert clean["http.request.header.authorization"][0].startswith(f"Bearer {TOKEN_MARK}")
    assert clean["nested"]["deep"][0]["password"].startswith(TOKEN_MARK)
    for name in ("number", "ratio", "flag", "none", "plain"):
        assert clean[name] is given[name]
    assert clean["flag"] is True
    assert engine.attributes(clean) == clean


def test_attributes_that_were_clean_once_are_looked_at_again(engine: Engine) -> None:
    for number in range(3):
        assert SECRET not in str(engine.attributes({"a.b": "clean" if number < 2 else SECRET, "c.d": number}))


def test_a_conversation_that_grows_is_redacted_to_its_end(engine: Engine) -> None:
    messages: list[dict[str, str]] = []
    for number in range(30):
        messages.append({"role": "user", "content": f"turn {number} " + "word " * 50})
        if number % 7 == 3:
            messages.append({"role": "tool", "content": f"found {SECRET} at {number}"})
        clean = engine.text(json.dumps({"messages": messages}))
        assert SECRET not in clean
        assert clean.count(TOKEN_MARK) == sum(SECRET in message["content"] for message in messages)


def test_lone_surrogates_are_no_obstacle(engine: Engine) -> None:
    assert SECRET not in engine.text(f"caf\udce9 {SECRET}")
    assert SECRET not in str(engine.attributes({"file.name": f"caf\udce9 {SECRET}"}))


def test_a_piece_of_a_stream_is_no_text_of_its_own() -> None:
    engine, number = Engine(), "1795354763407865140"  # nanoseconds, of which the last sixteen digits pass for a card
    assert engine.text(number[3:]) != number[3:]
    pieces = [[0, 1, f"event 4: {number[:3]}"], [9, 2, f"{number[3:]}\nevent 5"], [12, 3, {"b64": "/w=="}]]
    attributes = {"reenact.stream.chunks": json.dumps(pieces), "x": 1}
    for _ in range(2):
        assert engine.attributes(attributes) == attributes
    secret = "ghp_" + "aB3dE5gH7j" * 4
    split = [[0, 1, f"is {secret[:20]}"], [5, 2, f"{secret[20:40]} now"]]
    told = json.loads(engine.attributes({"reenact.stream.chunks": json.dumps(split)})["reenact.stream.chunks"])
    assert [row[:2] for row in told] == [[0, 1], [5, 2]]
    assert secret[20:40] not in str(told)
    assert "REDACTED_github_token_" in told[0][2]
