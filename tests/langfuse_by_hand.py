"""What each generation of a Langfuse export says, read straight from the file: the oracle for the reader of them.

Nothing of the package is imported here. A generation's `input` and `output` are read by the encoding that they stand
in, each with a few plain lines of its own; where the attributes of the span that Langfuse was sent say more (the calls
of the AI SDK), those are read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Turn:
    role: str
    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    """Id, name and arguments of each tool call."""
    answers: str | None = None
    """The id of the call that this is the answer to, where the file says so."""


@dataclass
class Generation:
    id: str
    asked: list[Turn]
    answered: list[Turn]
    encoding: str


def generations(path: Path) -> Iterator[Generation]:
    """Every generation of an export, in the order of the file."""
    document = json.loads(path.read_text("utf-8"))
    for observation in document["observations"]:
        if observation["type"] == "GENERATION":
            yield _generation(observation)


def frames(path: Path) -> set[str]:
    """Generations that name no model, count no tokens, and hold other generations."""
    observations = {each["id"]: each for each in json.loads(path.read_text("utf-8"))["observations"]}
    found: set[str] = set()
    for each in observations.values():
        above = observations.get(each.get("parentObservationId") or "") if each["type"] == "GENERATION" else None
        while above is not None:
            if above["type"] == "GENERATION" and not above.get("model") and not above.get("usageDetails"):
                found.add(above["id"])
            above = observations.get(above.get("parentObservationId") or "")
    return found


def _generation(observation: dict[str, Any]) -> Generation:
    metadata = observation.get("metadata")
    metadata = json.loads(metadata) if isinstance(metadata, str) else (metadata or {})
    attributes = metadata.get("attributes") or {}
    given, output = _opened(observation.get("input")), _opened(observation.get("output"))
    encoding, asked = _asked(given)
    answered = _answered(output)
    if encoding == "lines" and output == "None":
        answered = []
    calls = json.loads(attributes.get("ai.response.toolCalls") or "[]")
    if calls:
        encoding = "ai-sdk"
        read = [
            (each["toolCallId"], each["toolName"], _arguments(each.get("input", each.get("args")))) for each in calls
        ]
        answered = [Turn("assistant", answered[0].text if answered else "", read)]
    return Generation(observation["id"], asked, answered, encoding)


def _opened(value: Any) -> Any:
    """A text of JSON, perhaps quoted again, is its JSON; any other text is itself."""
    while isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return value


def _asked(given: Any) -> tuple[str, list[Turn]]:
    if given is None:
        return "nothing", []
    if isinstance(given, str):
        if re.match(r"(developer|system|user): ", given):
            return "lines", _of_lines(given)
        return "text", [Turn("user", given)]
    if isinstance(given, dict) and "contents" in given:
        return "gemini", _of_gemini(given)
    if isinstance(given, dict) and isinstance(given.get("messages"), list):
        system = [Turn("system", given["system"])] if given.get("system") else []
        if given["messages"] and isinstance(given["messages"][0], str):
            return "pydantic-text", [_of_pydantic_text(each) for each in given["messages"]]
        return "messages", system + _of_messages(given["messages"])
    if isinstance(given, list):
        return "messages", _of_messages(given)
    raise AssertionError(f"an encoding of questions that the oracle does not know: {str(given)[:200]}")


def _of_messages(listed: list[Any]) -> list[Turn]:
    found: list[Turn] = []
    known_tools: set[str] = set()
    for each in listed:
        if each.get("lc") == 1:
            turn = _of_langchain(each)
        elif "parts" in each:
            found += _of_parts(each)
            continue
        else:
            turn = _of_message(each)
        known_tools |= {name for _, name, _ in turn.calls}
        if turn.role in known_tools:  # Langfuse's handler for LangChain.js
            turn.role = "tool"
        found.append(turn)
    return found


def _of_message(message: dict[str, Any]) -> Turn:
    content = message.get("content")
    if isinstance(content, str) and content.startswith('[{"function"'):  # Koog
        calls = json.loads(content)
        return Turn("assistant", "", [_function(each) for each in calls])
    turn = Turn(message["role"], _text(content))
    turn.calls = [_function(each) for each in message.get("tool_calls") or []]
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "tool-call":
            turn.calls.append((block["toolCallId"], block["toolName"], block.get("input", block.get("args"))))
        if block.get("type") == "tool-result":
            told = block.get("output", block.get("result"))
            told = told["value"] if isinstance(told, dict) and "value" in told else told
            turn.text, turn.answers = told if isinstance(told, str) else json.dumps(told), block["toolCallId"]
    if turn.role == "tool" and turn.answers is None:
        turn.answers = message.get("tool_call_id") or message.get("id")
    return turn


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content if block.get("type") in ("text", "input_text"))
    return content if isinstance(content, str) else ""


def _function(call: dict[str, Any]) -> tuple[str, str, Any]:
    return call.get("id", ""), call["function"]["name"], _arguments(call["function"]["arguments"])


def _arguments(told: Any) -> Any:
    return json.loads(told) if isinstance(told, str) and told[:1] in ("{", "[") else told


def _of_langchain(message: dict[str, Any]) -> Turn:
    kwargs, name = message["kwargs"], message["id"][-1]
    roles = {"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool"}
    calls = [(each["id"], each["name"], each["args"]) for each in kwargs.get("tool_calls") or []]
    return Turn(roles[name], _text(kwargs.get("content")), calls, kwargs.get("tool_call_id"))


def _of_parts(message: dict[str, Any]) -> list[Turn]:
    found: list[Turn] = []
    said = Turn(message["role"])
    for part in message["parts"]:
        if part["type"] == "text":
            said.text += part["content"]
        elif part["type"] == "tool_call":
            said.calls.append((part.get("id", ""), part["name"], _arguments(part.get("arguments"))))
        elif part["type"] == "tool_call_response":
            told = part["response"] if "response" in part else part.get("result")
            found.append(Turn("tool", told if isinstance(told, str) else json.dumps(told), [], part.get("id")))
    return found if found and not (said.text or said.calls) else [said, *found]


def _of_gemini(request: dict[str, Any]) -> list[Turn]:
    system = request.get("system_instruction") or request.get("config", {}).get("system_instruction")
    found = (
        [Turn("system", system if isinstance(system, str) else "".join(p["text"] for p in system["parts"]))]
        if system
        else []
    )
    for content in request["contents"]:
        role = {"model": "assistant"}.get(content["role"], content["role"])
        found.append(Turn(role, "".join(part.get("text", "") for part in content["parts"])))
    return found


def _of_lines(text: str) -> list[Turn]:
    """OpenLIT: `role: content`, one after another; `None` where there was no content."""
    found: list[Turn] = []
    for line in text.split("\n"):
        begins = re.match(r"(developer|system|user|assistant|tool): ?(.*)", line)
        if begins:
            found.append(Turn(begins[1], begins[2]))
        else:
            found[-1].text += f"\n{line}"
    return [Turn(turn.role, "" if turn.text == "None" else turn.text) for turn in found]


def _of_pydantic_text(text: str) -> Turn:
    """Agno: `str()` of its message, of which the first fields are what matters here."""
    content = re.search(r" content=(None|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\") name=", text, re.DOTALL)
    calls = re.search(r" tool_calls=(None|\[.*?\]) audio=", text, re.DOTALL)
    answers = re.search(r" tool_call_id=(None|'[^']*') ", text)
    role = re.match(r"role='(\w+)'", text)
    assert role
    assert content
    assert calls
    assert answers
    said = ast.literal_eval(content[1]) or ""
    return Turn(
        role[1], said, [_function(each) for each in ast.literal_eval(calls[1]) or []], ast.literal_eval(answers[1])
    )


def _answered(output: Any) -> list[Turn]:
    if output is None or output == "":
        return []
    if isinstance(output, str):
        return [Turn("assistant", output)]
    if isinstance(output, list):
        return _of_messages([each.get("message", each) if isinstance(each, dict) else each for each in output])
    if "choices" in output:
        return _of_messages([choice["message"] for choice in output["choices"]])
    if "candidates" in output:
        said = [part.get("text", "") for part in output["candidates"][0]["content"]["parts"]]
        return [Turn("assistant", "".join(said))]
    if isinstance(output.get("message"), dict):
        return _of_messages([output["message"]])
    if "role" in output or output.get("lc") == 1:
        return _of_messages([output])
    raise AssertionError(f"an encoding of answers that the oracle does not know: {str(output)[:200]}")
