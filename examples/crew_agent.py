"""A crew: one agent that plans, two that work in processes of their own, and a pool of threads that checks.

The editor asks the model for a plan, starts a researcher and a critic as child programs (this very file, with another
role), lets a thread pool vote meanwhile, and writes the summary from all of it. Nothing here knows of recording: the
children join the run of the process that started them.

    python -m reenact.demo.provider -- reenact run -- python examples/crew_agent.py    # record
    reenact show last                                                                  # one run, one tree
    reenact replay last                                                                # offline, the same again
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from openai import OpenAI

MODEL = os.environ.get("MODEL", "stand-in-everything")
CREW = ("researcher", "critic")
VOTES = 4


def ask(client: OpenAI, prompt: str) -> str:
    """Ask the model one thing."""
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content or ""


def work(role: str, topic: str) -> None:
    """Do the part of one member of the crew, in a process of its own."""
    client = OpenAI()
    finding = ask(client, f"As the {role}, look into {topic}.")
    print(f"{role} found {finding}")
    print(f"{role} thinks {ask(client, f'As the {role}, judge this: {finding}')}")


def start(role: str, topic: str) -> subprocess.Popen[str]:
    """Start a member of the crew."""
    words = [sys.executable, __file__, "--role", role, "--topic", topic]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def edit(topic: str) -> None:
    """Plan, have the crew work, vote meanwhile, sum up."""
    client = OpenAI()
    plan = ask(client, f"Plan a report on {topic}.")
    print(f"plan: {plan}")
    crew = {role: start(role, plan) for role in CREW}
    with ThreadPoolExecutor(max_workers=VOTES) as pool:
        votes = [pool.submit(ask, client, "Is the plan sound?") for _ in range(VOTES)]
        for vote in as_completed(votes):
            print(f"vote: {vote.result()}")
    findings = [process.communicate()[0] for process in crew.values()]
    print("".join(findings), end="")
    print(f"summary: {ask(client, 'Sum up: ' + ' '.join(findings))}")


def main() -> None:
    """Be the editor, or the member of the crew that --role names."""
    parser = argparse.ArgumentParser(description="A crew of agents.")
    parser.add_argument("--topic", default="otters")
    parser.add_argument("--role", choices=CREW)
    options = parser.parse_args()
    if options.role:
        work(options.role, options.topic)
    else:
        edit(options.topic)


if __name__ == "__main__":
    main()
