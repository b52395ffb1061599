"""HTML that is safe by construction: every text becomes text, every attribute a quoted attribute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from reenact.report.incident import inert

_VOID = frozenset({"meta", "input", "br", "hr", "wbr"})


class Html(str):
    """Markup that was made here. Anything else is text and is escaped."""

    __slots__ = ()


Child: TypeAlias = "Html | str | None | Iterable[Html | str | None]"
Attribute: TypeAlias = "str | int | None"
"""True for an attribute without a value; None and False for none at all."""


def text(value: str) -> Html:
    """Make text out of anything that a trace holds."""
    return Html(inert.as_html(value))


def joined(children: Iterable[Child], between: str = "") -> Html:
    """Put children behind each other."""
    return Html(between.join(_spelled(child) for child in children if child is not None))


def el(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """Make an element. A trailing `_` is taken off an attribute's name, `_` inside is `-`; None and False are left out.

    `el("p", "1 < 2", class_="note")` is `<p class="note">1 &lt; 2</p>`.
    """
    markup = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{markup}>")
    return Html(f"<{tag}{markup}>{joined(children)}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    spelled = name.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{inert.as_attribute(str(value))}"'


def _spelled(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return inert.as_html(child)
    return "".join(_spelled(each) for each in child)
