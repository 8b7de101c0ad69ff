"""What of a polished text is taken for a rationale."""

import pytest

from unreel.annotation.campaign import RatingAnswer, VoteAnswer
from unreel.annotation.rationale_polishing import PolishedRationale, parse_polished_rationale
from unreel.core.judgement import ErrorFamily, Label, Rating

WORDS = PolishedRationale("The cup melts.", "It is a noticeable error.")


@pytest.mark.parametrize(
    "text",
    [
        "- Problem Description: The cup melts.\n- Standard Adherence: It is a noticeable error.\n- Conclusion: Normal",
        "Problem Description: The cup melts. Standard Adherence: It is a noticeable error.",
        "**Problem Description**: The cup melts.\n\n**Standard Adherence**: It is a noticeable error.\n\n**Conclusion**: x",
    ],
)
def test_both_parts_are_found_whatever_stands_around_them(text: str) -> None:
    assert parse_polished_rationale(text) == WORDS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The cup melts.",
        "Problem Description: The cup melts.",
        "Standard Adherence: It is so. Problem Description: The cup melts.",
        "Problem Description: \nStandard Adherence: It is a noticeable error.",
    ],
)
def test_a_text_without_both_parts_gives_no_words(text: str) -> None:
    assert parse_polished_rationale(text) is None


def test_only_the_words_of_a_score_are_changed() -> None:
    rating = Rating(score=3, problem="x", adherence="y", family=ErrorFamily.OBJECT_STATES)
    said = WORDS.reworded(RatingAnswer(rating=rating))
    assert said == RatingAnswer(
        rating=Rating(
            score=3,
            problem=WORDS.problem,
            adherence=WORDS.adherence,
            family=ErrorFamily.OBJECT_STATES,
        )
    )
    for other in (RatingAnswer(rating=None), VoteAnswer(label=Label.REAL)):
        assert WORDS.reworded(other) == other
