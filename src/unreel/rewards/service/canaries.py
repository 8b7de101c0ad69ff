"""Canaries: clips with a known injected trace, and the same clips without it, scored beside requests."""

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import compute_placeholder_clip_id
from unreel.core.judgement import Label
from unreel.rewards.model import RewardModel
from unreel.rewards.result import Reward
from unreel.rewards.service.items import FileReference, ItemReward, RewardItem
from unreel.rewards.service.log import RewardLog

CanaryPair = Mapping[str, Path]
"""Files `clean` and `injected` of one clip, encoded alike."""


def read_canaries(path: Path) -> list[CanaryPair]:
    """Return the pairs of a benchmark in which the twin of the clip NAME is named NAME+CATEGORY.

    `unreel curate` makes such benchmarks if its recipe has `[inject]`.

    Raises:
        UnreadableSourceError: It is no benchmark.
        InvalidSettingError: It has no pair.
    """
    benchmark = open_benchmark(path)
    entries = {entry.name: entry for entry in benchmark if isinstance(entry, Entry)}
    pairs: list[CanaryPair] = [
        {"clean": Path(benchmark.find(clean)), "injected": Path(benchmark.find(entry))}
        for name, entry in entries.items()
        if (clean := entries.get(name.rpartition("+")[0]))
        and (clean.label, entry.label) == (Label.REAL, Label.GENERATED)
    ]
    if not pairs:
        setting, problem = "--canaries", f"{path} has no clip NAME with a twin NAME+CATEGORY"
        raise InvalidSettingError(setting, problem, "Run `unreel curate` with [inject]")
    return pairs


async def score_canaries(
    pair: CanaryPair, model: RewardModel, log: RewardLog, *, step: int | None
) -> None:
    """Score a pair and log it as one group. New ids make new questions: no stored answer is taken."""
    group = f"canary-{secrets.token_hex(8)}"

    async def score(kind: str, file: Path) -> ItemReward:
        content = compute_placeholder_clip_id(group, kind)
        try:
            reward = await model.score_async(file, content=content)
        except Exception as error:  # noqa: BLE001  a failed canary is a row with a reason
            failure = Failure(FailureReason.STAGE_FAILED, type(error).__name__)
            reward = Reward(value=None, failure=failure)
        return ItemReward(id=None, reward_id="", content=content, reward=reward)

    results = await asyncio.gather(*(score(kind, file) for kind, file in pair.items()))
    for (kind, file), result in zip(pair.items(), results, strict=True):
        item = RewardItem(video=FileReference(str(file)), step=step, group=group)
        log.append(item, result, facts=None, held_out=None, canary=kind)
