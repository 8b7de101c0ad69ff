"""Creators ranked by pairs."""

import numpy as np
import pytest

from unreel.arena.answers.answer_table import NOBODY, SILENT
from unreel.arena.boards.leaderboard_metrics import REAL_CLIPS, get_leaderboard_metric
from unreel.arena.boards.preference_ranking import PairAnswerTable, rank_entrants_by_pair_answers
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Unmeasured

STRENGTHS = {"crude": -1.5, "fine": 0.8, "so-so": -0.3, REAL_CLIPS: 1.5}


def _pairs(n_scenes: int = 40, *, silent: float = 0.0, seed: int = 0) -> PairAnswerTable:
    rng = np.random.default_rng(seed)
    names = tuple(sorted(name for name in STRENGTHS if name != REAL_CLIPS))
    strength = [*(STRENGTHS[name] for name in names), STRENGTHS[REAL_CLIPS]]
    rows = []
    for scene in range(n_scenes):
        for one in range(NOBODY, len(names)):
            for other in range(one + 1, len(names)):
                first, second = (one, other) if rng.random() < 0.5 else (other, one)
                wins = rng.random() < 1 / (1 + np.exp(strength[second] - strength[first]))
                took = SILENT if rng.random() < silent else int(not wins)
                rows.append((scene % 2, first, second, scene, took))
    columns = np.array(rows, dtype=np.int32).T
    return PairAnswerTable(
        condition="pairs",
        reviewers=("ann", "ben"),
        creators=names,
        scenes=tuple(f"scene-{number}" for number in range(n_scenes)),
        reviewer=columns[0],
        first=columns[1],
        second=columns[2],
        scene=columns[3],
        took=columns[4].astype(np.int8),
    )


def test_who_is_oftener_taken_for_real_stands_higher_and_real_clips_bear_no_rank() -> None:
    pytest.importorskip("evalica", reason="needs the extra eval: pip install 'unreel[eval]'")
    found = rank_entrants_by_pair_answers(_pairs(), seed=0)
    ranked = [(one.name, one.rank) for one in found.creators]
    assert ranked == [("fine", 1), ("so-so", 2), ("crude", 3), (REAL_CLIPS, None)]
    mean = sum(STRENGTHS.values()) / len(STRENGTHS)
    for one in found.creators:
        strength = one.figures["strength"]
        assert isinstance(strength, Estimate)
        assert strength.low <= STRENGTHS[one.name] - mean <= strength.high
    assert found.creators[0].first_class
    assert not found.creators[2].first_class


def test_reviewers_are_told_by_the_pairs_with_a_real_clip_and_by_their_lean() -> None:
    pytest.importorskip("evalica", reason="needs the extra eval: pip install 'unreel[eval]'")
    found = rank_entrants_by_pair_answers(_pairs(silent=0.1, seed=7), seed=0)
    for one in found.reviewers:
        accuracy, lean = one.figures["pair-accuracy"], one.figures["took-first"]
        assert isinstance(accuracy, Estimate)
        assert isinstance(lean, Estimate)
        assert accuracy.value > 60
        assert lean.low < 50 < lean.high
        assert all(get_leaderboard_metric(name).board == "reviewers" for name in one.figures)


def test_an_unbeaten_field_has_no_strengths_but_shares() -> None:
    pytest.importorskip("evalica", reason="needs the extra eval: pip install 'unreel[eval]'")
    pairs = _pairs()
    first_is_better = pairs.first.astype(float) % 4 < pairs.second.astype(float) % 4
    always = PairAnswerTable(
        condition="pairs",
        reviewers=pairs.reviewers,
        creators=pairs.creators,
        scenes=pairs.scenes,
        reviewer=pairs.reviewer,
        first=pairs.first,
        second=pairs.second,
        scene=pairs.scene,
        took=np.where(first_is_better, 0, 1).astype(np.int8),
    )
    found = rank_entrants_by_pair_answers(always, seed=0)
    assert all(isinstance(one.figures["strength"], Unmeasured) for one in found.creators)
    assert all(isinstance(one.figures["taken-for-real"], Estimate) for one in found.creators)
    assert all(one.rank is None for one in found.creators)


def test_a_pair_of_one_maker_is_refused() -> None:
    one = np.zeros(1, dtype=np.int32)
    with pytest.raises(InvalidValueError, match="different makers"):
        PairAnswerTable(
            condition="",
            reviewers=("a",),
            creators=("x",),
            scenes=("s",),
            reviewer=one,
            first=one,
            second=one,
            scene=one,
            took=np.zeros(1, dtype=np.int8),
        )
