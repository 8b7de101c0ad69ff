import pytest

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    choose_first_parsed,
    find_tag_contents,
    is_refusal_or_error,
    strip_thinking,
)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("<answer>1</answer>", ["1"]),
        ("<answer> 1 \n</answer> and <answer>0</answer>", ["1", "0"]),
        ("<answer><answer>1</answer></answer>", ["1"]),
        ("<answer>a <answer>b</answer>", ["b"]),
        ("<answer> </answer>", []),
        ("</answer>1<answer>", []),
        ("<answer>1", []),
        ("<Answer>1</Answer>", []),
    ],
)
def test_strict_pieces_stand_between_a_tag_and_its_end(text: str, pieces: list[str]) -> None:
    assert find_tag_contents(text, "answer", "strict") == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("<Answer>1</ ANSWER >", ["1"]),
        ("<answer>1", ["1"]),
        ("<answer>1<answer>", ["1"]),
        ("<answer>1<think>2", ["1"]),
        ("<answer>1</answer><answer>", ["1"]),
        ("answer 1", []),
        ("<an\u017fwer>1</an\u017fwer>", []),
    ],
)
def test_lenient_pieces_need_no_end_and_no_letter_case(text: str, pieces: list[str]) -> None:
    assert find_tag_contents(text, "answer", "lenient") == pieces


def test_thoughts_are_left_out_closed_or_not() -> None:
    assert strip_thinking("<think>a</think> b") == " b"
    assert strip_thinking("a</THINK>b</think>c") == "c"
    assert strip_thinking("a<think>b c") == "a"
    assert strip_thinking("<think>a<think>b") == "b"  # as the example of Video Reality Test has it
    assert strip_thinking("<think>a <answer>1</answer>") == "<answer>1</answer>"
    assert strip_thinking("<think>is it <answer>1</answer> or") == ""
    assert strip_thinking("\u25c1think\u25b7a\u25c1/think\u25b7b") == "b"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m really sorry",
        "Sorry, no.",
        "I cannot determine whether this video is FAKE.",
        "I am unable to view the video",
        "Unable to process the request",
        "As an AI language model, REAL or not",
        "I don't have access to videos",
        "No video was provided",
        "Error code: 429 - {'error': 'REAL'}",
        "RateLimitError: slow down",
        "openai.BadRequestError: no",
        "error",
        '{"error": {"message": "REAL.mp4 not found"}}',
        "HTTP/1.1 503 Service Unavailable",
        "500 Internal Server Error",
        "2 validation errors for Request",
        "Traceback (most recent call last)",
        "<!DOCTYPE html><html>REAL</html>",
        '"I apologize',
    ],
)
def test_refusals_and_error_messages_are_no_answers(text: str) -> None:
    assert is_refusal_or_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "I cannot see any fault, so REAL.",
        "Unfortunately, the video is FAKE.",
        "Errors in the hand show that it is FAKE.",
        "I do not see artefacts. REAL",
        "No video artefacts are visible: REAL",
        "The video is FAKE. I am sorry.",
        "",
    ],
)
def test_honest_answers_are_not_taken_for_refusals(text: str) -> None:
    assert not is_refusal_or_error(text)


def test_the_first_reading_wins_and_later_attempts_are_not_made() -> None:
    def attempts() -> "object":
        yield Unparsed(UnparsedReason.MISSING)
        yield 3
        raise AssertionError

    assert choose_first_parsed(attempts()) == 3  # type: ignore[arg-type]


def test_the_reason_of_the_attempt_that_understood_most_stays() -> None:
    missing, malformed = Unparsed(UnparsedReason.MISSING), Unparsed(UnparsedReason.MALFORMED, "x")
    out_of_range = Unparsed(UnparsedReason.OUT_OF_RANGE, "9")
    assert choose_first_parsed([missing, malformed, missing]) == malformed
    assert (
        choose_first_parsed([malformed, out_of_range])
        == choose_first_parsed([out_of_range, malformed])
        == out_of_range
    )
    assert choose_first_parsed([missing]) == missing
    assert choose_first_parsed([]) == missing
