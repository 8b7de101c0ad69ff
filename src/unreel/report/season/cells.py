"""The clips of one cell: the answers of one reviewer about the clips of one creator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.play import SILENT
from unreel.report.season.clip_answers import AnswerMatrix
from unreel.report.season.matrix import cell_id
from unreel.report.season.view import SeasonView

MOST: Final = 100
"""Maximum number of clips of a cell on a page; the file next to it has all."""
LONGEST: Final = 300
"""Letters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a cell."""

    clip: str
    place: int
    """Of the clip in the lineup."""
    said: str
    sign: str
    """`right`, `wrong` or `unreadable`: a class of the style sheet."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerCells:
    """One reviewer under one condition."""

    id: str
    reviewer: str
    condition: str
    n_asked: int
    n_right: int
    n_silent: int
    answers: tuple[Answer, ...]
    """Those that are not right first, as many as a page shows."""


def iter_sections(
    season: SeasonView, heard: Mapping[str, AnswerMatrix], maker: str
) -> Iterator[ReviewerCells]:
    """Yield every reviewer that was asked about clips of `maker`, for each condition.

    `heard` maps the id of a sheet to the answers of its condition.
    """
    for sheet, table in heard.items():
        clips = table.clips_of(maker)
        for reviewer in range(len(table.play.reviewers)):
            asked = clips[table.asked(reviewer)[clips]]
            if len(asked):
                yield _build_reviewer_cells(season, table, sheet, reviewer, asked)


def shorten_reason(text: str) -> str:
    """Return the reason on one line, shortened if it is too long."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def _build_reviewer_cells(
    season: SeasonView, table: AnswerMatrix, sheet: str, reviewer: int, asked: npt.NDArray[np.intp]
) -> ReviewerCells:
    play = table.play
    right = table.right[reviewer, asked]
    name = play.reviewers[reviewer]
    shown = asked[np.argsort(right, kind="stable")][:MOST]
    return ReviewerCells(
        id=cell_id(sheet, name),
        reviewer=name,
        condition=play.condition,
        n_asked=len(asked),
        n_right=int(right.sum()),
        n_silent=int((table.said[reviewer, asked] == SILENT).sum()),
        answers=tuple(_build_answer(season, table, reviewer, int(clip)) for clip in shown),
    )


def _build_answer(season: SeasonView, table: AnswerMatrix, reviewer: int, clip: int) -> Answer:
    play = table.play
    said = table.said[reviewer, clip]
    sign = "right" if said == table.truth[clip] else "unreadable" if said == SILENT else "wrong"
    name = play.lineup.clips[clip]
    return Answer(
        clip=name,
        place=clip,
        said=table.answer(reviewer, clip),
        sign=sign,
        words=shorten_reason(
            season.words.get((play.condition, play.reviewers[reviewer], name), "")
        ),
    )
