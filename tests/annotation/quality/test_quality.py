"""Known answers, qualification, drift, time on task and the pull of marks."""

from dataclasses import dataclass

import numpy as np
import pytest

from opinions import UnstoredOpinion, rated, said, task, trace, traced
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnyValue,
    PassFailAnswer,
    PrefillStudyArm,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.quality import (
    ALARM,
    AnswerDrift,
    measure_annotator_quality,
    measure_annotator_speeds,
    measure_answer_drift,
    measure_gold_accuracy,
    measure_prefill_bias,
    qualify_annotators,
    score_against_known_answer,
)
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.judgement import Label

HAND, CUP = (0.1, 0.1, 0.4, 0.5), (0.6, 0.6, 0.8, 0.9)


@dataclass(frozen=True)
class _Judgement:
    annotator: str
    task: AnnotationTask
    value: AnyValue
    lead_us: int | None = None
    submitted_us: int = 0
    arm: PrefillStudyArm = PrefillStudyArm.PLAIN


def test_a_known_trace_is_found_by_a_mark_on_it_and_by_nothing_else() -> None:
    known = traced(trace(10, 40, HAND), trace(50, 80, CUP))
    clip = task(known=known)
    assert score_against_known_answer(clip, known) == 1
    assert score_against_known_answer(clip, traced(trace(12, 38, HAND))) == 0.5
    assert score_against_known_answer(clip, traced(trace(10, 40, HAND), trace(0, 5, CUP))) == 0.5
    assert score_against_known_answer(clip, traced(trace(10, 40, CUP))) == 0
    assert score_against_known_answer(clip, traced()) == 0
    assert score_against_known_answer(clip, traced(label=Label.REAL)) == 0
    real = task(known=traced(label=Label.REAL))
    assert score_against_known_answer(real, traced(label=Label.REAL)) == 1
    assert score_against_known_answer(real, traced(trace(0, 30))) == 0


def test_the_share_right_has_an_interval_and_nobody_without_gold_has_one() -> None:
    opinions = []
    for number in range(40):
        clip = task(str(number), known=PassFailAnswer(passed=True))
        opinions += said(
            {"ann": PassFailAnswer(passed=True), "ben": PassFailAnswer(passed=number % 4 > 0)}, clip
        )
    opinions += said({"cem": PassFailAnswer(passed=True)}, task("unknown"))
    found = measure_gold_accuracy(opinions, seed=1)
    ben = found["ben"]
    assert isinstance(ben, Estimate)
    assert ben.value == 0.75
    assert ben.low < 0.7 < 0.8 < ben.high  # noqa: PLR0133  around the value
    assert isinstance(found["ann"], Estimate)
    assert isinstance(found["cem"], Unmeasured)


@pytest.mark.parametrize(
    ("n_clips", "n_apart", "passes"), [(100, 10, True), (100, 11, False), (99, 0, False)]
)
def test_three_qualify_by_unanimity_on_ninety_of_a_hundred(
    n_clips: int, n_apart: int, *, passes: bool
) -> None:
    opinions: list[UnstoredOpinion] = []
    for number in range(n_clips):
        score = number % 5 + 1
        lone = score % 5 + 1 if number < n_apart else score
        values = {"ann": rated(score), "ben": rated(score), "cem": rated(lone)}
        opinions += said(values, task(str(number), known=rated(score)))
    found = qualify_annotators(opinions, interface=AnnotationInterface.REALISM, seed=1)
    assert found.unanimous is passes
    assert found.n_shared == n_clips
    assert {"alpha-nominal", "alpha-ordinal", "fleiss-kappa"} == set(found.beyond_chance)
    assert found.qualified == ("ann", "ben", "cem")


def _later(values: list[AnyValue], known: AnyValue | None = None) -> list[UnstoredOpinion]:
    return [
        UnstoredOpinion(
            annotator="ann", task=task(str(at), known=known), value=value, submitted_us=at
        )
        for at, value in enumerate(values)
    ]


def _drift(opinions: list[UnstoredOpinion]) -> dict[str, AnswerDrift]:
    return {found.what: found for found in measure_answer_drift(opinions, seed=1)["ann"]}


