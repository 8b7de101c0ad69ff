"""What one change does: paired, with intervals, corrected for how many were looked at."""

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
    build_answer_grid,
    get_generated_clip_mask,
    get_real_clip_mask,
)
from unreel.arena.boards.ablations import (
    AS_FILMED,
    BALANCED,
    DEGRADATION,
    EVERYBODY,
    SETTING,
    compare_answer_tables,
    measure_ablation_effects,
    measure_reviewer_biases,
)
from unreel.core.estimate import Estimate, Unmeasured

SHOWN = lineup(("Sora", "Wan/image", "Wan/text"), n_scenes=40, controls=("scaled",))
ABILITIES = {"ada": 1.0, "bob": 0.5, "coin": 0.0}


def _said(
    before: SeasonAnswerTable, said: np.ndarray, condition: str = "audio on"
) -> SeasonAnswerTable:
    return replace(before, answer_codes=said.astype(np.int8), condition=condition)


def _between(
    answer_tables: list[SeasonAnswerTable], reviewer: str, knob: str = "condition"
) -> Estimate:
    found = [
        a
        for a in measure_ablation_effects(answer_tables)
        if (a.knob, a.reviewer) == (knob, reviewer)
    ]
    assert len(found) == 1
    assert isinstance(found[0].difference, Estimate)
    return found[0].difference


def _value(measured: object) -> Estimate:
    assert isinstance(measured, Estimate)
    return measured


def test_the_same_answers_differ_by_nothing() -> None:
    one = play(SHOWN, ABILITIES)
    found = _between([one, replace(one, condition="audio on")], EVERYBODY)
    assert found.value == 0
    assert found.low <= 0 <= found.high


def test_a_difference_is_that_of_balanced_accuracy() -> None:
    before, after = play(SHOWN, {"ada": 0.5}), play(SHOWN, {"ada": 3.0}, seed=1, condition="new")
    found = _between([before, after], "ada")
    first, second = build_answer_grid(after)[0], build_answer_grid(before)[0]
    read = (first >= 0) & (second >= 0)
    made, filmed = get_generated_clip_mask(SHOWN) & read, get_real_clip_mask(SHOWN) & read

    def balanced(said: np.ndarray) -> float:
        caught = (said[made] == ANSWERED_GENERATED).mean()
        return 50 * float(caught + (said[filmed] == ANSWERED_REAL).mean())

    assert found.value == pytest.approx(balanced(first) - balanced(second))
    assert found.low > 0


def test_silent_answers_are_left_out_and_counted() -> None:
    one = play(SHOWN, ABILITIES)
    said = one.answer_codes.copy()
    said[one.clip < 60] = SILENT
    found = next(
        a for a in measure_ablation_effects([one, _said(one, said)]) if a.reviewer == "ada"
    )
    lost = (build_answer_grid(one)[0] < 0) | (np.arange(len(SHOWN.names)) < 60)
    counted = get_generated_clip_mask(SHOWN) | get_real_clip_mask(SHOWN)
    assert (found.n_pairs, found.n_left_out) == ((~lost & counted).sum(), (lost & counted).sum())


def test_only_conditions_that_differ_in_one_knob_are_compared() -> None:
    plays = [replace(play(SHOWN, ABILITIES), condition=name) for name in ("a", "b", "c")]
    knobs = {
        "a": {"audio": "off", "sampling": "uniform-8"},
        "b": {"audio": "on", "sampling": "uniform-8"},
        "c": {"audio": "on", "sampling": "uniform-16"},
    }
    compared = {
        (a.knob, a.first, a.second)
        for a in measure_ablation_effects(plays, knobs=knobs)
        if a.figure == BALANCED
    }
    assert compared == {("audio", "b", "a"), ("sampling", "c", "b")}


