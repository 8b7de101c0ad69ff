"""One question to one reviewer: which requests are sent, and what is stored."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from scripted import ScriptedReviewer
from synthesise import ClipRecipe, synthesise
from unreel.asking.answer_store import MemoryAnswerStore, QuestionResult
from unreel.asking.asker import Asker
from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Question
from unreel.core.settings import EnvironmentSettings
from unreel.evaluation.review import probe_clip_file
from unreel.media.access import open_media_reader
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.factory import ReviewerWithPrices

Ask = Callable[[], Awaitable[QuestionResult]]


@pytest.fixture(scope="module")
def clip_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "clip.mp4"
    file.write_bytes(synthesise(ClipRecipe(n_frames=6, width=96, height=64, seed=1)))
    return file


def run(
    clip_file: Path,
    reviewer: Any,
    work: Callable[[Ask], Awaitable[Any]],
    *,
    store: MemoryAnswerStore | None = None,
) -> Any:
    """Return the result of `work`, which gets a function that asks `reviewer` about the clip."""
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        clip = probe_clip_file(clip_file, reader)
        assert isinstance(clip, Clip)
        question = Question(
            subject=clip.id, instrument=get_protocol("reality").instrument, condition=Condition()
        )
        asker = Asker(reader, answers=store)

        async def ask() -> QuestionResult:
            return await asker.ask(question, [clip], ReviewerWithPrices(reviewer))

        async def go() -> Any:
            return await work(ask)

        try:
            return asyncio.run(go())
        finally:
            asker.close()


async def ask_twice(ask: Ask) -> list[QuestionResult]:
    return [await ask(), await ask()]


def test_a_stored_answer_is_not_requested_again(clip_file: Path) -> None:
    reviewer = ScriptedReviewer()
    first, second = run(clip_file, reviewer, ask_twice, store=MemoryAnswerStore())
    assert len(reviewer.keys) == 1
    assert (second.outcome, second.box_space) == (first.outcome, first.box_space)


def test_without_a_store_each_call_is_a_request(clip_file: Path) -> None:
    reviewer = ScriptedReviewer()
    run(clip_file, reviewer, ask_twice)
    assert len(reviewer.keys) == 2


def test_a_failure_is_not_stored(clip_file: Path) -> None:
    failure = Failure(FailureReason.REFUSED, "no")
    reviewer = ScriptedReviewer(answers={"reality": failure})
    results = run(clip_file, reviewer, ask_twice, store=MemoryAnswerStore())
    assert [result.outcome for result in results] == [failure, failure]
    assert len(reviewer.keys) == 2


class SlowReviewer(ScriptedReviewer):
    """Answers after a moment."""

    async def answer(self, request: ReviewRequest) -> Any:
        await asyncio.sleep(0.1)
        return await super().answer(request)


def test_concurrent_callers_share_a_request_and_a_cancelled_one_does_not_end_it(
    clip_file: Path,
) -> None:
    reviewer = SlowReviewer()

    async def work(ask: Ask) -> tuple[QuestionResult, QuestionResult]:
        cancelled, waiting = asyncio.create_task(ask()), asyncio.create_task(ask())  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        return await waiting, await ask()

    shared, stored = run(clip_file, reviewer, work, store=MemoryAnswerStore())
    assert len(reviewer.keys) == 1
    assert shared.outcome == stored.outcome
    assert not isinstance(shared.outcome, Failure)


def test_an_exception_of_a_reviewer_leaves_the_question_to_the_next_caller(clip_file: Path) -> None:
    def fail(_sheet: ReviewRequest) -> Any:
        raise ZeroDivisionError

    reviewer = ScriptedReviewer(act=fail)
    store = MemoryAnswerStore()
    with pytest.raises(ZeroDivisionError):
        run(clip_file, reviewer, ask_twice, store=store)
    reviewer.act = None
    first, _ = run(clip_file, reviewer, ask_twice, store=store)
    assert not isinstance(first.outcome, Failure)
