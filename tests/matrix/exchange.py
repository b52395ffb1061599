"""One request to a provider and what it answered, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

API_OF_PATH = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/embeddings": "embeddings",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/messages/batches": "batches",
}
"""Ending of the URL's path, and the API that it speaks."""
SDK_OF_API = {
    "chat": "openai",
    "responses": "openai",
    "embeddings": "openai",
    "messages": "anthropic",
    "count_tokens": "anthropic",
    "batches": "anthropic",
    "complete": "anthropic",
    "bedrock": "anthropic",
}
"""Whose SDK speaks an API. The last two are found, and not run."""
PATH_OF_API = {api: path for path, api in API_OF_PATH.items()}

_EVENT_STREAM = (b"data:", b"event:", b"id:", b":")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One exchange with an API that a provider's SDK speaks."""

    name: str
    api: str
    """A name of `API_OF_PATH`."""
    request: dict[str, Any]
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    beta: bool = False
    """Asked for through the beta part of the SDK."""
    excluded: str = ""
    """Why it cannot be run; empty where it can."""

    @property
    def sdk(self) -> str:
        """`openai` or `anthropic`."""
        return SDK_OF_API[self.api]

    @property
    def streamed(self) -> bool:
        """Tell server-sent events by how they begin; most cassettes lost their headers."""
        return self.body.lstrip(b"\xef\xbb\xbf\r\n").startswith(_EVENT_STREAM)

    @property
    def content_type(self) -> str:
        """The media type of the reply."""
        return "text/event-stream; charset=utf-8" if self.streamed else "application/json"
