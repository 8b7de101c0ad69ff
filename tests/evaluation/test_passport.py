"""What a passport says about one opinion: p-values of scores, and intervals of false-alarm rates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from facts import FACTS
from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId
from unreel.core.judgement import Label
from unreel.core.question import Condition, Instrument, Question
from unreel.core.verdict import RealityVerdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.passport import (
    FalseAlarmPassport,
    FalseAlarmStatement,
    FootageCell,
    ReviewerPassport,
    judge_opinion,
)
from unreel.stats.proportion import clopper_pearson_interval

CLIP = Clip(id=ClipId("0" * 64), location="a.mp4", facts=FACTS)
REALITY = Instrument("reality", 2)


def judge(oddness: list[float], n_alarms: int, p_generated: float) -> FalseAlarmStatement:
    cell = FootageCell(
        codec="h264",
        size="under 480",
        source="",
        n=len(oddness),
        n_alarms=n_alarms,
        oddness=tuple(oddness),
    )
    measured = ReviewerPassport(
        reviewer="r",
        instrument=str(REALITY),
        condition=dict(Condition().written()),
        parser="strict",
        has_label=True,
        n_unanswered=0,
        cells=(cell,),
    )
    passport = FalseAlarmPassport(
        archive="phone",
        made_at="2026-01-01T00:00:00+00:00",
        n_clips=len(oddness),
        n_repeated=0,
        codecs=("h264",),
        shorter_sides=(360, 360),
        durations_us=(1_000_000, 5_000_000),
        reviewers=(measured,),
    )
    label = Label.GENERATED if p_generated > 0.5 else Label.REAL
    confidence = 100 * max(p_generated, 1 - p_generated)
    opinion = Opinion(
        reviewer="r",
        question=Question(subject=CLIP.id, instrument=REALITY, condition=Condition()),
        prompt="",
        inputs=(),
        box_space=None,
        outcome=Reply(text=""),
        cost_usd=None,
        verdict=RealityVerdict(label=label, confidence=float(confidence)),
    )
    statement = judge_opinion(opinion, CLIP, passport, mode="strict")
    assert statement is not None
    assert judge_opinion(replace(opinion, verdict=None), CLIP, passport, mode="strict") is None
    return statement


def test_p_values_of_held_out_real_clips_are_uniform() -> None:
    random = np.random.default_rng(0)
    values = []
    for _ in range(200):
        scores = random.beta(2, 5, 101)
        values.append(judge(scores[:-1].tolist(), 0, float(scores[-1])).p_value)
    assert kstest(values, "uniform").pvalue > 0.01


def test_as_odd_clips_and_the_share_of_right_alarms_are_stated() -> None:
    statement = judge([0.1] * 96 + [0.95] * 4, 4, 0.9)
    assert (statement.n, statement.n_alarms) == (100, 4)
    assert statement.p_value == pytest.approx(5 / 101)
    assert "4 of 100 of your own real clips look at least this odd" in statement.text
    assert "about 2 of 10 such alarms are right" in statement.text


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 57), (3, 57), (57, 57), (3, 1240)])
def test_the_interval_is_the_one_of_clopper_and_pearson(successes: int, n: int) -> None:
    exact = binomtest(successes, n).proportion_ci(0.95, method="exact")
    assert clopper_pearson_interval(successes, n, level=0.95) == pytest.approx(tuple(exact))
