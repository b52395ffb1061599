from __future__ import annotations

import random
import string

import pytest

from reenact.redact.engine import Engine
from reenact.redact.fields import TOKEN_MARK

ALPHANUMERIC = string.ascii_letters + string.digits
URL_SAFE = f"{ALPHANUMERIC}_-"
SALT = "00" * 16


def drawn(alphabet: str, count: int, seed: int = 1) -> str:
    chance = random.Random(f"{alphabet} {count} {seed}")
    return "".join(chance.choice(alphabet) for _ in range(count - 2)) + "a1"


# the rule, a secret of its class, and what surrounds it where a surrounding is what tells it

EXAMPLES: list[tuple[str, str, str]] = [
    ("private_key", f"-----BEGIN RSA PRIVATE KEY-----\n{drawn(ALPHANUMERIC, 60)}\n-----END RSA PRIVATE KEY-----", "{}"),
    ("private_key", f"-----BEGIN PRIVATE KEY-----\n{drawn(ALPHANUMERIC, 60)}\n-----END PRIVATE KEY-----", "{}"),
    ("private_key", f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{drawn(URL_SAFE, 90)}\n-----END PGP PRIVATE KEY", "{}"),
    ("anthropic_key", f"sk-ant-api03-{drawn(URL_SAFE, 80)}", "{}"),
    ("openai_key", f"sk-{drawn(ALPHANUMERIC, 48)}", "{}"),
    ("openai_key", f"sk-proj-{drawn(URL_SAFE, 120)}", "{}"),
    ("openai_key", f"sk-svcacct-{drawn(URL_SAFE, 60)}", "{}"),
    ("aws_access_key", f"AKIA{drawn(string.ascii_uppercase, 16).upper()}", "{}"),
    ("aws_access_key", f"ASIA{drawn(string.ascii_uppercase, 16).upper()}", "{}"),
    *(("github_token", f"gh{kind}_{drawn(ALPHANUMERIC, 36)}", "{}") for kind in "pousr"),
    ("github_pat", f"github_pat_{drawn(ALPHANUMERIC, 22)}_{drawn(ALPHANUMERIC, 59)}", "{}"),
    ("gitlab_token", f"glpat-{drawn(URL_SAFE, 20)}", "{}"),
    *(("slack_token", f"xox{kind}-{drawn(string.digits, 12)}-{drawn(ALPHANUMERIC, 24)}", "{}") for kind in "abeprs"),
    ("slack_webhook", "T0000A1/B0000/abcdefghijkl123456", "https://hooks.slack.com/services/{}"),
    ("google_api_key", f"AIza{drawn(URL_SAFE, 35)}", "{}"),
    ("google_oauth", f"ya29.{drawn(URL_SAFE, 60)}", "{}"),
    ("stripe_key", f"sk_live_{drawn(ALPHANUMERIC, 24)}", "{}"),
    ("stripe_key", f"rk_test_{drawn(ALPHANUMERIC, 24)}", "{}"),
    ("stripe_webhook", f"whsec_{drawn(ALPHANUMERIC, 32)}", "{}"),
    ("huggingface_token", f"hf_{drawn(ALPHANUMERIC, 34)}", "{}"),
    ("groq_key", f"gsk_{drawn(ALPHANUMERIC, 52)}", "{}"),
    ("npm_token", f"npm_{drawn(ALPHANUMERIC, 36)}", "{}"),
    ("pypi_token", f"pypi-{drawn(URL_SAFE, 90)}", "{}"),
    ("sendgrid_key", f"SG.{drawn(URL_SAFE, 22)}.{drawn(URL_SAFE, 43)}", "{}"),
    ("digitalocean_token", f"dop_v1_{drawn('abcdef0123456789', 64)}", "{}"),
    ("jwt", f"eyJ{drawn(URL_SAFE, 30)}.eyJ{drawn(URL_SAFE, 60)}.{drawn(URL_SAFE, 43)}", "{}"),
    ("authorization", drawn(ALPHANUMERIC, 40), "Authorization: Bearer {}"),
    ("authorization", drawn(ALPHANUMERIC, 40), "authorization: bearer {}"),
    ("authorization", "dXNlcjpwYXNzd29yZA==", "Basic {}"),
    ("url_password", "pa55word", "postgres://user:{}@database:5432/orders"),
    ("url_password", "pa55word", "redis://:{}@cache:6379/0"),
    ("url_secret", drawn(ALPHANUMERIC, 30), "https://host/path?key={}&other=1"),
    ("url_secret", drawn(ALPHANUMERIC, 30), "https://host/path?a=1&access_token={}"),
    ("url_secret", drawn(ALPHANUMERIC, 30), "https://host/path?a=1;X-Amz-Security-Token={}#there"),
    ("url_secret", drawn(ALPHANUMERIC, 30), "https://account.host/blob?sv=2024&sig={}"),
    ("assignment", "n0tsoSimple", "password = {}"),
    ("assignment", "n0tsoSimple", 'export MY_SECRET_KEY="{}"'),
    ("assignment", "n0tsoSimple", "--api-key={}"),
    ("command_secret", "n0tsoSimple", "deploy --my_key={} now"),
    ("command_secret", "n0tsoSimple", "deploy --my-key {} now"),
    ("command_secret", "n0tsoSimple", "deploy --db-user_token={} now"),
    ("command_secret", "n0tsoSimple", "deploy --0_pass {} now"),
    ("command_secret", "n0tsoSimple", "deploy ---my_key={} now"),
    ("assignment", "n0tsoSimple", "{{'apiKey': '{}'}}"),
]


@pytest.mark.parametrize(("name", "secret", "around"), EXAMPLES, ids=lambda value: value[:24].replace("\n", " "))
def test_a_secret_of_every_class_is_found_wherever_it_stands(name: str, secret: str, around: str) -> None:
    """In Chinese, too, where no space stands between words."""
    for before, after in (("", ""), ("It is ", ", keep it."), ("(", ")"), ("密钥是", "。"), ("näher: ", "\n")):
        engine = Engine(salt=SALT)
        text = before + around.format(secret) + after
        clean = engine.text(text)
        assert secret not in clean
        assert f"{TOKEN_MARK}{name}_" in clean
        assert clean == before + around.format(engine.token(name, secret)) + after
        assert engine.replaced == {name: 1}
        assert engine.text(clean) == clean


NEAR_MISSES = [
    "sk-short",
    "task-force-alpha-bravo",
    "ask-anything-you-would-like-to-know",
    "risk-assessment-of-the-whole-portfolio",
    "AKIA is a prefix",
    "AKIA1234",
    "ghp_tooshort",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJ.a.b",
    "the bearer of good news is here",
    "basic understanding",
    "https://host:8080/path@version",
    "https://host/path?page=2&sort=asc&keyword=tea",
    "mailto:someone@host",
    "password: please choose one",
    "the secret is patience",
    "max_tokens: 4096, prompt_tokens: 12345678, total_tokens=123456789",
    "token_count=10000000",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END CERTIFICATE-----",
    "0af7651916cd43dd8448eb211c80319c",
    "chatcmpl-9Zq2xYwVtS8rQpOnMlKjIhGfEdCbA",
    "call_9Zq2xYwVtS8rQpOnMlKjIhGf",
    "resp_0123456789abcdef0123456789abcdef",
    "hf_model",
    "npm_config_registry",
    "SG.short.short",
]


@pytest.mark.parametrize("text", NEAR_MISSES, ids=lambda text: text[:24].replace("\n", " "))
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    engine = Engine(salt=SALT)
    assert engine.text(text) == text
    assert engine.text(f"Look: {text}.") == f"Look: {text}."
    assert not engine.replaced


def test_a_secret_that_goes_on_past_its_pattern_is_replaced_to_its_end() -> None:
    key = "AIza" + drawn(ALPHANUMERIC, 35)
    engine = Engine(salt=SALT)
    longer = key + drawn(ALPHANUMERIC, 20, seed=2)
    assert engine.text(f"key {longer}, kept") == f"key {engine.token('google_api_key', longer)}, kept"
