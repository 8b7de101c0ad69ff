"""Reward model: reviewers that stay open and score clips one at a time or in batches."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeVar

from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Pair
from unreel.core.question import Question
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.core.verdict import PreferenceVerdict, Unparsed, Verdict
from unreel.evaluation.review import build_review_questions, build_reviewer_factories
from unreel.media.access import open_media_reader
from unreel.protocols.answer_text import is_refusal, parse_answer_text
from unreel.protocols.protocol import REVIEWED, Mode, get_protocol
from unreel.protocols.realism import REALISM
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE
from unreel.recipes.validation import drop_unset_keys
from unreel.reviewers.ask import ReviewDispatcher
from unreel.reviewers.contract import ClipInput, InputKind, Reviewer
from unreel.reviewers.factory import (
    ReviewerFactory,
    ReviewerPool,
    ReviewerWithPrices,
    wrap_open_reviewer,
)
from unreel.rewards.calibration import RewardCalibration
from unreel.rewards.formula import compute_reward
from unreel.rewards.result import FORMULA, ReviewerVerdict, Reward


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """Stored text of a reviewer's answer, and the coordinate space of the boxes in it."""

    text: str
    box_space: str | None = None


class QuestionClaimState(Enum):
    """State of a question without a stored answer after a process tried to claim it."""

    OURS = "ours"
    """Claimed by this process, which must ask it now."""
    BUSY = "busy"
    """Claimed by another process that is asking it."""
    INTERRUPTED = "interrupted"
    """Claimed by a process that ended without storing the answer; the question must not be asked twice."""


class AnswerStore(Protocol):
    """Interface of a store of answers by question key; its methods may block and run in threads."""

    def find(self, key: str, /) -> CachedAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""

    def claim(self, key: str, /) -> CachedAnswer | QuestionClaimState:
        """Return the stored answer to the question `key`, or claim the question for this process."""

    def store(self, key: str, answer: CachedAnswer, /) -> None:
        """Store the answer to a claimed question and end the claim."""

    def release(self, key: str, /) -> None:
        """End this process's claim of a question that got no answer."""


T = TypeVar("T")
LoadingInputs = dict[frozenset[InputKind], "asyncio.Task[tuple[ClipInput, ...] | Failure]"]
"""Tasks that load the inputs of one question, by the kinds of input that a reviewer wants."""
_COMPARED: Final = "preference"
_POLL_S: Final = 0.1


