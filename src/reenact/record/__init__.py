"""A doorman who writes spans.

In: the calls that integrations cut out of an agent. Out: spans, redacted, in the journal before the agent gets its
answer. `pipe` is our own tracer provider, `recorder` turns crossings into spans, `runs` opens and closes runs,
`surroundings` says what else a replay needs, `projection` shows the same calls on the application's own provider,
`shield` keeps our failures from the agent. Nothing here reads spans back.
"""
