"""Answers about each clip, selected from the columns of a play."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.play import (
    SAID_GENERATED,
    SAID_REAL,
    SILENT,
    UNASKED,
    AnswerTable,
    lay_out,
    select_generated,
)

WORDS: Final = {SAID_GENERATED: "generated", SAID_REAL: "real", SILENT: "nothing that can be read"}
SIDES: Final = frozenset({WORDS[SAID_GENERATED], WORDS[SAID_REAL]})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMatrix:
    """The answers of one play as a table of reviewers by clips."""

    play: AnswerTable
    said: npt.NDArray[np.int8]
    """A row per reviewer, a column per clip; `UNASKED` without a question."""
    source: npt.NDArray[np.int64]
    """Of each clip: whose it is, as a place in the lineup's `sources`."""
    truth: npt.NDArray[np.int8]
    """What should be said of each clip."""
    right: npt.NDArray[np.bool_]
    read: npt.NDArray[np.bool_]
    """Where there is an answer that could be read."""
    n_right: npt.NDArray[np.intp]
    """Reviewers that are right, by clip."""
    n_read: npt.NDArray[np.intp]
    """Reviewers whose answer could be read, by clip."""

    def clips_of(self, maker: str) -> npt.NDArray[np.intp]:
        """Return the indices of the clips by a creator or control, or of the real ones; none for an unknown name."""
        places = [at for at, name in enumerate(self.play.lineup.sources) if name == maker]
        return np.flatnonzero(np.isin(self.source, places))

    def maker(self, clip: int) -> str:
        """Return the creator of that clip."""
        return self.play.lineup.sources[int(self.source[clip])]

    def answer(self, reviewer: int, clip: int) -> str:
        """Return the reviewer's answer about the clip; "" if it was not asked."""
        return WORDS.get(int(self.said[reviewer, clip]), "")

    def asked(self, reviewer: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the clips that the reviewer was asked about."""
        return np.asarray(self.said[reviewer] != UNASKED)

    def worst(self, reviewer: int) -> npt.NDArray[np.intp]:
        """Return the clips that the reviewer got wrong, then the clips with unreadable answers.

        Clips that most other reviewers got right come first.
        """
        n_others = np.maximum(self.n_read - self.read[reviewer], 1)
        share = (self.n_right - self.right[reviewer]) / n_others
        missed = np.flatnonzero(self.asked(reviewer) & ~self.right[reviewer])
        silent = ~self.read[reviewer][missed]
        return missed[np.lexsort((missed, -share[missed], silent))]


def group_answers_by_clip(play: AnswerTable) -> AnswerMatrix:
    """Return the answers of `play` by clip; of two answers about one clip, the later is kept."""
    said, made = lay_out(play), select_generated(play.lineup)
    truth = np.where(made, SAID_GENERATED, SAID_REAL).astype(np.int8)
    right, read = said == truth[None, :], (said == SAID_REAL) | (said == SAID_GENERATED)
    return AnswerMatrix(
        play=play,
        said=said,
        source=play.lineup.source,
        truth=truth,
        right=right,
        read=read,
        n_right=right.sum(axis=0),
        n_read=read.sum(axis=0),
    )