def test_settings_of_a_creator_are_paired_by_scene() -> None:
    one = play(SHOWN, {"ada": 1.0})
    said = one.answer_codes.copy()
    said[SHOWN.creator[one.clip] == SHOWN.creators.index("Wan/text")] = ANSWERED_REAL
    said[SHOWN.creator[one.clip] == SHOWN.creators.index("Wan/image")] = ANSWERED_GENERATED
    found = [
        a
        for a in measure_ablation_effects([_said(one, said)])
        if a.knob == SETTING and a.reviewer == "ada"
    ]
    assert [(a.first, a.second) for a in found] == [("Wan/text", "Wan/image")]
    assert _value(found[0].difference).value == -100


def test_a_control_is_set_against_the_real_clip_of_its_scene() -> None:
    one = play(SHOWN, {"ada": 1.0})
    said = one.answer_codes.copy()
    said[SHOWN.control[one.clip] != NOBODY] = ANSWERED_GENERATED
    said[get_real_clip_mask(SHOWN)[one.clip]] = ANSWERED_REAL
    found = [
        a
        for a in measure_ablation_effects([_said(one, said)])
        if a.knob == DEGRADATION and a.reviewer == "ada"
    ]
    assert [(a.first, a.second) for a in found] == [("scaled", AS_FILMED)]
    assert _value(found[0].difference).value == 100


def test_plays_of_other_seasons_are_matched_by_name() -> None:
    one = play(SHOWN, ABILITIES)
    other_way = lineup(("Wan/text", "Sora"), n_scenes=40)
    other = play(other_way, {"ada": 1.0, "zoe": 1.0}, condition="pair")
    found = compare_answer_tables(other, one, knob="pair against single")
    assert {a.reviewer for a in found} == {EVERYBODY, "ada"}
    assert all(a.n_pairs + a.n_left_out == 40 * 3 for a in found)


def test_seasons_without_a_common_clip_have_no_difference() -> None:
    one = play(SHOWN, {"ada": 1.0})
    clips = tuple(f"x/{name}" for name in SHOWN.names)
    other = replace(one, clips=replace(SHOWN, names=clips))
    (everybody, ada) = compare_answer_tables(one, other, knob="season")
    assert isinstance(everybody.difference, Unmeasured)
    assert ada.n_pairs == 0


def test_where_nothing_changes_a_difference_is_rarely_called_one() -> None:
    """200 seasons of 4 reviewers: one or more false alarms in at most 5 of 100 of them, but for chance."""
    alarms = 0
    shown = lineup(("Sora", "Wan"), n_scenes=40)
    abilities = {"ada": 1.0, "bob": 0.6, "eve": 0.4, "ian": 0.8}
    for seed in range(200):
        before = play(shown, abilities, seed=2 * seed)
        after = play(shown, abilities, seed=2 * seed + 1, condition="new")
        found = measure_ablation_effects([before, after])
        alarms += any(a.p_corrected is not None and a.p_corrected <= 0.05 for a in found)
    assert alarms <= 18  # P(more | rate 0.05) < 0.01


def test_a_reviewer_that_says_real_leans_there() -> None:
    one = play(SHOWN, {"ada": 1.0, "eve": 1.0})
    said = one.answer_codes.copy()
    eve = one.reviewer == one.reviewers.index("eve")
    said[eve & (np.arange(len(said)) % 3 > 0)] = ANSWERED_REAL
    ada, eve_leans = measure_reviewer_biases(_said(one, said))
    assert _value(eve_leans.criterion).low > 0
    assert _value(eve_leans.said_real).low > 60
    assert _value(ada.sensitivity).low > 0


def test_who_never_saw_a_real_clip_has_no_leaning() -> None:
    one = play(SHOWN, {"ada": 1.0})
    said = np.where(get_real_clip_mask(SHOWN)[one.clip], SILENT, one.answer_codes)
    (found,) = measure_reviewer_biases(_said(one, said))
    assert isinstance(found.sensitivity, Unmeasured)
    assert isinstance(found.said_real, Unmeasured)
