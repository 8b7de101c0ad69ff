"""Reviewers that copy are found; honest ones that err on the same hard clips are not."""

from dataclasses import replace

import numpy as np
import pytest

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import (
    SAID_GENERATED,
    SAID_REAL,
    SILENT,
    SeasonAnswerTable,
    SeasonClips,
    get_generated_clip_mask,
)
from unreel.arena.fairness.similar_reviewers import compare_reviewer_errors
from unreel.core.estimate import Estimate, Unmeasured

SHOWN = lineup(("Sora", "Wan", "LTX"), n_scenes=50)


def _hard(
    shown: SeasonClips, n_reviewers: int, *, seed: int, spread: float = 1.5
) -> SeasonAnswerTable:
    """Honest reviewers who find the same clips hard: error odds add up from both."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, spread, len(shown.clips))
    skill = rng.uniform(0, 2, n_reviewers)
    errs = rng.random((n_reviewers, len(shown.clips))) < 1 / (
        1 + np.exp(skill[:, None] - hard[None])
    )
    said = np.where(errs != get_generated_clip_mask(shown)[None], SAID_GENERATED, SAID_REAL)
    reviewer, clip = np.nonzero(np.ones(said.shape))
    return SeasonAnswerTable(
        lineup=shown,
        condition="main",
        reviewers=tuple(f"r{number:02}" for number in range(n_reviewers)),
        reviewer=reviewer.astype(np.int32),
        clip=clip.astype(np.int32),
        said=said.ravel().astype(np.int8),
    )


def _copying(
    honest: SeasonAnswerTable, *, copier: str, victim: str, noise: float, seed: int = 0
) -> SeasonAnswerTable:
    rng = np.random.default_rng(seed)
    said = honest.said.copy()
    at, of = (honest.reviewer == honest.reviewers.index(name) for name in (copier, victim))
    copied = said[of].copy()
    turned = rng.random(len(copied)) < noise
    copied[turned] = 1 - copied[turned]
    said[at] = copied
    return replace(honest, said=said)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_copied_reviewer_is_suspected(noise: float) -> None:
    season = _copying(_hard(SHOWN, 8, seed=1), copier="r01", victim="r05", noise=noise)
    found = compare_reviewer_errors(season, seed=0)
    assert [(pair.first, pair.second) for pair in found.suspected] == [("r01", "r05")]
    (pair,) = found.suspected
    assert pair.n_shared > 1.5 * pair.expected_shared


def test_identical_answers_of_two_alone_are_suspected() -> None:
    season = _copying(_hard(SHOWN, 2, seed=2), copier="r00", victim="r01", noise=0.0)
    assert compare_reviewer_errors(season, seed=0).suspected


def test_perfect_reviewers_agree_and_are_not_suspected() -> None:
    season = play(SHOWN, {"ada": 50.0, "bob": 50.0, "eve": 1.0})
    truth = np.where(get_generated_clip_mask(SHOWN)[season.clip], SAID_GENERATED, SAID_REAL).astype(
        np.int8
    )
    eve = season.reviewer == season.reviewers.index("eve")
    found = compare_reviewer_errors(replace(season, said=np.where(eve, season.said, truth)), seed=0)
    assert found.suspected == ()
    alike = next(pair for pair in found.pairs if {pair.first, pair.second} == {"ada", "bob"})
    assert isinstance(alike.agreement, Estimate)
    assert alike.agreement.value == 100
    assert isinstance(alike.shared_errors, Unmeasured)


def test_two_that_always_say_the_same_word_prove_nothing() -> None:
    season = _hard(SHOWN, 6, seed=3)
    said = season.said.copy()
    said[season.reviewer < 2] = SAID_REAL
    assert compare_reviewer_errors(replace(season, said=said), seed=0).suspected == ()


def test_floors_and_silence_are_left_out() -> None:
    season = _copying(_hard(SHOWN, 5, seed=4), copier="r00", victim="r01", noise=0.0)
    assert (
        compare_reviewer_errors(replace(season, floors=frozenset({"r01"})), seed=0).suspected == ()
    )
    silent = replace(season, said=np.full(len(season.said), SILENT, dtype=np.int8))
    found = compare_reviewer_errors(silent, seed=0)
    assert found.suspected == ()
    assert all(isinstance(pair.agreement, Unmeasured) for pair in found.pairs)


def test_nobody_and_one_alone_have_no_pairs() -> None:
    assert compare_reviewer_errors(_hard(SHOWN, 1, seed=5), seed=0).pairs == ()


def test_honest_reviewers_are_rarely_suspected() -> None:
    """100 seasons of 8 reviewers who all err on the same hard clips."""
    alarms = sum(
        bool(compare_reviewer_errors(_hard(SHOWN, 8, seed=seed, spread=2.0), seed=0).suspected)
        for seed in range(100, 120)
    )
    assert alarms <= 1
    told = compare_reviewer_errors(_hard(SHOWN, 8, seed=99), seed=0).false_alarms
    assert isinstance(told, Estimate)
    assert told.value <= 5


def test_the_answer_does_not_hang_on_the_order_of_rows() -> None:
    season = _copying(_hard(SHOWN, 6, seed=6), copier="r01", victim="r02", noise=0.01)
    order = np.random.default_rng(0).permutation(len(season.said))
    mixed = replace(
        season, reviewer=season.reviewer[order], clip=season.clip[order], said=season.said[order]
    )
    assert compare_reviewer_errors(mixed, seed=0) == compare_reviewer_errors(season, seed=0)
