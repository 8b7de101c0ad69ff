"""A tally counts every answer of a play once, in the cell of its reviewer and its source."""

import numpy as np

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import ANSWERED_GENERATED, SILENT, ResampledAnswerTable

PLAY = play(
    lineup(("Sora", "Veo"), n_scenes=40, controls=("blur",)),
    {"Ann": 1.0, "Ben": 0.0, "Cat": 2.0},
    never_met=[("Ben", "Veo")],
)


def count_by_hand(*, silent: bool) -> list[list[int]]:
    """Return the number of answers of each reviewer about each source, one answer after another."""
    source = PLAY.clips.source
    counts = [[0] * 4 for _ in PLAY.reviewers]  # two creators, the real clips, one control
    for reviewer, clip, said in zip(PLAY.reviewer, PLAY.clip, PLAY.answer_codes, strict=True):
        counts[reviewer][source[clip]] += silent or said != SILENT
    return counts


def test_every_answer_is_in_one_cell() -> None:
    tally = ResampledAnswerTable.of(PLAY, seed=1, resamples=2)
    for silent in (True, False):
        assert tally.observed(silent=silent).tolist() == count_by_hand(silent=silent)
    assert count_by_hand(silent=True) == [[40, 40, 40, 40], [40, 0, 40, 40], [40, 40, 40, 40]]
    assert count_by_hand(silent=False) != count_by_hand(silent=True)


def test_the_counts_of_the_first_resample_are_those_of_the_play() -> None:
    tally = ResampledAnswerTable.of(PLAY, seed=1, resamples=2)
    asked, valid = (count_by_hand(silent=silent) for silent in (True, False))
    for reviewer, counts in enumerate(tally.counts()):
        assert counts.sent[0].tolist() == asked[reviewer]
        assert counts.valid[0].tolist() == valid[reviewer]
        assert counts.scene_sent.sum(axis=0).tolist() == asked[reviewer]
        assert counts.scene_valid.sum(axis=0).tolist() == valid[reviewer]
        says_generated = (PLAY.answer_codes == ANSWERED_GENERATED) & (PLAY.reviewer == reviewer)
        by_source = np.bincount(PLAY.clips.source[PLAY.clip[says_generated]], minlength=4)
        assert counts.generated[0].tolist() == by_source.tolist()
