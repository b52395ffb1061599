from __future__ import annotations

from foreign import told
from made import Made
from reenact.foreign.own_call_span import settled
from reenact.foreign.partial_question import losses, rebuilt_parts
from reenact.graph.build import build

USER = told.said("user", told.text(told.QUESTION))
CALLS = told.said("assistant", told.called("look", {"at": "sky"}))
AGENT = told.span(1, "agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
SPANS = (
    AGENT,
    told.chat(2, [USER], [CALLS], parent=AGENT.span_id),
    told.chat(4, [USER, CALLS, told.said("tool", told.came("wet"))], [], parent=AGENT.span_id),
    told.chat(5, [USER], error=("openai.RateLimitError", "Error code: 429 - slow"), parent=AGENT.span_id),
)


def test_what_was_made_of_a_trace_is_read_again_as_it_was() -> None:
    [run] = build(SPANS)
    [again] = build([settled(node) for node in run.nodes])
    assert [node.id for node in again.nodes] == [node.id for node in run.nodes]
    assert [(node.call.request, node.outcome) for node in again.nodes[1:]] == [
        (node.call.request, node.outcome) for node in run.nodes[1:]
    ]
    assert [(rebuilt_parts(node), losses(node)) for node in again.nodes] == [
        (rebuilt_parts(node), losses(node)) for node in run.nodes
    ]
    assert [(node.label, node.caused_by) for node in again.nodes] == [
        (node.label, node.caused_by) for node in run.nodes
    ]


def test_ours_stays_as_it_is() -> None:
    made = Made()
    made.llm([{"role": "user", "content": "x"}], "y")
    [run] = build(made.spans)
    assert [settled(node) for node in run.nodes] == [node.span for node in run.nodes]
