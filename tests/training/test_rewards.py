"""What an answer earns: in range, rising with what is true, blind to what carries no evidence."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.marking import REAL_TEXT, draw_box, draw_truths, fake, generated, key, settled
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnreelError
from unreel.core.judgement import Rating
from unreel.training.recipe import AnswerRewardSection
from unreel.training.rewards.reward import AnswerKey, parse_answer_key
from unreel.training.rewards.reward_settings import compute_answer_reward_settings
from unreel.training.rewards.trainer_functions import SwiftReward, compute_score

TRUTHS = draw_truths(200, seed=3)
TERMS = settled(TRUTHS)
TRUTH = generated(Box(0.2, 0.2, 0.6, 0.6), 1_000_000, 2_000_000)
KEY = key(TRUTH, settings=TERMS)

weights = st.floats(0, 1)


@given(
    st.text(max_size=300) | st.sampled_from(["REAL", "FAKE", fake("[1, 1, 9, 9]", 2)]),
    st.integers(0, len(TRUTHS) - 1),
    st.builds(
        AnswerRewardSection,
        label=st.floats(0.01, 1),
        box=weights,
        onset=weights,
        span=weights,
        format=weights,
        false_alarm=st.floats(1, 100),
        bar=st.none() | st.floats(0, 1),
    ),
)
def test_every_text_earns_between_0_and_1(
    text: str, which: int, section: AnswerRewardSection
) -> None:
    terms = compute_answer_reward_settings(section, [(truth,) for truth in TRUTHS[:20]])
    assert 0 <= key(TRUTHS[which], settings=terms).mark(text).total <= 1


@given(st.randoms(use_true_random=False))
def test_a_nearer_box_never_earns_less(rng: random.Random) -> None:
    near, far = sorted((draw_box(rng), draw_box(rng)), key=lambda b: -b.iou(TRUTH.box))  # type: ignore[arg-type]
    assert KEY.mark(fake(near)).total >= KEY.mark(fake(far)).total - 1e-3  # thousandths are written


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_nearer_onset_never_earns_less(first: int, second: int) -> None:
    near, far = sorted((first, second), key=lambda cs: abs(cs - 100))
    box = Box(0.2, 0.2, 0.6, 0.6)
    assert KEY.mark(fake(box, near / 100)).total >= KEY.mark(fake(box, far / 100)).total


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="[]<>"), max_size=200))
def test_no_word_of_an_explanation_is_paid(words: str) -> None:
    said = fake(TRUTH.box, 1)
    assert KEY.mark(f"{said} The reason is because {words}").total == KEY.mark(said).total


def test_the_best_met_trace_of_a_clip_counts() -> None:
    other = generated(Box(0.7, 0.7, 0.9, 0.9), 3_000_000, 3_500_000)
    said = fake(TRUTH.box, 1)
    assert key(TRUTH, other, settings=TERMS).mark(said) == KEY.mark(said)
    assert key(other, TRUTH, settings=TERMS).mark(said) == KEY.mark(said)


def test_what_the_truth_or_the_prompt_does_not_hold_costs_nothing() -> None:
    placeless = generated(None, 1_000_000, 2_000_000)
    assert "box" not in key(placeless, settings=TERMS).mark(fake()).parts
    no_time = key(TRUTH, settings=TERMS, prompt="fine-tuning-no-both")
    assert no_time.mark(fake(TRUTH.box)).total == pytest.approx(1, abs=1e-4)


def test_bars_lie_at_what_a_constant_reaches_and_can_be_named() -> None:
    assert 0.1 < TERMS.box_bar < 0.4
    assert 0.1 < TERMS.onset_bar < 0.5
    same = [generated(Box(0.2, 0.2, 0.6, 0.6), 1_000_000, 2_000_000)] * 20
    assert settled(same).box_bar == 1
    assert settled(TRUTHS, bar=0.5).onset_bar == 0.5
    assert settled([]).box_bar == 0.25


def test_a_realism_score_earns_by_its_distance() -> None:
    marked = AnswerKey(
        protocol="realism", prompt="paper", space=None, truths=(Rating(score=4),), terms=TERMS
    )
    paid = [marked.mark(f"<answer>{score}</answer>").total for score in (4, 3, 2, 1)]
    assert paid == sorted(paid, reverse=True)
    assert paid[0] == 1
    assert paid[1] == marked.mark("<answer>5</answer>").total
    assert marked.mark("<answer>4.5</answer>").total == 0


def test_a_key_survives_the_trip_as_json() -> None:
    keys = [
        KEY,
        key(TRUTHS[0], settings=TERMS),
        AnswerKey(protocol="reality", prompt="direct", space=None, truths=(Real(),), terms=TERMS),
        AnswerKey(
            protocol="reality", prompt="direct", space=None, truths=(Generated("x"),), terms=TERMS
        ),
    ]
    assert [parse_answer_key(each.write()) for each in keys] == keys


@pytest.mark.parametrize("written", ["", "{}", "[]", '{"protocol": "trace"}', "1" * 100])
def test_a_forged_key_is_refused_in_words(written: str) -> None:
    with pytest.raises(UnreelError):
        parse_answer_key(written)


def test_verl_gets_the_same_reward() -> None:
    """As its reward managers call it: by keyword, with and without what newer ones add."""
    said = fake(TRUTH.box, 1)
    told = {"data_source": "x", "solution_str": said, "ground_truth": KEY.write()}
    assert compute_score(**told, extra_info=None) == KEY.mark(said).total
    assert compute_score(**told, extra_info={"index": 3}, reward_router_address=None) == (
        KEY.mark(said).total
    )
    ended = {**told, "solution_str": said + "<|im_end|>"}  # older managers decode special tokens
    assert compute_score(**ended) == KEY.mark(said).total
    with pytest.raises(UnreelError):
        compute_score(**{**told, "ground_truth": "42"})


def test_ms_swift_gets_the_same_rewards() -> None:
    """As its trainer calls a plug-in: made from its arguments, then columns as lists."""
    texts = [fake(TRUTH.box, 1), REAL_TEXT, ""]
    rewards = SwiftReward(args=object())(
        texts, solution=[KEY.write()] * 3, messages=[[]] * 3, response_token_ids=[[1]] * 3
    )
    assert rewards == [KEY.mark(text).total for text in texts]
