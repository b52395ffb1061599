"""The neighbourhood of a recorded run: what could have been a little different.

In: a `values.run.Run` and a seed. Out: `values.variation.Variation`s, each a small change of an answer, of the input or
of the timing, and the `Run` that has it. `choose` puts them into the order in which they are tried, `edits` makes the
changed run, `harm_evidence` says what a program that met one came to. Everything is pure and drawn from a generator of
its own: the same run and seed give the same list. To add a way to vary, write a module that declares a
`contracts.perturbation.Perturbation`; it is found by looking, and the laws in `tests/laws/test_perturbations.py` hold
for it at once.
"""
