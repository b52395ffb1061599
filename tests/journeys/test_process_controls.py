"""What Python does to other processes without an audit event: a recording notes it, a replay refuses it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from desk import Desk

PROGRAM = """
import os, resource, signal, sys
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
victim = int(sys.argv[1])
for act in ACTS:
    try:
        exec(act)
    except BaseException:
        pass
"""
ACTS = {
    "os.setpriority(os.PRIO_PROCESS, victim, 5)": "set the priority of process",
    "os.setpriority(os.PRIO_PGRP, 0, 3)": "set the priority of process group 0",
    "os.sched_setaffinity(victim, {0})": "set the affinity of process",
    "os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0))": "set the scheduling of process",
    "resource.prlimit(victim, resource.RLIMIT_NOFILE, (64, 64))": "set the limits of process",
    "open(f'/proc/{victim}/oom_score_adj', 'w').write('500')": "write /proc/",
    "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGCONT)": "signal 18 to process",
}
HARMLESS = (
    "os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))",
    "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)",
    "resource.prlimit(victim, resource.RLIMIT_NOFILE)",
    "signal.pidfd_send_signal(os.pidfd_open(os.getpid()), 0)",
    "open('/proc/self/comm', 'w').write('agent')",
)


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], process_group=0) as process:
        yield process
        process.kill()


def test_an_act_on_another_process_lowers_the_verdict_and_is_refused(
    desk: Desk, victim: subprocess.Popen[bytes]
) -> None:
    program = desk.write("agent.py", PROGRAM.replace("ACTS", repr([*ACTS])))
    done = desk.reenact("run", "-q", "--", "python", program, str(victim.pid))
    assert done.returncode == 0, done.stderr
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == 5, "the acts are done"
    os.setpriority(os.PRIO_PROCESS, victim.pid, 1)
    verdict = json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]
    said = " ".join(reason["lost"] for reason in verdict["reasons"])
    assert [what for what in ACTS.values() if what not in said] == []
    assert verdict["grade"] == "partial"
    watched = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    refused = " ".join(each["what"] for each in json.loads(watched.stdout)["refused"])
    assert [what for what in ACTS.values() if what not in refused] == []
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == 1


def test_what_is_about_the_program_itself_is_no_effect(desk: Desk, victim: subprocess.Popen[bytes]) -> None:
    program = desk.write("agent.py", PROGRAM.replace("ACTS", repr(HARMLESS)))
    desk.reenact("run", "-q", "--", "python", program, str(victim.pid))
    assert json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]["grade"] == "exact"
    assert desk.reenact("replay", "last").returncode == 0
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
