"""An honest reviewer that is better than chance earns more than every answer that ignores the clip."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from training.marking import REAL_TEXT, draw_box, draw_truths, fake, generated, key, settled
from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.protocols.trace.ground_truth import TraceTruth

WHOLE = Box(0, 0, 1, 1)
BOXES = [None, WHOLE, Box(0.15, 0.15, 0.85, 0.85), Box(0.3, 0.3, 0.7, 0.7)]
CONSTANTS = [REAL_TEXT, *(fake(box, at) for box in BOXES for at in (None, 0, 1, 2))]


def draw_set(n_real: int, n_whole: int, n_other: int) -> list[TraceTruth]:
    """Real clips, clips whose trace is the whole frame from 0 on, and clips with small boxes."""
    rng = random.Random(8)
    real = [TraceTruth(label=Label.REAL, duration_us=4_000_000)] * n_real
    whole = [generated(WHOLE, 0, 4_000_000)] * n_whole
    starts = [rng.randrange(0, 3_000_000) for _ in range(n_other)]
    return real + whole + [generated(draw_box(rng), start, start + 900_000) for start in starts]


SETS = {
    "half real, 90 % whole frame": draw_set(30, 27, 3),
    "half real, all whole frame": draw_set(30, 30, 0),
    "half real, small boxes": draw_set(30, 0, 30),
    "80 % real": draw_set(48, 6, 6),
    "80 % generated": draw_set(12, 36, 12),
    "mixed onsets": draw_truths(60, seed=5),
}


def expect(truths: Sequence[TraceTruth], answers: dict[str, float]) -> float:
    """Exact expectation of answers that are given with these probabilities, whatever the clip."""
    terms = settled(truths)
    earned = (
        n * sum(p * key(truth, settings=terms).mark(text).total for text, p in answers.items())
        for truth, n in Counter(truths).items()
    )
    return sum(earned) / len(truths)


def expect_honest(truths: Sequence[TraceTruth], right: float) -> float:
    """Exact expectation of a reviewer whose bare label is right with that probability."""
    terms = settled(truths)

    def of(truth: TraceTruth) -> float:
        real, generated_ = (
            key(truth, settings=terms).mark(text).total for text in (REAL_TEXT, fake())
        )
        true, false = (real, generated_) if truth.label is Label.REAL else (generated_, real)
        return right * true + (1 - right) * false

    return sum(n * of(truth) for truth, n in Counter(truths).items()) / len(truths)


@pytest.mark.parametrize("truths", SETS.values(), ids=SETS)
def test_a_reviewer_that_is_right_in_60_percent_earns_more_than_any_constant(
    truths: list[TraceTruth],
) -> None:
    best = max(expect(truths, {text: 1.0}) for text in CONSTANTS)
    assert expect_honest(truths, 0.6) > best
    assert expect_honest(truths, 0.51) > best


@pytest.mark.parametrize("truths", SETS.values(), ids=SETS)
def test_constants_and_coins_earn_no_more_than_calling_every_clip_real(
    truths: list[TraceTruth],
) -> None:
    always_real = expect(truths, {REAL_TEXT: 1.0})
    assert expect(truths, {fake(): 1.0}) == pytest.approx(always_real)
    assert expect(truths, {REAL_TEXT: 0.5, fake(): 0.5}) == pytest.approx(always_real)
    assert all(expect(truths, {text: 1.0}) <= always_real + 1e-9 for text in CONSTANTS)
