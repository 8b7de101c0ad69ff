"""A model of this machine keeps the contract of reviewers, alone and in company."""

import asyncio
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from local.sheets import ask, shown
from tiny_models import FAMILIES
from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.reviewers.contract import Reviewer, ReviewRequest
from unreel.reviewers.local.checkpoint import FamilyName, Form, read_checkpoint
from unreel.reviewers.local.reviewer import LocalReviewer
from unreel.testing.reviewers import ReviewerKit, run

pytestmark = pytest.mark.filterwarnings("default")
Tiny = Callable[[FamilyName], Path]


class TestLocalReviewer(ReviewerKit):
    @pytest.fixture(params=["qwen2.5-vl", "qwen3-vl", "videollama3"])
    def reviewer(self, tiny: Tiny, request: pytest.FixtureRequest) -> Reviewer:
        form: Form = "video" if request.param == "qwen2.5-vl" else "frames"
        return LocalReviewer(read_checkpoint(tiny(request.param), form=form), max_tokens=6)


def sheets() -> list[ReviewRequest]:
    """Questions of many lengths and sizes."""
    return [
        ask([shown([Fraction(i, 2) for i in range(n)], size=size, seed=n)], condition=Condition())
        for n, size in (
            (2, (112, 84)),
            (7, (60, 90)),
            (4, (200, 120)),
            (5, (56, 56)),
            (8, (84, 84)),
        )
    ]


async def together(reviewer: Reviewer, asked: Sequence[ReviewRequest]) -> list[Reply | Failure]:
    return await asyncio.gather(*map(reviewer.answer, asked))


async def one_by_one(reviewer: Reviewer, asked: Sequence[ReviewRequest]) -> list[Reply | Failure]:
    return [await reviewer.answer(sheet) for sheet in asked]


@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_the_same_alone_and_together(
    tiny: Tiny, family: FamilyName, form: Form
) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny(family), form=form), max_tokens=12)

    async def both() -> tuple[list[Reply | Failure], list[Reply | Failure]]:
        return await one_by_one(reviewer, sheets()), await together(reviewer, sheets())

    alone, batched = run(reviewer, both)
    texts = [outcome.text for outcome in alone if isinstance(outcome, Reply)]
    assert texts == [outcome.text for outcome in batched if isinstance(outcome, Reply)]
    assert len(set(texts)) > 1
    for outcome in alone:
        assert isinstance(outcome, Reply)
        assert outcome.usage is not None
        assert outcome.usage.input_tokens > 50
        assert 0 < outcome.usage.output_tokens <= 12


def test_a_device_without_room_for_many_answers_fewer_at_once(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny("qwen2.5-vl")), max_tokens=4)
    tried = crowd(reviewer, monkeypatch, room_for=2)
    outcomes = run(reviewer, lambda: together(reviewer, sheets()))
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert max(tried) > 2


def test_a_question_for_which_there_is_no_room_at_all_fails_and_says_what_to_do(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny("qwen2.5-vl")), max_tokens=4)
    crowd(reviewer, monkeypatch, room_for=0)
    for outcome in run(reviewer, lambda: together(reviewer, sheets())):
        assert isinstance(outcome, Failure)
        assert outcome.reason is FailureReason.OUT_OF_MEMORY
        assert "fewer frames" in outcome.detail


def crowd(reviewer: LocalReviewer, monkeypatch: pytest.MonkeyPatch, *, room_for: int) -> list[int]:
    """A device that holds so many questions; how many were tried at once."""
    tried: list[int] = []
    generate = reviewer._generate

    def cramped(encoded: Sequence[object], model: object) -> object:
        tried.append(len(encoded))
        if len(encoded) > room_for:
            msg = "CUDA out of memory. Tried to allocate 20.00 GiB"
            raise torch.OutOfMemoryError(msg)
        return generate(encoded, model)

    monkeypatch.setattr(reviewer, "_generate", cramped)
    return tried


def test_too_long_a_prompt_is_told_with_its_length(tiny: Tiny) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny("qwen2.5-vl")), max_tokens=8190)
    (outcome,) = run(reviewer, lambda: together(reviewer, sheets()[:1]))
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.TOO_LONG
    assert "the model holds 8192" in outcome.detail


def test_questions_that_wait_when_it_is_closed_are_settled(tiny: Tiny) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny("qwen2.5-vl")), max_tokens=4, most=1)

    async def hurried() -> list[Reply | Failure]:
        asked = [asyncio.create_task(reviewer.answer(sheet)) for sheet in sheets()]
        await asked[0]
        await reviewer.close()
        return await asyncio.wait_for(asyncio.gather(*asked), 20)

    outcomes = asyncio.run(hurried())
    assert isinstance(outcomes[0], Reply)
    assert len(outcomes) == len(sheets())


def test_a_cancelled_question_does_not_keep_others_waiting(tiny: Tiny) -> None:
    reviewer = LocalReviewer(read_checkpoint(tiny("qwen2.5-vl")), max_tokens=4)

    async def impatient() -> Reply | Failure:
        first = asyncio.create_task(reviewer.answer(sheets()[0]))
        await asyncio.sleep(0)
        first.cancel()
        return await reviewer.answer(sheets()[1])

    assert isinstance(run(reviewer, impatient), Reply)
