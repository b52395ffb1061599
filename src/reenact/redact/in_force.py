"""Which policy and key are in force here, and which were when something was recorded.

A policy comes from the call (`reenact.record(policy=...)`, `reenact run --policy`), else REENACT_REDACTION_POLICY, else
`redaction-policy` under `[tool.reenact]` of the nearest pyproject.toml, else `policy.toml` in the store, else it is the
default. One that cannot be read costs the payloads: their structure is recorded, and why is on every trace.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reenact.disk import private
from reenact.errors import InputError
from reenact.redact import keys, policy
from reenact.redact.keys import Key
from reenact.redact.plan import DEFAULT, WHOLE, Plan
from reenact.redact.policy import Policy
from reenact.redact.tokens import mask
from reenact.stores.directory import locate
from reenact.values.known_secrets import credentials_in
from reenact.values.run import Run

if TYPE_CHECKING:  # who asks what is in force does not always redact
    from reenact.redact.engine import Engine

VARIABLE = "REENACT_REDACTION_POLICY"
TOLD = "REENACT_REDACTION_TOLD"
"""Set where somebody said already that the policy cannot be read."""
FILE = "policy.toml"
_SETTING = "redaction-policy"

POLICY = "reenact.redaction.policy"
NAME = "reenact.redaction.policy.name"
SOURCE = "reenact.redaction.policy.source"
WORDS = "reenact.redaction.policy.words"
SALT = "reenact.redaction.salt"
KEY = "reenact.redaction.key"
FAILED = "reenact.redaction.failed"
REASON = "reenact.redaction.reason"
REPLACED = "reenact.redaction.replaced."
"""Before the name of a class: how many of its values were replaced."""
_ANOTHER_VERSION = "it was recorded with the detectors of another version of reenact"
_HEX = re.compile(r"(?:[0-9a-f]{2}){4,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A policy and a key, as they are in force."""

    plan: Plan
    key: Key | None
    salt: str
    """Keys the tokens of credentials, and travels; empty where a configured key keys everything."""
    policy: Policy | None = None
    """What was read; None where it could not be."""
    problem: str = ""
    """What is told once on stderr; empty where all is as it was asked for."""
    note: str = ""
    """Why this is not what was in force when the run was recorded; empty where it is."""
    otherwise: bool = False
    """The policy is not the recording's, and that is what `note` says."""
    chosen: str = ""
    """The file of the policy, absolute, or `default`."""

    def engine(self, environ: Mapping[str, str]) -> Engine:
        """Make what does it. The values of variables whose names say so are secrets wherever they occur."""
        from reenact.redact.engine import Engine

        return Engine(
            self.plan,
            key=self.key.value if self.key is not None else None,
            salt=self.salt,
            shared=not self.salt,
            known_secrets=credentials_in(environ),
        )

    def stands_for(self, engine: Engine) -> Callable[[str], str]:
        """Give what stands for a payload; itself where payloads are scanned, and not taken whole."""
        how = self.plan.payloads
        if how == "scan":
            return lambda text: text
        if how == "pseudonymise":
            return lambda text: engine.token(WHOLE, text)
        return lambda _: mask(WHOLE) if how == "mask" else ""

    def facts(self) -> dict[str, Any]:
        """Say on a trace what is in force: enough to do the same again, and nothing that undoes it."""
        attributes: dict[str, Any] = {POLICY: self.plan.digest, NAME: self.plan.name}
        if self.policy is not None and (source := self.policy.source()):
            attributes[SOURCE] = source
        if self.policy is not None and (words := self.policy.words or self.policy.withheld):
            attributes[WORDS] = words
        if self.salt:
            attributes[SALT] = self.salt
        if self.key is not None:
            attributes[KEY] = self.key.id
        if self.plan.failed:
            attributes |= {FAILED: True, REASON: self.plan.failed}
        return attributes


