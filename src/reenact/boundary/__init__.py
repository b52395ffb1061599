"""The mechanics that every integration shares.

In: a call that an integration has cut out of the agent. Out: whatever the doorman in charge decided, after the place
of the call in the run (`place`), its lane (`lanes`) and the one active doorman (`door`) were looked up. Nothing here
knows an SDK, an attribute name or a file.

Around these three stand: how others' functions are cut and given back (`patching`, `trampoline`, `static_types`); how
the agent's own become boundaries (`function`, `wrapping`, `generators`, `function_outcome`); how a call is read and
asked for (`question`, `reading`); HTTP as it passes (`byte_streams`, `decoding`, `wire`, `plain_http`, `cancelled`);
tools that nobody declared (`offers`, `searching`, `tool_discovery`, `state`, `touches`); what the agent draws of the
clock and of chance (`tape`); units that come in and processes that go out (`inbound`, `web`, `jobs`, `origins`,
`children`); and whose code is at work (`own_code`, `telemetry`). To add one, write a module that integrations call; it
may know of the three and of those it stands on, never of an integration.
"""
