"""People are scored as models are, and never against a truth that they helped to settle."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from opinions import UnstoredOpinion, said, task, trace, traced
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnyValue,
    PreferenceAnswer,
    RatingAnswer,
    VoteAnswer,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.publishing.publishable_campaign import (
    AnnotatorScoringInput,
    compute_consensus_of_others,
    score_annotators,
)
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.human_scores import AnnotatorScoreRow
from unreel.core.clip import Generated, Real
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.judgement import Label, Rating
from unreel.core.verdict import Position

RULE = ConsensusRule(quorum=2, min_overlap=2)
FAKE, REAL = VoteAnswer(label=Label.GENERATED), VoteAnswer(label=Label.REAL)
HERE, THERE = (0.1, 0.1, 0.4, 0.5), (0.6, 0.6, 0.9, 0.9)


def _entry(name: str) -> Entry:
    origin = Real() if name.startswith("film") else Generated("Veo")
    return Entry(name=name, location=f"{name}.mp4", origin=origin)


def _poll(
    interface: AnnotationInterface,
    said_of: Mapping[AnnotationTask, Mapping[str, AnyValue]] | Sequence[UnstoredOpinion],
) -> AnnotatorScoringInput:
    opinions = (
        [opinion for about, values in said_of.items() for opinion in said(values, about)]
        if isinstance(said_of, Mapping)
        else list(said_of)
    )
    names = {name for opinion in opinions for name in opinion.task.names}
    return AnnotatorScoringInput(
        interface=interface,
        rule=RULE,
        opinions=opinions,
        consensus=compute_consensus(opinions, RULE, interface=interface),
        entries={name: _entry(name) for name in names},
        seed=0,
    )


def _value(row: AnnotatorScoreRow, metric: str) -> float:
    found = row[metric]
    assert isinstance(found, Estimate), found
    return found.value


def _rows(scoring_input: AnnotatorScoringInput, protocol: str) -> dict[str, AnnotatorScoreRow]:
    return {row.name: row for row in score_annotators(scoring_input) if row.protocol == protocol}


def test_votes_are_held_against_where_clips_are_from() -> None:
    clips = [task(f"film-{i}") for i in range(6)] + [task(f"veo-{i}") for i in range(6)]
    right = {clip: REAL if clip.names[0].startswith("film") else FAKE for clip in clips}
    poll = _poll(
        AnnotationInterface.REALITY,
        {clip: {"ann": right[clip], "bob": right[clip], "cho": FAKE} for clip in clips},
    )
    rows = _rows(poll, "reality")
    assert set(rows) == {"ann", "bob", "cho", "majority"}
    assert {row.against for row in rows.values()} == {"origin"}
    assert _value(rows["ann"], "accuracy") == 100
    assert _value(rows["cho"], "accuracy") == 50
    assert _value(rows["majority"], "accuracy") == 100
    assert rows["majority"].kind == "majority"


def test_a_tie_counts_against_nobody_and_is_no_right_answer_of_the_majority() -> None:
    poll = _poll(
        AnnotationInterface.REALITY,
        {task("veo-0"): {"ann": FAKE, "bob": REAL}, task("veo-1"): {"ann": FAKE, "bob": FAKE}},
    )
    majority = _rows(poll, "reality")["majority"]
    assert majority.n_judged == 2
    assert _value(_rows(poll, "reality")["ann"], "accuracy") == 100


def test_an_annotator_cannot_lift_their_own_score_by_outvoting_another() -> None:
    """With themselves in the truth, ann and bob would both be right; without, each faces the others."""
    clips = [task(f"veo-{i}") for i in range(8)]
    poll = _poll(
        AnnotationInterface.REALISM,
        {
            clip: {
                "ann": RatingAnswer(rating=Rating(score=1 + place % 5)),
                "bob": RatingAnswer(rating=Rating(score=1 + place % 5)),
                "cho": RatingAnswer(rating=Rating(score=5 - place % 5)),
            }
            for place, clip in enumerate(clips)
        },
    )
    without_cho = compute_consensus_of_others(poll, "cho")
    assert [without_cho[clip.id] for clip in clips] == [
        poll.consensus.settled[clip.id].value for clip in clips
    ]
    with_ann = compute_consensus_of_others(poll, "ann")
    assert any(with_ann.get(c.id) != poll.consensus.settled[c.id].value for c in clips)
    rows = _rows(poll, "realism")
    assert {row.against for row in rows.values()} == {"others"}
    assert "majority" not in rows


def test_boxes_are_held_against_known_answers_where_all_have_one() -> None:
    known = traced(trace(10, 40, HERE, why="It melts."))
    clips = [task(f"veo-{i}", known=known) for i in range(5)]
    exact, wrong = traced(trace(10, 40, HERE, why="Melts.")), traced(trace(10, 40, THERE))
    poll = _poll(
        AnnotationInterface.TRACE,
        {clip: {"ann": exact, "bob": exact, "cho": wrong} for clip in clips},
    )
    rows = _rows(poll, "trace")
    assert {row.against for row in rows.values()} == {"known"}
    assert _value(rows["ann"], "box-iou") == pytest.approx(100)
    assert _value(rows["cho"], "box-iou") == 0
    assert _value(rows["majority"], "box-iou") == pytest.approx(100)
    assert isinstance(rows["ann"]["explanation"], Unmeasured)


def test_traces_give_rows_of_three_instruments() -> None:
    clips = [task("film-0"), *(task(f"veo-{i}") for i in range(4))]
    mark, nothing = traced(trace(10, 40, HERE)), traced(label=Label.REAL)
    poll = _poll(
        AnnotationInterface.TRACE,
        {
            clip: dict.fromkeys(("ann", "bob", "cho"), nothing if clip is clips[0] else mark)
            for clip in clips
        },
    )
    assert {row.protocol for row in score_annotators(poll)} == {"trace", "reality", "realism"}


def _pair(first: str, second: str) -> AnnotationTask:
    return AnnotationTask(
        names=(first, second), copies=(task(first).copies[0], task(second).copies[0])
    )


def test_a_preferred_clip_is_taken_for_the_real_one_where_one_of_the_two_is() -> None:
    pairs = [_pair(f"film-{i}", f"veo-{i}") for i in range(4)]
    values = dict.fromkeys(("ann", "bob"), PreferenceAnswer(better=Position.FIRST))
    poll = _poll(
        AnnotationInterface.PREFERENCE, dict.fromkeys([*pairs, _pair("veo-5", "veo-6")], values)
    )
    shown = replace(poll, swapped=frozenset({("ann", pairs[0].id), ("ann", pairs[1].id)}))
    rows = _rows(shown, "preference")
    assert _value(rows["ann"], "accuracy") == 100
    assert rows["ann"].n_judged == 4
    assert isinstance(rows["bob"]["accuracy"], Unmeasured), "the film was always on the left"
    assert _value(rows["bob"], "pooled") == 100
