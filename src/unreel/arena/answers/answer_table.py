"""Table of the answers of a season, and counts of answers, also on bootstrap resamples. It loads without an extra."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import Array, BoolArray, IntArray

NOBODY = -1
"""Index in place of a creator or control: the clip has none."""

ANSWERED_REAL = 0

ANSWERED_GENERATED = 1

SILENT = -1
"""Code of a question without a readable answer: a failure, or a text without a label."""

REAL = ""
"""Placeholder for the creator of real clips."""

Indices = npt.NDArray[np.int32]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonClips:
    """Clips of a season as columns of equal length: creator, scene, control, nuisance properties."""

    names: tuple[str, ...]
    creators: tuple[str, ...]
    """Names of the creators, `CREATOR` or `CREATOR/SETTING`, sorted."""
    scenes: tuple[str, ...]
    """Names of the scenes, sorted; scenes are the units of resampling."""
    creator: Indices
    """Index in `creators`, or `NOBODY` (-1) for real clips and controls."""
    scene: Indices
    control: Indices
    """Index in `controls`, or `NOBODY` (-1)."""
    controls: tuple[str, ...] = ()
    """Names of the controls, which are modified real clips."""
    nuisances: tuple[str, ...] = ()
    """Names of other properties that may influence a reviewer, for example length, resolution or sound."""
    nuisance: Floats
    """Values of `nuisances`: a row for each clip, a column for each property; NaN if unknown."""

    def __post_init__(self) -> None:
        columns = (self.creator, self.scene, self.control, self.nuisance)
        if any(len(column) != len(self.names) for column in columns):
            raise InvalidValueError(
                f"columns of {len(self.names)} clips must be as long. Build them together"
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources of a season's clips: creators, then real clips, then controls."""
        return (*self.creators, REAL, *self.controls)

    @property
    def source(self) -> npt.NDArray[np.int64]:
        """Return, for each clip, the index of its source in `sources`."""
        n_made = len(self.creators)
        source = np.where(self.creator == NOBODY, n_made, self.creator)
        return np.where(self.control == NOBODY, source, n_made + 1 + self.control).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonAnswerTable:
    """The answers of all reviewers about a season's clips under one condition, as columns.

    There is one row for each question that was sent; columns are as long as `answer_codes`. A question that
    was never sent has no row, so a reviewer may have no answer about some clips.
    """

    clips: SeasonClips
    condition: str
    """Title of the condition in the season."""
    reviewers: tuple[str, ...]
    """Titles of the reviewers, sorted."""
    floors: frozenset[str] = frozenset()
    """Reviewers without a rank, shown for comparison: baselines, and single people."""
    reviewer: Indices
    clip: Indices
    answer_codes: npt.NDArray[np.int8]
    """Code of each answer: `ANSWERED_REAL`, `ANSWERED_GENERATED` or `SILENT`."""

    def __post_init__(self) -> None:
        if not len(self.reviewer) == len(self.clip) == len(self.answer_codes):
            raise InvalidValueError("columns of a play must be equally long. Build them together")


UNASKED = -2

Grid = npt.NDArray[np.int8]

Mask = npt.NDArray[np.bool_]


def build_answer_grid(answers: SeasonAnswerTable) -> Grid:
    """Return answers as a grid of reviewers by clips; `UNASKED` if the question was not sent."""
    grid = np.full((len(answers.reviewers), len(answers.clips.names)), UNASKED, dtype=np.int8)
    grid[answers.reviewer, answers.clip] = answers.answer_codes
    return grid


def get_generated_clip_mask(clips: SeasonClips) -> Mask:
    """Return a mask of a season's clips that creators made; controls are excluded."""
    mask: Mask = clips.creator != NOBODY
    return mask


def get_real_clip_mask(clips: SeasonClips) -> Mask:
    """Return a mask of the unmodified real clips of a season; controls are excluded."""
    filmed: Mask = ~get_generated_clip_mask(clips) & (clips.control == NOBODY)
    return filmed


@dataclass(frozen=True, slots=True)
class ClipSourceColumns:
    """Columns of tables by clip source: the creators, then real clips, then the controls."""

    n_creators: int
    n_controls: int

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

    sent: Array
    valid: Array
    """Number of readable answers."""
    generated: Array
    """Number of readable answers "generated"."""
    scene_sent: Array
    """Observed number of questions: a row for each scene, a column for each clip source."""
    scene_valid: Array


