"""Detection of AI-generated video: whether a clip looks generated, where, when and why.

This package exports the domain types and the functions `review`, `reward`, `evaluate`, `open_run`, `score`,
`compare`, `curate`, `open_campaign`, `train`, `run_season`, `rank_season`, `open_benchmark` and `open_media`.
Each name is imported at its first use.
"""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unreel.annotation.agreement import CampaignAgreement
    from unreel.annotation.consensus.outcome import CampaignConsensus
    from unreel.annotation.pairs.ranking import ClipRanking
    from unreel.annotation.progress import CampaignProgress
    from unreel.annotation.publishing.publish import PublicationResult
    from unreel.annotation.quality.summary import CampaignQuality
    from unreel.api.annotation import StoredCampaign, open_campaign
    from unreel.api.arena import rank_season, run_season
    from unreel.api.compare import compare
    from unreel.api.curate import Curated, curate
    from unreel.api.review import review, review_async
    from unreel.api.rewarding import reward
    from unreel.api.runs import Run, evaluate, open_run
    from unreel.api.score import score
    from unreel.api.sources import open_benchmark, open_media
    from unreel.api.training import train
    from unreel.arena.boards.preference import PreferenceRates
    from unreel.arena.boards.standings import LeaderboardRow, SeasonLeaderboard
    from unreel.arena.run.outcome import EntrantRunSummary, SeasonOutcome
    from unreel.benchmarks.entry import Entry, Rejected
    from unreel.benchmarks.loader import Benchmark
    from unreel.core.answer import Reply, Usage
    from unreel.core.box import Box
    from unreel.core.clip import Clip, ClipId, Generated, Origin, Real
    from unreel.core.comparison import Comparison, Comparisons, Difference
    from unreel.core.errors import (
        InvalidSettingError,
        InvalidValueError,
        MachineError,
        MediaError,
        MissingExtraError,
        SandboxError,
        UnknownNameError,
        UnreadableSourceError,
        UnreelError,
        UnsafeTargetError,
    )
    from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Scorecard, Unmeasured
    from unreel.core.facts import AudioFacts, ClipFacts, VideoFacts
    from unreel.core.failure import Failure, FailureReason
    from unreel.core.judgement import Label, Pair, Rating, Vote
    from unreel.core.question import Condition, Instrument, Question
    from unreel.core.span import TimeSpan
    from unreel.core.trace import BoxAt, Category, Trace
    from unreel.core.verdict import (
        Position,
        PreferenceVerdict,
        RealismVerdict,
        RealityVerdict,
        TraceVerdict,
        Unparsed,
        UnparsedReason,
        Verdict,
    )
    from unreel.engine.progress import Progress
    from unreel.evaluation.opinion import Opinion
    from unreel.evaluation.review import Review
    from unreel.media.reader import MediaReader
    from unreel.reviewers.contract import ClipInput, InputKind, Reviewer, ReviewRequest, ShownFrame
    from unreel.rewards.result import Reward
    from unreel.training.result import TrainingResult


__all__ = [
    "AudioFacts",
    "Benchmark",
    "Box",
    "BoxAt",
    "CampaignAgreement",
    "CampaignConsensus",
    "CampaignProgress",
    "CampaignQuality",
    "Category",
    "Clip",
    "ClipFacts",
    "ClipId",
    "ClipInput",
    "ClipRanking",
    "Comparison",
    "Comparisons",
    "Condition",
    "Coverage",
    "Curated",
    "Difference",
    "EntrantRunSummary",
    "Entry",
    "Estimate",
    "Failure",
    "FailureReason",
    "Generated",
    "InputKind",
    "Instrument",
    "InvalidSettingError",
    "InvalidValueError",
    "Label",
    "LeaderboardRow",
    "MachineError",
    "Measured",
    "MediaError",
    "MediaReader",
    "Metric",
    "MissingExtraError",
    "Opinion",
    "Origin",
    "Pair",
    "Position",
    "PreferenceRates",
    "PreferenceVerdict",
    "Progress",
    "PublicationResult",
    "Question",
    "Rating",
    "Real",
    "RealismVerdict",
    "RealityVerdict",
    "Rejected",
    "Reply",
    "Review",
    "ReviewRequest",
    "Reviewer",
    "Reward",
    "Run",
    "SandboxError",
    "Scorecard",
    "SeasonLeaderboard",
    "SeasonOutcome",
    "ShownFrame",
    "StoredCampaign",
    "TimeSpan",
    "Trace",
    "TraceVerdict",
    "TrainingResult",
    "UnknownNameError",
    "Unmeasured",
    "Unparsed",
    "UnparsedReason",
    "UnreadableSourceError",
    "UnreelError",
    "UnsafeTargetError",
    "Usage",
    "Verdict",
    "VideoFacts",
    "Vote",
    "compare",
    "curate",
    "evaluate",
    "open_benchmark",
    "open_campaign",
    "open_media",
    "open_run",
    "rank_season",
    "review",
    "review_async",
    "reward",
    "run_season",
    "score",
    "train",
]

