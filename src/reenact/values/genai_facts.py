"""What OTel GenAI says of a model's call beside its messages: models, parameters, reasons to end and counts of tokens.

Names and types are those of the conventions' inference and embeddings spans, in their newest form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, at
from reenact.values.message import Answered, Asked, Usage
from reenact.values.span import Attribute

_CONTAINERS: Final = (
    *("generation_config", "inference_config", "config", "options", "parameters", "text_generation_config"),
    "inference_params",
)
"""Objects in which providers keep what others have beside the messages."""
_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens", "max_token_count", "max_new_tokens"), "max_tokens"),
    **dict.fromkeys(("max_gen_len", "num_predict", "max_tokens_to_sample", "maximum_tokens"), "max_tokens"),
    **dict.fromkeys(("stop_sequences", "stop_words"), "stop"),
    **dict.fromkeys(("candidate_count", "num_generations", "num_results"), "n"),
    "p": "top_p",
    "k": "top_k",
    "random_seed": "seed",
    **dict.fromkeys(("output_dimensionality", "output_dimension"), "dimensions"),
    **dict.fromkeys(("encoding_formats", "embedding_types", "output_dtype"), "encoding_format"),
}
"""A provider's word for a setting, in snake case, to that of OpenAI's chat completions."""
_NUMBERS: Final[tuple[tuple[str, str, type[int | float]], ...]] = (
    ("temperature", "temperature", float),
    ("top_p", "top_p", float),
    ("top_k", "top_k", int),
    ("max_tokens", "max_tokens", int),
    ("frequency_penalty", "frequency_penalty", float),
    ("presence_penalty", "presence_penalty", float),
    ("seed", "seed", int),
)
"""A setting, its name below `gen_ai.request.`, and its type there."""
_COUNTS: Final[tuple[tuple[str, str], ...]] = (
    ("prompt", "input_tokens"),
    ("completion", "output_tokens"),
    ("cache_read", "cache_read.input_tokens"),
    ("cache_write", "cache_write.input_tokens"),
    ("reasoning", "reasoning.output_tokens"),
    ("prompt_audio", "audio.input_tokens"),
    ("completion_audio", "audio.output_tokens"),
)
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def settings(parameters: Mapping[str, Json]) -> dict[str, Json]:
    """Give the settings of a request in the words of OpenAI's chat completions, whatever its provider's are."""
    words: dict[str, Json] = {}
    for name, value in parameters.items():
        plain = _CAPITAL.sub("_", name).lower()
        if plain in _CONTAINERS and isinstance(value, dict):
            words |= {key: item for key, item in settings(value).items() if key not in words}
        elif value is not None:
            words[_ALIASES.get(plain, plain)] = value
    return words


def facts(asked: Asked, answered: Answered, *, embeds: bool) -> Iterator[tuple[str, Attribute]]:
    """Give what is known of a model's call; `embeds` tells an embedding from a completion."""
    for side, name in (("request", asked.model), ("response", answered.model)):
        if name:
            yield f"gen_ai.{side}.model", name
    words = settings(asked.parameters)
    if embeds:
        yield from _vectors(words, answered)
        if answered.usage.prompt is not None:
            yield "gen_ai.usage.input_tokens", answered.usage.prompt
        return
    yield from _request(words, asked)
    if answered.id:
        yield "gen_ai.response.id", answered.id
    if answered.finish_reasons:
        yield "gen_ai.response.finish_reasons", [*answered.finish_reasons]
    yield from _usage(answered.usage)


def _request(words: Mapping[str, Json], asked: Asked) -> Iterator[tuple[str, Attribute]]:
    for word, name, kind in _NUMBERS:
        value = words.get(word)
        if isinstance(value, int | float) and not isinstance(value, bool) and (kind is float or value == int(value)):
            yield f"gen_ai.request.{name}", kind(value)
    if isinstance(choices := words.get("n"), int) and not isinstance(choices, bool) and choices != 1:
        yield "gen_ai.request.choice.count", choices
    if asked.stream or words.get("stream") is True:
        yield "gen_ai.request.stream", True
    stops = words.get("stop")
    listed: list[Attribute] = [as_text(stop) for stop in ([stops] if isinstance(stops, str) else as_list(stops))]
    if listed and all(listed):
        yield "gen_ai.request.stop_sequences", listed
    if level := _reasoning_level(words):
        yield "gen_ai.request.reasoning.level", level
    if previous := as_text(words.get("previous_response_id")):
        yield "gen_ai.request.previous_response.id", previous
    if kind_of_output := _output_type(words):
        yield "gen_ai.output.type", kind_of_output


def _reasoning_level(words: Mapping[str, Json]) -> str:
    thinking = as_object(words.get("thinking_config"))
    return (
        as_text(words.get("reasoning_effort"))
        or as_text(at(words.get("reasoning"), "effort"))
        or as_text(at(words.get("output_config"), "effort"))
        or as_text(thinking.get("thinkingLevel") or thinking.get("thinking_level"))
    )


def _output_type(words: Mapping[str, Json]) -> str:
    """Tell what kind of output was asked for, where one was: the modality, and not its format."""
    asked_for = words.get("modalities") or words.get("response_modalities")
    modalities = [as_text(each).lower() for each in as_list(asked_for)]
    if "audio" in modalities:
        return "speech"
    if "image" in modalities:
        return "image"
    form = words.get("response_format") or at(words.get("text"), "format") or words.get("format")
    word = as_text(at(form, "type")) or as_text(form) or as_text(words.get("response_mime_type"))
    if isinstance(form, dict) and not word:
        return "json"  # Ollama takes the schema itself
    return {"json_object": "json", "json_schema": "json", "json": "json", "application/json": "json"}.get(
        word, "text" if word in ("text", "text/plain") else ""
    )


def _vectors(words: Mapping[str, Json], answered: Answered) -> Iterator[tuple[str, Attribute]]:
    formats = words.get("encoding_format")
    listed: list[Attribute] = [as_text(each) for each in ([formats] if isinstance(formats, str) else as_list(formats))]
    if listed and all(listed):
        yield "gen_ai.request.encoding_formats", listed
    dimensions: Json = len(answered.vectors[0]) if answered.vectors else words.get("dimensions")
    if isinstance(dimensions, int) and not isinstance(dimensions, bool):
        yield "gen_ai.embeddings.dimension.count", dimensions


def _usage(usage: Usage) -> Iterator[tuple[str, Attribute]]:
    counts = {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "prompt_audio": usage.prompt_audio,
        "completion_audio": usage.completion_audio,
    }
    for word, name in _COUNTS:
        if (count := counts[word]) is not None:
            yield f"gen_ai.usage.{name}", count