@dataclass(frozen=True, slots=True, eq=False)
class ResampledAnswerTable:
    """Answer table with bootstrap resamples of scenes, which all entrants share for comparison."""

    answer_table: SeasonAnswerTable
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
        clips = answers.clips
        sources = ClipSourceColumns(len(clips.creators), len(clips.controls))
        n_scenes = max(1, len(clips.scenes))
        source = clips.source
        draws = np.random.default_rng(seed).multinomial(
            n_scenes, np.full(n_scenes, 1 / n_scenes), size=resamples
        )
        weights = np.concatenate([np.ones((1, n_scenes)), draws.astype(np.float64)])
        cell = clips.scene[answers.clip].astype(np.int64) * sources.total + source[answers.clip]
        order = np.argsort(answers.reviewer, kind="stable")
        ends = np.searchsorted(answers.reviewer[order], np.arange(len(answers.reviewers) + 1))
        rows = tuple(order[ends[i] : ends[i + 1]] for i in range(len(answers.reviewers)))
        n_clips = np.bincount(source, minlength=sources.total)
        return cls(answers, sources, n_clips, weights, cell, rows)

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
            answers = self.answer_table.answer_codes[rows]
            sent = self._by_scene(rows)
            valid = self._by_scene(rows[answers != SILENT])
            generated = self._by_scene(rows[answers == ANSWERED_GENERATED])
            yield ResampledAnswerCounts(
                self.weights @ sent, self.weights @ valid, self.weights @ generated, sent, valid
            )

    def met(self) -> BoolArray:
        """Return a mask: which reviewers (rows) have complete answers about which sources (columns).

        Complete means: asked about every clip of the source, with readable answers to at least half of
        them. Otherwise a reviewer could choose which clips count by not answering the others.
        """
        sent, valid = self.observed(silent=True), self.observed(silent=False)
        complete: BoolArray = (sent >= self.clips) & (valid > 0) & (2 * valid >= sent)
        return complete

    def observed(self, *, silent: bool) -> IntArray:
        """Count observed answers, reviewers by clip sources; with `silent` also unreadable ones."""
        answers, total = self.answer_table.answer_codes, self.sources.total
        rows = np.arange(len(answers)) if silent else np.flatnonzero(answers != SILENT)
        cell = self.answer_table.reviewer[rows].astype(np.int64) * total + self.cell[rows] % total
        counts = np.bincount(cell, minlength=len(self.answer_table.reviewers) * total)
        return counts.reshape(-1, total)

    def _by_scene(self, rows: IntArray) -> Array:
        counts = np.bincount(self.cell[rows], minlength=self.n_scenes * self.sources.total)
        return counts.reshape(self.n_scenes, -1).astype(np.float64)


def require_valid_answer_table(answers: SeasonAnswerTable) -> None:
    """Check the index columns of the answer table `answers`, and that no reviewer answers a clip twice."""
    clips = answers.clips
    columns: tuple[tuple[str, npt.NDArray[np.integer], int, int], ...] = (
        ("reviewer", answers.reviewer, 0, len(answers.reviewers)),
        ("clip", answers.clip, 0, len(clips.names)),
        ("answer_codes", answers.answer_codes, SILENT, ANSWERED_GENERATED + 1),
        ("creator", clips.creator, NOBODY, len(clips.creators)),
        ("control", clips.control, NOBODY, len(clips.controls)),
        ("scene", clips.scene, 0, len(clips.scenes)),
    )
    for name, column, start, end in columns:
        if len(column) and not start <= int(column.min()) <= int(column.max()) < end:
            raise InvalidValueError(
                f"column {name} must lie in {start}..{end - 1}. Build it from its names"
            )
    if ((clips.creator != NOBODY) & (clips.control != NOBODY)).any():
        raise InvalidValueError(
            "a clip is both a creator's and a control. Leave the creator out: controls are real clips"
        )
    question = np.sort(answers.reviewer.astype(np.int64) * len(clips.names) + answers.clip)
    if (question[1:] == question[:-1]).any():
        raise InvalidValueError(
            "a reviewer answers one clip twice under one condition. Keep one answer of each"
        )
