"""Counts of each reviewer's answers by clip source, observed and on bootstrap resamples of scenes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import (
    NOBODY,
    SAID_GENERATED,
    SILENT,
    SeasonAnswerTable,
    SeasonClips,
)
from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import Array, BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class ClipSourceColumns:
    """Columns of tables by clip source: the creators, then real clips, then the controls."""

    n_creators: int
    n_controls: int

    @classmethod
    def of(cls, clips: SeasonClips) -> "ClipSourceColumns":
        return cls(len(clips.creators), len(clips.controls))

    @property
    def real(self) -> int:
        return self.n_creators

    @property
    def total(self) -> int:
        return self.n_creators + 1 + self.n_controls

    @property
    def made(self) -> slice:
        """Return the range of the columns of creators."""
        return slice(0, self.n_creators)

    @property
    def played(self) -> slice:
        """Return the range of the columns of creators and real clips: all sources except the controls."""
        return slice(0, self.n_creators + 1)

    @property
    def changed(self) -> slice:
        """Return the range of the columns of controls."""
        return slice(self.n_creators + 1, self.total)


@dataclass(frozen=True, slots=True, eq=False)
class ResampledAnswerCounts:
    """Counts of a reviewer's answers: a row per resample (row 0: observed), a column per clip source."""

    asked: Array
    valid: Array
    """Number of readable answers."""
    generated: Array
    """Number of readable answers "generated"."""
    scene_asked: Array
    """Observed number of questions: a row for each scene, a column for each clip source."""
    scene_valid: Array


@dataclass(frozen=True, slots=True, eq=False)
class ResampledAnswerTable:
    """Answer table with bootstrap resamples of scenes, which all entrants share for comparison."""

    play: SeasonAnswerTable
    sources: ClipSourceColumns
    clips: IntArray
    """Number of clips of each source."""
    weights: Array
    """Number of times each scene (column) is drawn in each resample (row); row 0 is the observed data."""
    cell: IntArray
    """Scene and source of each answer's clip as one number: `scene * n_sources + source`."""
    rows: tuple[IntArray, ...]
    """Indices of each reviewer's answers."""

    @classmethod
    def of(cls, answers: SeasonAnswerTable, *, seed: int, resamples: int) -> "ResampledAnswerTable":
        """Draw the bootstrap resamples of the scenes of `answers`, and index its answers by reviewer."""
        require_valid_answer_table(answers)
        lineup = answers.clips
        sources, n_scenes = ClipSourceColumns.of(lineup), max(1, len(lineup.scenes))
        source = lineup.source
        draws = np.random.default_rng(seed).multinomial(
            n_scenes, np.full(n_scenes, 1 / n_scenes), size=resamples
        )
        weights = np.concatenate([np.ones((1, n_scenes)), draws.astype(np.float64)])
        cell = lineup.scene[answers.clip].astype(np.int64) * sources.total + source[answers.clip]
        order = np.argsort(answers.reviewer, kind="stable")
        ends = np.searchsorted(answers.reviewer[order], np.arange(len(answers.reviewers) + 1))
        rows = tuple(order[ends[i] : ends[i + 1]] for i in range(len(answers.reviewers)))
        clips = np.bincount(source, minlength=sources.total)
        return cls(answers, sources, clips, weights, cell, rows)

    @property
    def n_scenes(self) -> int:
        """Return the number of scenes of the season; each resample draws that many."""
        return int(self.weights.shape[1])

    @property
    def counted(self) -> BoolArray:
        """Return a mask of the creators that have at least one clip."""
        return self.clips[self.sources.made] > 0

    def counts(self) -> Iterator[ResampledAnswerCounts]:
        """Yield each reviewer's answer counts, in table order; integers, so sums are exact in any order."""
        for rows in self.rows:
            answers = self.play.said[rows]
            asked = self._by_scene(rows)
            valid = self._by_scene(rows[answers != SILENT])
            generated = self._by_scene(rows[answers == SAID_GENERATED])
            yield ResampledAnswerCounts(
                self.weights @ asked, self.weights @ valid, self.weights @ generated, asked, valid
            )

    def met(self) -> BoolArray:
        """Return a mask: which reviewers (rows) have complete answers about which sources (columns).

        Complete means: asked about every clip of the source, with readable answers to at least half of
        them. Otherwise a reviewer could choose which clips count by not answering the others.
        """
        asked, valid = self.observed(silent=True), self.observed(silent=False)
        complete: BoolArray = (asked >= self.clips) & (valid > 0) & (2 * valid >= asked)
        return complete

    def observed(self, *, silent: bool) -> IntArray:
        """Count observed answers, reviewers by clip sources; with `silent` also unreadable ones."""
        answers, total = self.play.said, self.sources.total
        rows = np.arange(len(answers)) if silent else np.flatnonzero(answers != SILENT)
        cell = self.play.reviewer[rows].astype(np.int64) * total + self.cell[rows] % total
        counts = np.bincount(cell, minlength=len(self.play.reviewers) * total)
        return counts.reshape(-1, total)

    def _by_scene(self, rows: IntArray) -> Array:
        counts = np.bincount(self.cell[rows], minlength=self.n_scenes * self.sources.total)
        return counts.reshape(self.n_scenes, -1).astype(np.float64)


def require_valid_answer_table(answers: SeasonAnswerTable) -> None:
    """Check the index columns of the answer table `answers`, and that no reviewer answers a clip twice."""
    clips = answers.clips
    _require_index_range(answers.reviewer, len(answers.reviewers), "reviewer", least=0)
    _require_index_range(answers.clip, len(clips.names), "clip", least=0)
    _require_index_range(answers.said, SAID_GENERATED + 1, "said", least=SILENT)
    _require_index_range(clips.creator, len(clips.creators), "creator", least=NOBODY)
    _require_index_range(clips.control, len(clips.controls), "control", least=NOBODY)
    _require_index_range(clips.scene, len(clips.scenes), "scene", least=0)
    if ((clips.creator != NOBODY) & (clips.control != NOBODY)).any():
        raise InvalidValueError(
            "a clip is both a creator's and a control. Leave the creator out: controls are real clips"
        )
    question = np.sort(answers.reviewer.astype(np.int64) * len(clips.names) + answers.clip)
    if (question[1:] == question[:-1]).any():
        raise InvalidValueError(
            "a reviewer answers one clip twice under one condition. Keep one answer of each"
        )


def _require_index_range(
    column: npt.NDArray[np.integer], end: int, name: str, *, least: int
) -> None:
    if len(column) and not least <= int(column.min()) <= int(column.max()) < end:
        raise InvalidValueError(
            f"column {name} must lie in {least}..{end - 1}. Build it from its names"
        )
