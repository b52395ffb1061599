"""Where a replay parted from its recording, as far as that is certain.

A miss is shown beside the recorded call that it resembles most. That is good for reading and proves little: a question
may stand in the place of that call, or come in between. What is certain is what the program met before, and where the
question is the recorded one in other words, or brings the result of a call that it would have made in between.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Final

from reenact.assess.evidence import MET_BY, Evidence, made_again, owed
from reenact.boundary.reading import asked
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.lane import sequence
from reenact.values.lenient import as_text
from reenact.values.query import Wrote, gives_back, reads_of, writes
from reenact.values.run import Node, Run

Divergence = dict[str, Json]
MODELS: Final = frozenset({CallKind.LLM, CallKind.EMBEDDING})
END: Final = 1 << 60
"""The place behind every call."""
_ASKED: Final = ("reenact.replay.missed", "reenact.evidence", "reenact.replay.live")
"""Attributes of a call that the recording did not answer."""


class Parting:
    """The divergences of a replay that are certain, each at its place: the number of a recorded call."""

    def __init__(self, recorded: Run, replayed: Run, evidence: Evidence, result: ReplayResult) -> None:
        self._recorded_run, self._evidence, self._result = recorded, evidence, result
        self._met = frozenset(made_again(replayed))
        self._nodes = {node.id: node for node in recorded.nodes}
        self.owed = owed(recorded)
        self._question = next((node for node in evidence.run.nodes if _is_unanswered(node)), None)
        self._miss = result.misses[0] if result.misses else None
        self._miss_divergence = next((each for each in result.divergences if self._is_of_miss(each)), None)
        self._missed_at = self._place_of_miss() if self._miss is not None else END
        divergences = [each for each in result.divergences if not each.get("crash")]  # it has no place among the calls
        self.certain = sorted(
            ((self._place(each), each) for each in divergences if self._is_certain(each)), key=lambda each: each[0]
        )
        self._all = [(self._place(each), each) for each in divergences]

    @property
    def first(self) -> Divergence | None:
        """The first divergence."""
        if self.certain:
            return self.certain[0][1]
        return self._result.divergences[0] if self._result.divergences else None

    @property
    def prose_only(self) -> bool:
        """Nothing but the wording of what models were asked and said differs; what a tool returns is no wording."""
        return not any(each.get("structural") or not self._is_of_model(each) for _, each in self._all)

    @property
    def is_of_live(self) -> bool:
        """Something else came back live than was recorded."""
        return any(each.get("live") for _, each in self._all)

    def place_of(self, node: Node) -> int:
        """Give the place of a call of the replay: that of the recorded call which answered it."""
        attributes = node.span.attributes
        met = next((attributes[name] for name in MET_BY if name in attributes), None)
        return self.place_named(str(met))

    def place_named(self, node_id: str) -> int:
        """Give the place of a recorded call by its id."""
        node = self._nodes.get(node_id)
        return node.number if node is not None else END

    def before(self, place: int, witnesses: Collection[str]) -> bool:
        """Tell whether anything was different before a place, other than what became of the witnesses."""
        return any(at < place and as_text(each.get("node_a")) not in witnesses for at, each in self.certain)

    def something_else(self, until: int, witnesses: Collection[str]) -> Divergence | None:
        """Find what changed first, before a place: a change of the path, other than what became of the witnesses.

        Another question to a model is none, since nobody knows the answer; nor is what the replay itself refused, nor
        what came back live: the rest follows from that. Nor is what a database was told to write, of which a program
        learns no more than that it was written.
        """
        for at, each in self._all if self._goes_on_in_other_words or self._goes_on_past_writes else self.certain:
            if at >= until or each.get("live"):
                return None
            if self._write_of(each) is not None:
                continue
            if not each.get("structural") or as_text(each.get("node_a")) in witnesses:
                if self._is_of_model(each) and not self._result.beyond:
                    return None  # what follows is no evidence
            elif self._is_refusal(each) or self._is_of_model(each):
                return None
            else:
                return each
        return None

    def only_words_before(self, place: int) -> bool:
        """Tell whether a replay that went on with nearest answers differs in wording alone before a place."""
        return self._goes_on_in_other_words and not any(each.get("structural") for at, each in self._all if at < place)

    def only_writes_before(self, place: int) -> bool:
        """Tell whether nothing but what databases were told to write differs before a place."""
        divergences = [each for at, each in self._all if at < place]
        return bool(divergences) and all(self._write_of(each) is not None for each in divergences)

    @cached_property
    def stale(self) -> str:
        """Say what was answered as if a database had been told what was recorded; empty where nothing was."""
        for at, each in self._all:
            wrote, node = self._write_of(each), self._nodes.get(as_text(each.get("node_a")))
            if wrote is None or node is None or wrote.is_transaction:
                continue
            if each.get("kind") != "missing" and gives_back(node.call):
                return f"what {node.label} gives back is what was written when recorded"
            for other in self.owed:
                if other.number > at and other.id in self._met and reads_of(other.call, wrote):
                    return f"{other.label} was answered as if {node.label} had been as recorded"
        return ""

    def left_behind(self, witness: Node) -> bool:
        """Tell whether the program cannot be about to make a recorded call still: it went past, or made it otherwise.

        It has gone past where it met something later on the same lane, or something on a lane above or below that
        began when the call had ended. A lane beside it proves nothing.
        """
        return self._went_past(witness) or self.made_otherwise(witness)

    def made_otherwise(self, witness: Node) -> bool:
        """Tell whether, in the very place of a call, one of the same function was made with other arguments."""
        question, missed = self._question, self._miss_divergence
        if question is None or missed is None or self._missed_at != witness.number:
            return False
        return question.kind is witness.kind and question.call.name == witness.call.name

    def _went_past(self, witness: Node) -> bool:
        process, lane = _line(witness)
        if self._question is not None and self._question.lane == lane and witness.number < self._missed_at < END:
            return True
        for node in (self._nodes[each] for each in self._evidence.met if each in self._nodes):
            other, there = _line(node)
            if (other, there) == (process, lane):
                if node.number > witness.number:
                    return True
            elif other == process and _one_above(lane, there) and 0 < witness.end_order < node.start_order:
                return True
        return False

    # places

    def _place(self, divergence: Divergence) -> int:
        if divergence is self._miss_divergence:
            return self._missed_at
        if node_a := as_text(divergence.get("node_a")):
            node = self._nodes.get(node_a)
            return node.number if node is not None else 0  # of another run of the recording: before all
        if divergence.get("call") == "run" and divergence.get("kind") == "changed":
            return END  # how the run ended
        return self._next(None)

    def _place_of_miss(self) -> int:
        question = self._question
        following = self._next(question.lane if question is not None else None)
        if question is None or question.kind not in MODELS or self._is_model_at(following):
            return following
        ask = asked(question)
        brought = {each.tool_call_id for each in ask.messages if each.tool_call_id} if ask is not None else set[str]()
        last_number = max((node.number for node in self.owed if node.tool_call_id in brought), default=0)
        if last_number >= following:
            return self._next(question.lane, last_number)
        nearest = self._nodes.get(as_text((self._miss or {}).get("nearest")))
        in_other_words = self._miss_divergence is not None and not self._miss_divergence.get("structural")
        if nearest is None or nearest.number < following or not (in_other_words and self._is_carried_on(question)):
            return following
        return nearest.number

    def _is_model_at(self, place: int) -> bool:
        return any(node.number == place and node.kind in MODELS for node in self.owed)

    def _is_carried_on(self, question: Node) -> bool:
        """Tell a question that holds the whole of the one that was answered last, and more."""
        met = [node for node in self.owed if node.id in self._evidence.met and node.kind in MODELS]
        last = next((node for node in reversed(met) if node.lane == question.lane), None)
        before, now = (asked(last) if last is not None else None), asked(question)
        if before is None or now is None or not before.messages:
            return False
        return len(now.messages) > len(before.messages) and now.messages[: len(before.messages)] == before.messages

    def _next(self, lane: str | None, behind: int = 0) -> int:
        """Give the place of the next call behind all that was met: on a lane, where the recording has it."""
        here = [node for node in self.owed if lane is None or node.lane == lane] or self.owed
        met = max((node.number for node in here if node.id in self._evidence.met), default=0)
        return next((node.number for node in here if node.number > max(met, behind)), END - 1)

    # certainty

    def _is_certain(self, divergence: Divergence) -> bool:
        if divergence.get("kind") != "missing" or not self._was_stopped:
            return divergence is self._miss_divergence or self._is_of_evidence(divergence)
        node = self._nodes.get(as_text(divergence.get("node_a")))
        return node is None or self._went_past(node)

    def _is_of_evidence(self, divergence: Divergence) -> bool:
        """Tell what happened before the replay went on with other answers."""
        return self._miss_divergence is None or not self._result.beyond or not self._is_of_question(divergence)

    def _is_of_question(self, divergence: Divergence) -> bool:
        nearest = {as_text(each.get("nearest")) for each in self._result.misses}
        return divergence.get("kind") in {"extra", "missing"} or as_text(divergence.get("node_a")) in nearest

    @property
    def _was_stopped(self) -> bool:
        return bool(self._result.misses or self._result.refused)

    @property
    def _goes_on_in_other_words(self) -> bool:
        """The replay went on with nearest answers, and the first question was the recorded one in other words."""
        if not self._result.beyond or self._miss_divergence is None or self._miss_divergence.get("structural"):
            return False
        node = self._nodes.get(as_text(self._miss_divergence.get("node_a")))
        return node is not None and node.number == self._missed_at

    @property
    def _goes_on_past_writes(self) -> bool:
        return (
            bool(self._result.beyond)
            and self._miss_divergence is not None
            and self._write_of(self._miss_divergence) is not None
        )

    def _write_of(self, divergence: Divergence) -> Wrote | None:
        """Give what a divergence is a write of, where it is one of a database."""
        if divergence is self._miss_divergence and self._question is not None:
            return writes(self._question.call)
        node = self._nodes.get(as_text(divergence.get("node_a")))
        if node is None:  # one that is made more often than recorded
            node = next((each for each in self.owed if each.label == divergence.get("call")), None)
        return writes(node.call) if node is not None else None

    def _is_of_miss(self, divergence: Divergence) -> bool:
        miss = self._miss
        if miss is None or divergence.get("kind") == "missing":
            return False
        return divergence.get("call") == miss.get("call") and divergence.get("field") == miss.get("field")

    @staticmethod
    def _is_refusal(divergence: Divergence) -> bool:
        return divergence.get("call") == "run" and divergence.get("kind") == "extra"

    def _is_of_model(self, divergence: Divergence) -> bool:
        """Tell a model call that was asked something else."""
        if divergence.get("kind") == "missing" or divergence.get("call") == "run":
            return False
        if divergence is self._miss_divergence and self._question is not None:
            return self._question.kind in MODELS
        node = self._nodes.get(as_text(divergence.get("node_a")))
        if node is not None:
            return node.kind in MODELS
        return as_text(divergence.get("call")).startswith(("llm ", "embedding "))


def _is_unanswered(node: Node) -> bool:
    return any(name in node.span.attributes for name in _ASKED)


def _line(node: Node) -> tuple[str, str]:
    return sequence(node.lane, str(node.span.resource.attributes.get("reenact.process.id") or "")), node.lane


def _one_above(a: str, b: str) -> bool:
    return a.startswith(f"{b}/") or b.startswith(f"{a}/")
