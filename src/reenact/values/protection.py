"""What a trace says of its own redaction: the policy that was in force, and what it replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reenact.values.json import Json
from reenact.values.run import Run

_BEFORE = "reenact.redaction."
_REPLACED = "reenact.redaction.replaced."


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What the root of a run says."""

    policy: str = ""
    """Digest of the policy; empty where the trace names none of ours."""
    name: str = ""
    key: str = ""
    """Names the key of tokens of personal values."""
    count: int | None = None
    """How many values the recorder says it replaced; None where the run did not end."""
    replaced: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same by class."""
    unscanned: int = 0
    """Texts that could not be scanned in time, and were replaced whole."""
    words: int = 0
    """Words of the policy that are not in the trace."""
    failed: str = ""
    """Why payloads are missing: what was wrong with the policy; empty where nothing was."""

    def to_json(self) -> dict[str, Json]:
        """Spell it for `--json`."""
        return {
            "policy": self.policy or None,
            "name": self.name or None,
            "key": self.key or None,
            "count": self.count,
            "replaced": dict[str, Json](self.replaced),
            "unscanned": self.unscanned,
            "failed": self.failed or None,
        }


def protection(run: Run) -> Protection:
    """Read it from the root's attributes, or from the resource, where a processor wrote it."""
    if run.root is None:
        return Protection()
    attributes = {**run.root.span.resource.attributes, **run.root.span.attributes}

    def text(name: str) -> str:
        value = attributes.get(_BEFORE + name)
        return value if isinstance(value, str) else ""

    def number(name: str) -> int | None:
        value = attributes.get(_BEFORE + name)
        return int(value) if isinstance(value, int | float) else None

    replaced = {
        name.removeprefix(_REPLACED): int(value)
        for name, value in attributes.items()
        if name.startswith(_REPLACED) and isinstance(value, int | float)
    }
    return Protection(
        policy=text("policy"),
        name=text("policy.name"),
        key=text("key"),
        count=number("count"),
        replaced=dict(sorted(replaced.items())),
        unscanned=replaced.get("unscanned", 0),
        words=number("policy.words") or 0,
        failed=text("reason"),
    )


def in_words(protection: Protection) -> str:
    """Say it in one line; empty where the trace says nothing of it."""
    if not protection.policy:
        return ""
    if protection.failed:
        return f"no payloads were recorded, since the redaction policy could not be read: {protection.failed}"
    name = f"{protection.name or 'policy'} ({protection.policy[:12]})"
    if protection.count is None:
        return f"redacted under {name}"
    classes = ", ".join(f"{count} {each}" for each, count in protection.replaced.items())
    values = f"{protection.count} value{'' if protection.count == 1 else 's'} replaced"
    return f"redacted under {name}: {values}{f' ({classes})' if classes else ''}"
