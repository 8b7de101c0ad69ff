"""What `evaluate` may rely on for every instrument."""

import pytest

from unreel.core.clip import ClipId, Real
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.verdict import Position
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol
from unreel.protocols.trace.ground_truth import TraceTruth

NAMES = ("locate", "preference", "realism", "reality", "trace")
TRUTHS = {
    "locate": LocateTruth(duration_us=1),
    "preference": Position.FIRST,
    "realism": Rating(score=3),
    "reality": Real(),
    "trace": TraceTruth(label=Label.REAL, duration_us=1),
}


def test_an_unknown_instrument_or_prompt_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="realism, reality"):
        get_protocol("realsm")
    with pytest.raises(UnknownNameError, match=r"no trace prompt is named 'papr'.*Did you mean"):
        get_protocol("trace").prompt("papr")


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_give_a_card_without_numbers(name: str) -> None:
    card = get_protocol(name).score([], seed=1)
    assert (card.n_questions, card.n_answered, card.failures, card.unparsed) == (0, 0, {}, {})
    assert card.metrics
    assert all(isinstance(metric.value, Unmeasured) for metric in card.metrics)
    assert all((metric.coverage.parsed, metric.coverage.asked) == (0, 0) for metric in card.metrics)


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_is_counted_by_its_reason_and_is_no_answer(name: str) -> None:
    failed = Failure(FailureReason.OUT_OF_TIME, "slow")
    subject = Pair(ClipId("a"), ClipId("b")) if name == "preference" else ClipId("a")
    card = get_protocol(name).score(
        [ScoredQuestion(subject=subject, truth=TRUTHS[name], outcome=failed)], seed=1
    )
    assert (card.n_questions, card.n_answered) == (1, 0)
    assert card.failures == {"out-of-time": 1}
    assert card.unparsed == {}
    for metric in card.metrics:
        if "-all-" not in metric.name:
            assert isinstance(metric.value, Unmeasured), metric
        assert metric.coverage.parsed == 0


@pytest.mark.parametrize("name", NAMES)
def test_parsing_and_scoring_fit_together_and_repeat_exactly(name: str) -> None:
    found = get_protocol(name)
    texts = [
        "REAL",
        "FAKE",
        "1",
        "2",
        "<answer>1</answer>",
        "<answer>0</answer>",
        "",
        "<answer>4</answer>",
    ]
    reading = AnswerContext(mode="lenient", space=BoxSpace("unit", 1, 1))
    rows = [
        ScoredQuestion(
            subject=Pair(ClipId(f"r{i}"), ClipId(f"g{i}"))
            if name == "preference"
            else ClipId(f"r{i}"),
            truth=TRUTHS[name],
            outcome=found.parse(text, reading),
        )
        for i, text in enumerate(texts)
    ]
    card = found.score(rows, seed=3)
    assert card == found.score(rows, seed=3)
    assert len({metric.name for metric in card.metrics}) == len(card.metrics)
    assert sum(card.unparsed.values()) > 0
