"""Delivering a recorded unit of work again: a request to an application, a task to its function, a message to its loop.

In: the root of a unit with its recorded arguments, in a process that has joined a replay. Out: what the unit answered,
printed and raised. Known here are ASGI, WSGI, and the job libraries that `integrations` record. Never known is the
verdict: what came of it is compared elsewhere. To add a kind of unit, write one module that calls it as its server
would.
"""
