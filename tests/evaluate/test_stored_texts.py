"""An eval stores what the model answered, character by character, and a failure without a score."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.evaluate.job import evaluate

LONG = "".join(f"{number:06d} " for number in range(5_000)) + "é 手\n<answer>1</answer> \n"
"""A text of 35,000 characters in which no two parts are equal; it ends with white space."""


@pytest.mark.parametrize("text", ["<answer>0</answer>", LONG], ids=["short", "long"])
def test_an_answer_is_stored_character_by_character(
    start: Callable[..., Any], server: Any, text: str
) -> None:
    server.text = text
    run = start(model=server.model, limit=1)
    evaluate(run)
    assert [row["text"] for row in run.answers.rows()] == [text]


def test_a_failed_request_is_stored_with_its_reason_and_without_an_answer(
    start: Callable[..., Any], server: Any
) -> None:
    server.status = 400
    run = start(model=server.model, limit=1)
    evaluate(run)
    (row,) = run.answers.rows()
    assert row["failure_reason"] is not None
    assert row["text"] is None
