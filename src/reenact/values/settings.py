"""Environment variables of a recorded program: which are written down, and which a replay may set.

Nothing that steers a loader or an interpreter is ever taken from a recording, the user's own included: a library that
is loaded first, a folder that is searched first and a hook that is called are code. Of a stranger's recording a replay
takes only values of a few closed types, without which the same program does not do the same.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_KEPT: Final = frozenset(
    {"DJANGO_SETTINGS_MODULE", "FLASK_APP", "TZ", "LANG", "LC_ALL", "PYTHONHASHSEED", "PYTHONUTF8"}
)
_KEPT_PREFIXES: Final = ("OPENAI_", "ANTHROPIC_", "AZURE_OPENAI_")
_KEPT_SUFFIXES: Final = ("_MODEL", "_BASE_URL", "_ENDPOINT", "_URL")

_STEERING: Final = frozenset(
    {
        *(
            "path",
            "home",
            "shell",
            "env",
            "ifs",
            "ps4",
            "cdpath",
            "prompt_command",
            "shellopts",
            "bashopts",
            "globignore",
        ),
        *("tmpdir", "temp", "tmp", "pwd", "oldpwd", "display", "browser", "editor", "visual", "pager"),
        *("manpager", "lessopen", "lessclose", "gconv_path", "nlspath", "locpath", "hostaliases", "res_options"),
        *("localdomain", "glibc_tunables", "resolv_host_conf", "tzdir", "getconf_dir", "terminfo", "terminfo_dirs"),
        *("virtual_env", "classpath", "java_tool_options", "_java_options", "jdk_java_options", "ssl_cert_file"),
        *("ssl_cert_dir", "sslkeylogfile", "curl_ca_bundle", "requests_ca_bundle", "aws_ca_bundle", "no_proxy"),
        *("coverage_process_start", "coverage_rcfile", "pytest_addopts", "pytest_plugins", "sitecustomize"),
        *("krb5_config", "krb5ccname", "netrc", "docker_host", "kubeconfig", "boto_config", "wgetrc", "inputrc"),
    }
)
_STEERING_PREFIXES: Final = (
    *("ld_", "dyld_", "python", "bash_", "zdotdir", "malloc_", "gcc_", "asan_", "lsan_", "ubsan_", "tsan_", "msan_"),
    *(
        "git_",
        "ssh_",
        "gpg_",
        "perl5",
        "perl_",
        "rubylib",
        "rubyopt",
        "gem_",
        "bundle_",
        "node_",
        "npm_config",
        "lua_",
        "phprc",
        "php_ini",
        "dotnet_",
        "coreclr_",
    ),
    *("cor_", "xdg_", "conda", "pip_", "uv_", "poetry_", "pipenv_", "openssl_", "otel_", "reenact_", "numba_", "cuda_"),
    *("jupyter_", "ipython", "pdb", "debuginfod_", "gtk_", "qt_", "gio_", "gst_", "dbus_", "systemd_", "aws_config"),
    *("aws_shared", "aws_profile", "pydevd", "_py"),
)
_STEERING_SUFFIXES: Final = ("_proxy", "_preload", "_path", "_options", "_opts", "_startup", "_plugins")
_NO_CODE: Final = frozenset({"PYTHONHASHSEED", "PYTHONUTF8"})
"""Of the interpreter's own variables, those that name no code."""

_DIGESTED: Final = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONPLATLIBDIR"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"),
)
"""Variables that come from the present shell in a replay, and of which the recording says whether they are the same."""

_SEED: Final = re.compile(r"[0-9]{1,10}")
_MOST_SEED: Final = 4_294_967_295
_LOCALE_NAMES: Final = re.compile(
    r"LANG|LC_(?:ALL|CTYPE|COLLATE|NUMERIC|TIME|MONETARY|MESSAGES|PAPER|NAME|ADDRESS|TELEPHONE|MEASUREMENT"
    r"|IDENTIFICATION)"
)
_LOCALE: Final = re.compile(r"(?:C|POSIX|[a-z]{2,3}(?:_[A-Z]{2})?)(?:\.[A-Za-z0-9-]{1,12})?(?:@[a-z]{1,12})?")
_ZONE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,2}")
_ZONE_RULE: Final = re.compile(
    r"(?:[A-Za-z]{3,6}|<[A-Za-z0-9+-]{3,6}>)[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}"
    r"(?:(?:[A-Za-z]{3,6}|<[A-Za-z0-9+-]{3,6}>)(?:[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2})?"
    r"(?:,(?:M[0-9]{1,2}\.[1-5]\.[0-6]|J?[0-9]{1,3})(?:/[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2})?){0,2})?"
)
"""POSIX.1-2024, section 8.3, TZ: no colon before it, no path."""
_ZONES: Final = Path("/usr/share/zoneinfo")


