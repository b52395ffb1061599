"""The commands of the documents exist: each is parsed as the command line parses it, and none is run."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import documents
import reenact
import stories
from documents import Command
from reenact.cli.main import reenact as program

ELSE = ("git", "cat", "curl", "collector/_build/otelcol-reenact", "cd", "uvicorn")
"""Programs that are not ours."""

STANDS_FOR = {"COMMAND": "ls", "N": "1", "SECONDS": "1"}
"""What a word in capitals may be where not any text will do."""


def parsed(words: list[str]) -> None:
    """Parse the words of `reenact` down to the last command below it. Raises what `click` raises of a wrong one."""
    command: click.Command = program
    context = click.Context(program, info_name="reenact")
    while isinstance(command, click.Group):
        name, *words = words
        below = command.get_command(context, name)
        assert below is not None, f"there is no command {name!r}"
        command, context = below, click.Context(below, context, info_name=name)
    with context:
        command.parse_args(context, words)


def plain(text: str) -> list[str]:
    """Give the words of a command of a sentence, without what is left out and what may be there or not."""
    words = [STANDS_FOR.get(word, word) for word in shlex.split(re.sub(r"[][]|…|\s[|<]\s\S+|<\(.*\)", " ", text))]
    return words[next(at for at, word in enumerate(words) if "=" not in word) :]


def chained(command: Command) -> Iterator[list[str]]:
    """Give the words of each command of a line of the shell, without settings before it and files of its output."""
    for part in re.split(r" && | & *$", command.text):
        words = shlex.split(re.sub(r" [0-9]?> [\w.]+$", "", part))
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if words:
            yield words


@pytest.mark.parametrize("page", documents.PAGES)
def test_every_command_of_a_page_exists(page: str, root: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wrong: list[str] = []
    for command in documents.commands(page):
        for words in chained(command):
            try:
                exists(words, targets, set(extras))
            except (click.ClickException, AssertionError) as error:
                said = error.format_message() if isinstance(error, click.ClickException) else str(error)
                wrong.append(f"{page}:{command.line}: {command.text}: {said}")
    assert wrong == []


def test_every_command_of_a_page_is_run_or_says_why_not(root: Path) -> None:
    """A block is run in a scene; a command that is not says which tests run it in its place, or that none can."""
    bare: list[str] = []
    used: set[tuple[str, str]] = set()
    for page in documents.PAGES:
        scenes = {(of, start): documents.block(of, start) for of, start in stories.RUN if of == page}
        used |= {scene for scene, block in scenes.items() if block}
        shown = {command for block in scenes.values() for command in block}
        for command in documents.commands(page):
            if command not in shown and stories.not_run(page, command.text) is None:
                bare.append(f"{page}:{command.line}: {command.text}")
            used |= {(of, at) for of, at in stories.NOT_RUN if of == page and command.text.startswith(at)}
    assert bare == []
    assert {*stories.RUN, *stories.NOT_RUN} - used == set(), "no page has these commands"
    places = {each for why in stories.NOT_RUN.values() for each in re.findall(r"tests/\S+?\.py", why)}
    assert {each for each in places if not (root / each).exists()} == set()


def exists(words: list[str], targets: set[str], extras: set[str]) -> None:
    match words:
        case ["reenact", *rest]:
            parsed([word for word in rest if word not in {"[--", "COMMAND]"}])
        case ["git", "bisect", "run", "reenact", *rest]:
            parsed(rest)
        case ["make", target]:
            assert target in targets, f"there is no target {target!r}"
        case ["pip", "install", what]:
            assert set(re.findall(r"\[(\w+)\]", what)) <= extras, "there is no such extra"
        case ["python", "-m", module, *rest]:
            assert module == "reenact.demo.provider"
            exists(rest[rest.index("--") + 1 :], targets, extras)
        case _:
            assert words[0] in ELSE, "nobody knows what program this is"


@pytest.mark.parametrize("page", documents.PAGES)
def test_every_command_of_a_sentence_exists(page: str) -> None:
    wrong: list[str] = []
    for command in documents.spoken(page):
        try:
            parsed(plain(command.text)[1:])
        except (click.MissingParameter, click.BadOptionUsage, click.exceptions.Exit):
            continue  # a sentence names a command, and may leave out what it is about
        except click.UsageError as error:
            wrong.append(f"{page}:{command.line}: {command.text}: {error.format_message()}")
        except AssertionError as error:
            wrong.append(f"{page}:{command.line}: {command.text}: {error}")
    assert wrong == []


@pytest.mark.parametrize("page", documents.PAGES)
def test_every_python_block_of_a_page_is_python_and_names_what_exists(page: str) -> None:
    lost: list[str] = []
    for line, language, text in documents.blocks(page):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "reenact":
                lost += [] if hasattr(reenact, node.attr) else [f"{page}:{line}: reenact.{node.attr}"]
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reenact"):
                module = importlib.import_module(str(node.module))
                lost += [f"{page}:{line}: {each.name}" for each in node.names if not hasattr(module, each.name)]
    assert lost == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replays", "last"], "there is no command 'replays'"),
        (["replay", "last", "--asert", "x"], "No such option '--asert'"),
        (["replay", "last", "--outcome", "some"], "Invalid value for '--outcome'"),
        (["store", "burn"], "there is no command 'burn'"),
    ],
)
def test_a_command_that_does_not_exist_is_seen(words: list[str], said: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)) as wrong:
        parsed(words)
    assert said in (wrong.value.format_message() if isinstance(wrong.value, click.UsageError) else str(wrong.value))