def guard(
    store: Path,
    environ: Mapping[str, str],
    *,
    chosen: str | Path = "",
    salt: str = "",
    here: Path | None = None,
) -> Guard:
    """Give what is in force for a recording. Never raises: what cannot be read costs the payloads.

    `chosen` is a file that the call names, or `default`; `salt` is that of a recording that this process joins.
    """
    choice = str(chosen) or environ.get(VARIABLE, "")
    try:
        file = policy_file(store, environ, chosen=chosen, here=here)
        choice = str(file.absolute()) if file is not None else DEFAULT.name
        read = Policy(name=DEFAULT.name) if file is None else policy.load(file)
        resolved_guard = of_policy(read, store, environ, salt=salt)
        problem = ""
    except Exception as error:  # noqa: BLE001 - a policy keeps no agent from running, and no value from being hidden
        refusal = error if isinstance(error, InputError) else InputError("policy", f"{type(error).__name__}: {error}")
        problem = f"{refusal}\n  payloads are not recorded until it can be read: the trace holds structure alone"
        resolved_guard = of_policy(None, store, environ, salt=salt, failed=policy.failing(refusal))
    if resolved_guard.key is not None and resolved_guard.key.problem and keys.OF_THIS_RUN not in environ:
        why = f"the key of redaction cannot be kept ({resolved_guard.key.problem})"
        problem = "; ".join(filter(None, [problem, f"{why}: personal values get other tokens in every run"]))
    return replace(resolved_guard, problem=problem, chosen=choice)


def of_policy(
    read: Policy | None,
    store: Path,
    environ: Mapping[str, str],
    *,
    salt: str = "",
    make: bool = True,
    failed: Plan = DEFAULT,
) -> Guard:
    """Give a policy with its key; `failed` stands for one that could not be read, and `make` makes a missing key.

    Raises `InputError` where the key that the policy names cannot be had.
    """
    settings = read or Policy(name=DEFAULT.name)
    key = keys.configured(environ, variable=settings.key_variable, file=settings.key_file)
    if key is None:
        key = keys.of_store(store, environ) if make else _made_already(store)
    plan = failed if read is None else read.plan(key.value if key is not None else None)
    shared = key is not None and key.shared
    return Guard(plan=plan, key=key, salt="" if shared else salt or os.urandom(16).hex(), policy=read)


def _made_already(store: Path) -> Key | None:
    value = keys.existing(store)
    return None if value is None else Key(value=value, source=str(store / keys.FILE), shared=False)


def handed_on(active_guard: Guard) -> dict[str, str]:
    """Give the variables by which children of a recorded process redact as it does, wherever they run."""
    variables: dict[str, str] = {}
    if active_guard.chosen:
        variables[VARIABLE] = active_guard.chosen
    if active_guard.problem:
        variables[TOLD] = "1"
    if active_guard.key is not None and active_guard.key.problem:
        variables[keys.OF_THIS_RUN] = active_guard.key.value.hex()
    return variables


def chosen_policy(
    store: Path, environ: Mapping[str, str], *, chosen: str | Path = "", here: Path | None = None
) -> Policy:
    """Read the policy in force. Raises `InputError` whose place is `file:line:column`."""
    file = policy_file(store, environ, chosen=chosen, here=here)
    return Policy(name=DEFAULT.name) if file is None else policy.load(file)


def policy_file(
    store: Path, environ: Mapping[str, str], *, chosen: str | Path = "", here: Path | None = None
) -> Path | None:
    """Find the file of the policy in force; None for the default. Raises `InputError`."""
    here = here or _here()
    choice = str(chosen) or environ.get(VARIABLE, "")
    if choice == DEFAULT.name:
        return None
    if choice:
        return here / os.path.expanduser(choice)  # noqa: PTH111 - `Path.expanduser` raises where there is no home
    if (project_file := _of_project(here)) is not None:
        return project_file
    own = store / FILE
    return own if own.is_file() else None


