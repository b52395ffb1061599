"""What agents print all day and nobody is harmed by: none of it is touched by the rules that are on by default."""

from __future__ import annotations

import json

import pytest

from reenact.redact.engine import Engine

KEY = b"a secret that never travels, of these tests"

ORDINARY = [
    # ids, digests and times
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "123e4567-e89b-42d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 1234567890123456789012345678901234567890",
    "chatcmpl-9Zq2xYwVtS8rQpOnMlKjIhGfEdCbA",
    "call_9Zq2xYwVtS8rQpOnMlKjIhGf",
    "toolu_01A09q90qw90lq917835lq9",
    "resp_0123456789abcdef0123456789abcdef0123456789abcdef",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    "2026-03-04T10:22:31.123456789Z",
    "2026-03-04 10:22:31,123 INFO",
    "20260304102231",
    "1718049600",
    "1718049600123",
    "1718049600123456789",
    "2026:03:04 10:22:31",
    "10:22:31:123",
    # threads, by `threading.get_ident`
    "4711 139860329431296 INFO looked up",
    '{"thread": 140018140482048}',
    # figures
    "0.12345678901234567",
    "-122.4194155, 37.7749295",
    "[0.0023064255, -0.009327292, 0.015797347]",
    "$1,234,567.89",
    "order 4711-0815-2026",
    "ISBN 978-3-16-148410-0",
    "page 12 of 345, 6789 words",
    "prompt_tokens: 12345678, completion_tokens: 901",
    "100 200 300",
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "version 1.2.3.4",
    "Chrome/120.0.6099.109",
    "v8 3.24.35.22",
    # machines that are nobody's
    "http://127.0.0.1:8000/v1 and http://localhost:11434",
    "listening on 0.0.0.0:8080, netmask 255.255.255.0, ::1",
    # programs
    "@pytest.fixture",
    "x = w@self.transpose(y)",
    "std::vector<int>::iterator",
    "git clone git@github.com:org/repo.git",
    "icon@2x.png",
    "react@18.2.0",
    "api_key=os.environ['OPENAI_API_KEY']",
    "client = OpenAI(api_key=settings.openai_api_key_2)",
    "password: str = Field(..., min_length=8)",
    "const apiKey = process.env.API_KEY2;",
    "secret: ${{ secrets.DEPLOY_KEY_1 }}",
    "token: string; password?: string;",
    "def access_token(self) -> Token:",
    "tls.Certificates[0].PrivateKey = testECDSAPrivateKey",
    "if next_page_token is None: break",
    # words
    "sk-short",
    "task-force-alpha-bravo",
    "sk-learn-is-a-library-with-many-modules",
    "ask-anything-you-would-like-to-know",
    "AKIA is a prefix",
    "ghp_tooshort",
    "hf_model",
    "npm_config_registry",
    "the bearer of good news is here",
    "basic understanding of JavaScript/TypeScript",
    "password: please choose one",
    "the secret is patience",
    "the password is required",
    "https://host:8080/path@version",
    "https://host/path?page=2&sort=asc&keyword=tea&key=name",
    "eyJhbGciOiJIUzI1NiJ9",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL0dLrZ8oW3g user",
]


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:24].replace("\n", " "))
def test_what_agents_print_all_day_stays(text: str) -> None:
    for whole in (text, f"Look: {text}.", json.dumps({"note": text}), f"- {text}\n- more"):
        engine = Engine(key=KEY)
        assert engine.text(whole) == whole
        assert not engine.replaced


def test_numbers_of_usage_and_time_stay_numbers() -> None:
    document = json.dumps(
        {
            "usage": {"prompt_tokens": 411111111, "total_tokens": 4539578763621486},
            "created": 1718049600,
            "seed": 378282246,
        }
    )
    assert Engine(key=KEY).text(document) == document


CONTEXTS = [
    ("ssn", "536904399"),
    ("phone", "5551234567"),
    ("phone_number", 15551234567),
    ("iban", "DE89370400440532013000"),
    ("passport_number", "C01X00T47"),
    ("card", 4539578763621486),
    ("password", "correct horse"),
    ("client_secret", "n0tsoSimple"),
]


@pytest.mark.parametrize(("key", "value"), CONTEXTS)
def test_a_key_says_what_its_value_is(key: str, value: str | int) -> None:
    clean = json.loads(Engine(key=KEY).text(json.dumps({"user": {key: value, "id": "u-1"}})))
    assert clean["user"]["id"] == "u-1"
    assert str(value) not in json.dumps(clean)
    assert str(clean["user"][key]).startswith("REDACTED_")
