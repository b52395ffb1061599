"""What the path of a request to a model asks: the deployment, the model, the project.

A provider's path is made of words that say nothing (`v1`, `openai`, `api`), of pairs that name something
(`deployments/gpt-4o`, `projects/p-1`) and of the ending by which its shape is known. Anything else before the ending
is somebody else's path, or a gateway's: there a body is a provider's only where it says so itself.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from reenact.contracts.shape import Shape
from reenact.discover import entries
from reenact.values.json import Json, parsed_or_none

_SAYS_NOTHING: Final = re.compile(r"v\d+\w*|openai|anthropic|api|inference|compat|compatible-mode|paas|ai|beta|")
_ASKS_A_MODEL = re.compile(
    r":(?:stream)?(?:raw)?(?:generatecontent|predict)|/(?:converse|invoke)(?:-|$)|/interactions$|/api/(?:chat|generate)$"
    r"|/v\d+/(?:complete|completions|chat|rerank|generate|messages)$|/inference|/model/",
    re.IGNORECASE,
)
"""Paths of model APIs that no shape reads, so that the verdict can say so."""
_PAIRS: Final = frozenset(
    ("deployments", "models", "model", "engines", "projects", "endpoints", "accounts", "publishers", "locations")
)
_REGIONS: Final = frozenset(("locations",))
"""Pairs that say where something is done, and not what."""


def resource(url: str, shape: Shape) -> str:
    """Give what the path before the shape's ending names, as `deployments/gpt-4o`; empty where it names nothing."""
    return "/".join(part for part, says in _parts(url, shape) if says)


def speaks(url: str, shape: Shape, body: bytes) -> bool:
    """Tell whether a request whose path ends as the shape's does speaks it, by the rest of the path and by the body."""
    if not all(held in body for held in shape.needs):
        return False
    if shape.fields and not any(b'"%s"' % name.encode() in body for name in shape.fields):
        return False
    if _is_known(url, shape):
        return True
    return _is_a_providers(parsed_or_none(body))


def _is_a_providers(body: Json) -> bool:
    """Tell a body that names a model, or holds messages with roles, or a batch of such requests."""
    if not isinstance(body, dict):
        return False
    for name, member in (("messages", "role"), ("requests", "params")):
        listed = body.get(name)
        if isinstance(listed, list) and all(isinstance(each, dict) and member in each for each in listed):
            return True
    return isinstance(body.get("model"), str)


def _before(url: str, shape: Shape) -> list[str]:
    try:
        path = unquote(urlsplit(url).path).rstrip("/")
    except ValueError:
        return []
    ending = max((each for each in shape.paths if path.endswith(each)), key=len, default="")
    return path.removesuffix(ending).strip("/").split("/") if ending else []


def _parts(url: str, shape: Shape) -> list[tuple[str, bool]]:
    """List the segments before the ending, each with whether it belongs to the question."""
    segments, found, at = _before(url, shape), list[tuple[str, bool]](), 0
    while at < len(segments):
        if segments[at] in _PAIRS and at + 1 < len(segments):
            asks = segments[at] not in _REGIONS
            found += [(segments[at], asks), (segments[at + 1], asks)]
            at += 2
        else:
            found.append((segments[at], _SAYS_NOTHING.fullmatch(segments[at]) is None))
            at += 1
    return found


def _is_known(url: str, shape: Shape) -> bool:
    """Tell a path of nothing but words that say nothing and of pairs."""
    segments, at = _before(url, shape), 0
    while at < len(segments):
        if segments[at] in _PAIRS and at + 1 < len(segments):
            at += 2
        elif _SAYS_NOTHING.fullmatch(segments[at]):
            at += 1
        else:
            return False
    return True


def shape_at(method: str, url: str, body: bytes) -> Shape | None:
    """Find the provider API that a request speaks: by the ending of its path, and by what its body must hold."""
    if method.upper() != "POST":
        return None
    try:
        path = unquote(urlsplit(url).path).rstrip("/")
    except ValueError:
        return None
    found = (each.load() for each in entries("shapes", Shape) if path.endswith(tuple(each.outline["paths"])))
    return next((shape for shape in found if speaks(url, shape, body)), None)


def is_a_model(method: str, url: str, body: bytes) -> bool:
    """Tell a request to a model, of an API known to us or not, from any other."""
    if shape_at(method, url, body) is not None:
        return True
    try:
        path = unquote(urlsplit(url).path)
    except ValueError:
        return False
    return method.upper() == "POST" and _ASKS_A_MODEL.search(path) is not None
