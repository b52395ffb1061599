"""Write `src/reenact/families.json`: what members of families say of themselves, so that reading loads few of them.

    python .ci/index.py

A line a module, so that two new members in two branches make no conflict.
"""

from __future__ import annotations

import json

from reenact.discover import INDEX, outlines


def spelled(families: dict[str, dict[str, object]]) -> str:
    """Spell the index as JSON, a line a module."""
    parts = (
        f" {json.dumps(family)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(told)}" for name, told in modules.items())
        + "\n }"
        for family, modules in families.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    INDEX.write_text(spelled(outlines()), encoding="utf-8")
    print(f"written: {INDEX}")
