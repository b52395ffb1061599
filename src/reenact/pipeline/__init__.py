"""The hallway: recording a program, replaying it and judging what it did, in the order of the rooms.

In: a program's words, a run that `find` found. Out: a recording that `keep` carries, a result, a page. `recording` puts
a recorder in charge of this process, `injection` starts a program so, `replaying` runs it against a recording in a
world of its own (`sealed`), `judging` says what came of it. Doors (the command line, the façade, instrumentors) call
these and print. Never known is how anything is spelled or stored. To add a job, write a verb here that a door calls.
"""
