"""Recorded runs as tests.

In: a recorded run, and a project with tests. Out: a fixture and a test that stays (`promoting`), and what the pytest
plugin gives to tests: programs replayed in a process of their own (`program`), agents answered inside the test
(`inline`), models made up on the spot (`mock`), and the report at the end. To add a service for tests, write a module
here and a fixture for it in `reenact.pytest_plugin`, which imports it when a test asks for it and not before.
"""
