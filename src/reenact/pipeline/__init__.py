"""The hallway: the only place that knows the order of the rooms.

`recording` puts a recorder in charge of this process, `drain` carries journals into the store and to backends,
`catalog` says what a run is found by, `sources` finds the run that somebody named, `replaying` runs a program against
a recording and judges it. Doors (the command line, the façade, instrumentors) call these and print.
"""
