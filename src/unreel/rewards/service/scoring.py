"""Scoring of the items of a request: cache, shared computations, deadlines and the log."""

import asyncio
import os
import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

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
from unreel.rewards.model import RewardScorer
from unreel.rewards.result import Reward
from unreel.rewards.service.canaries import read_canary_pairs, score_canary_pair
from unreel.rewards.service.log import RewardLog, RewardServiceMetrics, build_log_row
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
from unreel.webapp.refusals import STOPPED, RequestRefusedError, build_overload_refusal
from unreel.webapp.tokens import TokenRateLimiter, TokenSettings, call_when_ended

_CLIP_FOLDERS = "unreel-reward-"
_DRAW = secrets.SystemRandom()
_WATCH_S = 0.2
_REMEMBERED = 4096
_ID_LENGTH = 32
_MEASURE_CLIP = LazyImport("unreel.rewards.guards.facts:measure_clip_facts")
TIE = 0.5
"""Outcome of a comparison of identical clips, and of contradictory answers."""
T = TypeVar("T")
Work = set[asyncio.Task[Any]]
"""Tasks of one request, which may run longer than its deadline."""
ClipJob = tuple[asyncio.Task[None], asyncio.Future[ScoredClip]]
"""Task that scores and measures a clip, and the result of its first part."""


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
        _remove_folders_of_ended_processes()
        prefix = f"{_CLIP_FOLDERS}{os.getpid()}-"
        folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        self._folder = OutputDirectory(Path(folder))
        self._canaries = read_canary_pairs(settings.canaries) if settings.canaries else ()
        self._log = RewardLog(settings.log) if settings.log else None
        self._recent: OrderedDict[str, ScoredClip] = OrderedDict()
        self._measured: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """Facts and held-out reward of newly scored clips, as columns of the log, by reward id."""
        self._under_way: dict[str, ClipJob] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._limiter = TokenRateLimiter()
        self._is_draining = False
        self.stop_reason: str | None = None
        """Reason with which requests are refused (status 503); `None` if they are accepted."""
        self.metrics = RewardServiceMetrics()
        for name, text, read in (
            ("pending", "Clips that are being scored.", lambda: self.n_pending),
            ("questions", "Questions sent.", lambda: self.n_questions),
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
    ) -> RewardScorer:
        settings = self.settings
        return RewardScorer(
            models,
            protocols=settings.protocols,
            condition=settings.condition,
            parser=settings.parser,
            trusted=settings.trusted,
            calibration=[read_calibration(path) for path in calibrations],
            answers=self._store,
            **settings.reviewer,
        )

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
        """Return the number of clips that are being scored or measured, and of canaries."""
        return len(self._under_way) + len(self._background)

    @property
    def n_questions(self) -> int:
        """Return the number of questions that were sent to reviewers."""
        held_out = self._held_out.n_questions if self._held_out else 0
        return self._model.n_questions + held_out

    async def score(
        self,
        items: Sequence[RewardRequestItem],
        *,
        deadline_s: float,
        token: TokenSettings | None,
        work: Work,
    ) -> list[ItemReward]:
        """Return the rewards of `items` in order, within `deadline_s` seconds, and log them.

        An item that is not scored in time has a failure; its answers are stored for the next request.
        Tasks that may run longer are added to `work`, and `token` is charged until they end.

        Raises:
            RequestRefusedError: The token or the service has reached its limit, or the log cannot be written.
        """
        until_s = self._compute_deadline(deadline_s)
        admission = self._limiter.admit(token, len(items), work)
        with admission, self.metrics.seconds.time():
            self._require_capacity(len(items))
            results = await asyncio.gather(*(self._score(item, until_s, work) for item in items))
        if self._log is not None:
            self._write_log(self._log, items, results)
        for result in results:
            failure = result.reward.failure
            outcome = failure.reason.value if failure else "value"
            self.metrics.items.labels(outcome, str(result.cached).lower()).inc()
        return results

    async def score_request(
        self, items: Sequence[RewardRequestItem], state: Any
    ) -> list[tuple[RewardRequestItem, Reward]]:
        """Return items with rewards, within the default deadline; `state` is that of the request."""
        left_s = max(0.0, state.began_s + self.settings.deadline_s - time.monotonic())
        scored = await self.score(items, deadline_s=left_s, token=state.token, work=state.work)
        return [(item, each.reward) for item, each in zip(items, scored, strict=True)]

    async def compare(
        self,
        items: Sequence[RewardRequestItem],
        *,
        deadline_s: float,
        token: TokenSettings | None,
        work: Work,
    ) -> list[ItemComparison]:
        """Compare all pairs of `items`, each in both orders; the arguments are those of `score`."""
        until_s, files = self._compute_deadline(deadline_s), ExitStack()
        with self._limiter.admit(token, len(items), work):
            self._require_capacity(len(items))
            try:
                placing = (self._place(item, files, until_s, work) for item in items)
                clips = await asyncio.gather(*placing)
                pairs = combinations(range(len(items)), 2)
                compared = (self._compare_pair(pair, clips, until_s, work) for pair in pairs)
                return list(await asyncio.gather(*compared))
            finally:
                call_when_ended(work, files.close)

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
        under_way = [*(task for task, _ in self._under_way.values()), *self._background]
        if self._watcher is not None:
            under_way.append(self._watcher)
        if under_way:
            await asyncio.wait(under_way, timeout=self.settings.deadline_s)

    async def close(self) -> None:
        """Close the models, the cache and the log."""
        await self._model.close()
        if self._held_out is not None:
            await self._held_out.close()
        await asyncio.to_thread(self._resources.close)
        if self._log is not None:
            self._log.close()

    def _compute_deadline(self, deadline_s: float) -> float:
        return asyncio.get_running_loop().time() + min(deadline_s, self.settings.deadline_s)

    def _require_capacity(self, n_items: int) -> None:
        if self.n_pending + n_items > self.settings.max_pending:
            raise build_overload_refusal(f"{self.n_pending} clips are being scored. Retry later")

    async def _score(self, item: RewardRequestItem, until_s: float, work: Work) -> ItemReward:
        reward_id, content, cached = "", UNKNOWN_CLIP, False
        verdicts: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout_at(until_s):
                media, content = await self._read(item, work)
                reward_id = digest(self._identity, content)[:_ID_LENGTH]
                scored = await self.find_reward(reward_id)
                cached = scored is not None
                scored = scored or await self._share(reward_id, content, media, work)
                reward, verdicts = scored.reward, scored.verdicts
        except TimeoutError:
            reward = _build_failed_reward(
                FailureReason.OUT_OF_TIME, "not scored before the deadline"
            )
        except MediaError as error:
            reward = Reward(value=None, failure=error.failure)
        except SQLAlchemyError as error:
            reward = _build_failed_reward(FailureReason.STAGE_FAILED, _format_safe_error(error))
        return ItemReward(
            id=item.id,
            reward_id=reward_id,
            content=content,
            reward=reward,
            verdicts=verdicts,
            cached=cached,
        )

    async def _follow_log(self, guards: LiveRewardGuards) -> None:
        while not self._is_draining:
            await asyncio.sleep(_WATCH_S)
            self.stop_reason = await asyncio.to_thread(guards.update)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start `work` in the background, so that the reply is not delayed; `drain` waits until it ends."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _write_log(
        self, log: RewardLog, items: Sequence[RewardRequestItem], results: Sequence[ItemReward]
    ) -> None:
        """Write a row for each result of a request, and start the canaries of its new clips."""
        pairs = list(zip(items, results, strict=True))
        rows = [build_log_row(*pair) | self._measured.get(pair[1].reward_id, {}) for pair in pairs]
        try:
            log.append(rows)
        except OSError as error:
            problem = f"the log cannot be written: {error.strerror}"
            raise RequestRefusedError(STOPPED, "log", problem, 5.0) from None
        for item, result in pairs:
            if self._canaries and not result.cached and _DRAW.random() < self.settings.canary_rate:
                canaries = _DRAW.choice(self._canaries)
                self._start(score_canary_pair(canaries, self._model, log, step=item.step))

    async def _read(
        self, item: RewardRequestItem, work: Work
    ) -> tuple[FileBytes | FrameArray, ClipId]:
        def read() -> tuple[FileBytes | FrameArray, ClipId]:
            media = load_media_source(item.video, self.settings)
            return media, media.identify()

        return await _wait_for(asyncio.to_thread(read), work)

    def _write(self, name: str, media: FileBytes | FrameArray) -> Path:
        return self._folder.write(name, media.read())

    async def _share(
        self, reward_id: str, content: ClipId, media: FileBytes | FrameArray, work: Work
    ) -> ScoredClip:
        """Return the scored clip of a reward; concurrent requests for one reward share one computation."""
        if reward_id not in self._under_way:
            result: asyncio.Future[ScoredClip] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._compute(reward_id, content, media, result))
            self._under_way[reward_id] = (task, result)
            task.add_done_callback(lambda _: self._under_way.pop(reward_id, None))
        task, result = self._under_way[reward_id]
        work.add(task)
        return await asyncio.shield(result)

    async def _compute(
        self,
        reward_id: str,
        content: ClipId,
        media: FileBytes | FrameArray,
        result: asyncio.Future[ScoredClip],
    ) -> None:
        """Set `result` to the scored clip; then, if there is a log, measure the clip for it."""
        name = f"{reward_id}.mp4"
        try:
            path = await asyncio.to_thread(self._write, name, media)
            reward = await self._model.score_async(path, content=content)
            scored = ScoredClip(reward, convert_verdicts_to_json(reward))
            if reward.value is not None:
                document = serialise_scored_clip(scored)
                await asyncio.to_thread(self._store.write_reward, reward_id, document)
                self._remember(reward_id, scored)
            result.set_result(scored)
            if self._log is not None and reward.value is not None:
                await self._measure(self._log, reward_id, path, content)
        except Exception as error:  # noqa: BLE001  one clip must not end the others
            reason = _format_safe_error(error)
            if not result.done():  # otherwise the reward stays in the log without facts
                failed = _build_failed_reward(FailureReason.STAGE_FAILED, reason)
                result.set_result(ScoredClip(failed))
        finally:
            self._folder.remove(name)

    async def _measure(self, log: RewardLog, reward_id: str, path: Path, content: ClipId) -> None:
        """Write the facts and the held-out reward of a newly scored clip into the log."""
        held_out = None
        if self._held_out is not None:
            held_out = (await self._held_out.score_async(path, content=content)).value
        facts = await asyncio.to_thread(_MEASURE_CLIP, path)
        self._measured[reward_id] = {"facts": facts, "held_out": held_out}
        _drop_oldest_entries(self._measured)
        log.append([{"measured": reward_id, **self._measured[reward_id]}])

    async def _place(
        self, item: RewardRequestItem, files: ExitStack, until_s: float, work: Work
    ) -> tuple[ClipId, Path] | Failure:
        """Write an item's clip to a file, deleted with `files`; return clip id and path, or the failure."""
        try:
            async with asyncio.timeout_at(until_s):
                media, content = await self._read(item, work)
                name = f"{content}-{id(files):x}.mp4"
                files.callback(self._folder.remove, name)
                path = await _wait_for(asyncio.to_thread(self._write, name, media), work)
        except TimeoutError:
            return Failure(FailureReason.OUT_OF_TIME, "not read before the deadline")
        except MediaError as error:
            return error.failure
        return content, path

    async def _compare_pair(
        self,
        pair: tuple[int, int],
        clips: Sequence[tuple[ClipId, Path] | Failure],
        until_s: float,
        work: Work,
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
                    comparing = self._model.compare_async(first[1], second[1], contents)
                    outcome = await _wait_for(comparing, work)
        except TimeoutError:
            outcome = Failure(FailureReason.OUT_OF_TIME, "not compared before the deadline")
        except Exception as error:  # noqa: BLE001  one pair must not end the others
            outcome = Failure(FailureReason.STAGE_FAILED, _format_safe_error(error))
        return ItemComparison(*pair, outcome)

    def _remember(self, reward_id: str, scored: ScoredClip) -> ScoredClip:
        self._recent[reward_id] = scored
        _drop_oldest_entries(self._recent)
        return scored


def _remove_folders_of_ended_processes() -> None:
    """Remove the clips that killed services of this user left in the folder for temporary files."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{_CLIP_FOLDERS}*"):
        pid = folder.name.removeprefix(_CLIP_FOLDERS).partition("-")[0]
        is_own = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
        if is_own and pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            OutputDirectory(parent).remove_folder(folder.name)


async def _wait_for(result: Coroutine[Any, Any, T], work: Work) -> T:
    """Return the result of a task that is added to `work`, and that a deadline of the caller does not end."""
    task = asyncio.create_task(result)
    work.add(task)
    return await asyncio.shield(task)


def _drop_oldest_entries(entries: OrderedDict[str, Any]) -> None:
    while len(entries) > _REMEMBERED:
        entries.popitem(last=False)


def _format_safe_error(error: Exception) -> str:
    """Return the message of a known error, and only the type of a bug: callers may be strangers."""
    known = None if isinstance(error, SQLAlchemyError) else convert_to_unreel_error(error)
    return str(known or type(error).__name__)


def _build_failed_reward(reason: FailureReason, detail: str) -> Reward:
    return Reward(value=None, failure=Failure(reason, detail))
