from __future__ import annotations

import click
import pytest

from reenact.cli import main as cli


def test_a_failure_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 would say that a replay diverged, and make a bad commit of this one in a bisection."""

    def fails(**_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(cli.reenact, "main", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 125
    assert "RuntimeError: a bug of ours" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_table_says_of_a_command_what_its_own_help_says(name: str) -> None:
    command = cli.reenact.get_command(click.Context(cli.reenact), name)
    assert command is not None
    for room in (20, 60, 1000):
        assert click.Command(name, help=cli.COMMANDS[name].summary).get_short_help_str(room) == (
            command.get_short_help_str(room)
        )


def test_help_lists_every_command_in_its_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["reenact", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    listed = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [*cli.COMMANDS]
