"""Scoring of the items of a request: cache, shared computations, deadlines and the log."""

import asyncio
import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from prometheus_client import Gauge
from sqlalchemy.exc import SQLAlchemyError

from unreel.core.clip import UNKNOWN_CLIP, ClipId
from unreel.core.content_ids import digest
from unreel.core.errors import MediaError, convert_to_unreel_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import LazyImport
from unreel.reviewers.contract import Reviewer
from unreel.rewards.calibration import read_calibration
from unreel.rewards.guards.live import LiveRewardGuards
from unreel.rewards.model import RewardModel
from unreel.rewards.result import Reward
from unreel.rewards.service.canaries import read_canary_pairs, score_canary_pair
from unreel.rewards.service.log import RewardLog, RewardServiceMetrics
from unreel.rewards.service.request_items import (
    FileBytes,
    FrameArray,
    ItemReward,
    RewardRequestItem,
    ScoredClip,
    convert_verdicts_to_json,
    load_media_source,
    parse_scored_clip,
    serialise_scored_clip,
)
from unreel.rewards.service.settings import RewardServiceSettings
from unreel.rewards.service.store import SqlRewardStore
from unreel.webapp.refusals import build_overload_refusal
from unreel.webapp.tokens import TokenRateLimiter, TokenSettings

_DRAW: Final = secrets.SystemRandom()
_WATCH_S: Final = 0.2
_REMEMBERED: Final = 4096
_ID_LENGTH: Final = 32
_MEASURE_CLIP: Final = LazyImport("unreel.rewards.guards.facts:measure_clip_facts")
TIE: Final = 0.5
"""Outcome of a comparison of identical clips, and of contradictory answers."""
LogExtras = tuple[dict[str, Any] | None, float | None]
"""Facts of a clip and its held-out reward."""


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """Result of the comparison of two items of a request, asked in both orders."""

    first: int
    second: int
    outcome: float | Failure
    """Fraction of answers that prefer `first`."""


