from __future__ import annotations

import ast
import re
from pathlib import Path

SHORTEST_CARD = 30  # words: what comes in, what goes out, how to add one


def test_every_inner_package_has_a_room_card_and_nothing_else(root: Path, sources: list[Path]) -> None:
    cards = [path for path in sources if path.name == "__init__.py" and path != Path("src/reenact/__init__.py")]
    assert cards
    wrong = {str(path): why for path in cards if (why := fault((root / path).read_text(encoding="utf-8")))}
    assert wrong == {}


def test_every_folder_of_modules_is_a_package(sources: list[Path]) -> None:
    folders = {path.parent for path in sources} - {Path("src/reenact/bootstrap")}
    assert [str(folder) for folder in sorted(folders) if folder / "__init__.py" not in sources] == []


OTHER_WORDS = {"last", "ls", "model", "select", "send"}
"""What cards name that is neither a module nor a room: words of commands, libraries and functions."""


def test_a_card_names_modules_that_are_there(root: Path, sources: list[Path]) -> None:
    package = root / "src" / "reenact"
    cards = [root / path for path in sources if path.name == "__init__.py" and path.parent.name != "reenact"]
    strange = {
        f"{card.parent.name}: {name}"
        for card in cards
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", card.read_text(encoding="utf-8"))
        if name not in OTHER_WORDS and not names_a_module(name, card.parent, package)
    }
    assert strange == set()


def names_a_module(name: str, room: Path, package: Path) -> bool:
    """Tell a module of this room, or a room or module of the package, named as `room.module`; or a file by its name."""
    below = name.removesuffix(".py").removeprefix("reenact.").replace(".", "/")
    places = [room / name, room / f"{below}.py", package / below, package / f"{below}.py"]
    holders = [
        (folder / below).parent.with_suffix(".py") for folder in (room, package)
    ]  # `page.page`: a name in a module
    return any(place.exists() for place in (*places, *holders))


def test_a_fault_of_a_card_is_named() -> None:
    card = '"""' + "word " * SHORTEST_CARD + '"""\n'
    assert fault(card) == ""
    assert fault(card + "from reenact.values.call import Call\n") == "holds more than a docstring"
    assert fault("") == "has no docstring"
    assert fault('"""Short."""') == "is too short to tell what comes in, what goes out and how to add one"
    assert fault('"""TODO ' + "word " * SHORTEST_CARD + '"""') == "is left open"


def fault(source: str) -> str:
    tree = ast.parse(source)
    card = ast.get_docstring(tree)
    if card is None:
        return "has no docstring"
    if len(tree.body) > 1:
        return "holds more than a docstring"
    if "TODO" in card:
        return "is left open"
    short = len(card.split()) < SHORTEST_CARD
    return "is too short to tell what comes in, what goes out and how to add one" if short else ""
