"""What to look for in a text: one file for each family of secrets and of personal data.

In: nothing. Out: `DETECTORS`, a tuple of `contracts.detector.Detector` in each module. To add one, add a row to its
family, or a module with a tuple of that name: it is found by itself. Its examples go to `tests/golden/detectors/`.
"""
