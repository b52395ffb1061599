"""A compiled policy: which detectors are in force, and what becomes of a value at a place.

A plan holds no key and no counter: it is immutable, and every engine of a process may share it. `policy` makes one of a
TOML file; `DEFAULT` is in force where nobody configured anything.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from reenact.contracts.detector import Detector
from reenact.contracts.redactor import Place
from reenact.discover import members
from reenact.redact.payloads import is_payload
from reenact.values import globs

Action = Literal["pseudonymise", "mask", "drop", "keep"]
"""What becomes of a value: a keyed token, equal for equal values; one constant text for all of its class; nothing, an
empty text; or itself."""
Payloads = Literal["scan", "pseudonymise", "mask", "drop"]
"""What becomes of what users typed and tools returned: scanned for what detectors know, or taken whole."""

GROUPS = ("credentials", "personal")
KNOWN = "known_secret"
"""The class of secrets that are known exactly, whatever the variables are called that hold them."""
KEYED = "keyed_value"
"""The class of values under a key that says they are secret, such as `password`."""
UNSCANNED = "unscanned"
"""The class of texts that could not be scanned in time, and were replaced whole."""
WHOLE = "value"
"""The class of values that a policy takes whole, whatever they hold."""
BUILT_IN: Mapping[str, str] = {KNOWN: "credentials", KEYED: "credentials", UNSCANNED: "credentials", WHOLE: "personal"}
"""Classes that no detector finds, and their groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A pattern of places: `*` stands for any text (in `path`, inside one part), `**` for any number of parts.

    An empty part fits everything. What a `path` leads to includes what lies below it.
    """

    attribute: str = ""
    path: str = ""
    tool: str = ""
    kind: str = ""
    boundary: str = ""

    @property
    def everywhere(self) -> bool:
        """Every place fits."""
        return not (self.attribute or self.path or self.tool or self.kind or self.boundary)

    def fits(self, place: Place) -> bool:
        """Tell whether a place is meant."""
        return (
            (not self.attribute or globs.compiled(self.attribute).fullmatch(place.attribute) is not None)
            and (not self.tool or globs.compiled(self.tool).fullmatch(place.tool) is not None)
            and (not self.kind or globs.compiled(self.kind.upper()).fullmatch(place.kind.upper()) is not None)
            and (not self.boundary or self.boundary == place.boundary)
            and (not self.path or _path(self.path).match("".join(f"{part}\0" for part in place.path)) is not None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What becomes of some classes, or of whole values, at some places. Of the rules that fit, the last decides."""

    action: Action
    names: frozenset[str] = frozenset()
    """Classes; none for all of `groups`."""
    groups: frozenset[str] = frozenset(GROUPS)
    whole: bool = False
    """The value is taken whole, whatever it holds; `keep` then means that it is not, and detectors look into it."""
    where: Where = Where()

    def means(self, name: str, group: str) -> bool:
        """Tell whether a class is meant."""
        return name in self.names if self.names else group in self.groups


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A compiled policy. Immutable, and shared by threads."""

    name: str
    """What people call it: `default`, or what the policy says of itself."""
    digest: str
    """Names the policy by its rules, not by its keys; 32 hexadecimal digits."""
    detectors: tuple[Detector, ...]
    """Those in force anywhere."""
    rules: tuple[Rule, ...] = ()
    payloads: Payloads = "scan"
    failed: str = ""
    """Why this plan stands for a policy that could not be read; empty where it is the one that was asked for."""
    uniform: bool = False
    """No action depends on the place and nothing is taken whole: engines may pass `Place()` everywhere."""
    takes_whole: bool = False
    """Something may be taken whole: `whole` is worth asking."""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a model is to look for in free text; empty where none is asked, which is the default."""
    _groups: Mapping[str, str] = field(default_factory=dict[str, str])

    def action(self, name: str, place: Place) -> Action:
        """Say what becomes of a value of a class at a place."""
        return _action(self, name, place if not self.uniform else _ANYWHERE)

    def whole(self, place: Place) -> Action | None:
        """Say whether a value is taken whole, and how; None where detectors look into it.

        Engines ask for every attribute and for every member and item of the JSON in it, from the outside in. `drop`
        leaves it out and `mask` puts one text in its place. `pseudonymise` of an object, of a list, or of a text that
        holds one goes on to what is inside, so that it stays readable as JSON; of any other text it gives a token;
        numbers, booleans and null stay, and detectors look at them. `keep` is told as None.
        """
        return _whole(self, place) if self.takes_whole else None

    def group(self, name: str) -> str:
        """Give the group of a class: whose key its tokens take. An unknown class counts as guessable."""
        return self._groups.get(name) or BUILT_IN.get(name, "personal")


