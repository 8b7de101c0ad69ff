"""Answers of a season by reviewer and clip, and the answers behind one cell of the heat map."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    SILENT,
    UNASKED,
    SeasonAnswerTable,
    build_answer_grid,
    get_generated_clip_mask,
)
from unreel.report.season.leaderboards import build_heat_map_cell_anchor
from unreel.report.season.page_data import SeasonPageData

WORDS = {ANSWERED_GENERATED: "generated", ANSWERED_REAL: "real", SILENT: "no readable answer"}
LABEL_WORDS = frozenset({WORDS[ANSWERED_GENERATED], WORDS[ANSWERED_REAL]})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerByClipAnswers:
    """Answers of a season under one condition as arrays: a row per reviewer, a column per clip."""

    answer_table: SeasonAnswerTable
    answer_codes: npt.NDArray[np.int8]
    """Answer codes: a row per reviewer, a column per clip; `UNASKED` without a question."""
    source: npt.NDArray[np.int64]
    """Source of each clip, as an index into the lineup's `sources`."""
    truth: npt.NDArray[np.int8]
    """Code of the correct answer for each clip."""
    right: npt.NDArray[np.bool_]
    read: npt.NDArray[np.bool_]
    """Whether there is a readable answer."""
    n_right: npt.NDArray[np.intp]
    """Number of reviewers that are right, by clip."""
    n_read: npt.NDArray[np.intp]
    """Number of readable answers, by clip."""

    def clips_of(self, creator: str) -> npt.NDArray[np.intp]:
        """Return the indices of the clips by a creator or control, or of the real ones; none for an unknown name."""
        sources = [i for i, name in enumerate(self.answer_table.clips.sources) if name == creator]
        return np.flatnonzero(np.isin(self.source, sources))

    def creator(self, clip: int) -> str:
        """Return the name of the clip's creator or control; for a real clip, of the real group."""
        return self.answer_table.clips.sources[int(self.source[clip])]

    def answer(self, reviewer: int, clip: int) -> str:
        """Return the reviewer's answer about the clip; "" if it was not asked."""
        return WORDS.get(int(self.answer_codes[reviewer, clip]), "")

    def is_sent(self, reviewer: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the clips that the reviewer was asked about."""
        return np.asarray(self.answer_codes[reviewer] != UNASKED)

    def worst(self, reviewer: int) -> npt.NDArray[np.intp]:
        """Return the clips that the reviewer got wrong, those others got right first, then unreadable ones."""
        n_others = np.maximum(self.n_read - self.read[reviewer], 1)
        others_right = (self.n_right - self.right[reviewer]) / n_others
        missed = np.flatnonzero(self.is_sent(reviewer) & ~self.right[reviewer])
        silent = ~self.read[reviewer][missed]
        return missed[np.lexsort((missed, -others_right[missed], silent))]


def index_answers_by_clip(answer_table: SeasonAnswerTable) -> ReviewerByClipAnswers:
    """Arrange the answers of `answer_table` by reviewer and clip; of two answers, the later is kept."""
    answers, is_generated = (
        build_answer_grid(answer_table),
        get_generated_clip_mask(answer_table.clips),
    )
    truth = np.where(is_generated, ANSWERED_GENERATED, ANSWERED_REAL).astype(np.int8)
    right, read = (
        answers == truth[None, :],
        (answers == ANSWERED_REAL) | (answers == ANSWERED_GENERATED),
    )
    return ReviewerByClipAnswers(
        answer_table=answer_table,
        answer_codes=answers,
        source=answer_table.clips.source,
        truth=truth,
        right=right,
        read=read,
        n_right=right.sum(axis=0),
        n_read=read.sum(axis=0),
    )


MAX_ANSWERS = 100
"""Maximum number of clips of a cell on a page; the file next to it has all."""
LONGEST = 300
"""Maximum number of letters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageClipAnswer:
    """Answer of a reviewer about one clip, as texts for a page."""

    clip: str
    place: int
    """Index of the clip in the lineup."""
    answer: str
    sign: str
    """Grade, `right`, `wrong` or `unreadable`, which is a class of the style sheet."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAnswerSection:
    """Answers of one reviewer under one condition about a creator's clips, with counts."""

    id: str
    reviewer: str
    condition: str
    n_sent: int
    n_right: int
    n_silent: int
    answers: tuple[PageClipAnswer, ...]
    """At most `MAX_ANSWERS` answers; those that are not right come first."""


def iter_reviewer_answer_sections(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], creator: str
) -> Iterator[ReviewerAnswerSection]:
    """Yield all answers about clips of `creator`, per condition; `answers` maps condition ids to answers."""
    for condition_id, table in answers.items():
        clips, answer_table = table.clips_of(creator), table.answer_table
        for reviewer, name in enumerate(answer_table.reviewers):
            sent_clips = clips[table.is_sent(reviewer)[clips]]
            if not len(sent_clips):
                continue
            right = table.right[reviewer, sent_clips]
            shown = []
            for clip in map(int, sent_clips[np.argsort(right, kind="stable")][:MAX_ANSWERS]):
                answer, clip_name = (
                    table.answer_codes[reviewer, clip],
                    answer_table.clips.names[clip],
                )
                grade = "unreadable" if answer == SILENT else "wrong"
                reason = season.words.get((answer_table.condition, name, clip_name), "")
                shown.append(
                    PageClipAnswer(
                        clip=clip_name,
                        place=clip,
                        answer=table.answer(reviewer, clip),
                        sign="right" if answer == table.truth[clip] else grade,
                        words=shorten_reason(reason),
                    )
                )
            yield ReviewerAnswerSection(
                id=build_heat_map_cell_anchor(condition_id, name),
                reviewer=name,
                condition=answer_table.condition,
                n_sent=len(sent_clips),
                n_right=int(right.sum()),
                n_silent=int((table.answer_codes[reviewer, sent_clips] == SILENT).sum()),
                answers=tuple(shown),
            )


def shorten_reason(text: str) -> str:
    """Return a reviewer's reason on one line, shortened if it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