def test_somebody_who_turns_careless_raises_an_alarm() -> None:
    rng = np.random.default_rng(1)
    chances = [0.95] * 60 + [0.5] * 40
    values: list[AnyValue] = [
        VoteAnswer(label=Label.REAL if rng.random() < p else Label.GENERATED) for p in chances
    ]
    found = _drift(_later(values, known=VoteAnswer(label=Label.REAL)))["right"]
    assert found.alarm
    assert 45 <= found.since <= 75
    assert found.before > found.after


def test_scores_that_move_up_raise_an_alarm_without_known_clips() -> None:
    values: list[AnyValue] = [rated(2 + at % 2 + (at > 50)) for at in range(100)]
    found = _drift(_later(values))
    assert set(found) == {"answers"}
    assert found["answers"].alarm


def test_false_alarms_are_as_rare_as_is_said() -> None:
    """Steady people, 60 answers each, of whom one in a hundred may be accused."""
    rng = np.random.default_rng(5)
    opinions = [
        UnstoredOpinion(
            annotator=f"p{who}",
            task=task(f"{at}"),
            value=PassFailAnswer(passed=bool(rng.random() < 0.7)),
            submitted_us=at,
        )
        for who in range(200)
        for at in range(60)
    ]
    found = measure_answer_drift(opinions, seed=1)
    accused = sum(drift.alarm for drifts in found.values() for drift in drifts)
    assert len(found) == 200
    assert accused <= 200 * ALARM + 6


def test_times_out_of_the_ordinary_are_told() -> None:
    rng = np.random.default_rng(1)
    leads = [int(20e6 * np.exp(rng.normal(0, 0.3))) for _ in range(40)]
    leads[7], leads[20] = 900_000, 3_600_000_000
    judged = [
        _Judgement("ann", task(str(at)), rated(3), lead_us=lead) for at, lead in enumerate(leads)
    ]
    pace = measure_annotator_speeds([*judged, _Judgement("ben", task("x"), rated(3))])["ann"]
    assert pace.fast == pace.unseen == (task("7").id,)
    assert pace.slow == (task("20").id,)
    assert 17_000_000 < pace.median_us < 23_000_000


def _armed(follows: float, shown: float, marks: TraceAnswer) -> list[_Judgement]:
    rng = np.random.default_rng(2)
    found = []
    for number in range(200):
        clip = task(str(number))
        clip = AnnotationTask(names=clip.names, copies=clip.copies, prefill=marks)
        for who, arm, chance in (
            ("a", PrefillStudyArm.BLIND, follows),
            ("b", PrefillStudyArm.PREFILLED, shown),
        ):
            value = marks if rng.random() < chance else traced(trace(60, 80, CUP))
            found.append(_Judgement(who, clip, value, arm=arm))
    return found


def test_the_pull_of_marks_is_what_those_who_saw_them_follow_more() -> None:
    marks = traced(trace(0, 30, HAND))
    pulled = measure_prefill_bias(_armed(0.5, 0.8, marks), seed=1)
    assert isinstance(pulled, Estimate)
    assert pulled.low > 0.15
    assert pulled.value == pytest.approx(0.3, abs=0.1)
    free = measure_prefill_bias(_armed(0.5, 0.5, marks), seed=1)
    assert isinstance(free, Estimate)
    assert free.low < 0 < free.high


def test_honest_annotators_raise_no_alarm_for_their_answers() -> None:
    """Annotators who are right on 70 % of 100 clips, whom noisy colleagues must not discredit."""
    rng = np.random.default_rng(3)
    alarms = []
    for _ in range(8):
        judgements = [
            _Judgement(who, task(str(clip)), VoteAnswer(label=sides[rng.random() < 0.3]))
            for clip in range(100)
            for sides in [(Label.REAL, Label.GENERATED)[:: rng.choice((-1, 1))]]
            for who in ("ann", "ben", "cem")
        ]
        quality = measure_annotator_quality(
            judgements, interface=AnnotationInterface.REALITY, seed=1
        )
        alarms += [text for person in quality.people.values() for text in person.alarms]
    assert len(alarms) <= 1  # a drift is claimed by chance in 1 % of annotators
