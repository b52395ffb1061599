"""The demo: a real incident, recorded and replayed on the spot, with nothing to configure.

Comes in: nothing; the demo brings its own stand-in for a model provider, on the loopback interface.
Goes out: what a person would see, and the exit code of the replay.

`provider` serves, `wire` spells replies as OpenAI does, `script` says what a script is given and gives back,
`policies` holds one script per scenario, `story` tells the incident. To add a scenario, write a script in `policies`
and name it in `SCRIPTS`; the `model` field of a request selects it.
"""
