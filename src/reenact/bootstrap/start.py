"""What the start-up hook starts: REENACT_REPLAY names a plan to replay by, else REENACT_RECORD asks to record."""

from __future__ import annotations

import os
import sys


def start() -> None:
    """Start the recorder or the replayer in this process.

    Recording forgives: a recorder that cannot start says so and the program runs. A replay accuses: a replayer that
    cannot start ends the process, since the program would otherwise run for real.
    """
    if plan := os.environ.get("REENACT_REPLAY"):
        _replay(plan)
    elif os.environ.get("REENACT_RECORD"):
        _record()


def _record() -> None:
    try:
        from reenact.keep import journal_owner
        from reenact.pipeline import recording

        tape = recording.start(recording.Setup(generators={}))  # before the agent's first line: nobody chose a seed yet
        journal_owner.loaded(tape.store, tape.id)
    except Exception as error:  # the host is sacred
        from reenact.values.terminal import tell

        tell(f"the recorder did not start ({error!r}); the program runs unrecorded")


def _replay(plan: str) -> None:
    try:
        if "REENACT_LEADS" in os.environ:
            from reenact.replay.path_redirection import lead

            lead()
        from reenact.pipeline.joining import join

        join(plan)
    except BaseException as error:
        from reenact.values.terminal import tell

        tell(f"the replay did not start: {error}")
        sys.stderr.flush()
        os._exit(3)
