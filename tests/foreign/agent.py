"""The everyday agent: one question, one tool, two model calls, plain openai SDK and no word of tracing.

What it says comes from the file named first, so that the same program can stand for the one that was traced.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openai import OpenAI

SCRIPT: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
CLIENT = OpenAI()


def get_current_weather(location: str) -> str:
    """Get the current weather in a given location"""
    (Path(__file__).parent / "executed").write_text(location)
    return "nobody looked"


def ask(messages: list[Any], **more: Any) -> Any:
    """Ask the model once, piece by piece where the script says so."""
    asked = {"model": SCRIPT["model"], "messages": messages, **SCRIPT["parameters"], **more}
    if not SCRIPT["stream"]:
        return CLIENT.chat.completions.create(**asked).choices[0].message.to_dict()
    with CLIENT.chat.completions.stream(**asked) as stream:
        return stream.get_final_completion().choices[0].message.to_dict()


def main() -> None:
    """Answer the question."""
    system = [{"role": "system", "content": SCRIPT["system"]}] if SCRIPT["system"] else []
    messages: list[Any] = [*system, {"role": "user", "content": SCRIPT["question"]}]
    offered = {"tools": SCRIPT["tools"], **({"tool_choice": SCRIPT["tool_choice"]} if SCRIPT["tool_choice"] else {})}
    said = ask(messages, **offered)
    messages.append({"role": "assistant", "content": said.get("content"), "tool_calls": said["tool_calls"]})
    for call in said["tool_calls"]:
        arguments = json.loads(call["function"]["arguments"]) | SCRIPT["altered"]
        result = get_current_weather(**arguments)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    sys.stdout.write(ask(messages, **(offered if SCRIPT["offers_again"] else {}))["content"] + "\n")


main()
