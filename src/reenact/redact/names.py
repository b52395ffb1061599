"""Names and places in free text, by Presidio and a model of spaCy: an extra, and off unless a policy asks for it.

Rules cannot tell a name from a word. A model can, often; it misses some and takes what is none, and it is a thousand
times slower than all rules together. Nothing is ever downloaded: the model must be installed. Presidio's own rules,
such as that of e-mail, which fetches a list of public suffixes from the network, are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from reenact.errors import InputError

CLASSES: Final[Mapping[str, str]] = {
    "PERSON": "person",
    "LOCATION": "location",
    "ORGANIZATION": "organisation",
}
"""What Presidio calls it, and the class in tokens and counts; all of the group `personal`."""
_LONGEST: Final = 100_000
"""Characters that a model is given at once."""

Finder = Callable[[str], list[tuple[int, int, str]]]
"""Gives start, end and class of what a model holds for a name in a text."""


def finder(settings: Mapping[str, Any]) -> Finder | None:
    """Give what looks for names, as the table `[names]` of a policy says; None where it does not ask for it.

    `settings` may hold `presidio` (true to have it), `language` (`en`), `score` (0.5: what a finding must reach) and
    `entities` (`["PERSON"]`). Raises `InputError` where the extra or a model is not installed.
    """
    if not settings.get("presidio"):
        return None
    entities = tuple(str(each).upper() for each in settings.get("entities") or ("PERSON", "LOCATION"))
    return _finder(str(settings.get("language") or "en"), float(settings.get("score", 0.5)), entities)


@functools.cache
def _finder(language: str, score: float, entities: tuple[str, ...]) -> Finder:
    for entity in entities:
        if entity not in CLASSES:
            raise InputError("[names] entities", f"{entity!r} is none of {', '.join(CLASSES)}")
    analyzer = _analyzer(language)

    def find(text: str) -> list[tuple[int, int, str]]:
        name_spans: list[tuple[int, int, str]] = []
        for at in range(0, len(text), _LONGEST):
            part = text[at : at + _LONGEST]
            detections = analyzer.analyze(text=part, language=language, entities=list(entities), score_threshold=score)
            name_spans += [(at + each.start, at + each.end, CLASSES[each.entity_type]) for each in detections]
        return name_spans

    return find


def _analyzer(language: str) -> Any:
    try:
        spacy_util: Any = import_module("spacy.util")  # by name: a type checker has neither
        presidio: Any = import_module("presidio_analyzer")
        engines: Any = import_module("presidio_analyzer.nlp_engine")
        recognizers: Any = import_module("presidio_analyzer.predefined_recognizers")
    except ImportError as missing:
        raise InputError(
            "[names]",
            f"the policy asks for Presidio, which is not installed (no module {missing.name})",
            hint="install `reenact[names]`, or leave [names] out",
        ) from missing
    model = chosen(spacy_util.get_installed_models(), language)
    if model is None:
        raise InputError(
            "[names]",
            f"the policy asks for Presidio, and no spaCy model for the language {language!r} is installed",
            hint="install one, such as en_core_web_sm, or leave [names] out: nothing is downloaded by itself",
        )
    models = [{"lang_code": language, "model_name": model}]
    nlp = engines.NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models}).create_engine()
    registry = presidio.RecognizerRegistry(supported_languages=[language])
    registry.add_recognizer(recognizers.SpacyRecognizer(supported_language=language, supported_entities=list(CLASSES)))
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=[language])


def chosen(installed: Sequence[str], language: str) -> str | None:
    """Choose the largest of the models of a language, by the last part of their names."""
    sizes = ("sm", "md", "lg", "trf")
    fitting = [name for name in installed if name.partition("_")[0] == language and name.rpartition("_")[2] in sizes]
    return max(fitting, key=lambda name: sizes.index(name.rpartition("_")[2]), default=None)
