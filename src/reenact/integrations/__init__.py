"""SDK ⇄ call: one file for each place where the agent meets the outside world.

In: the library's own objects. Out: `values.call` values, handed to the doorman in charge; in a replay the way back,
recorded values made into the library's own objects. No member knows a span attribute, a file, or whether a run is
recorded or replayed. To add one, write a module with an `INTEGRATION` (`contracts.integration`) that cuts where the
library hands its request over.
"""
