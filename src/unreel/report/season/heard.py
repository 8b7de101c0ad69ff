"""What was said of each clip, picked out of the columns of a play."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.play import NOBODY, SAID_GENERATED, SAID_REAL, SILENT, Play
from unreel.report.season.view import REAL

WORDS: Final = {SAID_GENERATED: "generated", SAID_REAL: "real", SILENT: "nothing that can be read"}
SIDES: Final = frozenset({WORDS[SAID_GENERATED], WORDS[SAID_REAL]})
_UNASKED: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The answers of one play as a table of reviewers by clips."""

    play: Play
    said: npt.NDArray[np.int8]
    """A row for each reviewer, a column for each clip; `_UNASKED` where nobody asked."""
    truth: npt.NDArray[np.int8]
    """What should be said of each clip."""
    right: npt.NDArray[np.bool_]
    read: npt.NDArray[np.bool_]
    """Where there is an answer that could be read."""

    def makers(self) -> dict[str, npt.NDArray[np.intp]]:
        """Places of the clips by who made them: real ones first, then creators, then controls."""
        lineup = self.play.lineup
        real = (lineup.creator == NOBODY) & (lineup.control == NOBODY)
        found = {REAL: np.flatnonzero(real)}
        found |= {
            name: np.flatnonzero(lineup.creator == i) for i, name in enumerate(lineup.creators)
        }
        found |= {
            name: np.flatnonzero(lineup.control == i) for i, name in enumerate(lineup.controls)
        }
        return found

    def maker(self, clip: int) -> str:
        """Who made that clip."""
        lineup = self.play.lineup
        if lineup.creator[clip] != NOBODY:
            return lineup.creators[int(lineup.creator[clip])]
        at = int(lineup.control[clip])
        return REAL if at == NOBODY else lineup.controls[at]

    def answer(self, reviewer: int, clip: int) -> str:
        """What that reviewer said of the clip; "" where it was not asked."""
        return WORDS.get(int(self.said[reviewer, clip]), "")

    def asked(self, reviewer: int) -> npt.NDArray[np.bool_]:
        """The clips that it was asked about."""
        return np.asarray(self.said[reviewer] != _UNASKED)

    def worst(self, reviewer: int) -> npt.NDArray[np.intp]:
        """Clips that it got wrong, those first that most others got right; then what could not be read."""
        share = self.right_of_others(reviewer) / np.maximum(self.read_of_others(reviewer), 1)
        missed = np.flatnonzero(self.asked(reviewer) & ~self.right[reviewer])
        silent = ~self.read[reviewer][missed]
        return missed[np.lexsort((missed, -share[missed], silent))]

    def right_of_others(self, reviewer: int) -> npt.NDArray[np.intp]:
        """How many others are right, by clip."""
        return np.asarray(self.right.sum(axis=0) - self.right[reviewer])

    def read_of_others(self, reviewer: int) -> npt.NDArray[np.intp]:
        """How many others gave an answer that could be read, by clip."""
        return np.asarray(self.read.sum(axis=0) - self.read[reviewer])


def hear(play: Play) -> Heard:
    """The answers of `play`; of two about one clip, the later."""
    said = np.full((len(play.reviewers), len(play.lineup.clips)), _UNASKED, dtype=np.int8)
    said[play.reviewer, play.clip] = play.said
    made = play.lineup.creator != NOBODY
    truth = np.where(made, SAID_GENERATED, SAID_REAL).astype(np.int8)
    read = (said == SAID_REAL) | (said == SAID_GENERATED)
    return Heard(play=play, said=said, truth=truth, right=said == truth[None, :], read=read)
