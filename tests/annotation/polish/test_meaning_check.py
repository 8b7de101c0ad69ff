"""A polished text is held against what people wrote, word for word with VideoRealBench's prompt."""

import hashlib
from dataclasses import replace

import pytest

from unreel.annotation.rationale_polishing import (
    OriginalRationales,
    PolishedTextFlag,
    build_polish_prompt,
    check_polished_text,
    read_polish_prompt,
)

# SHA-256 of shared/prompts/vrb-polish.txt, the prompt as printed.
PRINTED = "12e8c6dce92589555e7b2e15acae6ee22b52526dbd1642a687f5bcb3b6e0834a"
ORIGINAL = OriginalRationales(
    task="t",
    name="clip",
    score=2,
    problems=("The cup melts into the table after 2 seconds.", "The cup merges with the table"),
    adherences=("Significant errors in a significant part of the video.",),
)
GOOD = (
    "- Problem Description: The cup melts and merges into the table after 2 seconds.\n"
    "- Standard Adherence: These are significant errors in a significant part of the video.\n"
    "- Conclusion: Poor"
)


def flags(text: str, original: OriginalRationales = ORIGINAL) -> tuple[PolishedTextFlag, ...]:
    return check_polished_text(original, text, encoder=None).flags


def test_the_prompt_is_the_printed_one_to_the_letter() -> None:
    assert hashlib.sha256(read_polish_prompt().encode()).hexdigest() == PRINTED


def test_the_prompt_carries_the_score_and_everybodys_words() -> None:
    asked = build_polish_prompt(ORIGINAL)
    assert asked.startswith(read_polish_prompt().rstrip())
    assert "<Score>: 2" in asked
    for words in (*ORIGINAL.problems, *ORIGINAL.adherences):
        assert words in asked


def test_a_faithful_text_has_no_flags() -> None:
    assert flags(GOOD) == ()
    similarity = check_polished_text(ORIGINAL, GOOD, encoder=None).similarity
    assert similarity is not None
    assert 0.8 < similarity <= 1


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (GOOD.replace("Poor", "Good"), PolishedTextFlag.SCORE),
        (GOOD.replace("Poor", "Poor or Good"), PolishedTextFlag.SCORE),
        (GOOD.replace("Conclusion: Poor", ""), PolishedTextFlag.SCORE),
        (GOOD.replace("Standard Adherence", "Reasons"), PolishedTextFlag.STRUCTURE),
        (GOOD.replace("2 seconds", "3 seconds"), PolishedTextFlag.NUMBERS),
        (GOOD.replace("after 2 seconds", "later"), PolishedTextFlag.NUMBERS),
        (GOOD.replace("melts", "does not melt"), PolishedTextFlag.NEGATION),
        (
            GOOD.replace("The cup melts and merges into the table", "A dog flies"),
            PolishedTextFlag.SIMILARITY,
        ),
        (GOOD + " and so on" * 200, PolishedTextFlag.LENGTH),
    ],
)
def test_changed_meaning_is_flagged(text: str, flag: PolishedTextFlag) -> None:
    assert flag in flags(text)


def test_an_edited_rationale_is_another_original() -> None:
    assert ORIGINAL.key != replace(ORIGINAL, problems=("The cup melts.",)).key
    moved = replace(ORIGINAL, problems=(), adherences=ORIGINAL.problems + ORIGINAL.adherences)
    assert ORIGINAL.key != moved.key
