"""`reenact`: commands are loaded when they are asked for, so that each starts as fast as it can."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from io import StringIO

import click

from reenact.errors import InputError, ReenactError
from reenact.version import VERSION


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of commands."""

    module: str
    """The module of `reenact.cli` that holds `<command>_command`."""
    summary: str
    """The first sentence of the command's docstring."""
    launches: bool = False
    """It launches a sealed program: the launcher starts while the command is loaded."""


COMMANDS = {
    "run": Row("run", "Record COMMAND, any Python program, with no change to its code."),
    "ls": Row("listing", "List runs, newest first: those of the store, or of SOURCE, a trace file or `-`."),
    "show": Row("show", "Show RUN as a tree: every call in its place, with input, output and timing."),
    "step": Row(
        "step", "Walk through RUN: each call with the conversation before and after it, what went in and what came out."
    ),
    "replay": Row(
        "replay", "Run a program again with every model call and declared tool answered from RUN.", launches=True
    ),
    "check": Row("check", "Hold assertions against RUN: a recording, a replay, or a trace of anybody's."),
    "diff": Row("diff", "Compare runs A and B, aligned on what was asked: the first divergence, then the rest."),
    "fork": Row(
        "fork", "Run a program again from RUN: recorded up to a call, changed there, then by policy.", launches=True
    ),
    "promote": Row("promote", "Write a fixture and a pytest test of RUN next to the project's tests."),
    "fuzz": Row(
        "fuzz",
        "Look for bugs around RUN: run the program again, offline, with answers that are each a little different.",
    ),
    "doctor": Row("doctor", "Judge RUN from its trace alone: the verdict, and the replay kit piece by piece."),
    "what": Row(
        "what", "Say what a trace FILE is: its format and what it holds, or the known format that it is nearest to."
    ),
    "cold": Row(
        "cold", "Count the runs and calls that cannot be replayed: of the store, or of SOURCES, trace files or `-`."
    ),
    "incident": Row(
        "incident",
        "Write RUN as one HTML page: what was asked, every call, where a replay leaves it, what was redacted.",
    ),
    "export": Row("transfer", "Write RUN to a file that replays without the store, or send it to an OTLP backend."),
    "import": Row(
        "transfer",
        "Take the runs of trace FILES (of any format that is read, packed or not; or folders) into the store.",
    ),
    "redact": Row(
        "redact", "Apply a redaction policy to a trace FILE of any format that is read, or to a RUN of the store."
    ),
    "policy": Row(
        "redact",
        "Say which redaction policy is in force here, or what FILE says: what is sought, and what becomes of it.",
    ),
    "collect": Row(
        "collect", "Take spans and log events in over OTLP, HTTP on 4318 and gRPC on 4317, until it is told to end."
    ),
    "recover": Row(
        "recover", "Carry what dead processes left in their journals into the store, and say what was found."
    ),
    "status": Row(
        "status",
        "Say how the store stands: journals, sizes, and for each backend what it has, waits for and will not get.",
    ),
    "store": Row("store", "Take runs out of the store, and large values that no run refers to any more."),
    "demo": Row(
        "demo", "Re-enact a production incident: record it, fail to repeat it live, replay it, meet it with a fix."
    ),
}
"""The commands in the order of a first use. Help is printed from here, so that it imports no command."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of a first use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        if COMMANDS[cmd_name].launches:
            from reenact.pipeline import standby

            standby.begin()
        module = import_module(f"reenact.cli.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with what each does, as click does, but without loading them."""
        del ctx
        room = formatter.width - 6 - max(map(len, COMMANDS))
        stands_in = (click.Command(name, help=row.summary) for name, row in COMMANDS.items())
        with formatter.section("Commands"):
            formatter.write_dl([(str(each.name), each.get_short_help_str(room)) for each in stands_in])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="reenact")
def reenact() -> None:
    """Record an agent's run as OpenTelemetry spans; replay the agent's own code from them, offline.

    \b
    reenact run -- python agent.py     record, with no change to the code
    reenact ls                         find the run
    reenact show last                  look at it
    reenact replay last                run it again, offline, and say where it leaves the recording

    RUN is `last`, an id or its beginning, the path of a trace file (`FILE#ID` where it holds several), or `-`.

    Exit codes: 0 same or done, 1 diverged, 2 usage, 3 input or configuration, 125 cannot judge.
    """  # noqa: D301 - click's own mark against rewrapping


def _say(line: str) -> None:
    from reenact.cli import options

    options.say(line)


def main() -> None:
    """Run the command line. Our own errors become one sentence on stderr and their exit code, never a traceback."""
    if "REENACT_KEY" in os.environ:  # no program that is started here finds it
        from reenact.disk import user_key

        user_key.take()
    try:
        code = reenact.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        with StringIO() as buffer:
            error.show(buffer)
            _say(buffer.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except ReenactError as error:
        _say(f"reenact: {error}")
        sys.exit(error.exit_code)
    except RecursionError:
        _say("reenact: what is to be read is nested too deep")
        sys.exit(InputError.exit_code)
    except MemoryError:
        _say("reenact: what is to be read takes more memory than there is")
        sys.exit(InputError.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception:  # noqa: BLE001 - a failure of ours is no verdict: 1 would be one, and a bad commit to `git bisect`
        from traceback import format_exc

        _say(format_exc().rstrip())
        sys.exit(125)
    sys.exit(code if isinstance(code, int) else 0)
