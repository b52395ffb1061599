"""What the name of a model tells: who answers under it, and whether it is one that was asked for or one resolved."""

from __future__ import annotations

import re
from typing import Final

_FAMILIES: Final = (
    (re.compile(r"(?:.*/)?(?:gpt-|o\d(?:-|$)|chatgpt|text-embedding-|text-davinci|davinci|whisper|dall-e)"), "openai"),
    (re.compile(r"(?:.*/)?claude"), "anthropic"),
    (re.compile(r"(?:.*/)?(?:gemini|gemma|palm)"), "google"),
    (re.compile(r"(?:.*/)?(?:mistral|mixtral|codestral|ministral)"), "mistral"),
    (re.compile(r"(?:.*/)?deepseek"), "deepseek"),
    (re.compile(r"(?:.*/)?grok"), "xai"),
    (re.compile(r"(?:.*/)?command"), "cohere"),
)
_DATED: Final = re.compile(r".*[-@](?:20\d\d-?[01]\d-?[0-3]\d)(?:[-:@.].*)?")


def provider_of(model: str) -> str:
    """Give the word for the provider whose model this is by its name, or nothing."""
    name = model.strip().lower()
    return next((word for family, word in _FAMILIES if family.match(name)), "")


def is_dated(model: str) -> bool:
    """Tell a name with a date in it, as replies name the model that an alias such as `gpt-4o` stood for."""
    return _DATED.fullmatch(model.strip()) is not None
