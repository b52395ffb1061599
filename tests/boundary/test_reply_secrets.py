"""Headers of replies that may hold a secret: what is kept of them, and what comes back."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary.reply_secrets import hide, spell_back
from reenact.redact.engine import Engine
from reenact.values import known_secrets
from reenact.values.known_secrets import bytes_without_secrets, stand_in, without_secrets

SECRET = "s%3Afour-score-and-7-years-ago"
TOKEN = re.compile(r"REDACTED_known_secret_[0-9a-f]{20}")


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """Look for none of these secrets in what comes after."""
    yield
    known_secrets._STAND_INS.clear()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_secrets, "_STAND_INS", {})


def test_of_a_cookie_name_and_attributes_are_kept_and_come_back() -> None:
    name, value = hide("Set-Cookie", f"session={SECRET}; Path=/; HttpOnly")
    assert re.fullmatch(rf"session={TOKEN.pattern}; Path=/; HttpOnly", value)
    assert spell_back([(name, value), ("via", "1.1 gate")]) == [("Set-Cookie", value), ("via", "1.1 gate")]
    assert hide("set-cookie", "theme=dark; Path=/") == (":set-cookie", "theme=dark; Path=/")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("begin", ["s", "sixteen-characters-at-least"])
def test_what_a_semicolon_parts_from_a_value_is_no_attribute(begin: str) -> None:
    _, value = hide("Set-Cookie", f"session={begin};{SECRET};; Max-Age=60; secure")
    assert re.fullmatch(rf"session=(s|{TOKEN.pattern}); {TOKEN.pattern};; Max-Age=60; secure", value)
    assert without_secrets(f"as agreed, {SECRET}") == f"as agreed, {SECRET}"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ('Digest realm="a", nonce="5ccc069c403ebaf9f0171e9517f40e41"', True),
        ('Basic realm="a"', True),
        ('Bearer realm="a", error="invalid_token"', True),
        ("Negotiate", True),
        ("Negotiate oYG2MIGzoAMKAQGhCwYJKoZIgvcS", False),
    ],
)
def test_a_challenge_is_kept_where_its_parameters_are_public(value: str, *, kept: bool) -> None:
    name, hidden = hide("WWW-Authenticate", value)
    assert name == "WWW-Authenticate"
    assert (hidden == value) is kept
    assert hidden.partition(" ")[0] == value.partition(" ")[0]


@given(st.text(min_size=16, max_size=60))
def test_equal_secrets_have_one_stand_in_that_stands_for_itself(secret: str) -> None:
    token = stand_in(secret)
    assert stand_in(secret) == token
    assert secret.startswith("REDACTED_") or TOKEN.fullmatch(token)
    assert stand_in(token) == token


def test_a_uuid_has_a_uuid() -> None:
    secret = str(uuid.uuid4())
    assert uuid.UUID(stand_in(secret)).version == 4
    assert stand_in(secret) != secret


@pytest.mark.usefixtures("fresh")
def test_a_secret_is_replaced_wherever_it_comes_later_and_a_short_one_is_not_looked_for() -> None:
    engine = Engine()
    text = f"csrf={SECRET}&again={SECRET.replace('%3A', ':')}&dark"
    assert engine.attributes({"a.b": text})["a.b"] == text
    token = stand_in(SECRET)
    stand_in("dark")
    stand_in("0" * 40)
    assert without_secrets("10000000000000000") == "10000000000000000"
    wanted = f"csrf={token}&again={token}&dark"
    assert without_secrets(text) == wanted
    assert bytes_without_secrets(text.encode()) == wanted.encode()
    clean = engine.attributes({"a.b": text, "c.d": ("x", SECRET), "e": 1})
    assert (clean["a.b"], list(clean["c.d"]), clean["e"]) == (wanted, ["x", token], 1)


@pytest.mark.usefixtures("fresh")
def test_the_latest_secrets_are_looked_for() -> None:
    for number in range(200):
        stand_in(f"the secret with the number {number}")
    assert without_secrets("the secret with the number 0") == "the secret with the number 0"
    assert TOKEN.fullmatch(without_secrets("the secret with the number 199"))


@pytest.mark.parametrize("value", ["Sat, 28 Nov 2026 03:00:00 GMT", "2026-11-28T03:00:00.000Z", "true"])
def test_a_date_is_no_secret(value: str) -> None:
    assert hide("X-Session-Expires", value) == ("X-Session-Expires", value)


@pytest.mark.usefixtures("fresh")
def test_of_a_secret_that_holds_another_no_part_stays() -> None:
    short, long = stand_in("sixteen-letters-1"), stand_in("sixteen-letters-1-and-more")
    assert without_secrets("sixteen-letters-1-and-more, sixteen-letters-1") == f"{long}, {short}"
    assert bytes_without_secrets(b"sixteen-letters-1-and-more") == long.encode()
