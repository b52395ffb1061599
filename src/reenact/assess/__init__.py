"""Assertions over runs. In come a run and assertions (`values.assertion`); out go findings, one an assertion.

`language` reads and writes the text, `check` evaluates. To add a kind: a dataclass in `values.assertion`, a rule in
`grammar` and what it makes in `assertion_builder`, its spelling in `assertion_text`, and a function that `check` names
for it.
"""