def keeps(name: str) -> bool:
    """Tell whether a recorder writes a variable down with its value, secrets aside, without having been asked to."""
    return not steers(name) and (name in _KEPT or name.startswith(_KEPT_PREFIXES) or name.endswith(_KEPT_SUFFIXES))


def steers(name: str) -> bool:
    """Tell whether a variable may steer a loader, an interpreter, a shell, or where programs look for things."""
    if name in _NO_CODE:
        return False
    folded = name.casefold()
    return (
        folded in _STEERING
        or folded.startswith(_STEERING_PREFIXES)
        or folded.endswith(_STEERING_SUFFIXES)
        or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    )


def digests(environ: Mapping[str, str], without: str) -> dict[str, str]:
    """Give a digest, 12 hexadecimal digits, of each steering variable that is set.

    The folder `without`, which `reenact` puts on PYTHONPATH, counts for nothing.
    """
    digests_by_name: dict[str, str] = {}
    for name in _DIGESTED:
        parts = [part for part in environ.get(name, "").split(os.pathsep) if part and part != without]
        if parts:
            spelled = os.pathsep.join(parts).encode("utf-8", "surrogateescape")
            digests_by_name[name] = hashlib.sha256(spelled).hexdigest()[:12]
    return digests_by_name


SHELL_VARIABLES: Final = "REENACT_SHELL_VARIABLES"
"""Holds digests of the variables that `reenact run` was started with."""
_OF_SHELLS: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_DIGEST_SIZE, _MOST_SET, _LONGEST_SET = 6, 100, 4096


def shell_variables(environ: Mapping[str, str]) -> str:
    """Name the variables of a shell, with their values, by digests: what a command sets is told from them."""
    return base64.b64encode(b"".join(sorted(map(_digest, environ.items())))).decode()


def set_by_command(environ: Mapping[str, str]) -> dict[str, str]:
    """Pick the variables that a command of `reenact run` set before it started the program: `env`, a script, a wrapper.

    Left out are those that steer a loader or a shell, and the recorder's own.
    """
    try:
        data = base64.b64decode(environ.get(SHELL_VARIABLES, ""), validate=True)
    except ValueError:
        return {}
    known = {data[at : at + _DIGEST_SIZE] for at in range(0, len(data), _DIGEST_SIZE)}
    if not known:
        return {}
    names = [
        name
        for name, value in environ.items()
        if not (steers(name) or name in _OF_SHELLS or name.startswith(("REENACT_", "OTEL_")))
        and len(value) <= _LONGEST_SET
        and _digest((name, value)) not in known
    ]
    return {name: environ[name] for name in names[:_MOST_SET]}


def _digest(variable: tuple[str, str]) -> bytes:
    return hashlib.blake2b("=".join(variable).encode("utf-8", "surrogateescape"), digest_size=_DIGEST_SIZE).digest()


def is_seed(text: str) -> bool:
    """Tell whether a text is a seed that PYTHONHASHSEED takes."""
    return _SEED.fullmatch(text) is not None and int(text) <= _MOST_SEED


def is_zone_name(text: str) -> bool:
    """Tell whether a text names a time zone that this system has; never a path of one's own."""
    return _ZONE_NAME.fullmatch(text) is not None and (_ZONES / text).is_file()


def is_zone_rule(text: str) -> bool:
    """Tell whether a text is a rule of a time zone as POSIX spells it, which names no file."""
    return _ZONE_RULE.fullmatch(text) is not None


def is_locale(name: str, value: str) -> bool:
    """Tell whether a variable is one of the locale's, with a value that names a locale and no path."""
    return _LOCALE_NAMES.fullmatch(name) is not None and _LOCALE.fullmatch(value) is not None
