"""What `reenact redact` and `reenact policy` say, for people and in JSON: never a value that is hidden, never a key."""

from __future__ import annotations

from pathlib import Path

from reenact.pipeline.redacting import Redacted
from reenact.redact.in_force import Guard
from reenact.redact.plan import Place, Rule
from reenact.values.json import Json


def document(result: Redacted, source: str, output: str | None) -> dict[str, Json]:
    """Say in JSON what was done: the document of `reenact redact --json`. Holds no value that was replaced."""
    plan, key = result.guard.plan, result.guard.key
    places: list[Json] = [
        {"class": each.name, "place": each.place, "count": each.count, "token": each.token or None}
        for each in result.left
    ]
    return {
        "source": source,
        "output": output,
        "policy": {"name": plan.name, "digest": plan.digest},
        "key": key.id if key is not None else None,
        "spans": len(result.spans),
        "replaced": dict[str, Json](result.replaced),
        "unscanned": result.unscanned,
        "failed": result.failed,
        "places": places,
    }


def file_stem(selector: str) -> str:
    """Give the stem of the file that a redacted trace goes to."""
    if selector == "-":
        return "trace"
    name = Path(selector).name
    for ending in (".gz", ".zst", ".jsonl", ".json", ".ndjson", ".pb", ".binpb"):
        name = name.removesuffix(ending)
    return name.replace("#", "-") or "trace"


def lines(result: Redacted, source: str, target: Path | None) -> list[str]:
    """Say for a person what was replaced, or is left to replace."""
    plan = result.guard.plan
    count = sum(each.count for each in result.left)
    one, several = ("is", "are") if target is None else ("was", "were")
    many = f"{count:,} value{'' if count == 1 else 's'} {one if count == 1 else several}"
    verb = "left to replace" if target is None else "replaced"
    head = f"{source}: {len(result.spans):,} span{'' if len(result.spans) == 1 else 's'}, {many} {verb}"
    report = [f"{head} under policy {plan.name} ({plan.digest[:12]})"]
    wide = max((len(each.name) for each in result.left), default=0)
    deep = max((len(each.place) for each in result.left), default=0)
    report += [
        f"  {each.name:<{wide}}  {each.place:<{deep}}  {each.count:>6,}  {each.token}".rstrip()
        for each in result.left[:_SHOWN]
    ]
    if (more := len(result.left) - _SHOWN) > 0:
        report.append(f"  … and {more} more classes and places: --json lists all")
    if result.unscanned:
        report.append(f"  {result.unscanned:,} texts could not be scanned in time; they are replaced whole")
    if result.failed:
        report.append(f"  {result.failed:,} spans lost what could not be redacted")
    if target is not None:
        report.append(f"wrote {target}")
    return report


_SHOWN = 40


def policy_lines(guard: Guard) -> list[str]:
    """Say for a person what is in force."""
    plan, key, read = guard.plan, guard.key, guard.policy
    where = str(read.file) if read is not None and read.file is not None else "built in"
    report = [f"policy {plan.name} ({where})", f"digest {plan.digest}", f"payloads {_PAYLOADS[plan.payloads]}"]
    if key is not None:
        keyed = "keys every token" if key.shared else "keys tokens of personal values; credentials by each run's salt"
        report.append(f"key {key.id} ({key.source}): {keyed}")
    classes: dict[tuple[str, str], dict[str, None]] = {}
    for detector in plan.detectors:
        action = plan.action(detector.name, Place())
        classes.setdefault((detector.group, action), {})[detector.name] = None
    for (group, action), names in sorted(classes.items()):
        report.append(f"{action} of {group}, {len(names)}: {', '.join(names)}")
    report += [f"rule: {rule.action}{_rule_words(rule)}" for rule in plan.rules if not rule.where.everywhere]
    if plan.names:
        report.append(f"names in free text: {dict(plan.names)}")
    return report


_PAYLOADS = {
    "scan": "are scanned by the detectors",
    "pseudonymise": "are replaced whole, each text by a token",
    "mask": "are replaced whole by a mask",
    "drop": "are left out",
}


def _rule_words(rule: Rule) -> str:
    what = " whole values" if rule.whole else f" {', '.join(sorted(rule.names or rule.groups))}"
    where = [
        f"{part} {value}"
        for part in ("attribute", "path", "tool", "kind", "boundary")
        if (value := getattr(rule.where, part))
    ]
    return f"{what} at {', '.join(where)}"


def policy_document(guard: Guard) -> dict[str, Json]:
    """Say in JSON what is in force: the document of `reenact policy --json`. Holds no key and no word of a list."""
    plan, key, read = guard.plan, guard.key, guard.policy
    classes: dict[str, Json] = {
        each.name: {"group": each.group, "do": plan.action(each.name, Place())} for each in plan.detectors
    }
    return {
        "name": plan.name,
        "file": str(read.file) if read is not None and read.file is not None else None,
        "digest": plan.digest,
        "payloads": plan.payloads,
        "key": None if key is None else {"id": key.id, "source": key.source, "shared": key.shared},
        "classes": classes,
        "rules": [f"{rule.action}{_rule_words(rule)}" for rule in plan.rules if not rule.where.everywhere],
        "source": read.source() if read is not None else "",
    }
