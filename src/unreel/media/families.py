"""Clips that are one family so far, while pairs are still being found."""

import numpy as np
from numpy.typing import NDArray


class ClipFamilies:
    """Each clip alone at first."""

    def __init__(self, n_clips: int) -> None:
        self._above = np.arange(n_clips)
        self._sizes = np.ones(n_clips, np.intp)

    def of(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """One member for all clips of a family, the same for each of them."""
        tops = self._above[places]
        while (higher := self._above[tops] != tops).any():
            tops[higher] = self._above[tops[higher]]
        self._above[places] = tops
        return tops

    def sizes(self, tops: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the size of each family in `tops`, as returned by `of`."""
        return self._sizes[tops]

    def join(self, one: int, other: int) -> None:
        """Makes one family of two."""
        top, under = sorted(self.of(np.array([one, other])).tolist(), key=self._rank)
        if top != under:
            self._above[under] = top
            self._sizes[top] += self._sizes[under]

    def _rank(self, top: int) -> tuple[int, int]:
        return -int(self._sizes[top]), top
