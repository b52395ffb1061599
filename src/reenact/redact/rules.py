"""What to look for: credentials, from the formats that the services publish. One row a rule.

A rule has keywords (literal, case-sensitive unless it says otherwise): a text in which none occurs is never scanned.
The secret is the group named `secret`, or the whole match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN_MARK = "REDACTED_"  # noqa: S105 - the mark of a token, not a token
"""How every token begins. Nothing that begins so is ever replaced, which makes redaction idempotent."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of secret."""

    name: str
    """Class name in tokens and counts: lower case, `_` for spaces."""
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, keywords: str, pattern: str, flags: int = 0) -> Rule:
    """Make a rule. Its letters and word boundaries are ASCII's: in Chinese, a key follows the text without a space."""
    return Rule(name, tuple(keywords.split("|")), re.compile(pattern, flags | re.ASCII))


RULES: tuple[Rule, ...] = (
    _rule(
        "private_key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----[\s\S]{1,16384}?-----END [A-Z0-9 ]{0,32}PRIVATE KEY",
    ),
    _rule("anthropic_key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_\-]{16,256}"),
    _rule("openai_key", "sk-", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_\-]{20,256}"),
    _rule("aws_access_key", "AKIA|ASIA", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    _rule("github_token", "ghp_|gho_|ghu_|ghs_|ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    _rule("github_pat", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b"),
    _rule("gitlab_token", "glpat-", r"\bglpat-[A-Za-z0-9_\-]{20,64}"),
    _rule("slack_token", "xox", r"\bxox[abeprs]-[A-Za-z0-9\-]{10,250}"),
    _rule("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,80})"),
    _rule("google_api_key", "AIza", r"\bAIza[A-Za-z0-9_\-]{35}"),
    _rule("google_oauth", "ya29.", r"\bya29\.[A-Za-z0-9_\-]{20,512}"),
    _rule("stripe_key", "k_live_|k_test_", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,128}\b"),
    _rule("stripe_webhook", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{24,128}"),
    _rule("huggingface_token", "hf_", r"\bhf_[A-Za-z0-9]{30,64}\b"),
    _rule("groq_key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,64}\b"),
    _rule("npm_token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _rule("pypi_token", "pypi-", r"\bpypi-[A-Za-z0-9_\-]{50,512}"),
    _rule("sendgrid_key", "SG.", r"\bSG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}"),
    _rule("digitalocean_token", "dop_v1_|doo_v1_|dor_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    _rule("jwt", "eyJ", r"\beyJ[A-Za-z0-9_\-]{8,4096}\.[A-Za-z0-9_\-]{8,8192}\.[A-Za-z0-9_\-]{6,1024}"),
    _rule(
        "authorization",
        "earer |asic |EARER |ASIC ",
        r"\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/\-]{16,4096}=*)",
        re.IGNORECASE,
    ),
    _rule("url_password", "://", r"[a-z][a-z0-9+.\-]{1,20}://[^\s/@:\"']{0,128}:(?P<secret>[^\s/@\"']{1,256})@"),
    _rule(
        "url_secret",
        "key=|token=|secret=|password=|passwd=|sig=|ignature=|auth=|Key=|Token=|Secret=|Password=|Sig=|Auth=|KEY=|TOKEN=",
        r"[?&;](?:[a-z_\-]{0,20}(?:key|token|secret|password|passwd|signature)|sig|auth)="
        r"(?P<secret>[^&\s\"'#<>\\\x7f-\U0010ffff]{3,2047}[^&\s\"'#<>\\,.;:!?)\]}\x7f-\U0010ffff])",
        re.IGNORECASE,
    ),
    _rule(
        "assignment",
        "api_key|apikey|api-key|API_KEY|APIKEY|API-KEY|Api-Key|apiKey|ApiKey|secret|SECRET|Secret|passw|PASSW|Passw|"
        "access_token|ACCESS_TOKEN|auth_token|AUTH_TOKEN",
        r"\b[a-z0-9_\-]{0,40}(?:api[_\-]?key|secret(?:[_\-]?(?:key|access[_\-]?key))?|passw(?:or)?d|access_token|auth_token)"
        r"\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
        r"(?P<secret>(?=[^\s\"'\\,;]{0,200}[0-9])(?=[^\s\"'\\,;]{0,200}[A-Za-z])[A-Za-z0-9+/_.~$!@%^&*=\-]{8,200})",
        re.IGNORECASE,
    ),
)

SENSITIVE_KEYS = frozenset(
    [
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "api_key",
        "apikey",
        "openai_api_key",
        "password",
        "passwd",
        "secret",
        "client_secret",
        "clientsecret",
        "secret_key",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "bearer_token",
        "private_key",
        "cookie",
        "set-cookie",
        "aws_secret_access_key",
        "x-goog-api-key",
        "authorization_token",
        "connection_string",
        "accesstoken",
        "authtoken",
        "bearertoken",
        "connectionstring",
        "idtoken",
        "privatekey",
        "refreshtoken",
        "secretkey",
    ]
)
"""Dictionary keys, lower case, whose string values are secrets whatever they look like."""

KEYWORDS: tuple[str, ...] = tuple(dict.fromkeys(word for rule in RULES for word in rule.keywords))
"""Every literal without which no rule finds anything in a text."""

OPAQUE_KEYS = frozenset({"encrypted_content", "signature", "obfuscation", "reasoning_signature", "b64_json"})
"""JSON fields that are signed, encrypted or binary: never rewritten, else the provider refuses them or media breaks."""
