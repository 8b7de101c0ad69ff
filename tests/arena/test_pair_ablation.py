"""A pair is set against its two clips, shown one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    SeasonAnswerTable,
    get_generated_clip_mask,
)
from unreel.arena.boards.ablations import EVERYBODY
from unreel.arena.boards.preference_ranking import (
    TOOK_FIRST,
    TOOK_SECOND,
    PairAnswerTable,
    compare_pairs_with_single_clips,
)
from unreel.core.estimate import Estimate

SHOWN = lineup(("Sora", "Wan"), n_scenes=30)


def _pairs(*, right: float, seed: int = 0, real_first: bool = True) -> PairAnswerTable:
    rng = np.random.default_rng(seed)
    cells = [(creator, scene) for creator in range(2) for scene in range(30)]
    maker = np.array([creator for creator, _ in cells], dtype=np.int32)
    nobody = np.full(len(cells), NOBODY, dtype=np.int32)
    good, bad = (TOOK_FIRST, TOOK_SECOND) if real_first else (TOOK_SECOND, TOOK_FIRST)
    took = np.where(rng.random(len(cells)) < right, good, bad).astype(np.int8)
    return PairAnswerTable(
        condition="main",
        reviewers=("ada",),
        creators=SHOWN.creators,
        scenes=SHOWN.scenes,
        reviewer=np.zeros(len(cells), dtype=np.int32),
        first=nobody if real_first else maker,
        second=maker if real_first else nobody,
        scene=np.array([scene for _, scene in cells], dtype=np.int32),
        took=took,
    )


def _single(*, right: bool) -> SeasonAnswerTable:
    season = play(SHOWN, {"ada": 1.0, "bob": 1.0})
    truth = np.where(get_generated_clip_mask(SHOWN)[season.clip], ANSWERED_GENERATED, ANSWERED_REAL)
    return replace(season, answer_codes=(truth if right else 1 - truth).astype(np.int8))


def _value(measured: object) -> Estimate:
    assert isinstance(measured, Estimate)
    return measured


@pytest.mark.parametrize("real_first", [True, False])
def test_who_is_always_right_in_both_gains_nothing(*, real_first: bool) -> None:
    everybody, ada = compare_pairs_with_single_clips(
        _pairs(right=1, real_first=real_first), _single(right=True)
    )
    assert (everybody.reviewer, ada.reviewer) == (EVERYBODY, "ada")
    assert _value(ada.difference).value == 0
    assert (ada.n_pairs, ada.n_left_out) == (60, 0)


def test_who_needs_the_real_clip_beside_it_gains_all() -> None:
    _, ada = compare_pairs_with_single_clips(_pairs(right=1), _single(right=False))
    assert _value(ada.difference).value == 100


def test_a_guess_about_pairs_is_worth_a_guess_about_clips() -> None:
    single = play(SHOWN, {"ada": 0.0})
    _, ada = compare_pairs_with_single_clips(_pairs(right=0.5), single)
    found = _value(ada.difference)
    assert found.low < 0 < found.high


def test_what_cannot_be_read_on_either_side_is_left_out() -> None:
    pairs = _pairs(right=1)
    took = pairs.took.copy()
    took[:10] = SILENT
    _, ada = compare_pairs_with_single_clips(replace(pairs, took=took), _single(right=True))
    assert (ada.n_pairs, ada.n_left_out) == (50, 10)
