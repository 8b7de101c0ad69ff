"""Canaries of the reward service: pairs of clips with and without an injected trace."""

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.rewards.model import RewardScorer
from unreel.rewards.result import Reward
from unreel.rewards.service.log import RewardLog, build_log_row
from unreel.rewards.service.request_items import FileReference, ItemReward, RewardRequestItem

CanaryPair = Mapping[str, Path]
"""Paths of the files `clean` and `injected` of one clip, which have the same encoding."""


def read_canary_pairs(path: Path) -> list[CanaryPair]:
    """Return the pairs of clips NAME and NAME+CATEGORY in the benchmark at `path`.

    NAME+CATEGORY is NAME with an injected trace; `unreel curate` makes such benchmarks if its recipe
    has `[inject]`.

    Raises:
        UnreadableSourceError: There is no readable benchmark at `path`.
        InvalidSettingError: The benchmark has no such pair.
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
        raise InvalidSettingError(
            "--canaries",
            f"{path} has no clip NAME with a twin NAME+CATEGORY",
            "Run `unreel curate` with [inject]",
        )
    return pairs


async def score_canary_pair(
    pair: CanaryPair, scorer: RewardScorer, log: RewardLog, *, step: int | None
) -> None:
    """Score and log both clips of a pair as one group, with new ids, so without stored answers."""
    group = f"canary-{secrets.token_hex(8)}"

    async def score(kind: str, file: Path) -> ItemReward:
        content = compute_placeholder_clip_id(group, kind)
        try:
            reward = await scorer.score_async(file, content=content)
        except Exception as error:  # noqa: BLE001  a failed canary is a row with a reason
            failure = Failure(FailureReason.STAGE_FAILED, type(error).__name__)
            reward = Reward(value=None, failure=failure)
        return ItemReward(id=None, reward_id="", content=content, reward=reward)

    results = await asyncio.gather(*(score(kind, file) for kind, file in pair.items()))
    item = RewardRequestItem(video=FileReference(), step=step, group=group)
    rows = zip(pair, results, strict=True)
    log.append([build_log_row(item, result, canary=kind) for kind, result in rows])
