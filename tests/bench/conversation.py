"""What the measured agent says: messages of 200 to 400 characters, made up, the same on every machine."""

from __future__ import annotations

from random import Random

Message = dict[str, str]

_WORDS = (
    *("invoice", "order", "amount", "line", "check", "table", "supplier", "customer", "total", "price", "quantity"),
    *("date", "report", "please", "compare", "summary", "tool", "result", "value", "record", "field", "number"),
    *("answer", "question", "system", "agent", "item", "shipment", "warehouse", "region", "contract", "which", "was"),
    *("the", "a", "of", "and", "to", "in", "for", "with", "that", "this", "from", "is", "are", "not", "only", "also"),
    *("then", "if", "when", "where", "between", "before", "after"),
)


def text(seed: str) -> str:
    """Make the text with this seed: 200 to 400 characters of words, with some punctuation and a line break."""
    chance = Random(seed)
    wanted, pieces, length = chance.randint(200, 400), list[str](), 0
    while length < wanted:
        word = chance.choice(_WORDS)
        word += chance.choice(("", "", "", "", "", ",", ".", ":\n", f" {chance.randint(1, 9999)}"))
        pieces.append(word)
        length += len(word) + 1
    return " ".join(pieces)


def prefix(count: int) -> list[Message]:
    """Make the first `count` messages of a conversation: a system prompt, then both sides in turn."""
    roles = ["system", *(("user", "assistant") * count)][:count]
    return [{"role": role, "content": text(f"{place}")} for place, role in enumerate(roles)]


def turns(messages: int, calls: int, *, fresh: bool) -> list[list[Message]]:
    """Make the messages of each call.

    A conversation that keeps its history, with a last message of its own in every call; or, `fresh`, calls that share
    nothing with each other, as when many conversations take turns in one process.
    """
    if fresh:
        return [
            [{"role": "user", "content": text(f"{call}/{place}")} for place in range(messages)] for call in range(calls)
        ]
    history = prefix(messages - 1)
    return [[*history, {"role": "user", "content": text(f"turn {call}")}] for call in range(calls)]


def grown(before: int, new: int, calls: int) -> list[list[Message]]:
    """Make the messages of each call: `before` characters that every call sends, then `new` that none sent before."""
    history = [{"role": "user", "content": each} for each in _cut(before, "before")]
    return [
        [*history, *({"role": "user", "content": each} for each in _cut(new, f"new {call}") or [f"turn {call}"])]
        for call in range(calls)
    ]


def chat(rounds: int) -> list[list[Message]]:
    """Make the messages of each call of one conversation, in which every turn is sent back with the next."""
    return [[*prefix(2 * done), {"role": "user", "content": text(f"turn {done}")}] for done in range(1, rounds + 1)]


def _cut(length: int, seed: str) -> list[str]:
    """Make texts of 2,000 characters each, and one of what is left, that have this length together."""
    sizes = [*[2000] * (length // 2000), length % 2000]
    return ["".join(text(f"{seed}/{at}/{part}") for part in range(10))[:size] for at, size in enumerate(sizes) if size]