def _of_project(here: Path) -> Path | None:
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        try:
            text = private.read_regular(file).decode()
        except (OSError, UnicodeDecodeError):
            continue
        if _SETTING not in text:
            return None
        private.check_settings(file, "this pyproject.toml, which names a redaction policy,")
        try:
            tools: Any = tomllib.loads(text).get("tool", {})
            setting = tools.get("reenact", {}).get(_SETTING)
        except (tomllib.TOMLDecodeError, AttributeError) as error:
            raise InputError(str(file), f"cannot be read, and may name a redaction policy: {error}") from None
        if setting is None:
            return None
        if not isinstance(setting, str) or not setting:
            raise InputError(str(file), f"[tool.reenact] {_SETTING} has to be the path of a file")
        return None if setting == DEFAULT.name else folder / setting
    return None


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def as_recorded(
    facts: Mapping[str, Any], store: Path, environ: Mapping[str, str], *, here: Path | None = None
) -> Guard:
    """Give what was in force when a run was recorded, as far as its trace and this machine know it.

    `facts` are the attributes of the run's root. A live request passes this before it is matched. Where the policy
    cannot be had, what is in force here stands in, and `note` says so. Never raises.
    """
    local: Policy | None = None
    with suppress(InputError):
        local = chosen_policy(store, environ, here=here)
    key_id = _text(facts, KEY)
    local_keys = _keys(local, store, environ)
    right = next((key for key in local_keys if key_id and key.id == key_id), None)
    key = right or (local_keys[0] if local_keys else keys.of_store(store, environ))
    salt = _text(facts, SALT)
    if not is_salt(salt):  # a configured key keyed everything, or nobody says
        salt = "" if key_id else keys.handed_salt() or os.urandom(16).hex()
    read, plan, note = _plan(facts, local, key)
    otherwise = bool(note)
    if key_id and right is None and not note:
        note = f"the key {key_id} is not here: tokens of personal values are matched by renaming"
    return Guard(plan=plan, key=key, salt=salt, policy=read, note=note, otherwise=otherwise)


def of_run(run: Run, environ: Mapping[str, str], store: Path | None = None) -> Guard:
    """Give what was in force when a run was recorded, looked for in `store` or the store that is found here."""
    return as_recorded({SALT: run.salt, **told_by(run)}, store or locate(_here(), dict(environ)), environ)


def told_by(run: Run) -> dict[str, Any]:
    """Give the attributes that say what was in force: the root's, or the resource's where a processor redacted."""
    return {} if run.root is None else {**run.root.span.resource.attributes, **run.root.span.attributes}


def _plan(facts: Mapping[str, Any], local: Policy | None, key: Key) -> tuple[Policy | None, Plan, str]:
    digest, source = _text(facts, POLICY), _text(facts, SOURCE)
    if facts.get(FAILED) and (reason := _text(facts, REASON)):
        return None, policy.failed(reason), ""
    if local is not None:
        plan = local.plan(key.value)
        if digest in {"", plan.digest}:  # of a trace that none of ours redacted, what is in force here has charge
            return local, plan, ""
        if source and local.source() == source:  # its words are here
            return local, plan, _ANOTHER_VERSION
    if digest in {"", DEFAULT.digest}:
        return Policy(name=DEFAULT.name), DEFAULT, ""
    if source:
        try:
            rules = policy.parse(source, "policy of the recording")
        except InputError as error:
            return None, DEFAULT, f"the recording's redaction policy is not understood here: {error.problem}"
        note = ""
        if rules.withheld:
            note = (
                f"the recording's redaction policy {rules.name!r} has {rules.withheld} words that its trace does not "
                f"hold: set {VARIABLE} to its file"
            )
        return rules, rules.plan(key.value), note
    name = _text(facts, NAME)
    if name in {"", DEFAULT.name}:
        return Policy(name=DEFAULT.name), DEFAULT, _ANOTHER_VERSION
    return None, DEFAULT, f"the recording's redaction policy {name!r} is not here: set {VARIABLE} to its file"


def known_keys(environ: Mapping[str, str], store: Path) -> list[Key]:
    """Give every key that there is here already, the one that is likeliest in force first."""
    local: Policy | None = None
    with suppress(InputError):
        local = chosen_policy(store, environ)
    return _keys(local, store, environ)


def _keys(local: Policy | None, store: Path, environ: Mapping[str, str]) -> list[Key]:
    if handed := keys.handed():
        return handed
    candidates: list[Key] = []
    if key_text := environ.get(keys.VARIABLE):
        candidates.append(Key(value=key_text.encode(), source=keys.VARIABLE, shared=True))
    if local is not None:
        with suppress(InputError):
            others = {name: value for name, value in environ.items() if name != keys.VARIABLE}
            if key := keys.configured(others, variable=local.key_variable, file=local.key_file):
                candidates.append(key)
    with suppress(InputError):
        if (own := _made_already(store)) is not None:
            candidates.append(own)
    return candidates


def is_salt(text: str) -> bool:
    """Tell hexadecimal digits from what a trace of unknown origin may say instead."""
    return _HEX.fullmatch(text) is not None


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""
