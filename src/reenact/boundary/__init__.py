"""The mechanics that every integration shares.

In: a call that an integration has cut out of the agent. Out: whatever the doorman in charge decided, after the place
of the call in the run (`place`), its lane (`lanes`) and the one active doorman (`door`) were looked up. Nothing here
knows an SDK, an attribute name or a file.
"""
