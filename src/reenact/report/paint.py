"""Colour for lines that are finished already. Without it they stay as they are, to the byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from reenact.report.safe import clean

_STYLES: Final[Sequence[tuple[str, str]]] = (
    (r"^\s*(?:same path, other words|partial\b)", "bold yellow"),
    (r"^\s*(?:same|exact|fixed|holds)\b", "bold green"),
    (r"^\s*(?:diverged|failed|none|reproduced|broken|fails)\b", "bold red"),
    (r"^\s*(?:unjudged|undecided)\b", "bold magenta"),
    (r"\[(?:error|unfinished|orphan|stream \w+)\]", "red"),
    (r"\[(?:live|from recording [0-9a-f]+)\]", "cyan"),
    (r"(?:^|[│├└─ ])(?:llm|tool|retriever|embedding|reranker|agent|chain) .+? #\d+", "bold"),
    (r"[│├└─]+", "dim"),
    (r"^ {2}[-~+↕]", "bold"),
    (r"\bnext: .*$", "cyan"),
)


def painted(lines: Iterable[str], *, color: bool) -> str:
    """Join lines to what is printed, each ended by a line feed, with ANSI colours where `color` is set.

    Every line is cleaned once more, so that no way leads round `safe`; none is read as markup, cut or wrapped.
    """
    cleaned = [clean(line) for line in lines]
    if not color:
        return "".join(f"{line}\n" for line in cleaned)
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False)
    for line in cleaned:
        text = Text(line)
        for pattern, style in _STYLES:
            text.highlight_regex(pattern, style)
        console.print(text, soft_wrap=True)
    return out.getvalue()
