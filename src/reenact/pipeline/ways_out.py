"""What a replay with live calls may reach: the hosts of the recorded calls that go live, and those that the user names.

A recording that is not the user's own names no host that is dialled: whoever wrote it would choose whom this machine
talks to. The environment is the user's; of it only variables count that say where a model is asked, and the proxies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from reenact.find.sources import RunSource
from reenact.replay.policy import MODELS, After, Policy, Source
from reenact.values import way
from reenact.values.call import CallKind, HttpRequest
from reenact.values.run import Run
from reenact.values.way import Way

_BASES: Final = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "ANTHROPIC_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_VERTEX_BASE_URL",
    "MISTRAL_BASE_URL",
    "COHERE_BASE_URL",
    "CO_API_URL",
    "GROQ_BASE_URL",
    "DEEPSEEK_BASE_URL",
    "OPENROUTER_BASE_URL",
    "LITELLM_BASE_URL",
    "LITELLM_PROXY_API_BASE",
    "OLLAMA_HOST",
    "OLLAMA_API_BASE",
    "OLLAMA_BASE_URL",
    "VLLM_BASE_URL",
    "HF_ENDPOINT",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
)
"""Variables by which the SDKs of models are told whom to ask."""
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_OLLAMA_PORT: Final = 11434


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What may be reached."""

    ways: tuple[Way, ...] = ()
    proxies: tuple[Way, ...] = ()
    """Those of them that only the environment names, and that may be asked for a tunnel to the others alone."""
    shut: tuple[str, ...] = ()
    """Variables that name a proxy which cannot be held to that."""

    def lines(self) -> list[str]:
        """Spell them for the plan."""
        return [str(each) for each in self.ways]

    def ordered(self) -> list[dict[str, Any]]:
        """Spell the hosts for the starter of the sealed world (`seal.relay.serve`)."""
        only = [[each.host, each.port] for each in self.ways if not each.path and each not in self.proxies]
        return [
            {"host": each.host, "port": each.port} | ({"only": only} if each in self.proxies else {})
            for each in self.ways
            if not each.path
        ]

    def sockets(self) -> list[str]:
        """Give the paths of the sockets of the host's."""
        return [each.path for each in self.ways if each.path]


def ways_out(recording: RunSource, policy: Policy, environ: Mapping[str, str]) -> WaysOut:
    """Say what a replay of a run under a policy may reach. Raises `UsageError` where it names what is no host."""
    ways = dict.fromkeys(way.read(policy.hosts))
    kinds = live_kinds(policy)
    if kinds and (policy.dials or recording.starts):
        ways |= dict.fromkeys(recorded((recording.run, *recording.siblings), kinds))
    if kinds & MODELS:
        ways |= dict.fromkeys(_bases(environ))
    known_ways = frozenset(ways)
    if not (kinds and known_ways):
        return WaysOut(tuple(ways))
    proxies, shut = _proxies(environ)
    new_proxies = tuple(each for each in proxies if each not in known_ways)
    return WaysOut((*ways, *new_proxies), new_proxies, shut)


def live_kinds(policy: Policy) -> frozenset[CallKind]:
    """Give the kinds of calls that may go live under a policy."""
    after = MODELS if policy.after is After.LIVE_MODELS else frozenset[CallKind]()
    return after | frozenset(kind for kind in CallKind if policy.source(kind) is not Source.RECORDED)


def recorded(runs: Iterable[Run], kinds: frozenset[CallKind]) -> Iterable[Way]:
    """Give the hosts of the calls of these kinds."""
    for run in runs:
        for node in run.nodes:
            request = node.call.request
            if node.call.kind in kinds and isinstance(request, HttpRequest):
                target = way.of_url(request.url)
                if target is not None:
                    yield target


def _bases(environ: Mapping[str, str]) -> Iterable[Way]:
    for name in _BASES:
        text = environ.get(name, "").strip()
        if text and "://" not in text:  # OLLAMA_HOST is a host and port as often as a URL
            text = f"http://{text}" if ":" in text else f"http://{text}:{_OLLAMA_PORT}"
        target = way.of_url(text) if text else None
        if target is not None:
            yield target


def _proxies(environ: Mapping[str, str]) -> tuple[tuple[Way, ...], tuple[str, ...]]:
    """Give the proxies that the environment names, and the variables whose proxies speak no plain HTTP."""
    ways: dict[Way, None] = {}
    shut: list[str] = []
    for name in _PROXIES:
        text = environ.get(name, "").strip()
        if not text:
            continue
        url = text if "://" in text else f"http://{text}"
        target = way.of_url(url)
        if urlsplit(url).scheme.lower() == "http" and target is not None:
            ways[target] = None
        else:
            shut.append(name)
    return tuple(ways), tuple(shut)
