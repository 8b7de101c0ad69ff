"""Reward model: reviewers that stay open and score clips one at a time or in batches."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from unreel.asking.answer_store import AnswerStore, MemoryAnswerStore
from unreel.asking.asker import Asker, SharedInputs
from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import build_question_subject
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
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.factory import (
    ReviewerFactory,
    ReviewerPool,
    ReviewerWithPrices,
    wrap_open_reviewer,
)
from unreel.rewards.calibration import RewardCalibration
from unreel.rewards.formula import compute_reward
from unreel.rewards.result import FORMULA, ReviewerVerdict, Reward

T = TypeVar("T")
_COMPARED = "preference"


class RewardScorer:
    """Open reviewers that compute rewards of clips concurrently in one event loop.

    Args:
        models: Names as `--model` takes them, or reviewer objects.
        protocols: Protocols about one clip; each reviewer must answer each protocol.
        condition: Input settings of the questions, for example `{"sampling": "uniform-16"}`.
        parser: `strict` accepts only the requested form; `lenient` also accepts usual variations.
        trusted: Whether files are decoded in this process, without the sandbox.
        calibration: Fitted corrections, each for one reviewer and protocol of this model.
        answers: Cache of answers; the last 4,096 in memory by default.
        settings: Settings of the environment; read if missing.
        reviewer: Further keys of `[reviewer]`, for example `deadline_s=30`.
    """

    def __init__(
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
        self._resources = ExitStack()
        self._reader = self._resources.enter_context(
            open_media_reader(used, trusted=trusted, at_once=("probe", "frames"))
        )
        self._asker = Asker(self._reader, answers=answers or MemoryAnswerStore())
        self._resources.callback(self._asker.close)
        self._pool = ReviewerPool()

    @property
    def n_questions(self) -> int:
        """Return the number of questions that were sent to reviewers."""
        return self._asker.n_questions

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

    async def score_async(self, file: Path, *, content: ClipId | None = None) -> Reward:
        """Return the reward of the video file `file`, whose clip id is `content` if it is known."""
        clip = await asyncio.to_thread(self._probe, file, content)
        if isinstance(clip, Failure):
            return Reward(value=None, failure=clip)
        inputs = SharedInputs(self._asker, [clip], self._inquiry.condition)
        judging = [
            self._judge(name, (clip,), self._pool.open(factory), inputs)
            for name in self._inquiry.protocols
            for factory in self._factories
        ]
        verdicts = await asyncio.gather(*judging)
        calibrators = {key: fitted.apply for key, fitted in self._calibrators.items()}
        return compute_reward(verdicts, clip, calibrators)

    async def compare_async(
        self, first: Path, second: Path, contents: tuple[ClipId, ClipId]
    ) -> float | Failure:
        """Return the fraction of answers that call `first` the real clip of the two, in both orders."""
        clips: list[Clip] = []
        for file, content in zip((first, second), contents, strict=True):
            clip = await asyncio.to_thread(self._probe, file, content)
            if isinstance(clip, Failure):
                return clip
            clips.append(clip)
        condition = self._inquiry.condition
        orders = [
            (order, SharedInputs(self._asker, order, condition))
            for order in (tuple(clips), tuple(reversed(clips)))
        ]
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

    async def close(self) -> None:
        """Close the reviewers and the media reader; a second call does nothing."""
        await self._pool.close()
        self._resources.close()

    def _probe(self, file: Path, content: ClipId | None) -> Clip | Failure:
        try:
            facts = self._reader.probe(file)
            if isinstance(facts, Failure):
                return facts
            return Clip(id=content or compute_clip_id(file), location=str(file), facts=facts)
        except MediaError as error:
            return error.failure

    async def _judge(
        self, name: str, clips: tuple[Clip, ...], reviewer: ReviewerWithPrices, inputs: SharedInputs
    ) -> ReviewerVerdict:
        question = Question(
            subject=build_question_subject(*(clip.id for clip in clips)),
            instrument=get_protocol(name).instrument,
            condition=self._inquiry.condition,
        )
        result = await self._asker.ask(question, inputs, reviewer)
        outcome = result.outcome
        if isinstance(outcome, Failure):
            return ReviewerVerdict(result.reviewer, name, outcome)
        verdict: Verdict | Failure = parse_answer_text(
            outcome.text,
            get_protocol(name),
            prompt=self._inquiry.condition.prompt,
            mode=self._inquiry.mode,
            box_space=result.box_space,
            size=clips[0].size,
        )
        decision = get_protocol(name).wording.decision(verdict)
        if isinstance(decision, Unparsed) and is_refusal(outcome.text):
            verdict = Failure(FailureReason.REFUSED, "the reviewer refused to answer")
        return ReviewerVerdict(result.reviewer, name, verdict)

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
            raise InvalidSettingError(
                "models", "none is named", "Name a model, for example 'openai/gpt-5'"
            )
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
                raise InvalidSettingError(
                    "calibration",
                    f"fitted for {calibration.subject}",
                    "Score with that model, protocol, condition and parser, or calibrate another run",
                )
            fitted[calibration.reviewer, protocol] = calibration
        return fitted


class RewardModel:
    """Open reviewers that compute rewards of clips; a context manager.

    All questions are asked in one separate event loop, so that connections stay open between calls.
    The methods may be called from several threads. The arguments are those of `RewardScorer`.
    """

    def __init__(self, models: str | Reviewer | Sequence[str | Reviewer], **settings: Any) -> None:
        self._scorer = RewardScorer(models, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reward-model", daemon=True
        )
        self._thread.start()

    @property
    def identity(self) -> str:
        """Return a digest of all settings that affect a reward; models with one digest are comparable."""
        return self._scorer.identity

    def score(self, clip: str | Path) -> Reward:
        """Return the reward of the video file `clip`."""
        return self.score_batch([clip])[0]

    def score_batch(self, clips: Sequence[str | Path]) -> list[Reward]:
        """Compute the rewards of several video files concurrently, and return them in order."""
        futures = [self._run(self._scorer.score_async(Path(clip))) for clip in clips]
        return [future.result() for future in futures]

    def close(self) -> None:
        """Close the reviewers and the media reader; a second call does nothing."""
        if self._loop.is_closed():
            return
        self._run(self._scorer.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)
