"""Telling generated from real."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, roc_auc_score

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.detection_metrics import (
    auc,
    balanced_accuracy,
    f1,
    measure_probability_calibration,
    tpr_at_fpr,
)
from unreel.stats.proportion import estimate_proportion

Estimated = Callable[[Measured], Estimate]

LABELLED = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=10, max_size=60
).filter(lambda rows: len({label for label, _ in rows}) == 2)


def _detect(rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.float64], ...]:
    truth = (rng.random(n) < 0.4).astype(float)
    return truth, 1 / (1 + np.exp(-(2 * truth - 1 + rng.normal(size=n))))


@given(LABELLED)
def test_auc_with_ties_is_the_one_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    truth, scores = zip(*rows, strict=True)
    measured = auc(truth, scores, seed=1)
    if isinstance(measured, Estimate):
        assert measured.value == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
        assert 0 <= measured.low <= measured.high <= 1
        assert measured.n == len(rows)
    else:
        assert "resamples have no value" in measured.why


def test_turning_the_scores_round_mirrors_auc(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    truth, scores = _detect(rng, 150)
    there, back = estimated(auc(truth, scores, seed=1)), estimated(auc(truth, -scores, seed=1))
    assert there.value == pytest.approx(1 - back.value)
    assert there.low == pytest.approx(1 - back.high, abs=0.02)


def test_scores_that_say_nothing_tie_at_one_half(estimated: Estimated) -> None:
    estimate = estimated(auc(np.arange(40) % 2, np.ones(40), seed=1))
    assert estimate.value == 0.5
    assert estimate.low < 0.5 < estimate.high


def test_perfect_separation_keeps_the_doubt_of_the_rarer_side(estimated: Estimated) -> None:
    truth = np.repeat([0, 1], [90, 10])
    estimate = estimated(auc(truth, truth, seed=1))
    assert (estimate.value, estimate.high) == (1, 1)
    assert estimate.low == pytest.approx(estimated(estimate_proportion(10, 10)).low)


def test_auc_draws_clips(estimated: Estimated, rng: np.random.Generator) -> None:
    truth, scores = _detect(rng, 80)
    once = estimated(auc(truth, scores, seed=1))
    clips = [f"clip-{clip}" for clip in np.arange(80).repeat(4)]
    grouped = estimated(auc(truth.repeat(4), scores.repeat(4), seed=1, clusters=clips))
    assert grouped.value == pytest.approx(once.value)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.15)


@pytest.mark.parametrize("truth", [[], [1] * 9, [0] * 9])
def test_auc_needs_both_sides(truth: list[int]) -> None:
    assert isinstance(auc(truth, range(len(truth)), seed=1), Unmeasured)


def test_balanced_accuracy_is_the_one_of_scikit_learn(estimated: Estimated) -> None:
    truth = np.repeat([0, 0, 1, 1], [40, 9, 30, 70])
    said = np.repeat([0, 1, 0, 1], [40, 9, 30, 70])
    estimate = estimated(
        balanced_accuracy(correct_real=40, n_real=49, correct_generated=70, n_generated=100)
    )
    assert estimate.value == pytest.approx(balanced_accuracy_score(truth, said))
    assert estimate.n == 149


def test_balanced_accuracy_of_perfect_answers_keeps_doubt(estimated: Estimated) -> None:
    estimate = estimated(
        balanced_accuracy(correct_real=20, n_real=20, correct_generated=20, n_generated=20)
    )
    side = estimated(estimate_proportion(20, 20))
    assert (estimate.value, estimate.high) == (1, 1)
    assert 1 - estimate.low == pytest.approx((1 - side.low) / np.sqrt(2))


@given(st.integers(0, 30), st.integers(0, 50))
def test_balanced_accuracy_stays_in_range_and_mirrors(real: int, generated: int) -> None:
    there = balanced_accuracy(
        correct_real=real, n_real=30, correct_generated=generated, n_generated=50
    )
    back = balanced_accuracy(
        correct_real=30 - real, n_real=30, correct_generated=50 - generated, n_generated=50
    )
    assert isinstance(there, Estimate)
    assert isinstance(back, Estimate)
    assert -1e-12 <= there.low <= there.value <= there.high <= 1 + 1e-12
    assert there.low == pytest.approx(1 - back.high)


def test_balanced_accuracy_needs_both_sides() -> None:
    no_real = balanced_accuracy(correct_real=0, n_real=0, correct_generated=3, n_generated=4)
    no_fake = balanced_accuracy(correct_real=3, n_real=4, correct_generated=0, n_generated=0)
    assert no_real == Unmeasured("no real clips")
    assert no_fake == Unmeasured("no generated clips")


def test_bins_and_brier_score_are_those_of_scikit_learn(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    truth, told = _detect(rng, 500)
    result = measure_probability_calibration(truth, told, seed=1)
    shares, means = calibration_curve(truth, told, n_bins=10, strategy="quantile")
    assert [one.p_mean for one in result.bins] == pytest.approx(means)
    assert [one.generated.value for one in result.bins] == pytest.approx(shares)
    assert [one.generated.n for one in result.bins] == [50] * 10
    assert estimated(result.brier).value == pytest.approx(brier_score_loss(truth, told))
    assert estimated(result.ece).value == pytest.approx(np.abs(shares - means).mean())
    assert estimated(result.ece).n == estimated(result.brier).n == 500


def test_honest_probabilities_may_have_no_calibration_error(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    told = rng.random(400)
    honest = estimated(measure_probability_calibration(rng.random(400) < told, told, seed=1).ece)
    boastful = estimated(measure_probability_calibration(rng.random(400) < 0.5, told, seed=1).ece)
    assert honest.low == 0 < honest.value
    assert boastful.low > 0.1
    assert boastful.low < 0.25 < boastful.high  # the mean of |p - 1/2|


def test_an_oracle_keeps_doubt_about_its_calibration(estimated: Estimated) -> None:
    truth = np.arange(60) % 2
    result = measure_probability_calibration(truth, truth, seed=1)
    for measured in (result.ece, result.brier):
        estimate = estimated(measured)
        assert estimate.value == estimate.low == 0
        assert estimate.high == pytest.approx(1 - estimated(estimate_proportion(60, 60)).low)


def test_calibration_draws_clips(estimated: Estimated, rng: np.random.Generator) -> None:
    truth, told = _detect(rng, 100)
    clips = np.arange(100).repeat(6)
    once = measure_probability_calibration(truth, told, seed=1, bins=4)
    grouped = measure_probability_calibration(
        truth.repeat(6), told.repeat(6), seed=1, clusters=clips, bins=4
    )
    for alone, repeated in [
        (once.brier, grouped.brier),
        (once.ece, grouped.ece),
        *zip([o.generated for o in once.bins], [g.generated for g in grouped.bins], strict=True),
    ]:
        first, second = estimated(alone), estimated(repeated)
        assert second.value == pytest.approx(first.value)
        assert second.high - second.low == pytest.approx(first.high - first.low, rel=0.15)


def test_calibration_error_of_few_clips_is_unmeasured_with_its_bare_value() -> None:
    result = measure_probability_calibration([0, 1, 1], [0.2, 0.6, 0.9], seed=1, bins=1)
    assert isinstance(result.ece, Unmeasured)
    assert "needs 6 clips, here are 3; the bare value is 0.1" in result.ece.why
    assert isinstance(result.brier, Estimate)


@pytest.mark.parametrize(
    ("told", "bins", "remedy"), [([0.5, 1.1], 10, "between 0 and 1"), ([0.5, 0.6], 0, "at least 1")]
)
def test_impossible_probabilities_and_bins_are_refused(
    told: list[float], bins: int, remedy: str
) -> None:
    with pytest.raises(InvalidValueError, match=remedy):
        measure_probability_calibration([0, 1], told, seed=1, bins=bins)


CALLED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=10, max_size=60)


@given(CALLED)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(rows: list[tuple[int, int]]) -> None:
    truth, called = zip(*rows, strict=True)
    measured = f1(truth, called, seed=1)
    hits = sum(t and c for t, c in rows)
    if isinstance(measured, Estimate):
        assert measured.value == pytest.approx(f1_score(truth, called, zero_division=0), abs=1e-12)
        assert 0 <= measured.low <= measured.high <= 1
        if hits:
            precision, recall = hits / sum(called), hits / sum(truth)
            assert measured.value == pytest.approx(2 / (1 / precision + 1 / recall))
    else:
        assert sum(truth) + sum(called) <= 5  # too few for every resample to hold one


def test_f1_by_hand_does_not_count_real_clips_that_were_called_real(estimated: Estimated) -> None:
    truth, called = [1] * 8 + [0] * 4, [1] * 6 + [0] * 2 + [1] * 3 + [0]
    few = estimated(f1(truth, called, seed=1))
    assert few.value == pytest.approx(2 * 6 / (2 * 6 + 3 + 2))
    more = estimated(f1([*truth, *[0] * 50], [*called, *[0] * 50], seed=1))
    assert more.value == pytest.approx(few.value)


def test_f1_without_a_generated_clip_or_a_call_has_no_value() -> None:
    assert f1([0] * 9, [0] * 9, seed=1) == Unmeasured("no clip is generated or was called so")
    assert isinstance(f1([], [], seed=1), Unmeasured)


def test_a_perfect_f1_keeps_the_doubt_of_the_clips_that_it_counts(estimated: Estimated) -> None:
    truth = np.repeat([0, 1], [90, 10])
    estimate = estimated(f1(truth, truth, seed=1))
    assert (estimate.value, estimate.high) == (1, 1)
    assert estimate.low == pytest.approx(estimated(estimate_proportion(10, 10)).low)


def test_f1_draws_clips(estimated: Estimated, rng: np.random.Generator) -> None:
    truth, scores = _detect(rng, 80)
    called = (scores > 0.5).astype(float)
    once = estimated(f1(truth, called, seed=1))
    clips = [f"clip-{clip}" for clip in np.arange(80).repeat(4)]
    grouped = estimated(f1(truth.repeat(4), called.repeat(4), seed=1, clusters=clips))
    assert grouped.value == pytest.approx(once.value)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.15)


@given(
    st.lists(st.integers(0, 12), min_size=20, max_size=60),
    st.lists(st.integers(0, 12), min_size=8, max_size=40),
    st.sampled_from([0.05, 0.1, 0.25]),
)
def test_the_rate_caught_is_the_best_of_all_thresholds_that_keep_the_false_alarms(
    real: list[int], generated: list[int], fpr: float
) -> None:
    best = max(
        sum(score > bar for score in generated) / len(generated)
        for bar in range(-1, 13)
        if sum(score > bar for score in real) <= fpr * len(real) + 1e-9
    )
    truth = [0] * len(real) + [1] * len(generated)
    measured = tpr_at_fpr(truth, [*real, *generated], fpr=fpr, seed=1)
    assert isinstance(measured, Estimate)
    assert measured.value == pytest.approx(best)
    assert 0 <= measured.low <= measured.high <= 1
    assert measured.n == len(truth)


def test_real_clips_tied_at_the_top_are_never_let_through(estimated: Estimated) -> None:
    truth = [0] * 100 + [1] * 50
    one, two = [9] * 1 + [1] * 99, [9] * 2 + [1] * 98
    assert estimated(tpr_at_fpr(truth, [*one, *[9] * 50], fpr=0.01, seed=1)).value == 1
    assert estimated(tpr_at_fpr(truth, [*two, *[9] * 50], fpr=0.01, seed=1)).value == 0
    assert estimated(tpr_at_fpr(truth, [*two, *[9] * 50], fpr=0.05, seed=1)).value == 1


@pytest.mark.parametrize(("fpr", "fewest"), [(0.01, 100), (0.05, 20)])
def test_a_rate_of_false_alarms_needs_real_clips_enough_to_show_it(fpr: float, fewest: int) -> None:
    generated = [1] * 30
    for n_real, is_measured in ((fewest - 1, False), (fewest, True)):
        truth = [0] * n_real + generated
        measured = tpr_at_fpr(truth, truth, fpr=fpr, seed=1)
        assert isinstance(measured, Estimate) is is_measured
    short = tpr_at_fpr([0] * 7 + generated, [0] * 7 + generated, fpr=fpr, seed=1)
    assert short == Unmeasured(
        f"{100 * fpr:g} % of false alarms need {fewest} real clips, here are 7"
    )


def test_clips_asked_about_twice_are_no_more_real_clips() -> None:
    truth = [0] * 120 + [1] * 30
    clips = [str(i // 2) for i in range(120)] + [f"g{i}" for i in range(30)]
    assert isinstance(tpr_at_fpr(truth, truth, fpr=0.01, seed=1, clusters=clips), Unmeasured)


def test_the_rate_caught_needs_a_generated_clip() -> None:
    assert isinstance(tpr_at_fpr([0] * 200, [0] * 200, fpr=0.01, seed=1), Unmeasured)
