"""Passports, driving licences and the like: their numbers have no structure, so a word must stand in front."""

from __future__ import annotations

import re

from reenact.contracts.detector import Detector


def _number(value: str) -> bool:
    return (
        sum(map(str.isdigit, value)) >= 5
        and re.fullmatch(r"(?:19|20)[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])", value) is None
    )


def _worded(name: str, words: str, pattern: str) -> Detector:
    anchors = tuple(words.split("|"))
    return Detector(
        name=name,
        group="personal",
        anchors=anchors,
        any_case=True,
        pattern=(
            rf"(?i:(?<![a-z])(?:{'|'.join(map(re.escape, anchors))})"
            r"(?:[ _\-]?(?:number|no|nr|num|id|card|#|code))?(?:\s{0,3}(?:is|was|ist|:|=|#|\\?[\"',.*`]|-)){0,4}\s{0,3}"
            rf"(?P<secret>{pattern})(?![A-Za-z0-9_]|-[0-9A-Za-z]))"
        ),
        after=128,
        check=_number,
        order=44,
    )


DETECTORS: tuple[Detector, ...] = (
    _worded(
        "passport",
        "passport|reisepass|passeport|pasaporte|passaporto|paspoort|passnummer",
        r"[a-z]{0,3}[0-9][a-z0-9]{5,9}",
    ),
    _worded(
        "driver_licence",
        "driver license|driver licence|drivers license|drivers licence|driver's license|driver's licence"
        "|driving licence|"
        "driving license|driver_license|drivers_license|driver_licence|driving_licence|license number|licence number|"
        "license_number|fuhrerschein|permis de conduire|rijbewijs|dl number|dl no",
        r"[a-z]{0,5}[0-9][a-z0-9]{0,6}(?:[ \-]?(?=[a-z]{0,3}[0-9])[a-z0-9]{2,6}){0,4}",
    ),
    _worded(
        "health_insurance_id",
        "insurance id|insurance number|member id|versichertennummer|krankenversichertennummer|mbi",
        r"[a-z]{0,3}[0-9][a-z0-9]{2,4}(?:-?[a-z0-9]{3,5}){1,3}",
    ),
)
