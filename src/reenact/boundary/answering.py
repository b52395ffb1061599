"""What the call of a found tool did beside giving its answer, done again where a replay answers it.

It printed: that is printed again, between the pieces between which it was. It changed the state of the process: that is
put back before the agent gets the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from reenact.boundary.aftermath import Unspelled, put_back
from reenact.boundary.forgiving import forgive
from reenact.boundary.state import reach_of, reached
from reenact.contracts.doorman import Passage
from reenact.errors import ReplayStopped
from reenact.values.discovered_tools import FILES, TAKEN, RecordedText


class Aftermath:
    """What one answered call did."""

    def __init__(self, fn: Any, arguments: Mapping[str, Any], holding: Mapping[str, Any], passage: Passage) -> None:
        self._fn, self._arguments, self._holding, self._passage = fn, arguments, holding, passage
        self._printed = list(passage.printed)

    def piece(self, number: int) -> None:
        """Print what was printed before the piece with this number was yielded."""
        while self._printed and self._printed[0].pieces <= number:
            each = self._printed.pop(0)
            getattr(sys, each.stream).write(RecordedText(each))

    def end(self) -> Any:
        """Print the rest, and put back what was changed.

        Gives what the call returned where that is an object of the state, else None.
        """
        with self._passage.turn():
            return self._end()

    def _end(self) -> Any:
        self.piece(sys.maxsize)
        self._change_files()
        for each in self._passage.recorded(TAKEN):
            if isinstance(each, int) and sys.stdin is not None:
                sys.stdin.read(each)
        change = self._passage.aftermath
        if change is None:
            return None
        try:
            code_reach = reach_of(self._fn, self._arguments, self._holding)
            looked = reached(self._fn, self._holding, code_reach, few=True)
            return put_back(change, {place: looked.roots[at] for place, at in looked.places().items()})
        except Unspelled as why:
            self._passage.unrestored(str(why))
        except ReplayStopped:
            raise
        except Exception as error:
            forgive("Aftermath.end")
            self._passage.unrestored(f"{type(error).__name__}: {error}")
        return None

    def _change_files(self) -> None:
        """Do to files what the recorded call did."""
        entries = self._passage.recorded(FILES)
        if not entries:
            return
        from reenact.boundary.answered_files import NotPutBack, put_back

        try:
            put_back(entries)
        except NotPutBack as why:
            self._passage.unrestored(str(why))
        except Exception as error:
            forgive("Aftermath.files")
            self._passage.unrestored(f"{type(error).__name__}: {error}")