class RewardModel:
    """Open reviewers that compute rewards of clips; a context manager.

    All questions are asked in one separate event loop, so that connections stay open between calls.
    The methods may be called from several threads.

    Args:
        models: Names as `--model` takes them, or reviewer objects.
        protocols: Protocols about one clip; each reviewer must answer each protocol.
        condition: Input settings of the questions, for example `{"sampling": "uniform-16"}`.
        parser: `strict` accepts only the requested form; `lenient` also accepts usual variations.
        trusted: Whether files are decoded in this process, without the sandbox.
        calibration: Fitted corrections, each for one reviewer and protocol of this model.
        answers: Cache of answers.
        settings: Settings of the environment; read if missing.
        reviewer: Further keys of `[reviewer]`, for example `deadline_s=30`.
    """

    def __init__(  # noqa: PLR0913  one parameter for each option
        self,
        models: str | Reviewer | Sequence[str | Reviewer],
        *,
        protocols: Sequence[str] = REVIEWED,
        condition: Mapping[str, str] | None = None,
        parser: Mode = "lenient",
        trusted: bool = False,
        calibration: RewardCalibration | Sequence[RewardCalibration] | None = None,
        answers: AnswerStore | None = None,
        settings: EnvironmentSettings | None = None,
        **reviewer: Any,
    ) -> None:
        listed = [models] if isinstance(models, str) or not isinstance(models, Sequence) else models
        names = [model for model in listed if isinstance(model, str)]
        used = settings or read_environment_settings()
        self._inquiry = build_review_questions(
            protocols, condition or {}, mode=parser, models=names
        )
        self._factories = self._describe(listed, used, drop_unset_keys(reviewer))
        self._calibrators = self._match(
            [calibration] if isinstance(calibration, RewardCalibration) else calibration or []
        )
        self._answers = answers
        self._under_way: dict[str, asyncio.Task[CachedAnswer | Failure]] = {}
        self.n_asked = 0
        """Number of questions that were sent to reviewers."""
        self._resources = ExitStack()
        self._reader = self._resources.enter_context(
            open_media_reader(used, trusted=trusted, at_once=("probe", "frames"))
        )
        self._dispatcher = ReviewDispatcher(self._reader)
        self._resources.callback(self._dispatcher.close)
        self._pool = ReviewerPool()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reward-model", daemon=True
        )
        self._thread.start()

    @property
    def identity(self) -> str:
        """Return a digest of all settings that affect a reward; models with one digest are comparable."""
        fitted = [f"{key} {calibrator}" for key, calibrator in sorted(self._calibrators.items())]
        instruments = [str(get_protocol(name).instrument) for name in self._inquiry.protocols]
        reviewers = [factory.name for factory in self._factories]
        condition = str(self._inquiry.condition)
        parts = (FORMULA, self._inquiry.mode, condition, *instruments, *reviewers, *fitted)
        return digest("reward-model", *parts)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Return the names of the parts that rewards of this model have."""
        protocols = {*self._inquiry.protocols}
        measured = {
            "real_probability": {TRACE.instrument.protocol, REALITY.instrument.protocol}
            & protocols,
            "realism": REALISM.instrument.protocol in protocols,
            "traced_volume": TRACE.instrument.protocol in protocols,
            "agreement": len(self._factories) > 1,
        }
        return tuple(name for name, is_measured in measured.items() if is_measured)

    def score(self, clip: str | Path) -> Reward:
        """Return the reward of the video file `clip`."""
        return self.score_batch([clip])[0]

    def score_batch(self, clips: Sequence[str | Path]) -> list[Reward]:
        """Compute the rewards of several video files concurrently, and return them in order."""
        futures = [self._run(self._score(Path(clip))) for clip in clips]
        return [future.result() for future in futures]

    async def score_async(self, clip: Path, *, content: ClipId) -> Reward:
        """Compute the reward of the video file `clip` with the id `content`."""
        return await asyncio.wrap_future(self._run(self._score(clip, content)))

    async def compare_async(
        self, first: Path, second: Path, contents: tuple[ClipId, ClipId]
    ) -> float | Failure:
        """Return the fraction of answers that call `first` the real clip of the two, in both orders."""
        return await asyncio.wrap_future(self._run(self._compare((first, second), contents)))

    def close(self) -> None:
        """Close the reviewers and the media reader; a second call does nothing."""
        if self._loop.is_closed():
            return
        self._run(self._pool.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _score(self, file: Path, content: ClipId | None = None) -> Reward:
        clip = await asyncio.to_thread(self._survey, file, content)
        if isinstance(clip, Failure):
            return Reward(value=None, failure=clip)
        inputs: LoadingInputs = {}
        judging = [
            self._judge(name, (clip,), self._pool.open(factory), inputs)
            for name in self._inquiry.protocols
            for factory in self._factories
        ]
        verdicts = await asyncio.gather(*judging)
        calibrators = {key: fitted.apply for key, fitted in self._calibrators.items()}
        return compute_reward(verdicts, clip, calibrators)

    async def _compare(
        self, files: tuple[Path, Path], contents: tuple[ClipId, ClipId]
    ) -> float | Failure:
        clips: list[Clip] = []
        for file, content in zip(files, contents, strict=True):
            clip = await asyncio.to_thread(self._survey, file, content)
            if isinstance(clip, Failure):
                return clip
            clips.append(clip)
        orders = [(tuple(clips), LoadingInputs()), (tuple(reversed(clips)), LoadingInputs())]
        judging = [
            self._judge(_COMPARED, order, self._pool.open(factory), inputs)
            for order, inputs in orders
            for factory in self._factories
        ]
        verdicts = await asyncio.gather(*judging)
        wins = 0
        for index, verdict in enumerate(verdicts):
            outcome = verdict.outcome
            if isinstance(outcome, Failure):
                return outcome
            assert isinstance(outcome, PreferenceVerdict)  # noqa: S101  for the type checker
            if not isinstance(outcome.real, str):
                detail = f"{verdict.reviewer}, {_COMPARED}: cannot read the choice"
                return Failure(FailureReason.MALFORMED_REPLY, detail)
            wins += (outcome.real.value == "first") == (index < len(self._factories))
        return wins / len(verdicts)

    def _survey(self, file: Path, content: ClipId | None) -> Clip | Failure:
        try:
            facts = self._reader.probe(file)
            if isinstance(facts, Failure):
                return facts
            return Clip(id=content or compute_clip_id(file), location=str(file), facts=facts)
        except MediaError as error:
            return error.failure

    async def _judge(
        self, name: str, clips: tuple[Clip, ...], opened: ReviewerWithPrices, inputs: LoadingInputs
    ) -> ReviewerVerdict:
        subject = clips[0].id if len(clips) == 1 else Pair(clips[0].id, clips[1].id)
        question = Question(
            subject=subject,
            instrument=get_protocol(name).instrument,
            condition=self._inquiry.condition,
        )
        reviewer = opened.reviewer.name
        key = question.key(reviewer)
        if key not in self._under_way:
            task = asyncio.create_task(self._ask_once(key, question, clips, opened, inputs))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # A cancelled caller does not cancel the question: its answer is stored for the next caller.
        answer = await asyncio.shield(self._under_way[key])
        return ReviewerVerdict(reviewer, name, self._read(answer, name, clips[0]))

    def _read(self, answer: CachedAnswer | Failure, name: str, clip: Clip) -> Verdict | Failure:
        if isinstance(answer, Failure):
            return answer
        verdict = parse_answer_text(
            answer.text,
            get_protocol(name),
            prompt=self._inquiry.condition.prompt,
            mode=self._inquiry.mode,
            box_space=answer.box_space,
            size=clip.size,
        )
        decision = get_protocol(name).wording.decision(verdict)
        if not isinstance(decision, Unparsed) or not is_refusal(answer.text):
            return verdict
        return Failure(FailureReason.REFUSED, "it refused to answer")

    async def _ask_once(
        self,
        key: str,
        question: Question,
        clips: tuple[Clip, ...],
        opened: ReviewerWithPrices,
        inputs: LoadingInputs,
    ) -> CachedAnswer | Failure:
        """Return the stored answer, or ask the question and store its answer; failures are not stored."""
        store = self._answers
        if store is not None and (known := await asyncio.to_thread(store.find, key)):
            return known
        wants = opened.reviewer.wants
        if wants not in inputs:
            loading = self._dispatcher.show(clips, question.condition, wants)
            inputs[wants] = asyncio.create_task(loading)
        clip_inputs = await asyncio.shield(inputs[wants])
        if store is not None:  # claimed late, so that few claims are interrupted
            claimed = await asyncio.to_thread(store.claim, key)
            while claimed is QuestionClaimState.BUSY:
                await asyncio.sleep(_POLL_S)
                claimed = await asyncio.to_thread(store.claim, key)
            if claimed is QuestionClaimState.INTERRUPTED:
                detail = "the process that asked this question ended before it stored the answer"
                return Failure(FailureReason.WORKER_DIED, detail)
            if isinstance(claimed, CachedAnswer):
                return claimed
        answer: CachedAnswer | None = None
        try:
            self.n_asked += not isinstance(clip_inputs, Failure)
            result = await self._dispatcher.put(question, clip_inputs, opened)
            if isinstance(result.outcome, Failure):
                return result.outcome
            answer = CachedAnswer(result.outcome.text, result.box_space)
            return answer
        finally:
            if store is not None and answer is not None:
                await asyncio.to_thread(store.store, key, answer)
            elif store is not None:
                await asyncio.to_thread(store.release, key)

    def _describe(
        self,
        models: Sequence[str | Reviewer],
        settings: EnvironmentSettings,
        keys: Mapping[str, Any],
    ) -> tuple[ReviewerFactory, ...]:
        factories: dict[str, ReviewerFactory] = {}
        for model in models:
            if isinstance(model, str):
                (factory,) = build_reviewer_factories(
                    [model], self._inquiry, settings=settings, **keys
                )
            else:
                factory = wrap_open_reviewer(model)
            factories[factory.name] = factory
        if not factories:
            setting, problem = "models", "none is named"
            raise InvalidSettingError(setting, problem, "Name a model, for example 'openai/gpt-5'")
        return tuple(factories.values())

    def _match(
        self, calibrations: Sequence[RewardCalibration]
    ) -> dict[tuple[str, str], RewardCalibration]:
        """Return the calibrations by reviewer and protocol.

        Raises:
            InvalidSettingError: A calibration is for another reviewer, protocol, condition or parser.
        """
        reviewers = {factory.name for factory in self._factories}
        instruments = {str(get_protocol(name).instrument): name for name in self._inquiry.protocols}
        fitted = {}
        for calibration in calibrations:
            expected = (str(self._inquiry.condition), self._inquiry.mode)
            protocol = instruments.get(calibration.protocol)
            is_same = (calibration.condition, calibration.parser) == expected
            if not is_same or calibration.reviewer not in reviewers or protocol is None:
                setting, problem = "calibration", f"fitted for {calibration.subject}"
                remedy = "Score with that model, protocol, condition and parser, or calibrate another run"
                raise InvalidSettingError(setting, problem, remedy)
            fitted[calibration.reviewer, protocol] = calibration
        return fitted
