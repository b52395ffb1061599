from __future__ import annotations

import ast
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
