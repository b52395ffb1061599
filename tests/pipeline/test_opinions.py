from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reenact
from made import Made, user
from reenact.pipeline.opinions import Bench, earlier_judgement, judged_check, judgements
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Checked
from reenact.values.call import CallKind, HttpRequest
from reenact.values.run import Run
from runs_asserted import INCIDENT

CLEAN = 'prose: answer says "the staging accounts are gone"'


class Judges:
    """An OpenAI-compatible API behind which a model judges by looking for a word."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        judges = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                judges.asked.append(body)
                holds = "staging" in body["messages"][-1]["content"].split("---")[1]
                verdict = json.dumps({"holds": holds, "score": 0.9, "reason": "it says so"})
                message = {"role": "assistant", "content": f"Verdict: {verdict}"}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                said = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "j-1", "choices": [choice]}
                data = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def judges() -> Iterator[Judges]:
    standing = Judges()
    yield standing
    standing.close()


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def verdict(found: Checked) -> tuple[str, str]:
    (prose,) = found.prose
    return prose.standing.value, prose.because


def test_a_model_judges_and_what_it_said_is_recorded(judges: Judges, store: DirectoryStore) -> None:
    bench = Bench(judge="model:j-1", base_url=judges.url)
    found, made = judged_check(INCIDENT, ["called list_accounts", CLEAN], bench, store)
    assert verdict(found) == ("holds", "model:j-1 says yes, 0.9: it says so")
    assert found
    assert made is not None
    assert made.root is not None
    assert made.root.span.attributes["reenact.judgement.of"] == INCIDENT.id
    (asked,) = judges.asked
    assert "the staging accounts are gone" in asked["messages"][1]["content"]
    (opinion,) = [node for node in made.nodes if node.kind is CallKind.EVALUATOR]
    (inside,) = [node for node in made.nodes if node.kind is CallKind.LLM]
    assert inside.parent == opinion.id
    assert isinstance(inside.call.request, HttpRequest)
    assert json.loads(inside.call.request.body.data) == asked
    assert earlier_judgement("last", store).id == made.id
    assert not list(store.trace_ids())  # the judged runs' own store holds no run of ours
    assert [*judgements(store).trace_ids()] == [made.id]


def test_a_recorded_judgement_answers_with_nobody_there(judges: Judges, store: DirectoryStore) -> None:
    bench = Bench(judge="model:j-1", base_url=judges.url)
    _, made = judged_check(INCIDENT, [CLEAN], bench, store)
    judges.close()
    judges.asked.clear()
    assert made is not None
    again, nothing = judged_check(INCIDENT, [CLEAN], Bench(earlier=made), store)
    assert verdict(again) == ("holds", f"model:j-1, as recorded in {made.id[:12]}, says yes, 0.9: it says so")
    assert nothing is None
    other, _ = judged_check(INCIDENT, ['prose: answer says "nobody was hurt"'], Bench(earlier=made), store)
    assert verdict(other) == (
        "undecided",
        f"the judgement {made.id[:12]} says nothing: it holds no opinion on this answer",
    )
    assert judges.asked == []


def test_a_judgement_holds_though_the_answer_had_a_secret_in_it(store: DirectoryStore) -> None:
    made = Made()
    made.llm([user("hi")], "Use sk-proj-abcdefghijklmnopqrstuvwx0123456789 to log in.")
    run = made.run()
    said = Bench(judge=lambda answer, _: "sk-proj" in answer)
    first, judgement = judged_check(run, ['prose: answer says "a key"'], said, store)
    assert verdict(first)[0] == "holds"
    assert judgement is not None
    assert "sk-proj" not in str([node.span.attributes for node in judgement.nodes])
    again, _ = judged_check(run, ['prose: answer says "a key"'], Bench(earlier=judgement), store)
    assert verdict(again)[0] == "holds"


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (lambda *_: True, ("holds", "yes")),
        (lambda *_: False, ("fails", "no")),
        (lambda *_: 0.4, ("fails", "0.4")),
        (lambda *_: {"holds": True, "score": 0.2, "reason": "so"}, ("holds", "yes, 0.2: so")),
        (lambda *_: {"score": 7}, ("undecided", "nothing")),
        (lambda *_: "maybe", ("undecided", "no bool, score or mapping")),
    ],
    ids=["yes", "no", "score", "mapping", "no score", "text"],
)
def test_a_judge_may_be_any_callable(store: DirectoryStore, says: Any, expected: tuple[str, str]) -> None:
    found, made = judged_check(INCIDENT, [CLEAN], Bench(judge=says), store)
    standing, because = verdict(found)
    assert standing == expected[0]
    assert expected[1] in because
    assert made is not None


def test_a_judge_that_fails_decides_nothing(store: DirectoryStore) -> None:
    def broken(answer: str, statement: str) -> bool:
        raise ConnectionError(f"no line for {len(answer) > 0} {statement}")

    found, made = judged_check(INCIDENT, ["called list_accounts", CLEAN], Bench(judge=broken), store)
    assert found
    assert verdict(found)[0] == "undecided"
    assert "it failed with ConnectionError: no line for True" in verdict(found)[1]
    assert made is not None


def test_the_score_that_an_assertion_asks_for_decides(store: DirectoryStore) -> None:
    bench = Bench(judge=lambda *_: {"holds": True, "score": 0.6})
    assert verdict(judged_check(INCIDENT, [f"{CLEAN} at least 0.7"], bench, store)[0])[0] == "fails"
    assert verdict(judged_check(INCIDENT, [f"{CLEAN} at least 0.5"], bench, store)[0])[0] == "holds"
    unscored = Bench(judge=lambda *_: True)
    assert verdict(judged_check(INCIDENT, [f"{CLEAN} at least 0.5"], unscored, store)[0])[0] == "undecided"


def test_measures_ask_nobody_and_record_nothing(store: DirectoryStore) -> None:
    lines = ['prose: answer is like "All clean: 3 accounts removed from staging, a-104 among them."']
    found, made = judged_check(INCIDENT, lines, Bench(), store)
    assert verdict(found)[0] == "holds"
    assert made is None
    found, _ = judged_check(INCIDENT, ['prose: answer says "removed the moon" by overlap'], Bench(), store)
    assert verdict(found)[1].startswith("overlap says 0.3333")


def test_within_a_recording_the_opinion_is_a_call_of_that_run(tmp_path: Path) -> None:
    with reenact.record(store=tmp_path / "store") as recorder, reenact.run("suite"):
        found = reenact.check(INCIDENT, CLEAN, judge=lambda *_: True)
    assert verdict(found)[0] == "holds"
    runs: tuple[Run, ...] = recorder.runs
    assert [node.call.name for run in runs for node in run.nodes if node.kind is CallKind.EVALUATOR] == ["judge"]
