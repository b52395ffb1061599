"""A redaction policy: one TOML file that says what to look for, where, and what to do with it.

Reading is strict: a key that is not known, an action that does not exist, a class that nothing finds are errors with
their line, since a policy that is half understood protects half. `docs/policies.md` has the whole of it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from reenact.disk import private
from reenact.errors import InputError
from reenact.redact.names import CLASSES, finder
from reenact.redact.plan import (
    BUILT_IN,
    DEFAULT,
    GROUPS,
    Action,
    Payloads,
    Plan,
    Rule,
    Where,
    compiled,
)
from reenact.redact.policy_words import Own, own_classes
from reenact.redact.toml_reader import Reader, Table

_ACTIONS: Final = ("pseudonymise", "mask", "drop", "keep")
_PAYLOADS: Final = ("scan", "pseudonymise", "mask", "drop")
_STARTS: Final = ("default", "nothing")
_DEEPEST = 8
_WHERE: Final = ("attribute", "path", "tool", "kind", "boundary")
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a policy file says, those that it extends included."""

    name: str
    start: str = "default"
    """Which detectors it begins with: `default` or `nothing`."""
    payloads: Payloads = "scan"
    classes: tuple[tuple[str, Action], ...] = ()
    """What becomes of a class or a group, everywhere; later ones beat earlier ones."""
    own: tuple[Own, ...] = ()
    """Classes of its own."""
    rules: tuple[Rule, ...] = ()
    key_variable: str = ""
    key_file: Path | None = None
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it says of names and addresses in free text, for which a model is needed."""
    file: Path | None = None
    """Where it was read."""

    @property
    def words(self) -> int:
        """How many words of its own it looks for: these are in no trace."""
        return sum(len(own.words) for own in self.own)

    @property
    def withheld(self) -> int:
        """How many words it looked for where it was in force; it comes from a trace, which does not hold them."""
        return sum(own.withheld for own in self.own)

    def source(self) -> str:
        """Spell the policy in TOML, complete in itself, less its words and where its key is. Empty for the default."""
        return "" if replace(self, name="default", key_variable="", key_file=None, file=None) == _PLAIN else _toml(self)

    def plan(self, key: bytes | None = None) -> Plan:
        """Compile. `key` goes into the digest where the policy has words of its own, so that they cannot be guessed."""
        source = self.source()
        if not source and not self.own:
            return DEFAULT if self.name == DEFAULT.name else replace(DEFAULT, name=self.name)
        begun = DEFAULT.detectors if self.start == "default" else ()
        finding = [detector for own in self.own if (detector := own.detector()) is not None]
        groups = [Rule(action=action, groups=frozenset({name})) for name, action in self.classes if name in GROUPS]
        by_class = [Rule(action=action, names=frozenset({name})) for name, action in self.classes if name not in GROUPS]
        own_rules = [Rule(action=own.action, names=frozenset({own.name})) for own in self.own if own.action]
        compiled_plan = compiled(
            self.name,
            [*begun, *finding],
            [*groups, *by_class, *own_rules, *self.rules],
            payloads=self.payloads,
            spelled=self._of_words(key),
            unspelled=frozenset(own.name for own in self.own if own.words),
        )
        return replace(compiled_plan, names=dict(self.names))

    def _of_words(self, key: bytes | None) -> str:
        if not self.words:
            return json.dumps(dict(self.names), sort_keys=True) if self.names else ""
        spelled = json.dumps([[own.name, own.words, own.any_case] for own in self.own if own.words])
        digest = hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), key=(key or b"")[:64], digest_size=16)
        return digest.hexdigest() + json.dumps(dict(self.names), sort_keys=True)


_PLAIN = Policy(name="default")


def load(file: Path) -> Policy:
    """Read a policy. Raises `InputError` whose place is `file:line:column`."""
    return _load(file, ())


def parse(text: str, place: str = "policy", *, beside: Path | None = None) -> Policy:
    """Read a policy from its text; `beside` is the folder that its paths are relative to. Raises `InputError`."""
    return _read(Reader.of(text, place), Path(place).stem or "policy", beside, ())


def _load(file: Path, above: tuple[Path, ...]) -> Policy:
    try:
        data = private.read_settings(file, "the redaction policy", most=_LARGEST)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(str(file), f"is larger than {_LARGEST >> 20} MiB: no redaction policy") from None
        raise InputError(str(file), f"the redaction policy cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{file}:{line}", "is not UTF-8, which TOML has to be") from None
    policy = _read(Reader.of(text, str(file)), file.stem, file.parent, (*above, file.resolve()))
    return replace(policy, file=file)


def _read(reader: Reader, name: str, beside: Path | None, above: tuple[Path, ...]) -> Policy:
    top = reader.top
    top.only("name", "extends", "payloads", "key", "names", "classes", "find", "rule")
    below = _extended(top, beside, above)
    own = own_classes(top.tables("find"), beside, {detector.name for detector in DEFAULT.detectors}, _ACTIONS)
    class_names = _class_names(below, own)
    key = top.table("key")
    key.only("env", "file")
    if key.has("env") and key.has("file"):
        raise key.error("a key is in a variable or in a file, not in both", "file")
    file = key.text("file")
    return Policy(
        name=top.text("name") or name,
        start=below.start,
        payloads=cast("Payloads", top.one_of("payloads", _PAYLOADS) or below.payloads),
        classes=(*below.classes, *_classes(top.table("classes"), class_names)),
        own=(*(each for each in below.own if each.name not in {mine.name for mine in own}), *own),
        rules=(*below.rules, *(_rule(table, class_names) for table in top.tables("rule"))),
        key_variable=key.text("env") or ("" if file else below.key_variable),
        key_file=_path(file, beside) if file else (None if key.has("env") else below.key_file),
        names={**below.names, **_names(top.table("names"))},
    )


def _extended(top: Table, beside: Path | None, above: tuple[Path, ...]) -> Policy:
    extends = top.text("extends") or "default"
    if extends in _STARTS:
        return Policy(name=extends, start=extends)
    if not extends.endswith(".toml"):
        raise top.error(f"there is no policy {extends!r} to extend: `default`, `nothing`, or a .toml file", "extends")
    file = _path(extends, beside)
    if file.resolve() in above or len(above) >= _DEEPEST:
        raise top.error(f"{extends} extends this policy in turn", "extends")
    if not file.is_file():
        raise top.error(f"there is no file {extends} beside this one", "extends")
    return _load(file, above)


def _path(name: str, beside: Path | None) -> Path:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - `Path.expanduser` raises where there is no home
    return path if path.is_absolute() or beside is None else beside / path


def _class_names(below: Policy, own: Sequence[Own]) -> frozenset[str]:
    begun = DEFAULT.detectors if below.start == "default" else ()
    return frozenset(
        [*BUILT_IN, *(each.name for each in begun), *(each.name for each in (*below.own, *own)), *CLASSES.values()]
    )


def _classes(table: Table, class_names: frozenset[str]) -> Iterable[tuple[str, Action]]:
    for name in table.keys():  # noqa: SIM118 - no mapping
        table.known(name, [*GROUPS, *sorted(class_names)], "class or group")
        yield name, cast("Action", table.one_of(name, _ACTIONS))


def _rule(table: Table, class_names: frozenset[str]) -> Rule:
    table.only("do", "class", "group", "whole", *_WHERE)
    action = cast("Action", table.one_of("do", _ACTIONS, needed=True))
    names, groups = table.texts("class"), table.texts("group")
    whole = table.flag("whole")
    for name in names:
        table.known(name, sorted(class_names), "class", key="class")
    for name in groups:
        table.known(name, GROUPS, "group", key="group")
    if whole and (names or groups):
        raise table.error("`whole` takes a value whatever is in it: leave `class` and `group` out", "whole")
    where = Where(**{part: table.text(part) for part in _WHERE})
    if where.boundary and where.boundary not in {"http", "function"}:
        raise table.error(f"there is no boundary {where.boundary!r}: `http` or `function`", "boundary")
    if where.everywhere and whole:
        raise table.error(
            "would take every value whole: say where, or use `payloads` at the top, which spares the structure", "whole"
        )
    return Rule(action=action, names=frozenset(names), groups=frozenset(groups or GROUPS), whole=whole, where=where)


def _names(table: Table) -> dict[str, Any]:
    """Read what is said of names in free text. Off by default."""
    table.only("presidio", "language", "score", "entities")
    settings: dict[str, Any] = {}
    if table.has("presidio"):
        settings["presidio"] = table.flag("presidio")
    if language := table.text("language"):
        settings["language"] = language
    if table.has("score"):
        settings["score"] = table.number("score", 0.0, 1.0)
    if table.has("entities"):
        settings["entities"] = [each.upper() for each in table.texts("entities")]
        for entity in settings["entities"]:
            table.known(entity, list(CLASSES), "kind of name", key="entities")
    try:
        finder(settings)
    except InputError as missing:  # now, not when the first text is searched
        raise table.error(missing.problem, "presidio", hint=missing.hint) from missing
    return settings


def _toml(policy: Policy) -> str:
    """Spell a policy as one file that extends `default` or `nothing`."""
    lines = [f"name = {_text(policy.name)}", f"extends = {_text(policy.start)}", f"payloads = {_text(policy.payloads)}"]
    if policy.names:
        lines += ["", "[names]", *(f"{name} = {json.dumps(value)}" for name, value in sorted(policy.names.items()))]
    if policy.classes:
        last = dict(policy.classes)
        lines += ["", "[classes]", *(f"{name} = {_text(last[name])}" for name in dict(policy.classes))]
    for own in policy.own:
        lines += ["", "[[find]]", *own.toml()]
    for rule in policy.rules:
        lines += ["", "[[rule]]", *_rule_toml(rule)]
    return "\n".join(lines) + "\n"


def _rule_toml(rule: Rule) -> Iterable[str]:
    if rule.whole:
        yield "whole = true"
    if rule.names:
        yield f"class = [{', '.join(map(_text, sorted(rule.names)))}]"
    elif rule.groups != frozenset(GROUPS):
        yield f"group = [{', '.join(map(_text, sorted(rule.groups)))}]"
    for part in _WHERE:
        if place_text := getattr(rule.where, part):
            yield f"{part} = {_text(place_text)}"
    yield f"do = {_text(rule.action)}"


def _text(text: str) -> str:
    """Spell a basic string of TOML, which JSON's are but for what stands for half a character."""
    return json.dumps(text, ensure_ascii=True) if text.isascii() else json.dumps(text, ensure_ascii=False)


def failing(problem: InputError) -> Plan:
    """Give the plan that stands for a policy that cannot be read: payloads are left out, the structure stays."""
    return failed(f"{problem.place.rpartition('/')[2]}: {problem.problem}")


def failed(reason: str) -> Plan:
    """Give the same for a reason that is known in words."""
    return replace(compiled("failed", DEFAULT.detectors, payloads="drop", spelled="failed"), failed=reason)
