"""Table of a season's answers and its clips, as columns: the input of all rankings."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import BoolArray

NOBODY = -1
"""Index in place of a creator or control: the clip has none."""

SAID_REAL = 0

SAID_GENERATED = 1

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

    There is one row for each question that was sent; columns are as long as `said`. A question that
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
    said: npt.NDArray[np.int8]
    """Code of each answer: `SAID_REAL`, `SAID_GENERATED` or `SILENT`."""

    def __post_init__(self) -> None:
        if not len(self.reviewer) == len(self.clip) == len(self.said):
            raise InvalidValueError("columns of a play must be equally long. Build them together")


UNASKED = -2

Grid = npt.NDArray[np.int8]

Mask = npt.NDArray[np.bool_]


def build_answer_grid(answers: SeasonAnswerTable) -> Grid:
    """Return answers as a grid of reviewers by clips; `UNASKED` if the question was not sent."""
    grid = np.full((len(answers.reviewers), len(answers.clips.names)), UNASKED, dtype=np.int8)
    grid[answers.reviewer, answers.clip] = answers.said
    return grid


def get_generated_clip_mask(clips: SeasonClips) -> Mask:
    """Return a mask of a season's clips that creators made; controls are excluded."""
    mask: Mask = clips.creator != NOBODY
    return mask


def get_real_clip_mask(clips: SeasonClips) -> Mask:
    """Return a mask of the unmodified real clips of a season; controls are excluded."""
    filmed: Mask = ~get_generated_clip_mask(clips) & (clips.control == NOBODY)
    return filmed


def _filter_season_clips(lineup: SeasonClips, clips: BoolArray, creators: BoolArray) -> SeasonClips:
    old = lineup.creator[clips]
    index = np.append(_compute_new_indices(creators), np.int32(NOBODY))  # NOBODY is the last index
    return replace(
        lineup,
        names=tuple(name for name, keep in zip(lineup.names, clips, strict=True) if keep),
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
