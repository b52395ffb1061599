"""Backends that hold traces and are asked for them over the network: one file each.

In: a URL. Out: the ids of traces, newest first, and the spans of one of them. To add one, write a module with a
constant of `contracts.backend.Backend`, and tests that ask a real server (`tests/phoenix`).
"""
