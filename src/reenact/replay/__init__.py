"""A run becomes a doorman who answers.

In: recorded runs (`values.run`). Out: answers for the agent's calls, and a ledger of everything that was answered,
missed, refused or released out of order. `stubs` hydrates answers from spans and finds the one that stands, `release`
lets answers through in recorded order, `replayer` is the doorman, `guard` keeps the network and child processes shut,
`ledger` is kept outside the agent.
"""
