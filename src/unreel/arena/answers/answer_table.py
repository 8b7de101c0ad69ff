"""Table of a season's answers and its clips, as columns: the input of all rankings."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import BoolArray

NOBODY: Final = -1
"""Index in place of a creator or control: the clip has none."""
SAID_REAL: Final = 0
SAID_GENERATED: Final = 1
SILENT: Final = -1
"""Code of a question without a readable answer: a failure, or a text without a label."""

REAL: Final = ""
"""Placeholder for the creator of real clips."""

Indices = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonClips:
    """Clips of a season as columns of equal length: creator, scene, control, nuisance properties."""

    clips: tuple[str, ...]
    """Unique names of the clips."""
    creators: tuple[str, ...]
    """Names of the creators, `CREATOR` or `CREATOR/SETTING`, sorted."""
    scenes: tuple[str, ...]
    """Names of the scenes, sorted; scenes are the units of resampling."""
    creator: Indices
    """Index in `creators`, or `NOBODY` (-1) for real clips and controls."""
    scene: Indices
    """Index in `scenes`."""
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
        if any(len(column) != len(self.clips) for column in columns):
            msg = f"columns of {len(self.clips)} clips must be as long. Build them together"
            raise InvalidValueError(msg)

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

    There is one row for each question that was sent; columns are as long as `said`. A question that
    was never sent has no row, so a reviewer may have no answer about some clips.
    """

    lineup: SeasonClips
    condition: str
    """Title of the condition in the season."""
    reviewers: tuple[str, ...]
    """Titles of the reviewers, sorted."""
    floors: frozenset[str] = frozenset()
    """Reviewers without a rank, shown for comparison: baselines, and single people."""
    reviewer: Indices
    clip: Indices
    said: npt.NDArray[np.int8]
    """Code of each answer: `SAID_REAL`, `SAID_GENERATED` or `SILENT`."""

    def __post_init__(self) -> None:
        if not len(self.reviewer) == len(self.clip) == len(self.said):
            msg = "columns of a play must be equally long. Build them together"
            raise InvalidValueError(msg)


UNASKED: Final = -2
Grid = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


def build_answer_grid(play: SeasonAnswerTable) -> Grid:
    """Return answers as a grid of reviewers by clips; `UNASKED` if the question was not sent."""
    grid = np.full((len(play.reviewers), len(play.lineup.clips)), UNASKED, dtype=np.int8)
    grid[play.reviewer, play.clip] = play.said
    return grid


def get_generated_clip_mask(lineup: SeasonClips) -> Mask:
    """Return a mask of a season's clips that creators made; controls are excluded."""
    mask: Mask = lineup.creator != NOBODY
    return mask


def get_real_clip_mask(lineup: SeasonClips) -> Mask:
    """Return a mask of the unmodified real clips of a season; controls are excluded."""
    filmed: Mask = ~get_generated_clip_mask(lineup) & (lineup.control == NOBODY)
    return filmed


def get_wrong_answer_mask(lineup: SeasonClips, grid: Grid) -> Mask:
    """Return a mask of wrong answers, not unreadable ones; the truth of a control is real."""
    truth = get_generated_clip_mask(lineup)[np.newaxis]
    errs: Mask = (grid >= 0) & ((grid == SAID_GENERATED) != truth)
    return errs


def exclude_entrants(
    play: SeasonAnswerTable, *, creators: Collection[str], reviewers: Collection[str]
) -> SeasonAnswerTable:
    """Return the answer table without these creators and reviewers; all other answers stay the same."""
    mask = np.array([name not in creators for name in play.lineup.creators], dtype=np.bool_)
    clips: BoolArray = np.ones(len(play.lineup.clips), dtype=np.bool_)
    generated = play.lineup.creator != NOBODY
    clips[generated] = mask[play.lineup.creator[generated]]
    judges = np.array([name not in reviewers for name in play.reviewers], dtype=np.bool_)
    rows = judges[play.reviewer] & clips[play.clip]
    return replace(
        play,
        lineup=_filter_season_clips(play.lineup, clips, mask),
        reviewers=tuple(n for n, keep in zip(play.reviewers, judges, strict=True) if keep),
        floors=play.floors.difference(reviewers),
        reviewer=_compute_new_indices(judges)[play.reviewer[rows]],
        clip=_compute_new_indices(clips)[play.clip[rows]],
        said=play.said[rows],
    )


def _filter_season_clips(lineup: SeasonClips, clips: BoolArray, creators: BoolArray) -> SeasonClips:
    old = lineup.creator[clips]
    index = np.append(_compute_new_indices(creators), np.int32(NOBODY))  # NOBODY is the last index
    return replace(
        lineup,
        clips=tuple(name for name, keep in zip(lineup.clips, clips, strict=True) if keep),
        creators=tuple(name for name, keep in zip(lineup.creators, creators, strict=True) if keep),
        creator=index[old].astype(np.int32),
        scene=lineup.scene[clips],
        control=lineup.control[clips],
        nuisance=lineup.nuisance[clips],
    )


def _compute_new_indices(kept: BoolArray) -> Indices:
    """Return, for each kept element, its index after the elements that are not kept are removed."""
    indices: Indices = (np.cumsum(kept) - 1).astype(np.int32)
    return indices