_ANYWHERE = Place()


@functools.lru_cache(maxsize=4096)
def _action(plan: Plan, name: str, place: Place) -> Action:
    group = plan.group(name)
    for rule in reversed(plan.rules):
        if not rule.whole and rule.means(name, group) and rule.where.fits(place):
            return rule.action
    return "pseudonymise"


@functools.lru_cache(maxsize=16384)
def _whole(plan: Plan, place: Place) -> Action | None:
    for rule in reversed(plan.rules):
        if rule.whole and rule.where.fits(place):
            return None if rule.action == "keep" else rule.action
    if plan.payloads == "scan" or not is_payload(place.attribute, place.path, place.kind, place.boundary, place.inside):
        return None
    return plan.payloads


@functools.lru_cache(maxsize=1024)
def _path(pattern: str) -> re.Pattern[str]:
    """Compile a path's pattern: parts are ended by NUL in the text that it is matched against."""
    pieces = [""]
    for part in pattern.split("."):
        if part == "**":
            pieces.append("")
        else:
            pieces[-1] += globs.starred([*map(re.escape, part.split("*"))], r"[^\0]") + r"\0"
    return re.compile(globs.starred(pieces, r"[^\0]*\0"))


def compiled(
    name: str,
    detectors: Iterable[Detector],
    rules: Iterable[Rule] = (),
    *,
    payloads: Payloads = "scan",
    spelled: str = "",
    unspelled: Collection[str] = (),
) -> Plan:
    """Make a plan. The digest covers `spelled`, and all of the detectors but the patterns of those in `unspelled`."""
    plan_detectors, plan_rules = tuple(detectors), tuple(rules)
    digest = hashlib.blake2b(digest_size=16)
    for detector in plan_detectors:
        flags = f"{detector.name}\0{detector.group}\0{detector.any_case}\0{detector.run}"
        sought = "" if detector.name in unspelled else f"{detector.pattern}\0{'|'.join(detector.anchors)}"
        digest.update(f"{flags}\0{sought}\n".encode())
    for rule in plan_rules:
        where = (
            f"{rule.where.attribute}\0{rule.where.path}\0{rule.where.tool}\0{rule.where.kind}\0{rule.where.boundary}"
        )
        names = f"{','.join(sorted(rule.names))}\0{','.join(sorted(rule.groups))}\0{rule.whole}"
        digest.update(f"{rule.action}\0{names}\0{where}\n".encode())
    digest.update(f"{payloads}\0{spelled}".encode())
    takes_whole = payloads != "scan" or any(rule.whole and rule.action != "keep" for rule in plan_rules)
    return Plan(
        name=name,
        digest=digest.hexdigest(),
        detectors=plan_detectors,
        rules=plan_rules,
        payloads=payloads,
        uniform=not takes_whole and all(rule.where.everywhere for rule in plan_rules),
        takes_whole=takes_whole,
        _groups={detector.name: detector.group for detector in plan_detectors},
    )


def discovered() -> tuple[Detector, ...]:
    """Give every detector there is: of the folder `detectors`, and of installed plug-ins."""
    candidates: list[Detector] = [*members("detectors", Detector)]
    for declared in cast("tuple[tuple[object, ...], ...]", members("detectors", tuple)):
        candidates += [item for item in declared if isinstance(item, Detector)]
    return tuple({id(detector): detector for detector in candidates}.values())


@functools.cache
def built_in_patterns() -> frozenset[str]:
    """Give the patterns of the folder `detectors`.

    `tests/laws/test_detectors.py` compiles each of them, so that no process need do it to know that they are sound.
    """
    prefix = "reenact.detectors."
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(prefix)]
    return frozenset(detector.pattern for module in modules for detector in getattr(module, "DETECTORS", ()))


DEFAULT: Plan = compiled("default", discovered())
"""In force with no configuration: credentials and structured personal data, both pseudonymised, everywhere."""
