"""`reenact`: commands are loaded when they are asked for, so that each starts as fast as it can."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module

import click

from reenact.errors import ReenactError
from reenact.values import user_key
from reenact.version import VERSION

COMMANDS = {
    "run": "run",
    "ls": "listing",
    "show": "show",
    "step": "step",
    "replay": "replay",
    "check": "check",
    "diff": "diff",
    "fork": "fork",
    "promote": "promote",
    "fuzz": "fuzz",
    "doctor": "doctor",
    "cold": "cold",
    "incident": "incident",
    "export": "transfer",
    "import": "transfer",
    "redact": "redact",
    "policy": "redact",
    "collect": "collect",
    "recover": "recover",
    "status": "status",
    "store": "store",
    "demo": "demo",
}
"""Command to module of `reenact.cli`; the module holds `<command>_command`."""


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
        module = import_module(f"reenact.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command


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


def main() -> None:
    """Run the command line. Our own errors become one sentence on stderr and their exit code, never a traceback."""
    user_key.take()
    try:
        code = reenact.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ReenactError as error:
        click.echo(f"reenact: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception:  # noqa: BLE001 - a failure of ours is no verdict: 1 would be one, and a bad commit to `git bisect`
        traceback.print_exc()
        sys.exit(125)
    sys.exit(code if isinstance(code, int) else 0)
