"""One question to one reviewer: look up, claim, load the clips, ask, store."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from unreel.asking.answer_store import AnswerStore, AskedQuestionResult, QuestionClaim, StoredAnswer
from unreel.catalogue.owner_prompts import explain_missing_caption, get_prompt_text
from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Question
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.clip_inputs import (
    ClipInputLoader,
    FindChange,
    OpenFile,
    build_review_request,
    provide_local_path,
    report_no_clip_change,
)
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.factory import ReviewerWithPrices
from unreel.reviewers.message_parts import build_rejected_request_failure

_POLL_S = 0.1
LoadedInputs = tuple[ClipInput, ...] | Failure


class SharedInputs:
    """Inputs of clips under one condition; reviewers that want the same input kinds share them."""

    def __init__(self, asker: "Asker", clips: Sequence[Clip], condition: Condition) -> None:
        self._asker, self._clips, self._condition = asker, clips, condition
        self._tasks: dict[frozenset[InputKind], asyncio.Task[LoadedInputs]] = {}

    async def load(self, input_kinds: frozenset[InputKind]) -> LoadedInputs:
        """Return the input kinds `input_kinds` of each clip, or the failure of the first unusable clip."""
        if input_kinds not in self._tasks:
            loading = self._asker.load(self._clips, self._condition, input_kinds)
            self._tasks[input_kinds] = asyncio.create_task(loading)
        return await self._tasks[input_kinds]

    def get_loaded(self, input_kinds: frozenset[InputKind]) -> tuple[ClipInput, ...]:
        """Return the inputs if they are loaded; empty if they are not, or could not be."""
        task = self._tasks.get(input_kinds)
        inputs = task.result() if task is not None and task.done() else ()
        return () if isinstance(inputs, Failure) else inputs


class Asker:
    """Sends questions to reviewers concurrently; a stored answer is returned without a request.

    With a store, concurrent callers of one question share one request, and a cancelled caller does
    not cancel it: its answer is stored for the next caller.

    Args:
        reader: Opens clips; it must outlive the asker.
        answers: Store of answers; `None` if the caller stores them.
        open_file: Converts a clip's location to a file.
        find_change: Checks whether a file has changed after its clip was loaded.
    """

    def __init__(
        self,
        reader: MediaReader,
        *,
        answers: AnswerStore | None = None,
        open_file: OpenFile = provide_local_path,
        find_change: FindChange = report_no_clip_change,
    ) -> None:
        self._loader = ClipInputLoader(reader=reader, open_file=open_file, find_change=find_change)
        self._answers = answers
        self._under_way: dict[str, asyncio.Task[AskedQuestionResult]] = {}
        # Unlike requests, decoding is CPU-bound: one thread per processor.
        self._decoders = ThreadPoolExecutor(os.cpu_count(), "decoder")
        self.n_questions = 0
        """Number of questions that were sent to reviewers."""

    async def ask(
        self,
        question: Question,
        clips: Sequence[Clip] | SharedInputs,
        reviewer_with_price: ReviewerWithPrices,
        *,
        prompt: str = "",
        name: str = "",
        caption: str = "",
    ) -> AskedQuestionResult:
        """Return the stored answer of the reviewer `reviewer_with_price` to `question`, or ask and store it.

        `prompt` is the text for a question without a protocol. `name` is the name of the clips in a
        benchmark, and `caption` the prompt of their generator.
        """
        inputs = (
            clips
            if isinstance(clips, SharedInputs)
            else SharedInputs(self, clips, question.condition)
        )
        if self._answers is None:
            return await self._send(question, inputs, reviewer_with_price, prompt, name, caption)
        key = question.key(reviewer_with_price.reviewer.name)
        if key not in self._under_way:
            task = asyncio.create_task(
                self._look_up_or_send(
                    self._answers, question, inputs, reviewer_with_price, prompt, name, caption
                )
            )
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(self._under_way[key])

    async def load(
        self, clips: Sequence[Clip], condition: Condition, input_kinds: frozenset[InputKind]
    ) -> LoadedInputs:
        """Load the input kinds `input_kinds` of each clip; return the failure of the first unusable clip."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._decoders, self._loader.show, clips, condition, input_kinds
        )

    def close(self) -> None:
        """Stop the decoders. The caller must close the media reader, which it opened."""
        self._decoders.shutdown(wait=True, cancel_futures=True)

    async def _look_up_or_send(
        self,
        answers: AnswerStore,
        question: Question,
        inputs: SharedInputs,
        reviewer_with_price: ReviewerWithPrices,
        prompt: str,
        name: str,
        caption: str,
    ) -> AskedQuestionResult:
        reviewer = reviewer_with_price.reviewer
        key = question.key(reviewer.name)
        outcome: StoredAnswer | QuestionClaim | None = await asyncio.to_thread(answers.find, key)
        if outcome is None:
            await inputs.load(reviewer.wants)  # before the claim, so that few are interrupted
            outcome = await asyncio.to_thread(answers.claim, key)
            while outcome is QuestionClaim.BUSY:
                await asyncio.sleep(_POLL_S)
                outcome = await asyncio.to_thread(answers.claim, key)
        if outcome is not QuestionClaim.OURS:
            reply: Reply | Failure
            if isinstance(outcome, StoredAnswer):
                reply, box_space = outcome.reply, outcome.box_space
            else:
                detail = "the process that asked this question ended before it stored the answer"
                reply, box_space = Failure(FailureReason.WORKER_DIED, detail), None
            clip_inputs = inputs.get_loaded(reviewer.wants)
            return _build_result(
                question, clip_inputs, reviewer_with_price, reply, prompt, box_space
            )
        result: AskedQuestionResult | None = None
        try:
            result = await self._send(question, inputs, reviewer_with_price, prompt, name, caption)
            return result
        finally:
            if result is not None and isinstance(result.outcome, Reply):
                await asyncio.to_thread(answers.store, result, result.outcome)
            else:
                await asyncio.to_thread(answers.release, key)

    async def _send(
        self,
        question: Question,
        inputs: SharedInputs,
        reviewer_with_price: ReviewerWithPrices,
        prompt: str,
        name: str,
        caption: str,
    ) -> AskedQuestionResult:
        reviewer = reviewer_with_price.reviewer
        clip_inputs = await inputs.load(reviewer.wants)
        if isinstance(clip_inputs, Failure):
            return _build_result(question, (), reviewer_with_price, clip_inputs, prompt, None)
        if not prompt and (reason := explain_missing_caption(question.condition.prompt, caption)):
            failure = build_rejected_request_failure(reason)
            return _build_result(question, clip_inputs, reviewer_with_price, failure, prompt, None)
        request = build_review_request(
            question,
            clip_inputs,
            key=question.key(reviewer.name),
            prompt=prompt,
            name=name,
            caption=caption,
        )
        self.n_questions += 1
        box_space = reviewer.box_space(clip_inputs[0])
        outcome = await reviewer.answer(request)
        return _build_result(question, clip_inputs, reviewer_with_price, outcome, prompt, box_space)


def _build_result(
    question: Question,
    inputs: tuple[ClipInput, ...],
    reviewer_with_price: ReviewerWithPrices,
    outcome: Reply | Failure,
    prompt: str,
    box_space: str | None,
) -> AskedQuestionResult:
    usage, price = outcome.usage, reviewer_with_price.price
    return AskedQuestionResult(
        reviewer=reviewer_with_price.reviewer.name,
        question=question,
        prompt=prompt
        or get_prompt_text(get_protocol(question.instrument.protocol), question.condition.prompt),
        inputs=inputs,
        box_space=box_space,
        outcome=outcome,
        cost_usd=None if usage is None or price is None else price.cost_usd(usage),
    )
