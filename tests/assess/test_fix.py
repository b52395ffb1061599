from __future__ import annotations

import json
from typing import Any

import pytest

from golden_cases import GOLDEN
from reenact.assess.fix import judge_fix
from reenact.replay.policy import After, Policy
from scripted import recorded, replayed

TABLE = json.loads((GOLDEN / "fixes" / "judgements.json").read_text())


@pytest.mark.parametrize("case", TABLE["cases"], ids=[case["case"] for case in TABLE["cases"]])
def test_a_fix_is_judged(case: dict[str, Any]) -> None:
    run = recorded(TABLE["runs"][case["run"]])
    replay = replayed(run, case["replay"], Policy(after=After(case["after"])))
    judgement = judge_fix(run, replay.run, replay.result, case["assert"])
    says = case["says"]
    told = f"{judgement.word}: {judgement.why}"
    assert (judgement.word.value, judgement.exit_code) == (says["word"], says["exit"]), told
    assert [word for word in says["why"] if word not in judgement.why] == [], told
    assert judgement.basis.value == says.get("basis", "recorded"), told
    if "standing" in says:
        assert [each.standing.value for each in judgement.replay] == says["standing"], told
    if "same_structure" in says:
        assert judgement.same_structure is says["same_structure"], told
    assert len(judgement.recorded) == len(judgement.replay) == len(judgement.bases) == len(case["assert"])
