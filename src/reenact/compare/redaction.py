"""Whether redaction is why a replay left its recording, and what of two ends differs by redaction alone.

In a replay the program is given tokens where it was given values. What it does with a token as a whole goes the same
way; what it reads out of it (the domain of an address, the last digits of a card, a number) does not. Where the first
difference shows a token, or a piece of one, or lies in what was made of one, redaction is the likely cause; where the
program had merely been given tokens before, it is a possible one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reenact.values.call import CallKind
from reenact.values.difference import Divergence
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.redaction_marks import (
    TOKEN,
    attribute_of,
    classes_in,
    given_by,
    given_to,
    spelled,
    tokens_in,
    total,
)
from reenact.values.run import Node, ReplacedInputs, Run

_WORD = re.compile(r"[A-Za-z0-9_@.+-]+")
_NUMBER = re.compile(r"-?\d+")
_SHORTEST = 3
"""A piece of a token of fewer characters may be anything."""
_ENDINGS = frozenset({"outcome", "exit code"})
_MET = frozenset({"answered", "ran_again"})
Entry = Mapping[str, Json]


def redaction_of(
    recorded: Run, nodes: Mapping[str, Node], ledger: Sequence[Entry], divergences: Sequence[Mapping[str, Json]]
) -> dict[str, Json] | None:
    """Say what a replay was given that redaction had replaced, and whether that is why it diverged.

    Gives `given` (`call`, `field`, `classes`), `cause` (`likely`, `possible`, empty where it did not diverge), `why`
    and `keep`, the rules of a policy that would keep the values; None where nothing was given.
    """
    first = divergences[0] if divergences else None
    before = _before(ledger, first)
    earlier_nodes = [nodes[each] for each in before if each in nodes]
    redactions = [*given_to(recorded), *(each for node in earlier_nodes for each in given_by(node))]
    own = nodes.get(as_text(first.get("node_a"))) if first is not None else None
    asked = _asked(own) if own is not None and first is not None else Counter[str]()
    if not redactions and not asked:
        return None
    summary: dict[str, Json] = {
        "given": [_redaction_entry(each) for each in redactions],
        "cause": "",
        "why": "",
        "keep": "",
    }
    if first is None:
        return summary
    why, of = _evidence(first, ledger, redactions, own, earlier_nodes[-1] if earlier_nodes else None)
    if why:
        summary |= {"cause": "likely", "why": why}
    else:
        why = f"before this the program was given {_count(total(redactions))}, and may have gone by what stood there"
        summary |= {"cause": "possible", "why": why}
    summary["keep"] = keep_rules(of or redactions, nodes)
    return summary


def _before(ledger: Sequence[Entry], first: Mapping[str, Json] | None) -> list[str]:
    """List the recorded calls that the program made up to the first difference, the one that differs left out."""
    node_ids: list[str] = []
    own = as_text(first.get("node_a")) if first is not None else ""
    for entry in ledger:
        kind = entry.get("t")
        if kind in _MET and entry.get("id") != own:
            node_ids.append(as_text(entry.get("id")))
        if first is not None and (kind in {"miss", "refused"} or (kind == "changed" and entry.get("id") == own)):
            break
    return list(dict.fromkeys(node_ids))


def _evidence(
    first: Mapping[str, Json],
    ledger: Sequence[Entry],
    redactions: Sequence[ReplacedInputs],
    own: Node | None,
    last: Node | None,
) -> tuple[str, list[ReplacedInputs]]:
    """Say what shows that redaction made the difference, and which values it was; an empty text where nothing does."""
    tokens = {token: each for each in redactions for token in each.tokens}
    for name, a, b in _sides(first, ledger):
        if new_tokens := _touched(a, b, tokens):
            of = [tokens[token] for token in new_tokens if token in tokens]
            counts = _count(Counter(found_class for token in new_tokens for found_class in classes_in(token)))
            return f"{name} was made of {counts}", of
    asked = _asked(own) if own is not None else Counter[str]()
    if any(entry.get("t") == "changed" and own is not None and entry.get("id") == own.id for entry in ledger) and asked:
        return f"{own.label if own else ''} ran again, and was given {_count(asked)}", []
    died = first.get("call") == "run" and first.get("field") in _ENDINGS
    latest = [each for each in redactions if last is not None and each.node == last.id]
    if latest and died:
        return f"the program ended otherwise right after {latest[0].call} gave it {_count(total(latest))}", latest
    if latest:
        return f"right before it {latest[0].call} gave the program {_count(total(latest))}", latest
    return "", []


def _sides(first: Mapping[str, Json], ledger: Sequence[Entry]) -> Iterator[tuple[str, Json, Json]]:
    """Give the fields that differ in the first divergence, with both values."""
    yield as_text(first.get("field")), first.get("a"), first.get("b")
    for entry in ledger:
        if entry.get("t") == "miss":
            for each in map(as_object, as_list(entry.get("differences"))):
                yield as_text(each.get("field")), each.get("recorded"), each.get("replay")
            return


def _touched(a: Json, b: Json, tokens: Mapping[str, ReplacedInputs]) -> list[str]:
    """List the given tokens that made a difference: the replay's side holds one, or a piece of one, more.

    A token that nobody gave the program stands for a value of its own: another value, and no matter of redaction.
    """
    left, right = _text(a), _text(b)
    more = Counter(TOKEN.findall(right))
    more.subtract(TOKEN.findall(left))
    full_tokens = {TOKEN.findall(token)[0]: token for token in tokens}
    if new_tokens := [full_tokens[token] for token, count in more.items() if count > 0 and token in full_tokens]:
        return new_tokens
    words = Counter(_WORD.findall(TOKEN.sub(" ", right))) - Counter(_WORD.findall(left))
    return [token for token in tokens if any(_is_of(word, token) for word in words)]


def _is_of(word: str, token: str) -> bool:
    """Tell whether a word was read out of a token: a piece of it, its digits, or its length."""
    bare = word.strip(".").lower()
    if len(bare) >= _SHORTEST and bare in token.lower() and bare not in _CLASS_WORDS:
        return True
    if not _NUMBER.fullmatch(bare):
        return False
    digits = "".join(each for each in token if each.isdigit())
    return bare == str(len(token)) or (len(bare) >= _SHORTEST and bare in digits)


_CLASS_WORDS = frozenset(["value", "key", "token", "mail", "e_mail", "phone", "redacted", "card", "invalid", "act"])
"""Words that are in tokens and in any text."""


def _asked(node: Node) -> Counter[str]:
    text = node.span.attributes.get("input.value")
    return classes_in(text) if isinstance(text, str) else Counter()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _redaction_entry(redaction: ReplacedInputs) -> dict[str, Json]:
    return {"call": redaction.call, "field": redaction.field, "classes": dict(redaction.classes)}


def _count(classes: Mapping[str, int]) -> str:
    many = sum(classes.values())
    return f"{many} redacted value{'' if many == 1 else 's'} ({spelled(classes)})"


def keep_rules(redactions: Iterable[ReplacedInputs], nodes: Mapping[str, Node]) -> str:
    """Spell the rules of a policy, in TOML, that keep such values next time where the program was given them."""
    places: dict[str, Counter[str]] = {}
    for each in redactions:
        places.setdefault(_place(each, nodes.get(each.node)), Counter()).update(each.classes)
    return "\n".join(_rule(place, classes) for place, classes in places.items())


def _place(redaction: ReplacedInputs, node: Node | None) -> str:
    if redaction.field in {"command line", "input", "request headers"} or node is None:
        return f'attribute = "{attribute_of(redaction.field)}"'
    if node.kind is CallKind.TOOL:
        return f"tool = {compact(node.call.name)}"
    return f'kind = "{node.kind.value}"'


def _rule(place: str, classes: Mapping[str, int]) -> str:
    whole = "value" in classes
    class_names = ", ".join(compact(name) for name in sorted(classes) if name != "value")
    rules = [f'[[rule]]\nclass = [{class_names}]\n{place}\ndo = "keep"'] if class_names else []
    return "\n".join([*rules, *([f'[[rule]]\nwhole = true\n{place}\ndo = "keep"'] if whole else [])])


class Renamings:
    """Which tokens of a replay stand for which of the recording, as its processes found while it ran."""

    def __init__(self, recorded: Run, replay: Run | None, ledger: Sequence[Entry]) -> None:
        self.foreign = replay is not None and (
            recorded.key_id != replay.key_id or recorded.salt != replay.salt or bool(_of(ledger, "renamed"))
        )
        self._to: dict[str, str] = {}
        self._from: dict[str, str] = {}
        self.conflicts: list[Entry] = []
        """Entries of calls that were matched by taking one token for two, in two processes."""
        for entry in _of(ledger, "renamed"):
            pairs = {name: as_text(each) for name, each in as_object(entry.get("pairs")).items()}
            if not self._learn(pairs):
                self.conflicts.append(entry)

    def _learn(self, pairs: Mapping[str, str]) -> bool:
        for live, recorded in pairs.items():
            if self._to.get(live, recorded) != recorded or self._from.get(recorded, live) != live:
                return False
        self._to |= pairs
        self._from |= {recorded: live for live, recorded in pairs.items()}
        return True

    def are_one(self, divergence: Divergence) -> bool:
        """Tell that two sides differ by the names of tokens alone."""
        if not self.foreign or not isinstance(divergence.a, str) or not isinstance(divergence.b, str):
            return False
        a, b = tokens_in(divergence.a), tokens_in(divergence.b)
        if not a or len(a) != len(b) or TOKEN.split(divergence.a)[::3] != TOKEN.split(divergence.b)[::3]:
            return False
        pairs = {live: recorded for recorded, live in zip(a, b, strict=True) if live != recorded}
        alike = all(classes_in(live) == classes_in(recorded) for live, recorded in pairs.items())
        return alike and len(set(pairs.values())) == len(pairs) and self._learn(pairs)


def _of(ledger: Sequence[Entry], what: str) -> list[Entry]:
    return [entry for entry in ledger if entry.get("t") == what]
