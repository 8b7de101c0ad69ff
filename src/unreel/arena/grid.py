"""A play as a table: a line for each reviewer, a column for each clip."""

from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.play import NOBODY, SAID_GENERATED, AnswerTable, SeasonClips

UNASKED: Final = -2
Grid = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


def lay_out(play: AnswerTable) -> Grid:
    """Return each reviewer's answer to each clip; `UNASKED` if there is none."""
    grid = np.full((len(play.reviewers), len(play.lineup.clips)), UNASKED, dtype=np.int8)
    grid[play.reviewer, play.clip] = play.said
    return grid


def generated(lineup: SeasonClips) -> Mask:
    """Return the clips of creators, without controls."""
    made: Mask = lineup.creator != NOBODY
    return made


def real(lineup: SeasonClips) -> Mask:
    """The clips as they were filmed; controls are none."""
    filmed: Mask = ~generated(lineup) & (lineup.control == NOBODY)
    return filmed


def wrong(lineup: SeasonClips, grid: Grid) -> Mask:
    """Readable answers that do not say what the clip is; a control is real."""
    truth = generated(lineup)[np.newaxis]
    errs: Mask = (grid >= 0) & ((grid == SAID_GENERATED) != truth)
    return errs
