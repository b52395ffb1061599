"""Every program of the matrix, by kind. They stand in `programs/`, a file a kind, in sections:

    === NAME | the kind of effect that the result speaks of | needs MODULE SERVER /FILE | client NAME | …
    code

`needs`: what is imported, a key of `where.json`, a file; `client`: a native client that a watched replay must name;
`stdin`: what standard input is; `uses`: heads that are put before the code; `silent`: no user may do it at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from escapes.trial import Probe
from seal.probes import EFFECTS

PROGRAMS = Path(__file__).with_name("programs")
KINDS = (
    "files",
    "home and spools",
    "processes",
    "signals",
    "shared",
    "terminal",
    "machinery",
    "network",
    "unix sockets",
    "databases",
)
WORDS = {
    "network": r"tcp.*|udp",
    "unix sockets": r"unix.*|abstract",
    "signals": r".* another process|kill by pidfd",
    "processes": r"priority|affinity|limits",
    "shared memory": r"shared memory.*",
}
"""Of what kind a program of the seal's is, by its name; a file, where none fits."""


def sections(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Give name, settings and code of each program of a file."""
    for section in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, _, code = section.partition("\n")
        name, *settings = head.split(" | ")
        yield name, settings, code.rstrip() + "\n"


def setting(settings: list[str], word: str) -> str:
    """Give what stands after a word in a section's head."""
    return next((each.removeprefix(word).strip() for each in settings if each.split(" ")[0] == word), "")


def probes(kind: str) -> dict[str, Probe]:
    """Read the programs of a kind."""
    found: dict[str, Probe] = {}
    for name, (word, *settings), code in sections((PROGRAMS / f"{kind.replace(' ', '_')}.txt").read_text()):
        heads = [(PROGRAMS / "heads" / f"{head}.txt").read_text() for head in setting(settings, "uses").split()]
        found[name] = Probe(
            "".join(heads) + code,
            word,
            needs=tuple(setting(settings, "needs").split()),
            client=setting(settings, "client"),
            stdin=setting(settings, "stdin"),
            silent="silent" in settings,
        )
    return found


def of_the_seal() -> dict[str, Probe]:
    """Give the probes of the seal as programs of a user; what they leave beyond the folder bears the ground's tag."""
    found: dict[str, Probe] = {}
    for name, code in EFFECTS.items():
        word = next((word for word, pattern in WORDS.items() if re.fullmatch(pattern, name)), "files")
        for was, now in (
            ("'reenact-%d' % victim", "tag"),
            ('"/tmp/l-%d" % victim', '"/tmp/l-" + tag'),
            ("shmget(victim,", "shmget(key,"),
        ):
            code = code.replace(was, now)  # noqa: PLW2901 - each builds on the last
        found[name] = Probe(code, word)
    return found


MATRIX = {"of the seal": of_the_seal(), **{kind: probes(kind) for kind in KINDS}}
