"""Secrets that no prefix tells: by the word, the header, the parameter or the command that stands before them."""

from __future__ import annotations

import base64
import binascii
import math
import re
import string
from collections import Counter
from collections.abc import Callable

from reenact.contracts.detector import Detector

_PLACEHOLDER = re.compile(
    r"(?i)^(?:your|my|the|some|example|dummy|fake|sample|placeholder|redacted|insert|enter|replace|change|todo)[_\-. ]"
    r"|^(?:\*+$|x{3,}|\.{3,}|none$|null$|true$|false$|undefined|string$|process\.env|os\.environ|os\.getenv|env\.)"
    r"|^[<({\[].{0,80}[>)}\]]|\$\{|^\$[A-Za-z_]+$|\{\{|^%[A-Z_]+%$|^https?:|^arn:|/aws4_request$|^/|^\./"
)
"""What stands where a secret would: a hint to fill it in, a variable, a call, an address or a path."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_]{0,40}[0-9]{0,2}(?:[.\-_/:][A-Za-z_]{1,40}[0-9]{0,2}){1,8}")
"""A name in a program: words joined, with no more digits than a name has at its end."""
_WORD = re.compile(r"[A-Z][a-z]{2,}|[a-z]{3,}|[A-Z]{3,}")
_FIGURE = re.compile(r"v?[0-9][0-9.,:/\-]{0,24}[A-Za-z%]{0,3}")
"""A version, a date, a price, a size."""
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
_CALL = re.compile(
    r"[A-Za-z_][A-Za-z0-9_.]*(?:[(\[{<]|,[A-Za-z_]{1,40}[:.(])|![0-9][,})]|\{|\$[A-Za-z_]+(?:::|->)|[<({\[].{0,80}[>)}\]]$"
)
_MARKS = "!@#$%^&*+=~"


def entropy(value: str) -> float:
    """Give Shannon's entropy of a value's characters, in bits for each."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values()) if size else 0.0


def _mixed(value: str) -> bool:
    """Tell digits and letters together, or both cases inside of one: no word of a language."""
    cases = any(map(str.islower, value)) and any(map(str.isupper, value[1:]))
    long = cases and len(value) >= 20 and entropy(value) >= 3.5
    return any(map(str.isalpha, value)) and (any(map(str.isdigit, value)) or long)


def _wordy(value: str) -> bool:
    """Tell a name in camel case: mostly words, and no more than one number."""
    worded = sum(len(word) for word in _WORD.findall(value))
    pieces = [piece for piece in re.split(r"[0-9]+|_", value) if piece]
    parted = len(re.findall(r"[0-9]+", value)) <= 1 and all(len(piece) >= 3 for piece in pieces)
    return len(value) <= 28 and parted and worded >= 0.6 * len(value)


def opaque(value: str) -> bool:
    """Tell a secret from a word, a name, a version or a placeholder."""
    is_random = _mixed(value) and entropy(value) >= 2.5 and not _wordy(value)
    return is_random and not _PLACEHOLDER.search(value) and not _NAME.fullmatch(value) and not _FIGURE.fullmatch(value)


def password(value: str) -> bool:
    """Tell a password from a word, a type or a placeholder: it has a digit or a mark, or is mixed."""
    cases = any(map(str.islower, value)) and any(map(str.isupper, value[1:]))
    drawn = cases and entropy(value) >= 3.0 and not _wordy(value)
    is_candidate = any(map(str.isdigit, value)) or any(c in _MARKS for c in value[1:]) or drawn
    return is_candidate and any(map(str.isalpha, value)) and not _PLACEHOLDER.search(value)


def _is_call(value: str) -> bool:
    """Tell a call, an index or an object from a password with a bracket in it."""
    if (call := _CALL.match(value)) is None:
        return False
    head, rest = call[0], value[call.end() :]
    drawn = any(map(str.isdigit, head)) and any(map(str.islower, head)) and any(map(str.isupper, head))
    return not (drawn or (head[-1:] == "(" and any(c in "!@#$%^&*" for c in rest)))


def _bare_password(value: str) -> bool:
    """As `password`, where no quote tells a value from a name in a program."""
    marked = any(c.isdigit() or c in _MARKS for c in value)
    return (
        marked
        and password(value)
        and not _is_call(value)
        and not _NAME.fullmatch(value)
        and not _FIGURE.fullmatch(value)
    )


