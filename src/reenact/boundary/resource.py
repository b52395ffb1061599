"""What the path of a request to a model asks: the deployment, the model, the project.

A provider's path is made of words that say nothing (`v1`, `openai`, `api`), of pairs that name something
(`deployments/gpt-4o`, `projects/p-1`) and of the ending by which its shape is known. Anything else before the ending
is somebody else's path, or a gateway's: there a body is a provider's only where it says so itself.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, urlsplit

from reenact.contracts.shape import Shape
from reenact.discover import entries
from reenact.values.json import Json, parsed_or_none
from reenact.values.message import Asked

_SAYS_NOTHING: Final = re.compile(
    r"v\d+\w*|openai|anthropic|api|inference|compat|compatible-mode|paas|ai|beta|ml|studio|hf-inference|"
)
_ASKS_A_MODEL = re.compile(
    r":(?:stream)?(?:raw)?(?:generatecontent|predict)|/(?:converse|invoke)(?:-|$)|/interactions$|/api/(?:chat|generate)$"
    r"|/v\d+/(?:complete|completions|chat|rerank|generate|messages)$|/inference|/model/"
    r"|/chat/completions$|/text/(?:chat|generation)(?:_stream)?$|/predictions$|/embeddings?$",
    re.IGNORECASE,
)
"""Paths of model APIs that no shape reads, so that the verdict can say so."""
_PAIRS: Final = frozenset(
    ("deployments", "models", "model", "engines", "projects", "endpoints", "accounts", "publishers", "locations")
)
_REGIONS: Final = frozenset(("locations",))
"""Pairs that say where something is done, and not what."""
_MODELS: Final = ("models", "model", "deployments", "engines", "endpoints")
"""Pairs that name a model, or what stands for one."""


def resource(url: str, shape: Shape) -> str:
    """Give what the path before the shape's ending names, as `deployments/gpt-4o`; empty where it names nothing."""
    return "/".join(part for part, says in _parts(url, shape) if says)


def model_in(resource_path: str) -> str | None:
    """Give the model that a resource names, as `gpt-4o` of `deployments/gpt-4o`."""
    pairs = resource_path.split("/")
    names_by_kind = {
        kind: "/".join(pairs[at + 1 : at + 1 + _width(pairs, at)])
        for at, kind in enumerate(pairs[:-1])
        if kind in _MODELS
    }
    return next((unquote(names_by_kind[kind]) for kind in _MODELS if kind in names_by_kind), None)


def asked_at(url: str, shape: Shape, body: Json) -> Asked:
    """Read a request: its body, and the model that its path names where the body names none."""
    asked = shape.read_request(body)
    if asked.model is not None or not url:
        return asked
    model = model_in(resource(url, shape))
    return asked if model is None else replace(asked, model=model)


def speaks(url: str, shape: Shape, body: bytes) -> bool:
    """Tell whether a request whose path ends as the shape's does speaks it, by the rest of the path and by the body."""
    if not all(needle in body for needle in shape.needs):
        return False
    if shape.before and re.search(f"(?:^|/){shape.before}$", "/".join(_before(url, shape))) is None:
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
    """List the segments before the ending; a `/` inside of one, as names of Amazon's have it, stays spelled `%2F`."""
    try:
        path = _plain(urlsplit(url).path)
    except ValueError:
        return []
    ending = max((each for each in shape.paths if path.endswith(each)), key=len, default="")
    return path.removesuffix(ending).strip("/").split("/") if ending else []


def _plain(path: str) -> str:
    """Undo the escapes of a path but for those of `/`, which part no segments."""
    pieces = path.rstrip("/").replace("%2f", "%2F").split("%2F")
    return "%2F".join(map(unquote, pieces)) if "%" in path else path.rstrip("/")


def _parts(url: str, shape: Shape) -> list[tuple[str, bool]]:
    """List the segments before the ending, each with whether it belongs to the question."""
    segments, parts, at = _before(url, shape), list[tuple[str, bool]](), 0
    while at < len(segments):
        if segments[at] in _PAIRS and at + 1 < len(segments):
            asks = segments[at] not in _REGIONS
            width = _width(segments, at)
            parts += [(segment, asks) for segment in segments[at : at + 1 + width]]
            at += 1 + width
        else:
            parts.append((segments[at], _SAYS_NOTHING.fullmatch(segments[at]) is None))
            at += 1
    return parts


def _width(segments: list[str], at: int) -> int:
    """Tell how many segments name what the word at a place begins: a model's name may have its owner before it."""
    beyond = segments[at + 2] if at + 2 < len(segments) else ""
    is_named = segments[at] == "models" and beyond not in _PAIRS and _SAYS_NOTHING.fullmatch(beyond) is None
    return 2 if is_named else 1


def _is_known(url: str, shape: Shape) -> bool:
    """Tell a path of nothing but words that say nothing and of pairs."""
    segments, at = _before(url, shape), 0
    while at < len(segments):
        if segments[at] in _PAIRS and at + 1 < len(segments):
            at += 1 + _width(segments, at)
        elif _SAYS_NOTHING.fullmatch(segments[at]):
            at += 1
        else:
            return False
    return True


def shape_at(method: str, url: str, body: bytes) -> Shape | None:
    """Find the provider API that a request speaks: by the ending of its path, and by what its body must hold."""
    if method.upper() != "POST":
        return None
    return next((shape for shape in ending_alike(url) if speaks(url, shape, body)), None)


@lru_cache(maxsize=256)
def ending_alike(url: str) -> tuple[Shape, ...]:
    """List the shapes whose paths end as this one does, what asks most of a path first. No other is loaded."""
    try:
        path = _plain(urlsplit(url).path)
    except ValueError:
        return ()
    candidates = [
        (max(len(each) for each in entry.outline["paths"] if path.endswith(each)), entry)
        for entry in entries("shapes", Shape)
        if path.endswith(tuple(entry.outline["paths"]))
    ]
    loaded_shapes = [(length, entry.load()) for length, entry in candidates]
    return tuple(shape for _, shape in sorted(loaded_shapes, key=lambda each: (-each[0], -len(each[1].before))))


def is_a_model(method: str, url: str, body: bytes) -> bool:
    """Tell a request to a model, of an API known to us or not, from any other."""
    if shape_at(method, url, body) is not None:
        return True
    try:
        path = unquote(urlsplit(url).path)
    except ValueError:
        return False
    return method.upper() == "POST" and _ASKS_A_MODEL.search(path) is not None
