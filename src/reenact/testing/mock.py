"""A model made up on the spot: the fixture `mock_llm`.

It stands where a recorder or a replay would: at the point where a provider's SDK hands its request to its HTTP client.
So the real SDK builds the request and parses the reply, its retries, streams and errors included.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from reenact.boundary import door
from reenact.boundary.patching import Patches
from reenact.boundary.question import shape_named
from reenact.boundary.resource import asked_at
from reenact.contracts.doorman import Doorman
from reenact.contracts.shape import Shape
from reenact.discover import members
from reenact.errors import ReplayStopped
from reenact.integrations.http_clients import INTEGRATION
from reenact.report.safe import clean
from reenact.testing.bodies import Response, reply
from reenact.testing.cases import TestFailed
from reenact.testing.passages import Through
from reenact.values import typed
from reenact.values.call import Call, HttpRequest, Raised, Returned
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Asked, Text

if TYPE_CHECKING:
    from types import TracebackType

_WIDTH = 200


class UnexpectedCall(ReplayStopped):
    """A model was asked more often than the test said. Not an `Exception`, so that no agent takes it for a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MockCall:
    """One call that a model got."""

    api: str
    """`openai.chat`, `openai.responses`, `anthropic.messages`, `openai.embeddings`."""
    body: dict[str, Json]
    """The whole request, in the provider's own JSON."""
    asked: Asked = field(repr=False)
    """What it says, in the same words for every provider."""

    @property
    def model(self) -> str | None:
        """The model that was asked."""
        return self.asked.model

    @property
    def messages(self) -> list[Any]:
        """The messages, in the provider's own JSON; for the responses API its input."""
        for name in ("messages", "input"):
            if (value := self.body.get(name)) is not None:
                return as_list(value) or [value]
        return []

    @property
    def tools(self) -> list[Any]:
        """The tools that were offered, in the provider's own JSON."""
        return as_list(self.body.get("tools"))

    @property
    def stream(self) -> bool:
        """A stream was asked for."""
        return self.asked.stream

    @property
    def text(self) -> str:
        """The plain text of the last message."""
        last = self.asked.messages[-1] if self.asked.messages else None
        return "".join(part.text for part in last.parts if isinstance(part, Text)) if last is not None else ""


class MockModel:
    """Answers model calls in the order in which responses were added. Thread-safe."""

    def __init__(self) -> None:
        self.calls: list[MockCall] = []
        """Every call so far."""
        self._responses: list[Response] = []
        self._unexpected: list[str] = []
        self._lock = threading.Lock()
        self._patches = Patches()
        self._before: Doorman | None = None
        self._strict = False
        self._keys: list[str] = []

    @property
    def call_count(self) -> int:
        """How many calls there were, retries included."""
        return len(self.calls)

    @property
    def responses_left(self) -> int:
        """How many responses nobody has asked for yet."""
        return len(self._responses)

    def add_response(  # noqa: PLR0913 - everything that an answer may say, by name
        self,
        text: Any = None,
        *,
        tool_calls: Sequence[Any] = (),
        status: int = 200,
        message: str = "",
        headers: Mapping[str, str] | None = None,
        finish: str | None = None,
        usage: tuple[int, int] = (1, 1),
        model: str | None = None,
        vectors: Sequence[Sequence[float]] = (),
        body: Any = None,
        raises: BaseException | None = None,
        times: int = 1,
    ) -> Self:
        """Add the answer to the next call that has none yet, or to the next `times` calls.

        `text` may be a function of the call (`MockCall`). `tool_calls` are `{"name": …, "arguments": {…}}`; `status`
        from 400 on is the provider's error with `message`; `raises` is raised where the request is sent, as a lost
        connection is; `vectors` answer an embedding request; `body` is a whole reply in the provider's own JSON.
        """
        response = Response(
            text=text,
            tool_calls=tool_calls,
            status=status,
            message=message,
            headers=headers or {},
            finish=finish,
            usage=usage,
            model=model,
            vectors=vectors,
            body=body,
            raises=raises,
        )
        with self._lock:
            self._responses += [response] * times
        return self

    def open(self, call: Call) -> Through:
        """Let a call in: a model's is answered, any other goes its way."""
        request = call.request
        shape = shape_named(request.shape) if isinstance(request, HttpRequest) else None
        if shape is None or not isinstance(request, HttpRequest):
            return Through()
        body = as_object(parsed_or_none(request.body.data))
        mock_call = MockCall(api=shape.name, body=body, asked=asked_at(request.url, shape, body))
        with self._lock:
            self.calls.append(mock_call)
            number = len(self.calls)
            response = self._responses.pop(0) if self._responses else None
            if response is None:
                sentence = _unexpected(mock_call, number)
                self._unexpected.append(sentence)
                raise UnexpectedCall(sentence)
        return self._answer(mock_call, response, shape, number)

    @staticmethod
    def _answer(mock_call: MockCall, response: Response, shape: Shape, number: int) -> Through:
        if response.raises is not None:
            return Through(Raised(exception=typed.encode_exception(response.raises)))
        if callable(response.text):
            from dataclasses import replace

            response = replace(response, text=response.text(mock_call))
        return Through(Returned(payload=reply(response, shape, mock_call.model or "mock", number)))

    def __enter__(self) -> Self:
        INTEGRATION.install(self._patches)
        self._strict, self._before = door.is_strict(), door.install(self, strict=True)
        for shape in members("shapes", Shape):
            for name in shape.credentials:
                if name not in os.environ:
                    os.environ[name] = "reenact-mock"
                    self._keys.append(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        door.install(self._before, strict=self._strict)
        self._patches.undo()
        for name in self._keys:
            os.environ.pop(name, None)

    def finish(self, error: BaseException | None) -> None:
        """Fail the test where a call was not expected, even if the agent has swallowed that."""
        del error
        if self._unexpected:
            raise TestFailed(self._unexpected[0])

    def properties(self) -> dict[str, str]:
        """Give what the report is told: nothing."""
        return {}


def _unexpected(mock_call: MockCall, number: int) -> str:
    added = "1 response was" if number == 2 else f"{number - 1} responses were"
    had = "no response was added" if number == 1 else f"only {added} added"
    text = clean(mock_call.text).replace("\n", " ")
    text = text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
    question = f"; it was asked: {text!r}" if text else ""
    last = mock_call.asked.messages[-1].role if mock_call.asked.messages else ""
    who = f" ({last})" if last and question else ""
    model = as_text(mock_call.body.get("model")) or "a model"
    return (
        f"unexpected call: call {number} of {mock_call.api} to {model}, and {had}{question}{who}\n"
        "  add one with mock_llm.add_response(…) before the agent runs"
    )