_LAZY = {
    "AudioFacts": "unreel.core.facts",
    "Benchmark": "unreel.benchmarks.loader",
    "Box": "unreel.core.box",
    "BoxAt": "unreel.core.trace",
    "CampaignAgreement": "unreel.annotation.agreement",
    "CampaignConsensus": "unreel.annotation.consensus.outcome",
    "CampaignProgress": "unreel.annotation.progress",
    "CampaignQuality": "unreel.annotation.quality.summary",
    "Category": "unreel.core.trace",
    "Clip": "unreel.core.clip",
    "ClipFacts": "unreel.core.facts",
    "ClipId": "unreel.core.clip",
    "ClipInput": "unreel.reviewers.contract",
    "ClipRanking": "unreel.annotation.pairs.ranking",
    "Comparison": "unreel.core.comparison",
    "Comparisons": "unreel.core.comparison",
    "Condition": "unreel.core.question",
    "Coverage": "unreel.core.estimate",
    "Curated": "unreel.api.curate",
    "Difference": "unreel.core.comparison",
    "EntrantRunSummary": "unreel.arena.run.outcome",
    "Entry": "unreel.benchmarks.entry",
    "Estimate": "unreel.core.estimate",
    "Failure": "unreel.core.failure",
    "FailureReason": "unreel.core.failure",
    "Generated": "unreel.core.clip",
    "InputKind": "unreel.reviewers.contract",
    "Instrument": "unreel.core.question",
    "InvalidSettingError": "unreel.core.errors",
    "InvalidValueError": "unreel.core.errors",
    "Label": "unreel.core.judgement",
    "LeaderboardRow": "unreel.arena.boards.standings",
    "MachineError": "unreel.core.errors",
    "Measured": "unreel.core.estimate",
    "MediaError": "unreel.core.errors",
    "MediaReader": "unreel.media.reader",
    "Metric": "unreel.core.estimate",
    "MissingExtraError": "unreel.core.errors",
    "Opinion": "unreel.evaluation.opinion",
    "Origin": "unreel.core.clip",
    "Pair": "unreel.core.judgement",
    "Position": "unreel.core.verdict",
    "PreferenceRates": "unreel.arena.boards.preference",
    "PreferenceVerdict": "unreel.core.verdict",
    "Progress": "unreel.engine.progress",
    "PublicationResult": "unreel.annotation.publishing.publish",
    "Question": "unreel.core.question",
    "Rating": "unreel.core.judgement",
    "Real": "unreel.core.clip",
    "RealismVerdict": "unreel.core.verdict",
    "RealityVerdict": "unreel.core.verdict",
    "Rejected": "unreel.benchmarks.entry",
    "Reply": "unreel.core.answer",
    "Review": "unreel.evaluation.review",
    "ReviewRequest": "unreel.reviewers.contract",
    "Reviewer": "unreel.reviewers.contract",
    "Reward": "unreel.rewards.result",
    "Run": "unreel.api.runs",
    "SandboxError": "unreel.core.errors",
    "Scorecard": "unreel.core.estimate",
    "SeasonLeaderboard": "unreel.arena.boards.standings",
    "SeasonOutcome": "unreel.arena.run.outcome",
    "ShownFrame": "unreel.reviewers.contract",
    "StoredCampaign": "unreel.api.annotation",
    "TimeSpan": "unreel.core.span",
    "Trace": "unreel.core.trace",
    "TraceVerdict": "unreel.core.verdict",
    "TrainingResult": "unreel.training.result",
    "UnknownNameError": "unreel.core.errors",
    "Unmeasured": "unreel.core.estimate",
    "Unparsed": "unreel.core.verdict",
    "UnparsedReason": "unreel.core.verdict",
    "UnreadableSourceError": "unreel.core.errors",
    "UnreelError": "unreel.core.errors",
    "UnsafeTargetError": "unreel.core.errors",
    "Usage": "unreel.core.answer",
    "Verdict": "unreel.core.verdict",
    "VideoFacts": "unreel.core.facts",
    "Vote": "unreel.core.judgement",
    "compare": "unreel.api.compare",
    "curate": "unreel.api.curate",
    "evaluate": "unreel.api.runs",
    "open_benchmark": "unreel.api.sources",
    "open_campaign": "unreel.api.annotation",
    "open_media": "unreel.api.sources",
    "open_run": "unreel.api.runs",
    "rank_season": "unreel.api.arena",
    "review": "unreel.api.review",
    "review_async": "unreel.api.review",
    "reward": "unreel.api.rewarding",
    "run_season": "unreel.api.arena",
    "score": "unreel.api.score",
    "train": "unreel.api.training",
}

_RENAMED = {"Exhibit": "ClipInput", "Material": "InputKind", "Sheet": "ReviewRequest"}
"""Deprecated names, which go with the next release."""


if not TYPE_CHECKING:  # a type checker knows the names, and no others

    def __getattr__(name: str) -> Any:
        if name in _RENAMED:
            new_name = _RENAMED[name]
            message = f"unreel.{name} is deprecated: use unreel.{new_name}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[__name__], new_name)
        if name not in _LAZY:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
