from __future__ import annotations

import pytest

from counting import growth
from made import Made, user
from reenact.assess.check import check
from reenact.assess.grounding import pieces
from reenact.values.assertion import Finding
from reenact.values.call import CallKind
from reenact.values.json import Json

DOCUMENTS: Json = [
    {
        "id": "kb-7",
        "text": "Orders over 1,250.00 EUR are refunded within 30 days. See refund-policy.pdf, section “Late returns”.",
    },
    {"id": "kb-9", "text": "Write to help@acme.example or see https://acme.example/returns", "score": 0.25},
]


def grounded(answer: str, ground: str = "the retrieved documents", *, documents: Json = DOCUMENTS) -> Finding:
    made = Made()
    made.tool("search", {"query": "refund"}, documents, kind=CallKind.RETRIEVER)
    made.tool("order", {"id": "ord-4711"}, {"id": "ord-4711", "total": 99.5})
    made.llm([user("Where is order ord-4711 of the 480 I made?")], answer)
    (finding,) = check(made.run(), [f"answer grounded in {ground}"])
    return finding


def test_an_answer_is_taken_apart() -> None:
    answer = """See https://x.io/a?b=1, or mail a.b@c.io.
1. Order ord-4711 costs $1,250.00 (3 items).
2. "Late returns" is in policy.pdf; AcmeCorp, the 5th on 2026-05-17, sold `x` 15%."""
    assert [(piece.kind, piece.text) for piece in pieces(answer)] == [
        ("address", "https://x.io/a?b=1"),
        ("address", "a.b@c.io"),
        ("quotation", "Late returns"),
        ("file name", "policy.pdf"),
        ("identifier", "ord-4711"),
        ("identifier", "AcmeCorp"),
        ("number", "1,250.00"),
        ("number", "2026"),
        ("number", "17"),
        ("number", "15"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "Orders over 1250 EUR are refunded in 30 days.",
        "Orders over €1250.0 are refunded.",
        'It is in refund-policy.pdf under "late  returns".',
        "Ask help@acme.example about kb-7, as https://acme.example/returns says.",
        "Your order ord-4711 is one of 480.",  # the question said so
        "There are 3 ways and 2 of them work.",
        "I do not know.",
    ],
)
def test_what_occurs_in_the_documents_is_grounded(answer: str) -> None:
    assert grounded(answer).standing.value == "holds", grounded(answer).because


@pytest.mark.parametrize(
    ("answer", "piece"),
    [
        ("Refunds take 45 days.", "the number '45'"),
        ("Refunds over 1,250.50 are late.", "the number '1,250.50'"),
        ("A loss of -30 was booked.", "the number '-30'"),
        ("See terms.pdf.", "the file name 'terms.pdf'"),
        ('It says "no returns after Christmas".', "the quotation 'no returns after Christmas'"),
        ("By kb-8.", "the identifier 'kb-8'"),
        ("Mail sales@acme.example.", "the address 'sales@acme.example'"),
        ("It cost 99.5.", "the number '99.5'"),
    ],
)
def test_what_does_not_is_named(answer: str, piece: str) -> None:
    finding = grounded(answer)
    assert finding.standing.value == "fails"
    assert f"{piece} is nowhere in the retrieved documents (1 calls)" in finding.because


def test_the_ground_is_what_was_said() -> None:
    assert grounded("It cost 99.50.", "the tool results").standing.value == "holds"
    assert grounded("It cost 99.50 and 30 days.", "the tool results").standing.value == "fails"
    assert grounded("It cost 99.50 and 30 days.", "the retrieved documents and tool results").standing.value == "holds"


def test_an_answer_without_any_document_stands_on_nothing() -> None:
    made = Made()
    made.llm([user("How long?")], "Refunds take 45 days.")
    (finding,) = check(made.run(), ["answer grounded in the retrieved documents"])
    assert finding.standing.value == "fails"
    assert "the retrieved documents: there are none" in finding.because


def test_documents_that_were_lost_or_redacted_decide_nothing() -> None:
    token = "REDACTED_known_secret_0123456789abcdef0123"
    assert grounded("Refunds take 45 days.", documents=[{"text": f"within {token} days"}]).standing.value == "undecided"
    made = Made()
    made.tool("search", {"query": "x"}, unfinished=True, kind=CallKind.RETRIEVER)
    made.llm([user("How long?")], "Refunds take 45 days.")
    (finding,) = check(made.run(), ["answer grounded in the retrieved documents"])
    assert finding.standing.value == "undecided"


@pytest.mark.parametrize("unit", ["a1B", "-", ".", "a_", "a.", "1,", '"', "Ab", "/."])
def test_a_hostile_answer_is_taken_apart_in_proportion_to_its_length(unit: str) -> None:
    assert list(pieces(unit * 50_000)) == []
    assert growth(lambda size: lambda: list(pieces(unit * size)), 1_000) < 3