class RewardService:
    """Open reward service: scores items with one reward model, one cache and one log."""

    def __init__(self, settings: RewardServiceSettings) -> None:
        self.settings = settings
        self._resources = ExitStack()
        self._store = SqlRewardStore(
            settings.store, lease_s=settings.lease_s, ask_once=settings.ask_once
        )
        self._resources.callback(self._store.close)
        self._model = self._open_model(settings.models, settings.calibrations)
        self._identity = self._model.identity
        self._held_out = self._open_model(settings.held_out) if settings.held_out else None
        folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="unreel-reward-"))
        self._folder = OutputDirectory(Path(folder))
        self._canaries = read_canary_pairs(settings.canaries) if settings.canaries else ()
        self._log = RewardLog(settings.log) if settings.log else None
        self._recent: OrderedDict[str, ScoredClip] = OrderedDict()
        self._extras: OrderedDict[str, asyncio.Task[LogExtras]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[ScoredClip]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._limiter = TokenRateLimiter()
        self._is_draining = False
        self.stop_reason: str | None = None
        """Reason with which requests are refused (status 503); `None` if they are accepted."""
        self.metrics = RewardServiceMetrics()
        for name, text, read in (
            ("pending", "Clips that are being scored.", lambda: self.n_pending),
            ("questions", "Questions sent.", lambda: self.n_asked),
            ("interrupted", "Claims of ended processes.", lambda: self._store.n_interrupted),
        ):
            gauge = Gauge(f"unreel_reward_{name}", text, registry=self.metrics.registry)
            gauge.set_function(read)
        self._guards: LiveRewardGuards | None = None
        if settings.log:
            self._guards = LiveRewardGuards(settings.log, self.metrics.registry, settings.stop_on)
            self._resources.callback(self._guards.close)

    def _open_model(
        self, models: Sequence[str | Reviewer], calibrations: Sequence[Path] = ()
    ) -> RewardModel:
        settings = self.settings
        model = RewardModel(
            models,
            protocols=settings.protocols,
            condition=settings.condition,
            parser=settings.parser,
            trusted=settings.trusted,
            calibration=[read_calibration(path) for path in calibrations],
            answers=self._store,
            **settings.reviewer,
        )
        return self._resources.enter_context(model)

    @property
    def refusal(self) -> str | None:
        """Return the reason why new requests are refused; `None` if they are accepted."""
        return "the service is stopping" if self._is_draining else self.stop_reason

    @property
    def part_names(self) -> tuple[str, ...]:
        """Return the names of the parts that rewards of this service have."""
        return self._model.part_names

    @property
    def n_pending(self) -> int:
        """Return the number of clips that are being scored, and of background tasks for the log."""
        return len(self._under_way) + len(self._background)

    @property
    def n_asked(self) -> int:
        """Return the number of questions that were sent to reviewers."""
        held_out = self._held_out.n_asked if self._held_out else 0
        return self._model.n_asked + held_out

    async def score(
        self, items: Sequence[RewardRequestItem], *, deadline_s: float, token: TokenSettings | None
    ) -> list[ItemReward]:
        """Return the rewards of `items` in order, within `deadline_s` seconds.

        An item that is not scored in time has a failure; its answers are stored for the next request.

        Raises:
            RequestRefusedError: The token or the service has reached its limit.
        """
        until_s = self._compute_deadline(deadline_s)
        with self._limiter.admit(token), self.metrics.seconds.time():
            self._require_room(len(items))
            results = await asyncio.gather(*(self._score(item, until_s) for item in items))
        for result in results:
            failure = result.reward.failure
            outcome = failure.reason.value if failure else "value"
            self.metrics.items.labels(outcome, str(result.cached).lower()).inc()
        return results

    async def score_request(
        self, items: Sequence[RewardRequestItem], state: Any
    ) -> list[tuple[RewardRequestItem, Reward]]:
        """Return items with rewards, within the default deadline; `state` has start time and token."""
        left_s = max(0.0, state.began_s + self.settings.deadline_s - time.monotonic())
        scored = await self.score(items, deadline_s=left_s, token=state.token)
        return [(item, each.reward) for item, each in zip(items, scored, strict=True)]

    async def compare(
        self, items: Sequence[RewardRequestItem], *, deadline_s: float, token: TokenSettings | None
    ) -> list[ItemComparison]:
        """Compare all pairs of `items`, each in both orders, and return the comparisons."""
        until_s = self._compute_deadline(deadline_s)
        with self._limiter.admit(token), ExitStack() as files:
            self._require_room(len(items))
            clips = await asyncio.gather(*(self._place(item, files, until_s) for item in items))
            pairs = combinations(range(len(items)), 2)
            compared = (self._compare_pair(pair, clips, until_s) for pair in pairs)
            return list(await asyncio.gather(*compared))

    async def find_reward(self, reward_id: str) -> ScoredClip | None:
        """Return the stored reward with the id `reward_id`; `None` if there is none."""
        if reward_id in self._recent:
            self._recent.move_to_end(reward_id)
            return self._recent[reward_id]
        document = await asyncio.to_thread(self._store.read_reward, reward_id)
        return None if document is None else self._remember(reward_id, parse_scored_clip(document))

    async def watch_log(self) -> None:
        """Evaluate the guards on the existing log, and start to evaluate them as it grows."""
        if self._guards is not None:
            self.stop_reason = await asyncio.to_thread(self._guards.update)
            self._watcher = asyncio.create_task(self._follow_log(self._guards))

    async def drain(self) -> None:
        """Refuse new requests, and wait until the running computations and log entries are finished."""
        self._is_draining = True
        under_way = [*self._under_way.values(), *self._extras.values(), *self._background]
        if self._watcher is not None:
            under_way.append(self._watcher)
        if under_way:
            await asyncio.wait(under_way, timeout=self.settings.deadline_s)

    def close(self) -> None:
        """Close the models, the cache and the log."""
        self._resources.close()
        if self._log is not None:
            self._log.close()

    def _compute_deadline(self, deadline_s: float) -> float:
        return asyncio.get_running_loop().time() + min(deadline_s, self.settings.deadline_s)

    def _require_room(self, n_items: int) -> None:
        if self.n_pending + n_items > self.settings.max_pending:
            msg = f"{self.n_pending} clips are being scored. Retry later"
            raise build_overload_refusal(msg)

    async def _score(self, item: RewardRequestItem, until_s: float) -> ItemReward:
        reward_id, content, cached = "", UNKNOWN_CLIP, False
        verdicts: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout_at(until_s):
                media, content = await asyncio.to_thread(self._read, item)
                reward_id = digest(self._identity, content)[:_ID_LENGTH]
                scored = await self.find_reward(reward_id)
                cached = scored is not None
                scored = scored or await self._share(reward_id, content, media)
                reward, verdicts = scored.reward, scored.verdicts
        except TimeoutError:
            reward = _build_failed_reward(
                FailureReason.OUT_OF_TIME, "not scored before the deadline"
            )
        except MediaError as error:
            reward = Reward(value=None, failure=error.failure)
        except SQLAlchemyError as error:
            reward = _build_failed_reward(FailureReason.STAGE_FAILED, _format_safe_error(error))
        result = ItemReward(
            id=item.id,
            reward_id=reward_id,
            content=content,
            reward=reward,
            verdicts=verdicts,
            cached=cached,
        )
        if self._log is not None:
            self._start(self._write_log(item, result))
            if self._canaries and not cached and _DRAW.random() < self.settings.canary_rate:
                self._start(
                    score_canary_pair(
                        _DRAW.choice(self._canaries), self._model, self._log, step=item.step
                    )
                )
        return result

    async def _follow_log(self, guards: LiveRewardGuards) -> None:
        while not self._is_draining:
            await asyncio.sleep(_WATCH_S)
            self.stop_reason = await asyncio.to_thread(guards.update)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start `work` in the background, so that the reply is not delayed; `drain` waits until it ends."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _write_log(self, item: RewardRequestItem, result: ItemReward) -> None:
        assert self._log is not None  # noqa: S101  for the type checker
        extras = self._extras.get(result.reward_id)
        facts, held_out = await extras if extras else (None, None)
        self._log.append(item, result, facts=facts, held_out=held_out)

    def _read(self, item: RewardRequestItem) -> tuple[FileBytes | FrameArray, ClipId]:
        media = load_media_source(item.video, self.settings)
        return media, media.identify()

    def _write(self, name: str, media: FileBytes | FrameArray) -> Path:
        return self._folder.write(name, media.read())

    async def _share(
        self, reward_id: str, content: ClipId, media: FileBytes | FrameArray
    ) -> ScoredClip:
        """Return the scored clip of a reward; concurrent requests for one reward share one computation."""
        if reward_id not in self._under_way:
            task = asyncio.create_task(self._compute(reward_id, content, media))
            self._under_way[reward_id] = task
            task.add_done_callback(lambda _: self._under_way.pop(reward_id, None))
        return await asyncio.shield(self._under_way[reward_id])

    async def _compute(
        self, reward_id: str, content: ClipId, media: FileBytes | FrameArray
    ) -> ScoredClip:
        name = f"{reward_id}.mp4"
        try:
            path = await asyncio.to_thread(self._write, name, media)
            reward = await self._model.score_async(path, content=content)
            scored = ScoredClip(reward, convert_verdicts_to_json(reward))
            if reward.value is not None:
                document = serialise_scored_clip(scored)
                await asyncio.to_thread(self._store.write_reward, reward_id, document)
                self._remember(reward_id, scored)
        except Exception as error:  # noqa: BLE001  one clip must not end the others
            self._folder.remove(name)
            return ScoredClip(
                _build_failed_reward(FailureReason.STAGE_FAILED, _format_safe_error(error))
            )
        if self._log is None or reward.value is None:
            self._folder.remove(name)
        else:
            self._extras[reward_id] = asyncio.create_task(self._measure(path, content))
            _drop_oldest_entries(self._extras)
        return scored

    async def _measure(self, path: Path, content: ClipId) -> LogExtras:
        """Return the facts and the held-out reward of a newly scored clip, then delete its file."""
        try:
            held_out = None
            if self._held_out is not None:
                held_out = (await self._held_out.score_async(path, content=content)).value
            return await asyncio.to_thread(_MEASURE_CLIP, path), held_out
        except Exception:  # noqa: BLE001  a reward is logged without them
            return None, None
        finally:
            self._folder.remove(path.name)

    async def _place(
        self, item: RewardRequestItem, files: ExitStack, until_s: float
    ) -> tuple[ClipId, Path] | Failure:
        """Write an item's clip to a file, deleted with `files`; return clip id and path, or the failure."""
        try:
            async with asyncio.timeout_at(until_s):
                media, content = await asyncio.to_thread(self._read, item)
                name = f"{content}-{id(files):x}.mp4"
                path = await asyncio.to_thread(self._write, name, media)
                files.callback(self._folder.remove, name)
        except TimeoutError:
            return Failure(FailureReason.OUT_OF_TIME, "not read before the deadline")
        except MediaError as error:
            return error.failure
        return content, path

    async def _compare_pair(
        self, pair: tuple[int, int], clips: Sequence[tuple[ClipId, Path] | Failure], until_s: float
    ) -> ItemComparison:
        first, second = (clips[index] for index in pair)
        outcome: float | Failure = TIE
        try:
            if isinstance(first, Failure):
                outcome = first
            elif isinstance(second, Failure):
                outcome = second
            elif first[0] != second[0]:
                async with asyncio.timeout_at(until_s):
                    contents = (first[0], second[0])
                    outcome = await self._model.compare_async(first[1], second[1], contents)
        except TimeoutError:
            outcome = Failure(FailureReason.OUT_OF_TIME, "not compared before the deadline")
        except Exception as error:  # noqa: BLE001  one pair must not end the others
            outcome = Failure(FailureReason.STAGE_FAILED, _format_safe_error(error))
        return ItemComparison(*pair, outcome)

    def _remember(self, reward_id: str, scored: ScoredClip) -> ScoredClip:
        self._recent[reward_id] = scored
        _drop_oldest_entries(self._recent)
        return scored


def _drop_oldest_entries(entries: OrderedDict[str, Any]) -> None:
    while len(entries) > _REMEMBERED:
        entries.popitem(last=False)


def _format_safe_error(error: Exception) -> str:
    """Return the message of a known error, and only the type of a bug: callers may be strangers."""
    known = None if isinstance(error, SQLAlchemyError) else convert_to_unreel_error(error)
    return str(known or type(error).__name__)


def _build_failed_reward(reason: FailureReason, detail: str) -> Reward:
    return Reward(value=None, failure=Failure(reason, detail))