def _token(value: str) -> bool:
    return opaque(value) and not _UUID.match(value)


def _is_real_value(value: str) -> bool:
    return len(value.strip("*x.-_#")) > 0 and not _PLACEHOLDER.search(value)


def _of_option(value: str) -> bool:
    """Tell a secret behind an option from a name, a path, an address."""
    plain = re.fullmatch(r"[./~].*|[A-Za-z_.\-/]{0,64}[0-9]{0,2}|.*\.(?:pem|key|crt|json|ya?ml|txt)", value) is None
    return plain and _bare_password(value)


def _digits(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _user_and_password(value: str) -> bool:
    """Tell the credentials of Basic authentication from a word that follows `basic`."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return False


_KEY_WORDS = (
    "secret",
    "credential",
    *(
        f"{of}{between}{what}"
        for what, owners in {
            "key": "api|access|private|auth|encryption|signing|account|client|service|master|admin|license|webhook|"
            "subscription|storage|signature|app|application",
            "token": "access|auth|refresh|bearer|api|session|security|id|personal|bot|app|login|device",
        }.items()
        for of in owners.split("|")
        for between in ("_", "", "-", " ")
    ),
)
_PASSWORD_WORDS = (
    "passwd",
    "password",
    "passwort",
    "kennwort",
    "contrasena",
    "senha",
    "wachtwoord",
    "passphrase",
    "passcode",
    "pwd",
    "mot de passe",
    "parola",
)
_TOKENS = tuple(f"token{joint}" for joint in ("=", ":", '":', "':", " =", '" :', "' :", '\\":'))
_SUFFIX = r"(?:[_\-]?(?:s|value|key|prod(?:uction)?|dev|test|live|primary|secondary|[0-9]{1,2}))?"
_EQUALS = r"\\?[\"'`]?\]?\s{0,4}(?::=|=>|[:=])\s{0,4}"
_IS = r"\s{1,3}(?:is|was|ist|lautet|es|est|=|:)\s{0,3}:?\s{0,3}"
_QUOTED = r"\\?[\"'`](?P<secret>[^\"'`\s\\]{%s})(?=\\?[\"'`])"
_BARE = r"(?P<secret>[^\s\"'`\\,;|<>(){}\[\]\u2010-\U0010ffff]{%s})(?<![.:?])(?![A-Za-z0-9(\[{])"
_LOOSE = r"(?P<secret>[^\s\"'`\\\u2010-\U0010ffff]{%s}?)(?=[.,;:)\]}>|]{0,3}(?:[\s\"'`\\\u2010-\U0010ffff]|$))"
"""A password may hold any mark; what ends a sentence or closes a bracket behind it is not its own."""
_BARE_KEY = _BARE.replace("[^", "[^&#", 1)


def _keyword_detector(
    words: tuple[str, ...],
    joint: str,
    value: str,
    size: str,
    check: Callable[[str], bool],
    order: int,
    after: int = 640,
) -> Detector:
    spelled = "|".join(map(re.escape, words))
    return Detector(
        name="assignment",
        group="credentials",
        anchors=words,
        any_case=True,
        pattern=rf"(?i:(?:{spelled}){_SUFFIX}{joint}{value % size})",
        after=after,
        check=check,
        order=order,
    )


def _after(
    name: str,
    anchors: tuple[str, ...],
    pattern: str,
    check: Callable[[str], bool],
    order: int,
    before: int = 0,
    after: int = 512,
) -> Detector:
    return Detector(
        name=name,
        group="credentials",
        anchors=anchors,
        any_case=True,
        pattern=f"(?i:{pattern})",
        before=before,
        after=after,
        check=check,
        order=order,
    )


_SESSIONS = (
    "phpsessid=",
    "jsessionid=",
    "sessionid=",
    "session_id=",
    "connect.sid=",
    "asp.net_sessionid=",
    "_session=",
    "remember_token=",
)
_PARAMETERS = ("key=", "token=", "secret=", "signature=", "sig=", "auth=", "code=", "credential=", "session=", "sid=")
_OPTIONS = tuple(f"--{first}" for first in string.ascii_lowercase + string.digits)
"""What an option of a command line begins with. Its last word says what it is, and may stand far behind."""
_OPTION = (
    r"(?<![A-Za-z0-9])--(?:[a-z0-9]{1,20}[\-_]){0,3}"
    r"(?:apikey|key|token|secret|password|passwd|passphrase|pass|pwd|credentials?)"
)
_BESIDE = (
    r"\\?[\"'`]?\s{0,2}[,;]?\s{1,3}(?:[a-z\-]{1,20}=\\?[\"'][^\"'<>\\]{0,60}\\?[\"']\s{1,3}){0,3}"
    r"[\"']?value[\"']?\s{0,2}[=:]\s{0,2}"
)
"""Between a word and what it names in `name="password" value="…"`."""
_LINKS = (
    *("password", "passwort", "pwreset", "pw-reset", "reset/", "reset?", "recover", "magic", "one-time", "onetime"),
    *("verif", "confirm", "activat", "invit", "passwordless", "unsubscri"),
)
"""What an address says that lets in whoever has it."""

DETECTORS: tuple[Detector, ...] = (
    _after(
        "authorization",
        ("bearer ", "bearer\t", "bearer\r", "bearer\n"),
        r"(?<![A-Za-z0-9])bearer[ \t\r\n]{1,4}(?P<secret>[A-Za-z0-9._~+/\-]{15,4095}[A-Za-z0-9_~+/\-]={0,2})",
        _digits,
        70,
        after=4200,
    ),
    _after(
        "authorization",
        ("basic ", "basic\t", "basic\r", "basic\n"),
        r"(?<![A-Za-z0-9])basic[ \t\r\n]{1,4}(?P<secret>[A-Za-z0-9+/_\-]{8,1024}={0,2})",
        _user_and_password,
        70,
        after=1100,
    ),
    _after(
        "authorization",
        ("authorization",),
        r"authorization\\?[\"']?\s{0,3}[:=,]\s{0,3}\\?[\"'\[]{0,2}(?:[a-z\-]{3,16}\s{1,3})?"
        r"(?P<secret>[^\s\"'\\,;<>{}\u2010-\U0010ffff]{12,4096})",
        opaque,
        75,
        after=4200,
    ),
    _after(
        "cookie",
        ("cookie:", 'cookie":', "cookie':"),
        r"cookie[\"']?:\s{0,3}[\"']?(?P<secret>[A-Za-z0-9_.\-]{1,64}=[^\r\n\"'\\]{4,4096})",
        _is_real_value,
        65,
        after=4200,
    ),
    _after(
        "cookie",
        _SESSIONS,
        rf"(?:{'|'.join(map(re.escape, _SESSIONS))})(?P<secret>[A-Za-z0-9%._+/=\-]{{16,1024}})",
        _digits,
        66,
        after=1100,
    ),
    _after(
        "url_secret",
        _PARAMETERS,
        r"[?&;](?:[a-z_\-.]{0,24}(?:key|token|secret|signature|credential|session|sid)|sig|auth|code)="
        r"(?P<secret>[^&;\s\"'#<>\\`)\]}\x7f-\U0010ffff]{7,2047}[^&\s\"'#<>\\,.;:!?)\]}\x7f-\U0010ffff])",
        opaque,
        60,
        before=26,
        after=2100,
    ),
    _after(
        "url_secret",
        ("password=", "passwd=", "pwd=", "passphrase="),
        r"[?&](?:[a-z_\-.]{0,24}password|passwd|pwd|passphrase)="
        r"(?P<secret>[^&;\s\"'#<>\\`)\]}\x7f-\U0010ffff]{2,255}[^&\s\"'#<>\\,.;:!?)\]}\x7f-\U0010ffff])",
        _is_real_value,
        62,
        before=26,
    ),
    _after(
        "command_secret",
        _OPTIONS,
        rf"{_OPTION}(?:=|\s{{1,3}}|\\?[\"'],\s{{0,2}})\\?[\"']?"
        r"(?P<secret>[^\s\"'\\<>$(){}\[\]\-][^\s\"'\\<>(){}\[\]]{5,512})",
        _of_option,
        88,
        after=700,
    ),
    _after(  # an item of a list of texts that are searched together: the next item is the value
        "command_secret", _OPTIONS, rf"{_OPTION}\n\x1f\n", _is_real_value, 80
    ),
    _after(
        "url_secret",
        _LINKS,
        r"(?:pass(?:word|wort)?[_\-]?reset|reset[_\-]?pass(?:word|wort)?|pw[_\-]?reset|(?<=/)reset|password/(?:reset|new|edit)|"
        r"(?:forgot|set|change|create|new)[_\-]?password|recover(?:y|[_\-]?account)?|magic[_\-]?(?:link|login)|"
        r"one[_\-]?time[_\-]?(?:link|login)|verif(?:y|ication)(?:[_\-]?(?:email|account))?|email[_\-]?verification|"
        r"confirm(?:ation)?(?:[_\-]?(?:email|account))?|activat(?:e|ion)|invit(?:e|es|ation|ations)|passwordless|unsubscribe)"
        r"(?:/[a-z_\-]{1,20}){0,2}(?:/[A-Za-z0-9_=]{1,12})?"
        r"(?:/|/?\?(?:[a-z_]{1,20}=[^&\s\"'#<>\\]{0,100}&){0,4}(?:t|tk|tok|c|k|h|hash|otp|nonce|ticket|link|oobcode|q|s|id)=)"
        r"(?P<secret>[A-Za-z0-9._~+%=\-]{15,511}[A-Za-z0-9_~+%=\-])",
        opaque,
        61,
        before=16,
        after=1200,
    ),
    _after(
        "command_secret",
        ("curl ", "curl\t"),
        r"(?<![a-z0-9])curl(?=[ \t])[^\r\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:"
        r"(?P<secret>[^\s\"']{1,128})",
        _is_real_value,
        80,
    ),
    _after(
        "command_secret",
        ("mysql", "sshpass ", "sshpass\t"),
        r"(?:mysql(?:dump|admin|import)?(?=\s)[^\r\n|;]{0,160}?\s-p|sshpass[ \t]-p\s?)[\"']?"
        r"(?P<secret>[^\s\"'\-][^\s\"']{3,64})",
        _is_real_value,
        80,
    ),
    _keyword_detector(_KEY_WORDS, _EQUALS, _QUOTED, "8,512", opaque, 84),
    _keyword_detector(_KEY_WORDS, _EQUALS, _BARE_KEY, "8,512", opaque, 85),
    _keyword_detector(_KEY_WORDS, _BESIDE, _QUOTED, "8,512", opaque, 84, after=900),
    _keyword_detector(_PASSWORD_WORDS, _BESIDE, _QUOTED, "5,256", password, 84, after=900),
    _keyword_detector(_PASSWORD_WORDS, _BESIDE, _LOOSE, "6,128", _bare_password, 85, after=900),
    _keyword_detector(_KEY_WORDS, _IS, r"[\"'`*]{0,3}" + _BARE_KEY, "12,512", opaque, 86),
    _keyword_detector(_PASSWORD_WORDS, _EQUALS, _QUOTED, "5,256", password, 84),
    _keyword_detector(_PASSWORD_WORDS, _EQUALS, _LOOSE, "6,128", _bare_password, 85),
    _keyword_detector(_PASSWORD_WORDS, _IS, r"[\"'`*]{0,3}" + _LOOSE, "6,128", _bare_password, 86),
    _keyword_detector(_PASSWORD_WORDS, r">\s{0,3}", r"(?P<secret>[^<>\s]{%s})(?=\s{0,3}</)", "5,256", password, 84),
    _keyword_detector(_KEY_WORDS, r">\s{0,3}", r"(?P<secret>[^<>\s]{%s})(?=\s{0,3}</)", "8,512", opaque, 84),
    _keyword_detector(("identified by", "password"), r"\s{1,3}", r"'(?P<secret>[^'\s]{%s})'", "5,128", password, 84),
    _keyword_detector(
        _TOKENS, r"\s{0,2}", r"\\?[\"'`]?(?P<secret>[A-Za-z0-9+/_.~=\-]{%s})(?![A-Za-z0-9(\[{])", "16,512", _token, 87
    ),
)
