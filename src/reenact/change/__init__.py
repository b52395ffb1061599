"""Changing a recorded run on purpose: a fork with another answer, many variations of it, and what each brings to light.

In: a run, and what is to be another in it. Out: forks as runs of their own, and findings that name the smallest change
which shows them. Known here is `pipeline.replaying`, which runs the program. Never known is how an answer is spelled:
perturbations are members of `vary`. To add a way of changing runs, write a verb here; to add a perturbation, a file in
`vary`.
"""
